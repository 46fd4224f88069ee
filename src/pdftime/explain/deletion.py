"""What the probability of a class loses when parts of a series give way to the baseline, in the order of a map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime import fitted
from pdftime.explain.explanation import Floats
from pdftime.fitted import FittedModel

SHARES = np.linspace(0.0, 1.0, 11)
"""Of the series, taken away or given; as many below one half as above, so that a random order gives both curves."""
CHOICE = np.array([0.1, 0.3, 0.5])
"""Shares by which one of several maps is chosen."""


def without(values: Floats, inside: NDArray[np.bool_], shares: Floats = SHARES[1:-1]) -> NDArray[np.bool_]:
    """(n, c, t): what is left when the highest `values` are taken away, at each of the shares."""
    order = np.argsort(-values[inside], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    left = np.ones((len(shares), *values.shape), bool)
    for keep, share in zip(left, shares, strict=True):
        keep[inside] = rank >= round(share * len(order))
    return left


@torch.no_grad()
def probability_of(model: FittedModel, x: Tensor, mask: Tensor | None, target: int) -> Floats:
    """(n,) the target's calibrated probability of prepared series that share one mask."""
    shared = None if mask is None else mask.expand(len(x), -1)
    size = max(1, fitted.BATCH_POINTS // x.shape[2])
    parts = []
    for start in range(0, len(x), size):
        rows = slice(start, start + size)
        parts.append(model.probabilities_of(x[rows], None if shared is None else shared[rows])[:, target])
    found: Floats = torch.cat(parts).numpy()
    return found


def most_missed(
    model: FittedModel,
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    target: NDArray[np.int64],
    maps: Sequence[Floats],
) -> NDArray[np.int64]:
    """(b,) which of several maps (b, c, t) of each series names what the decision misses most; of equals the first.

    That is the one without whose first tenth, three tenths and half the target's probability is lowest on average.
    """
    found = np.zeros(len(x), np.int64)
    for row, code in enumerate(target):
        own = None if mask is None else mask[row : row + 1]
        inside = np.broadcast_to(True if own is None else own.numpy(), x.shape[1:])
        keep = torch.from_numpy(np.concatenate([without(each[row], inside, CHOICE) for each in maps]))
        left = probability_of(model, torch.where(keep, x[row], baseline[row]), own, int(code))
        found[row] = left.reshape(len(maps), -1).mean(axis=1).argmin()
    return found
