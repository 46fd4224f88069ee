"""explain(): what a decision rests on. Prototypes, the training series behind them, and the moments that count."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.series import SeriesSet
from pdftime.errors import DataError
from pdftime.fitted import FittedModel
from pdftime.model.prototypes import PrototypeHead

IG_STEPS = 32


@dataclass(frozen=True)
class Neighbour:
    """A training series that stands behind a prototype."""

    index: int
    """Its place in the training data."""
    label: Any
    similarity: float
    """Cosine to the prototype."""


@dataclass(frozen=True)
class PrototypeMatch:
    """One prototype of the predicted class and its part in the score."""

    member: int
    level: int
    number: int
    similarity: float
    """Cosine of the case to the prototype."""
    responsibility: float
    """Its share among the prototypes of the class; they sum to 1 within a level."""
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The evidence for one prediction."""

    predicted: Any
    runner_up: Any
    probability: float
    runner_up_probability: float
    matches: tuple[PrototypeMatch, ...]
    """Prototypes of the predicted class, of every member and level."""
    token_evidence: NDArray[np.float64]
    """(n_tokens,) of the first member: what each token adds to the score; with `entropy` it is the score."""
    entropy: float
    """The part of the score that says that several prototypes agree."""
    score: float
    """The first member's score of the predicted class."""
    input_map: NDArray[np.float64]
    """(n_channels, its length): integrated gradients of the score, members averaged, on the series' own axis."""
    segment: tuple[int, int]
    """First and last time point of the span with the densest positive evidence."""
    channel: str
    """The channel with the most positive evidence."""

    @property
    def best_match(self) -> PrototypeMatch:
        """The deciding-level prototype with the largest responsibility."""
        last = max(match.level for match in self.matches)
        return max((m for m in self.matches if m.level == last), key=lambda match: match.responsibility)

    def summary(self) -> str:
        """Three plain sentences."""
        best = self.best_match
        twins = ", ".join(str(each) for each in dict.fromkeys(n.index for n in best.neighbours[:3]))
        return (
            f"This series is {self.predicted!r} with probability {self.probability:.2f}; "
            f"the runner-up is {self.runner_up!r} with {self.runner_up_probability:.2f}. "
            f"It matches prototype {best.number + 1} of its class with similarity {best.similarity:.2f}, "
            f"behind which stand the training series {twins}. "
            f"What speaks most for it lies between time points {self.segment[0]} and {self.segment[1]} "
            f"of {self.channel}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        state = asdict(self)
        for name in ("token_evidence", "input_map"):
            state[name] = getattr(self, name).tolist()
        return {**state, "summary": self.summary()}


@torch.no_grad()
def explain(model: FittedModel, cases: SeriesSet) -> list[Explanation]:
    """One explanation per case, in batches of bounded memory."""
    if model.exemplars is None or model.settings.model.pooling != "mean":
        raise DataError(
            "explain needs a prototype head and mean pooling; this model has "
            f"head={model.settings.model.head!r}, pooling={model.settings.model.pooling!r}."
        )
    result: list[Explanation] = []
    labels = model.classes.tolist()
    for part, x, mask in model.batches(cases):
        probabilities = model.probabilities(part)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        target = torch.from_numpy(order[:, 0].copy())
        maps = integrated_gradients(model, x, mask, target)
        evidence = token_evidence(model, 0, x, mask, target)
        matches = [_matches(model, number, x, mask, target) for number in range(len(model.members))]
        for row in range(len(part)):
            length = int(part.lengths[row])
            own_map = _on_own_axis(maps[row], length, padded=mask is not None)
            tokens, entropy, score = (each[row] for each in evidence)
            result.append(
                Explanation(
                    predicted=labels[order[row, 0]],
                    runner_up=labels[order[row, 1]],
                    probability=float(probabilities[row, order[row, 0]]),
                    runner_up_probability=float(probabilities[row, order[row, 1]]),
                    matches=tuple(match for member in matches for match in member[row]),
                    token_evidence=tokens.numpy(),
                    entropy=float(entropy),
                    score=float(score),
                    input_map=own_map,
                    segment=densest_segment(own_map.sum(axis=0)),
                    channel=model.channel_names[int(own_map.clip(0.0).sum(axis=1).argmax())],
                )
            )
    return result


def token_evidence(
    model: FittedModel, member: int, x: Tensor, mask: Tensor | None, target: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Evidence per token (b, t), entropy (b,), score (b,): the tokens and the entropy sum to the score.

    s_c = (1/T) sum_t sum_k r_k (token_t . p_k) / (n |z|) + H(r), with r = softmax_k(cos / T).
    """
    network = model.members[member].network
    output, head = network(x, mask), _head(network.head)
    prototypes = head.levels[-1].double()[target]  # (b, k, d)
    tokens, z = output.tokens.double(), output.z.double()
    if output.inside is not None:
        tokens = tokens * output.inside[:, :, None]
        n = output.inside.sum(dim=1)
    else:
        n = torch.full((len(x),), tokens.shape[1])
    logits = torch.einsum("bd,bkd->bk", z / z.norm(dim=1, keepdim=True), prototypes) / head.temperature
    responsibility = torch.softmax(logits, dim=1)
    entropy = -(responsibility * torch.log_softmax(logits, dim=1)).sum(dim=1)
    direction = torch.einsum("bk,bkd->bd", responsibility, prototypes)
    scale = head.temperature * n * z.norm(dim=1)
    return torch.einsum("btd,bd->bt", tokens, direction) / scale[:, None], entropy, logits.logsumexp(dim=1)


def integrated_gradients(model: FittedModel, x: Tensor, mask: Tensor | None, target: Tensor) -> NDArray[np.float64]:
    """(b, c, t): the score's path integral from the training mean to the series, averaged over members."""
    total = torch.zeros_like(x)
    for member in model.members:
        for step in range(IG_STEPS):
            point = (x * ((step + 0.5) / IG_STEPS)).requires_grad_(True)
            with torch.enable_grad():
                scores = member.network(point, mask).scores[-1]
                (gradient,) = torch.autograd.grad(scores.gather(1, target[:, None]).sum(), point)
            total += gradient
    result: NDArray[np.float64] = (total * x / (IG_STEPS * len(model.members))).double().numpy()
    return result


def densest_segment(evidence: NDArray[np.float64]) -> tuple[int, int]:
    """First and last place of the span whose evidence, less its mean over the series, sums highest."""
    excess = evidence - evidence.mean()
    best, here, start, span = -np.inf, 0.0, 0, (0, len(evidence) - 1)
    for place, value in enumerate(excess):
        if here <= 0.0:
            here, start = 0.0, place
        here += value
        if here > best:
            best, span = here, (start, place)
    return span


def _matches(
    model: FittedModel, member: int, x: Tensor, mask: Tensor | None, target: Tensor
) -> list[list[PrototypeMatch]]:
    """Per case the matches with the prototypes of its target class, every level."""
    assert model.exemplars is not None  # explain() has checked
    exemplars, network = model.exemplars, model.members[member].network
    head = _head(network.head)
    rows: list[list[PrototypeMatch]] = [[] for _ in range(len(x))]
    for level, cosine in enumerate(head.similarities(network(x, mask).z)):
        own = cosine[torch.arange(len(x)), target]  # (b, k)
        responsibility = torch.softmax(own / head.temperature, dim=1)
        nearest = exemplars.nearest[member][level]
        for row, code in enumerate(target.tolist()):
            for number in range(own.shape[1]):
                places = nearest.position[code, number]
                neighbours = tuple(
                    Neighbour(
                        int(exemplars.numbers[place]),
                        model.classes[code : code + 1].tolist()[0],
                        float(similarity),
                    )
                    for place, similarity in zip(places, nearest.similarity[code, number], strict=True)
                )
                rows[row].append(
                    PrototypeMatch(
                        member,
                        level,
                        number,
                        float(own[row, number]),
                        float(responsibility[row, number]),
                        neighbours,
                    )
                )
    return rows


def _head(head: Any) -> PrototypeHead:
    assert isinstance(head, PrototypeHead)  # explain() has checked
    return head


def _on_own_axis(prepared: NDArray[np.float64], length: int, *, padded: bool) -> NDArray[np.float64]:
    """A map on the prepared axis brought to the series' own length; what it sums to per channel stays."""
    n = prepared.shape[1]
    if padded and length <= n:
        return prepared[:, :length]
    if length == n:
        return prepared
    edges = np.linspace(0.0, n, length + 1)
    running = np.concatenate([np.zeros((len(prepared), 1)), prepared.cumsum(axis=1)], axis=1)
    at_edges = np.stack([np.interp(edges, np.arange(n + 1), row) for row in running])
    return np.diff(at_edges, axis=1)
