"""ModelExplanation: what the model as a whole has learned: its prototypes, their company, its mistakes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet
from pdftime.errors import DataError
from pdftime.explain.evidence import surroundings
from pdftime.explain.explanation import Floats, Neighbour, plain
from pdftime.explain.review import N_BINS, agreement_of, review_of
from pdftime.fitted import FittedModel, Review

DUPLICATE = 0.99  # cosine from which two prototypes of a class are nearly the same
PURE = 0.7
AGREEMENT = 0.98
SOURCES = {
    "held out": "training cases that were kept for validation, each predicted without having been learned from",
    "given": "the cases that were given",
    "validation": "the validation cases that were given for training",
    "training": "the training cases themselves, for want of others: expect worse on new ones",
}


@dataclass(frozen=True)
class GalleryEntry:
    """One prototype and the training series around it."""

    member: int
    level: int
    number: int
    label: Any
    decides: bool
    """Whether its level is the last, the one that decides."""
    neighbours: tuple[Neighbour, ...]
    """The nearest training series of its class, nearest first, at most five, each once."""
    wrong: Neighbour | None
    """The nearest training series of any other class."""
    usage: float | None
    """Share of the class's training series that are nearest to this one of the class's prototypes."""
    coverage: float | None
    """Share of the class's training series that are nearest to this one of all classes' prototypes."""
    purity: float | None
    """Share of the ten training series nearest to it, of any class, that are of its class."""
    gap: float
    """1 - cosine between the prototype and the nearest training series of its class."""
    relative_gap: float | None
    """`gap` over the class's usual one."""
    dead: bool
    """Whether no training series of its class is nearest to it."""
    duplicate_of: int | None
    """The number of an earlier prototype of the same class and level that is nearly the same, if there is one."""

    @property
    def shown(self) -> bool:
        """Whether it says something of its own: neither dead nor a duplicate."""
        return not self.dead and self.duplicate_of is None


@dataclass(frozen=True, eq=False)
class LevelView:
    """The prototypes of one level of one member, side by side."""

    member: int
    level: int
    prototypes: Floats
    """(n_classes, k, d_model) unit vectors."""
    cosines: Floats
    """(n_classes * k, n_classes * k) between all of them, ordered by class, then number."""
    within: float
    """Mean cosine of two different prototypes of one class; NaN where a class has one."""
    between: float
    """Mean cosine of prototypes of different classes."""
    effective_numbers: Floats | None
    """(n_classes,) exp of the entropy of usage: how many prototypes of a class are really used, 1 to k."""


@dataclass(frozen=True)
class Mistake:
    """A case whose prediction is not its label."""

    index: int
    """Its place in the data that was looked at."""
    label: Any
    predicted: Any
    confidence: float
    """The probability of the predicted class."""


@dataclass(frozen=True, eq=False)
class Evolution:
    """The prototypes of one level of one member as they were every few epochs."""

    member: int
    level: int
    epochs: NDArray[np.int64]
    """(n_kept,) epochs after which they were kept."""
    prototypes: Floats
    """(n_kept, n_classes, k, d_model) unit vectors."""

    @property
    def steps(self) -> Floats:
        """(n_kept - 1, n_classes, k): 1 - cosine to the same prototype at the time before."""
        moved: Floats = 1.0 - (self.prototypes[1:] * self.prototypes[:-1]).sum(axis=-1)
        return moved


@dataclass(frozen=True, eq=False)
class ModelExplanation:
    """The model as a whole, in numbers."""

    classes: tuple[Any, ...]
    channel_names: tuple[str, ...]
    gallery: tuple[GalleryEntry, ...]
    """Every prototype, of every member and level; `shown` tells which say something of their own."""
    levels: tuple[LevelView, ...]
    agreement: float | None
    """Share of predictions that stay when every prototype is replaced by its nearest training series."""
    data: str
    """What confusion and calibration were measured on, in words."""
    confusion: NDArray[np.int64] | None
    """(n_classes, n_classes) counts, true class by predicted class."""
    mistakes: tuple[Mistake, ...]
    """Examples of wrong predictions, the most confident first."""
    calibration_edges: Floats
    """(n_bins + 1,) edges of the bins of confidence."""
    calibration_counts: NDArray[np.int64] | None
    """(n_bins,) cases in each bin."""
    calibration_confidence: Floats | None
    """(n_bins,) mean confidence in each bin, NaN where it is empty."""
    calibration_accuracy: Floats | None
    """(n_bins,) share of right predictions in each bin, NaN where it is empty."""
    calibration_error: float | None
    """The gap between the two, averaged over cases."""
    evolution: tuple[Evolution, ...]
    """Empty unless the model was fitted with `keep_prototypes`."""
    warnings: tuple[str, ...]

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions on `data`."""
        return None if self.confusion is None else float(np.trace(self.confusion) / max(1, self.confusion.sum()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; None for NaN."""
        state: dict[str, Any] = plain(self)
        return state

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)


def explain_model(model: FittedModel, cases: SeriesSet | None = None) -> ModelExplanation:
    """What the model has learned; confusion, calibration, agreement on labelled `cases`, or as kept from training."""
    gallery: list[GalleryEntry] = []
    levels: list[LevelView] = []
    evolution: list[Evolution] = []
    for number, member in enumerate(model.members):
        for level, prototypes in enumerate(member.network.head.levels):
            view = _level_view(model, number, level, prototypes.detach().double().numpy())
            levels.append(view)
            gallery += _entries(model, view)
        if member.kept is not None:
            evolution += [
                Evolution(number, level, member.kept.epochs, kept.astype(np.float64))
                for level, kept in enumerate(member.kept.levels)
            ]
    review = model.review if cases is None else _review(model, cases)
    return ModelExplanation(
        classes=tuple(model.classes.tolist()),
        channel_names=model.channel_names,
        gallery=tuple(gallery),
        levels=tuple(levels),
        evolution=tuple(evolution),
        warnings=_warnings(gallery, review),
        **_measured(model, review),
    )


def _level_view(model: FittedModel, member: int, level: int, prototypes: Floats) -> LevelView:
    n_classes, k, d = prototypes.shape
    flat = prototypes.reshape(-1, d)
    cosines = (flat @ flat.T).clip(-1.0, 1.0)
    same = np.repeat(np.repeat(np.eye(n_classes, dtype=bool), k, axis=0), k, axis=1)
    present = (model.members[member].network.head.masses[level] > 0.0).numpy().ravel()  # others repeat one
    there = present & present[:, None]
    pairs = same & there & ~np.eye(n_classes * k, dtype=bool)
    company = None if model.exemplars is None else model.exemplars.company
    numbers = None
    if company is not None:
        usage = company[member][level].usage.astype(np.float64)
        logs = np.log(np.where(usage > 0.0, usage, 1.0))
        numbers = np.exp(-(usage * logs).sum(axis=1))
    return LevelView(
        member=member,
        level=level,
        prototypes=prototypes,
        cosines=cosines,
        within=float(cosines[pairs].mean()) if pairs.any() else float("nan"),
        between=float(cosines[there & ~same].mean()),
        effective_numbers=numbers,
    )


def _entries(model: FittedModel, view: LevelView) -> list[GalleryEntry]:
    n_classes, k, _ = view.prototypes.shape
    company = None if model.exemplars is None else model.exemplars.company
    head = model.members[view.member].network.head
    entries = []
    for code in range(n_classes):
        cosines = view.cosines[code * k : (code + 1) * k, code * k : (code + 1) * k]
        for number in np.flatnonzero(head.masses[view.level][code] > 0.0).tolist():
            found = surroundings(model, view.member, view.level, code, number)
            twins = np.flatnonzero(cosines[number, :number] >= DUPLICATE)
            coverage = None if company is None else float(company[view.member][view.level].coverage[code, number])
            entries.append(
                GalleryEntry(
                    member=view.member,
                    level=view.level,
                    number=number,
                    label=model.classes.tolist()[code],
                    decides=view.level == len(head.levels) - 1,
                    coverage=coverage,
                    dead=found["usage"] == 0.0,
                    duplicate_of=int(twins[0]) if len(twins) else None,
                    **found,
                )
            )
    return entries


def _review(model: FittedModel, cases: SeriesSet) -> Review | None:
    """The model's predictions of labelled cases; those with a label that it does not know are left out."""
    if cases.y is None:
        raise DataError("The cases have no labels; pass y to see confusion and calibration on them.")
    places = {label: code for code, label in enumerate(model.classes.tolist())}
    codes = np.array([places.get(label, -1) for label in cases.y.tolist()], np.int64)
    index = np.flatnonzero(codes >= 0)
    if not len(index):
        raise DataError(f"None of the labels is a class of the model; it knows {list(places)!r:.300}.")
    known = cases.take(index)
    return review_of("given", model.probabilities(known), codes[index], index, agreement_of(model, known))


def _measured(model: FittedModel, review: Review | None) -> dict[str, Any]:
    """What a review says, in the fields of a ModelExplanation."""
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    if review is None:
        nothing = ("agreement", "confusion", "calibration_counts", "calibration_confidence", "calibration_accuracy")
        return dict.fromkeys((*nothing, "calibration_error")) | {
            "data": "nothing: the model file is of format 1, which kept no predictions",
            "mistakes": (),
            "calibration_edges": edges,
        }
    labels, counts = model.classes.tolist(), review.bin_counts
    with np.errstate(invalid="ignore"):
        confidence, accuracy = review.bin_confidence / counts, review.bin_right / counts
    return {
        "agreement": review.agreement,
        "data": SOURCES[review.source],
        "confusion": review.confusion,
        "mistakes": tuple(
            Mistake(int(index), labels[true], labels[predicted], float(sure))
            for (index, true, predicted), sure in zip(review.mistakes, review.mistake_confidence, strict=True)
        ),
        "calibration_edges": edges,
        "calibration_counts": counts,
        "calibration_confidence": confidence,
        "calibration_accuracy": accuracy,
        "calibration_error": float(np.abs(review.bin_confidence - review.bin_right).sum() / max(1, counts.sum())),
    }


def _warnings(gallery: list[GalleryEntry], review: Review | None) -> tuple[str, ...]:
    """What should be known before the prototypes are believed."""
    found = []
    deciding = [entry for entry in gallery if entry.decides]
    dead = sum(entry.dead for entry in deciding)
    doubles = sum(entry.duplicate_of is not None for entry in deciding)
    mixed = sum(entry.purity is not None and entry.purity < PURE for entry in deciding)
    for count, words in (
        (dead, "are not the nearest one of any training series of their class"),
        (doubles, "are nearly the same as another one of their class"),
        (mixed, f"have less than {PURE:.0%} series of their class among those nearest to them"),
    ):
        if count:
            found.append(f"Of {len(deciding)} deciding prototypes, {count} {words}.")
    if review is not None and review.agreement is not None and review.agreement < AGREEMENT:
        found.append(
            f"Replaced by their nearest training series, the prototypes would keep {review.agreement:.0%} of the "
            "predictions: what stands behind them shows only a part of what they do."
        )
    return tuple(found)
