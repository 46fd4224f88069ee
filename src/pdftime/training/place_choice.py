"""Whether values at their places join a bank's features: only where left-out cases say so clearly."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.batches import seed_for
from pdftime.training.allocation import fit_left_out, gain, target_matrix
from pdftime.training.ridge import DualRidge

SHARES = (0.3, 1.0, 3.0)  # variance that all values have together, against that of all features
CLEARLY = 2.0  # standard errors by which left-out cases must be better predicted
MOST_CASES = 500  # that decide


def places_factor(features: Tensor, values: Tensor, codes: NDArray[np.int64], weight: Tensor, seed: int) -> float:
    """What values at their places (n, m) are multiplied by beside features (n, p) of the same cases; 0: left out.

    Of three factors the one under which left-out cases are most likely, if they are clearly more likely than by the
    features alone, and their targets clearly nearer.
    """
    rows = np.sort(np.random.default_rng(seed_for(seed, "places")).permutation(len(codes))[:MOST_CASES])
    features, values, weight = features[rows], values[rows], weight[rows]
    present, codes = np.unique(codes[rows], return_inverse=True)
    if len(present) < 2:
        return 0.0
    targets = target_matrix(codes, np.zeros_like(codes), np.ones_like(present))
    alone = DualRidge(features, weight)
    losses, errors = _left_out(alone, targets, codes, weight)
    share = weight / weight.mean()
    spread = DualRidge(values, weight).mean_value
    best, factor = float((losses * share).mean()), 0.0
    for each in SHARES:
        tried = (each * alone.mean_value / spread) ** 0.5
        with_values = DualRidge(torch.cat([features, tried * values], dim=1), weight)
        own_losses, own_errors = _left_out(with_values, targets, codes, weight)
        mean = float((own_losses * share).mean())
        clearly = min(gain((losses - own_losses) * share), gain((errors - own_errors) * share)) > CLEARLY
        if mean < best and clearly:
            best, factor = mean, tried
    return factor


def _left_out(ridge: DualRidge, targets: Tensor, codes: NDArray[np.int64], weight: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) losses and (n,) squared errors of cases, each predicted without itself, at the ridge's best strength."""
    ridge.choose_(targets)
    z = ridge.left_out(targets)
    counts = np.ones(targets.shape[1], np.int64)
    fit = fit_left_out(z, counts, torch.ones(len(counts)).double(), torch.from_numpy(codes), weight)
    return fit.losses, (z - targets).square().mean(dim=1)
