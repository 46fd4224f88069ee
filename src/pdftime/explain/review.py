"""Reviews: what predictions were worth on cases with known labels; mistakes, calibration, agreement."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet
from pdftime.fitted import FittedModel, Review
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
def agreement_of(model: FittedModel, cases: SeriesSet) -> float | None:
    """Share of predictions, of 2000 cases at most, that stay when prototypes are their nearest training series."""
    if model.exemplars is None:
        return None
    members = []
    for number, member in enumerate(model.members):
        z = torch.cat([output.z for output in model.outputs(model.exemplars.cases, number)])
        network = deepcopy(member.network)
        head = network.head
        assert isinstance(head, PrototypeHead)
        for level, nearest in enumerate(model.exemplars.nearest[number]):
            real = F.normalize(z, dim=-1)[torch.from_numpy(nearest.position[:, :, 0])]
            getattr(head, f"level_{level}").copy_(real)
        members.append(member._replace(network=network))
    some = cases.take(slice(None, None, -(-len(cases) // N_AGREEMENT)))
    before, after = (each.probabilities(some).argmax(axis=1) for each in (model, replace(model, members=members)))
    return float((before == after).mean())
