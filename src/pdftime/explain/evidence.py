"""explain(): one Explanation per case, in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.series import SeriesSet
from pdftime.errors import DataError
from pdftime.explain.caveats import caveats_of
from pdftime.explain.deletion import most_missed
from pdftime.explain.explanation import (
    AttributionMap,
    Explanation,
    Floats,
    Neighbour,
    Opinion,
    PrototypeMatch,
    ScoreSheet,
    Source,
    TokenEvidence,
)
from pdftime.explain.locality import DRAWABLE, locality
from pdftime.explain.maps import Maps, as_map, baseline_of, make_maps, score_and_margin
from pdftime.explain.split import Parts, ReadOut, Split, parts_of_score, read_out, split_over_tokens
from pdftime.fitted import FittedModel
from pdftime.model.network import Output
from pdftime.model.prototypes import PrototypeHead


@torch.no_grad()
def explain(model: FittedModel, cases: SeriesSet, target: Any = None, contrast: Any = None) -> list[Explanation]:
    """Why each series is predicted as it is, or why it could be `target`, and why not `contrast`.

    Without `target` the predicted class is explained, without `contrast` against the most probable other one.
    """
    wanted, against = _code(model, target, "target"), _code(model, contrast, "contrast")
    if wanted is not None and wanted == against:
        raise DataError(f"target and contrast are both {target!r}; expected two different classes.")
    result: list[Explanation] = []
    for part, x, mask in model.batches(cases):
        result += _Batch(model, part, x, mask, wanted, against).explanations()
    return result


def _code(model: FittedModel, label: Any, what: str) -> int | None:
    """The number of a class, by its label."""
    if label is None:
        return None
    labels = model.classes.tolist()
    for code, each in enumerate(labels):
        if type(each) is type(label) and each == label:
            return code
    for code, each in enumerate(labels):  # numpy's scalars, and 1 for 1.0
        if np.ndim(label) == 0 and bool(each == label):
            return code
    raise DataError(f"{what} is {label!r}; expected one of the classes {labels!r:.300}.")


class _Batch:
    """Everything that is computed for a batch at once; `explanations` hands it out case by case."""

    def __init__(
        self,
        model: FittedModel,
        cases: SeriesSet,
        x: Tensor,
        mask: Tensor | None,
        target: int | None,
        contrast: int | None,
    ) -> None:
        self.model, self.cases, self.padded = model, cases, mask is not None
        networks = [member.network for member in model.members]
        outputs = [network(x, mask) for network in networks]
        scores = [output.scores[-1] for output in outputs]
        self.scores = model.pooled(scores).numpy()
        self.opinions = model.opinions(scores)
        self.probabilities = model.decided(scores).numpy()
        self.order = np.argsort(-self.probabilities, axis=1, kind="stable")
        self.target, self.contrast = _pairs(self.order, target, contrast)
        targets, contrasts = torch.from_numpy(self.target), torch.from_numpy(self.contrast)
        baseline, name = baseline_of(model, x, mask)
        quantities = score_and_margin(targets, contrasts)
        maps, self.evidence = make_maps(networks, x, mask, baseline, quantities, name=name, weights=model.weights)
        self.maps = [maps] * len(x)
        if self.evidence is not None and all(member.view == "bank" for member in model.members):
            both = [maps, self.evidence]
            chosen = most_missed(model, x, mask, baseline, self.target, [each.values[0] for each in both])
            self.maps = [both[number] for number in chosen]
        pairs = list(zip(networks, outputs, strict=True))
        self.splits = [split_over_tokens(network, x, mask, output, targets) for network, output in pairs]
        self.others = [read_out(network, output, contrasts) for network, output in pairs]
        self.parts = [_parts(model, output, targets, member) for member, output in enumerate(outputs)]
        self.other_parts = [_parts(model, output, contrasts, member) for member, output in enumerate(outputs)]
        each = [
            locality(network, x, mask, baseline, split) for network, split in zip(networks, self.splits, strict=True)
        ]
        self.locality = model.pooled(each).numpy()
        ends = [x.shape[2]] * len(x) if mask is None else mask.sum(dim=1).tolist()
        self.tokens, self.edges = _on_shared_edges(model, self.splits, x.shape[2], ends)
        self.n = x.shape[2]

    def explanations(self) -> list[Explanation]:
        return [self._explanation(row) for row in range(len(self.cases))]

    def _explanation(self, row: int) -> Explanation:
        model, length = self.model, int(self.cases.lengths[row])
        labels = tuple(model.classes.tolist())
        target, contrast = int(self.target[row]), int(self.contrast[row])
        names = _channel_names(model, self.cases)
        series = self.cases.series(row).astype(np.float64)
        quantities = (
            f"score of {labels[target]!r}",
            f"score of {labels[target]!r} less that of {labels[contrast]!r}",
        )

        def on_own_axis(maps: Maps, number: int) -> AttributionMap:
            return as_map(
                maps,
                number,
                row,
                length=length,
                padded=self.padded,
                quantity=quantities[number],
                channel_names=names,
            )

        sheet = self._sheet(row, target, self.splits, self.parts)
        explanation = Explanation(
            predicted=labels[self.order[row, 0]],
            runner_up=labels[self.order[row, 1]],
            classes=labels,
            scores=self.scores[row],
            probabilities=self.probabilities[row],
            opinions=self._opinions(row),
            target=sheet,
            contrast=self._sheet(row, contrast, self.others, self.other_parts),
            tokens=self._tokens(row, length, sheet),
            where=on_own_axis(self.maps[row], 0),
            why_not=on_own_axis(self.maps[row], 1),
            evidence=None if self.evidence is None else on_own_axis(self.evidence, 0),
            series=series,
            missing=np.isnan(series),
            channel_names=names,
            warnings=(),
            source=Source(model, self.cases.take([row]), target, contrast),
            times=self.cases.times_of(row),
        )
        return replace(explanation, warnings=caveats_of(explanation))

    def _opinions(self, row: int) -> tuple[Opinion, ...]:
        return tuple(
            Opinion(
                view=member.view,
                weight=weight,
                probabilities=probabilities[row].numpy(),
                predicted=self.model.classes.tolist()[int(probabilities[row].argmax())],
            )
            for member, weight, probabilities in zip(
                self.model.members, self.model.shares, self.opinions, strict=True
            )
        )

    def _mean(self, values: list[Tensor]) -> float:
        return float(self.model.pooled(values))

    def _sheet(self, row: int, code: int, splits: Sequence[Split | ReadOut], parts: list[list[Parts]]) -> ScoreSheet:
        return ScoreSheet(
            label=self.model.classes.tolist()[code],
            score=float(self.scores[row, code]),
            probability=float(self.probabilities[row, code]),
            matches=tuple(_matches(self.model, parts, row, code)),
            entropy=self._mean([split.entropy[row] for split in splits]),
            level_entropies=tuple(tuple(float(part.entropy[row]) for part in levels) for levels in parts),
            offset=self._mean([split.offset[row] for split in splits]),
        )

    def _tokens(self, row: int, length: int, sheet: ScoreSheet) -> TokenEvidence:
        values: Floats = self.tokens[row].numpy()
        class_token = self._mean([split.class_token[row] for split in self.splits])
        rest = sheet.entropy + sheet.offset + self._mean([split.start[row] for split in self.splits])
        edges = self.edges
        if self.padded and length <= self.n:
            n_tokens = int(np.searchsorted(edges, length))  # the last one may reach behind the end
            values, edges = values[:n_tokens], np.minimum(edges[: n_tokens + 1], length)
        else:
            edges = edges * (length / self.n)
        return TokenEvidence(
            values=values,
            class_token=class_token,
            rest=rest,
            additivity_error=abs(float(values.sum()) + class_token + rest - sheet.score),
            edges=edges,
            locality=float(self.locality[row]),
            drawable=bool(self.locality[row] >= DRAWABLE),
        )


def _on_shared_edges(
    model: FittedModel, splits: list[Split], n_timepoints: int, ends: Sequence[int]
) -> tuple[Tensor, Floats]:
    """(b, n_tokens) evidence averaged over the members, and edges; by time point where their tokens differ.

    A token that reaches behind the end of its series is spread over its time points inside.
    """
    if all(torch.equal(split.edges, splits[0].edges) for split in splits):
        return model.pooled([split.tokens for split in splits]), splits[0].edges.numpy()
    edges: Floats = np.arange(n_timepoints + 1, dtype=np.float64)
    spread = []
    for split in splits:
        running = np.concatenate([np.zeros((len(split.tokens), 1)), split.tokens.numpy().cumsum(axis=1)], axis=1)
        own = split.edges.numpy()
        at_edges = np.stack(
            [np.interp(edges, np.minimum(own, end), row) for end, row in zip(ends, running, strict=True)]
        )
        spread.append(torch.from_numpy(np.diff(at_edges, axis=1)))
    return model.pooled(spread), edges


def _pairs(
    order: NDArray[np.int64], target: int | None, contrast: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Target and contrast of each case: as asked for, otherwise the most probable that is left."""
    rows = np.arange(len(order))
    first = (order == contrast).argmin(axis=1) if target is None and contrast is not None else np.zeros_like(rows)
    targets = order[rows, first] if target is None else np.full(len(order), target)
    contrasts = (
        order[rows, (order == targets[:, None]).argmin(axis=1)] if contrast is None else np.full(len(order), contrast)
    )
    return targets, contrasts


def _parts(model: FittedModel, output: Output, target: Tensor, member: int) -> list[Parts]:
    """Per level what the target's score is made of; none with a linear head."""
    head = model.members[member].network.head
    if not isinstance(head, PrototypeHead):
        return []
    return [parts_of_score(head, output.z, target, level) for level in range(head.n_levels)]


def _matches(model: FittedModel, parts: list[list[Parts]], row: int, code: int) -> list[PrototypeMatch]:
    return [
        PrototypeMatch(
            member=member,
            level=level,
            number=number,
            label=model.classes.tolist()[code],
            similarity=float(part.similarity[row, number]),
            responsibility=float(part.responsibility[row, number]),
            contribution=float(part.contribution[row, number]),
            decides=level == len(levels) - 1,
            weight=model.weights[member],
            **surroundings(model, member, level, code, number),
        )
        for member, levels in enumerate(parts)
        for level, part in enumerate(levels)
        for number in range(part.similarity.shape[1])
        if model.members[member].network.head.masses[level][code, number] > 0.0
    ]


def surroundings(model: FittedModel, member: int, level: int, code: int, number: int) -> dict[str, Any]:
    """What is known of the training series around a prototype: neighbours, wrong, usage, purity and gaps."""
    exemplars = model.exemplars
    assert exemplars is not None  # a head with prototypes has them
    labels = model.classes.tolist()
    nearest = exemplars.nearest[member][level]
    places = list(dict.fromkeys(nearest.position[code, number].tolist()))  # a small class repeats its last
    gap = 1.0 - float(nearest.similarity[code, number, 0])
    found: dict[str, Any] = {
        "neighbours": tuple(
            Neighbour(int(exemplars.numbers[place]), labels[code], float(similarity))
            for place, similarity in zip(places, nearest.similarity[code, number], strict=False)
        ),
        "gap": gap,
        "wrong": None,
        "usage": None,
        "purity": None,
        "relative_gap": None,
    }
    if exemplars.company is None:
        return found
    company = exemplars.company[member][level]
    place = int(company.wrong_position[code, number])
    return found | {
        "wrong": Neighbour(
            int(exemplars.numbers[place]),
            labels[int(exemplars.cases.y[place])],  # type: ignore[index]
            float(company.wrong_similarity[code, number]),
        ),
        "usage": float(company.usage[code, number]),
        "purity": round(float(company.purity[code, number]), 6),  # kept in float32, where 0.7 is a little less
        "relative_gap": gap / max(float(company.gaps[code, 0]), 1e-6),
    }


def _channel_names(model: FittedModel, cases: SeriesSet) -> tuple[str, ...]:
    """The names that the series came with; those of the training series if they came without."""
    nameless = cases.channel_names == tuple(f"channel_{index}" for index in range(cases.n_channels))
    return model.channel_names if nameless else cases.channel_names
