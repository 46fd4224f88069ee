"""Reviews: what predictions were worth on cases with known labels; mistakes, calibration, agreement."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.series import SeriesSet
from pdftime.fitted import FittedModel, LeftOut, Review
from pdftime.model.prototypes import PrototypeHead

N_BINS = 10
N_MISTAKES = 100
N_AGREEMENT = 2000

Codes = NDArray[np.int64]


def review_of(
    source: str, probabilities: NDArray[np.float64], codes: Codes, index: Codes, agreement: float | None
) -> Review:
    """A review of (n, n_classes) probabilities of cases with these codes, which stand at `index` in their data."""
    n_classes = probabilities.shape[1]
    predicted, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    right = predicted == codes
    confusion = np.bincount(codes * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)
    wrong = np.flatnonzero(~right)
    wrong = wrong[np.argsort(-confidence[wrong], kind="stable")][:N_MISTAKES]
    place = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    return Review(
        source=source,
        agreement=agreement,
        confusion=confusion.astype(np.int64),
        mistakes=np.column_stack([index[wrong], codes[wrong], predicted[wrong]]).astype(np.int64),
        mistake_confidence=confidence[wrong],
        bin_counts=np.bincount(place, minlength=N_BINS).astype(np.int64),
        bin_confidence=np.bincount(place, confidence, N_BINS).astype(np.float64),
        bin_right=np.bincount(place[right], minlength=N_BINS).astype(np.int64),
    )


@torch.no_grad()
def agreement_of(model: FittedModel, cases: SeriesSet | Sequence[LeftOut]) -> float | None:
    """Share of predictions, of 2000 cases at most, that stay when prototypes are their nearest training series.

    The cases are series, or training cases as each member saw them when they were left out, the same for all.
    """
    exemplars = model.exemplars
    if exemplars is None:
        return None
    before: list[Tensor] = []
    after: list[Tensor] = []
    for number, member in enumerate(model.members):
        if isinstance(cases, SeriesSet):
            z, real = (
                _embedded(model, cases.take(_some(len(cases))), number),
                _embedded(model, exemplars.cases, number),
            )
        else:
            rows, known = cases[number]
            # series that stand behind another member's prototypes may not be among its own, nor are they asked for
            places = np.minimum(np.searchsorted(rows, exemplars.numbers), len(rows) - 1)
            z, real = (torch.from_numpy(known[each]) for each in (_some(len(rows)), places))
        head = member.network.head
        assert isinstance(head, PrototypeHead)
        replaced = deepcopy(head)
        for level, nearest in enumerate(exemplars.nearest[number]):
            unit = F.normalize(real, dim=-1)[torch.from_numpy(nearest.position[:, :, 0])]
            getattr(replaced, f"level_{level}").copy_(unit)
        for scores, each in ((before, head), (after, replaced)):
            scores.append(each(z)[-1])
    same = model.decided(before).argmax(dim=1) == model.decided(after).argmax(dim=1)
    return float(same.double().mean())


def _some(n: int) -> slice:
    """Every so many of n cases, so that they are not more than N_AGREEMENT."""
    return slice(None, None, -(-n // N_AGREEMENT))


def _embedded(model: FittedModel, cases: SeriesSet, number: int) -> Tensor:
    return torch.cat([output.z for output in model.outputs(cases, number)])
