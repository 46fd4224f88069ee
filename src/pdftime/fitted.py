"""FittedModel: what training leaves and a model file holds; scores cases in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.config import Settings
from pdftime.data.prepare import Preparation, Prepared
from pdftime.data.series import SeriesSet
from pdftime.errors import DataError
from pdftime.model.bank_network import BankNetwork
from pdftime.model.network import Output, PDFTime
from pdftime.model.prototypes import PrototypeHead

N_NEAREST = 5
N_PURITY = 10  # nearest training series whose classes make the purity of a prototype
BATCH_POINTS = 16_384  # time points that go through the network together: what stays in the processor's cache


Network = PDFTime | BankNetwork


class KeptPrototypes(NamedTuple):
    """One member's prototypes as they were every few epochs of training."""

    epochs: NDArray[np.int64]
    """(n_kept,) epochs after which they were kept, 0 before the first."""
    levels: list[NDArray[np.float32]]
    """Per level (n_kept, n_classes, k, d_model) unit vectors."""


class Member(NamedTuple):
    """One network of a model."""

    network: Network
    temperature: float
    """Divides the scores before the softmax; found on validation cases, 1 without any."""
    history: list[dict[str, Any]]
    kept: KeptPrototypes | None = None
    """None unless they were asked for."""
    weight: float = 1.0
    """What it counts among the members, relative to the others."""

    @property
    def view(self) -> str:
        """What looks at a series: 'bank' or 'network'."""
        return "bank" if isinstance(self.network, BankNetwork) else "network"


class Nearest(NamedTuple):
    """The training series nearest to each prototype of one level of one member."""

    position: NDArray[np.int64]
    """(n_classes, k, n) positions in `Exemplars.cases`."""
    similarity: NDArray[np.float32]
    """(n_classes, k, n) cosines, highest first."""


class Company(NamedTuple):
    """What the training series, or a sample of many, say about the prototypes of one level of one member."""

    usage: NDArray[np.float32]
    """(n_classes, k) share of the class's series that are nearest to this one of the class's prototypes."""
    coverage: NDArray[np.float32]
    """(n_classes, k) share of the class's series that are nearest to this one of all prototypes of the level."""
    purity: NDArray[np.float32]
    """(n_classes, k) share of the class among the ten nearest series of any class (of as many as it has)."""
    wrong_position: NDArray[np.int64]
    """(n_classes, k) position in `Exemplars.cases` of the nearest series of any other class."""
    wrong_similarity: NDArray[np.float32]
    """(n_classes, k) its cosine."""
    gaps: NDArray[np.float32]
    """(n_classes, 2): median and 95% quantile of 1 - cosine between a series and its class's nearest prototype."""


class LeftOut(NamedTuple):
    """Training cases as a member sees them that was made without them."""

    rows: NDArray[np.int64]
    """(n,) their places, sorted: all cases, or a sample of many."""
    z: NDArray[np.float32]
    """(n, d) their embeddings."""


class Exemplars(NamedTuple):
    """The real training series that stand behind the prototypes."""

    cases: SeriesSet
    """Each series once, with the code of its class as label."""
    numbers: NDArray[np.int64]
    """Where each stood in the training data."""
    nearest: list[list[Nearest]]
    """Per member, per level."""
    company: list[list[Company]] | None = None
    """Per member, per level; None in models of format 1, which did not keep it."""


class Review(NamedTuple):
    """What predictions were worth on cases with known labels."""

    source: str
    """'held out': training cases, each predicted by members that did not learn from it; 'validation'
    cases that were given for training; 'given' later; or the 'training' cases themselves."""
    agreement: float | None
    """Share of predictions that stay when every prototype is its nearest training series; None without prototypes."""
    confusion: NDArray[np.int64]
    """(n_classes, n_classes) counts, true class by predicted class."""
    mistakes: NDArray[np.int64]
    """(n, 3): place in the data, true class, predicted class; the most confident first."""
    mistake_confidence: NDArray[np.float64]
    """(n,) probability of the predicted class."""
    bin_counts: NDArray[np.int64]
    """(n_bins,) cases by probability of their predicted class, bins of equal width from 0 to 1."""
    bin_confidence: NDArray[np.float64]
    """(n_bins,) sum of these probabilities."""
    bin_right: NDArray[np.int64]
    """(n_bins,) cases that were predicted rightly."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Preparation, networks, classes, and the training series behind the prototypes."""

    settings: Settings
    classes: NDArray[Any]
    channel_names: tuple[str, ...]
    preparation: Preparation
    members: list[Member]
    exemplars: Exemplars | None = None
    """None where the head has no prototypes."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What was measured on validation cases."""
    review: Review | None = None
    """None in models of format 1, which did not keep it."""
    averaged: bool = False
    """Whether members' probabilities are averaged, as in models of formats 1 to 4, and not their scores."""

    @torch.no_grad()
    def probabilities(self, cases: SeriesSet) -> NDArray[np.float64]:
        """(n_cases, n_classes): calibrated, of all members together, rows sum to 1."""
        rows = [self.probabilities_of(x, mask) for _, x, mask in self.batches(cases)]
        probabilities: NDArray[np.float64] = torch.cat(rows).numpy()
        return probabilities

    def probabilities_of(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(b, n_classes) of all members together, for network input."""
        return self.decided([member.network(x, mask).scores[-1] for member in self.members])

    def decided(self, scores: Sequence[Tensor]) -> Tensor:
        """(b, n_classes) probabilities, from the scores that each member gives."""
        if self.averaged:
            return pooled(self.opinions(scores), self.shares)
        return torch.softmax(self.pooled(scores) / self.temperature, dim=1)

    def opinions(self, scores: Sequence[Tensor]) -> list[Tensor]:
        """Of each member (b, n_classes): its own calibrated probabilities, from its scores."""
        return [
            torch.softmax(own.double() / member.temperature, dim=1)
            for own, member in zip(scores, self.members, strict=True)
        ]

    def of_view(self, view: str) -> FittedModel:
        """The members of one view alone, to score cases with; 'bank' or 'network'."""
        return replace(self, members=[member for member in self.members if member.view == view], exemplars=None)

    def pooled(self, each: Sequence[Tensor]) -> Tensor:
        """The average over the members, by what the scores of each weigh."""
        return pooled(each, self.weights)

    @property
    def member_names(self) -> list[str]:
        """What to call each member: its view, with a number where there are several of one."""
        views = [member.view for member in self.members]
        return [
            view if views.count(view) == 1 else f"{view} {views[: place + 1].count(view)}"
            for place, view in enumerate(views)
        ]

    @property
    def shares(self) -> list[float]:
        """What each member counts; they sum to 1."""
        total = sum(member.weight for member in self.members)
        return [member.weight / total for member in self.members]

    @property
    def weights(self) -> list[float]:
        """What the scores of each member weigh: its share, by its temperature; they sum to 1."""
        if self.averaged:
            return self.shares
        return [each * self.temperature for each in self._cooled()]

    @property
    def temperature(self) -> float:
        """Divides the weighed average of the members' scores before the softmax."""
        return 1.0 / sum(self._cooled())

    def _cooled(self) -> list[float]:
        return [share / member.temperature for share, member in zip(self.shares, self.members, strict=True)]

    @torch.no_grad()
    def embeddings(self, cases: SeriesSet) -> NDArray[np.float32]:
        """(n_cases, n_members * d_model): what the heads compare with prototypes, members side by side."""
        # filled as it comes: pieces kept between the large tensors of batches would leave memory full of holes
        z = np.empty((len(cases), sum(member.network.d_model for member in self.members)), np.float32)
        filled = 0
        for part, x, mask in self.batches(cases):
            rows = slice(filled, filled + len(part))
            z[rows] = torch.cat([member.network(x, mask).z for member in self.members], dim=1).numpy()
            filled = rows.stop
        return z

    def split_by_member(self, z: NDArray[Any]) -> list[NDArray[Any]]:
        """Embeddings (n_cases, d) of each member, from those of all side by side."""
        return np.split(z, np.cumsum([member.network.d_model for member in self.members])[:-1], axis=1)

    def training_series(self, index: int) -> NDArray[Any]:
        """(n_channels, its own length): a training series behind a prototype, by its place in the training data."""
        numbers = np.arange(0) if self.exemplars is None else self.exemplars.numbers
        places = np.flatnonzero(numbers == index)
        if self.exemplars is None or not len(places):
            raise DataError(
                f"Training series {index} is not kept in the model; expected one that stands behind a prototype "
                f"({len(numbers)} do)."
            )
        return self.exemplars.cases.series(int(places[0]))

    @torch.no_grad()
    def outputs(self, cases: SeriesSet, member: int) -> Iterator[Output]:
        """One member's outputs, batch by batch."""
        for _, x, mask in self.batches(cases):
            yield self.members[member].network(x, mask)

    def batches(self, cases: SeriesSet) -> Iterator[tuple[SeriesSet, Tensor, Tensor | None]]:
        """Cases in parts, each with its network input."""
        self.preparation.check(cases)
        longest = max(cases.n_timepoints, self.preparation.n_timepoints)
        channels = min(cases.n_channels, 32)  # the network's own features outweigh those of fewer channels
        for part in cases.chunks(BATCH_POINTS * channels * cases.n_timepoints // longest):
            yield part, *as_tensors(self.preparation(part))


def pooled(each: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The average of tensors by weights that sum to 1, in double precision."""
    return torch.einsum(
        "m,m...->...", torch.tensor(weights, dtype=torch.float64), torch.stack([one.double() for one in each])
    )


def as_tensors(prepared: Prepared) -> tuple[Tensor, Tensor | None]:
    """Network input from prepared series; shares their memory."""
    return torch.from_numpy(prepared.x), None if prepared.mask is None else torch.from_numpy(prepared.mask)


def find_exemplars(
    model: FittedModel,
    cases: SeriesSet,
    codes: NDArray[np.int64],
    left_out: Sequence[LeftOut | None] | None = None,
) -> Exemplars | None:
    """For every prototype the training series around it: the nearest of its own class, and of any other.

    `left_out` holds, of members that have them, embeddings of cases that were made without them, among which they
    are then looked for; a member that knows its training cases by heart would find all of them equally near.
    """
    nearest: list[list[Nearest]] = []
    company: list[list[Company]] = []
    heads = [head for member in model.members if isinstance(head := member.network.head, PrototypeHead)]
    if len(heads) < len(model.members):
        return None
    known = list(left_out or [None] * len(heads))
    if any(each is None for each in known):
        every = np.arange(len(codes))
        embedded = [LeftOut(every, z) for z in model.split_by_member(model.embeddings(cases))]
        known = [other if own is None else own for own, other in zip(known, embedded, strict=True)]
    for head, (rows, z) in zip(heads, (each for each in known if each is not None), strict=True):
        with torch.no_grad():
            levels = [cosine.numpy() for cosine in head.similarities(torch.from_numpy(z))]
        found = [(_nearest(cosine, codes[rows]), _company(cosine, codes[rows])) for cosine in levels]
        nearest.append([near._replace(position=rows[near.position]) for near, _ in found])
        company.append([others._replace(wrong_position=rows[others.wrong_position]) for _, others in found])
    positions = [each.position for levels in nearest for each in levels]
    wrong = [each.wrong_position for levels in company for each in levels]
    index = np.unique(np.concatenate([each.ravel() for each in (*positions, *wrong)]))
    nearest = [[e._replace(position=np.searchsorted(index, e.position)) for e in each] for each in nearest]
    company = [
        [e._replace(wrong_position=np.searchsorted(index, e.wrong_position)) for e in each] for each in company
    ]
    chosen = cases.take(index)
    X = chosen.X.astype(np.float32 if np.result_type(chosen.X, np.float32) == np.float32 else np.float64)
    return Exemplars(replace(chosen, X=X, y=codes[index], times=None), index, nearest, company)


def _nearest(cosine: NDArray[np.float32], codes: NDArray[np.int64]) -> Nearest:
    """(n_cases, n_classes, k) cosines to the nearest of each class; a smaller class repeats its last one."""
    _, n_classes, k = cosine.shape
    position = np.empty((n_classes, k, N_NEAREST), np.int64)
    for code in range(n_classes):
        rows = np.flatnonzero(codes == code)
        order = np.argsort(-cosine[rows, code, :], axis=0, kind="stable")[:N_NEAREST]  # (<= n, k)
        order = order[np.minimum(np.arange(N_NEAREST), len(order) - 1)]
        position[code] = rows[order].T
    classes, prototypes = np.indices((n_classes, k))
    return Nearest(position, cosine[position, classes[..., None], prototypes[..., None]])


def _company(cosine: NDArray[np.float32], codes: NDArray[np.int64]) -> Company:
    """What (n_cases, n_classes, k) cosines to all training series say about each prototype."""
    n_cases, n_classes, k = cosine.shape
    best_of_all = cosine.reshape(n_cases, -1).argmax(axis=1)
    usage, coverage, purity, wrong_similarity = (np.empty((n_classes, k), np.float32) for _ in range(4))
    wrong_position, gaps = np.empty((n_classes, k), np.int64), np.empty((n_classes, 2), np.float32)
    for code in range(n_classes):
        rows, others = np.flatnonzero(codes == code), np.flatnonzero(codes != code)
        own = cosine[rows, code]  # (n, k)
        usage[code] = np.bincount(own.argmax(axis=1), minlength=k) / len(rows)
        coverage[code] = np.bincount(best_of_all[rows], minlength=n_classes * k)[code * k :][:k] / len(rows)
        gaps[code] = np.quantile(1.0 - own.max(axis=1), [0.5, 0.95])
        order = np.argsort(-cosine[:, code], axis=0, kind="stable")[: min(N_PURITY, len(rows))]
        purity[code] = (codes[order] == code).mean(axis=0)
        wrong_position[code] = others[cosine[others, code].argmax(axis=0)]
        wrong_similarity[code] = cosine[wrong_position[code], code, np.arange(k)]
    return Company(usage, coverage, purity, wrong_position, wrong_similarity, gaps)
