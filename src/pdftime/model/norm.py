"""FeatureNorm: batch normalisation over cases and time whose running averages move only when told to."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPS = 1e-5


class Moments(NamedTuple):
    """What a batch says about one norm; sums and a count, so that shards add up exactly."""

    sums: Tensor
    """(d,) features added up."""
    squares: Tensor
    """(d,) their squares added up."""
    n: int
    """Time points that went into the sums."""


class FeatureNorm(nn.Module):
    """(x - mean) / std * weight + bias per feature: the batch's own in a training pass, the averages otherwise."""

    mean: Tensor
    variance: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("variance", torch.ones(d))

    def forward(self, x: Tensor, inside: Tensor | None, training: bool) -> tuple[Tensor, Moments | None]:
        """(b, t, d) -> (b, t, d); places outside their series take no part and come out as zeros."""
        flat = x.flatten(0, 1) if inside is None else x[inside[:, :, 0]]
        moments = None
        if training and len(flat) > 1:
            flat, mean, rstd = torch.native_batch_norm(flat, self.weight, self.bias, None, None, True, 0.0, EPS)
            moments = _moments(mean.detach(), rstd.detach(), len(flat))
        else:
            flat = F.batch_norm(flat, self.mean, self.variance, self.weight, self.bias, False, 0.0, EPS)
        if inside is None:
            return flat.view(x.shape), moments
        return x.new_zeros(x.shape).masked_scatter(inside, flat), moments

    @torch.no_grad()
    def update_(self, moments: Moments, rate: float) -> None:
        """Move the averages towards a batch's mean and (unbiased) variance."""
        mean = moments.sums / moments.n
        variance = (moments.squares / moments.n - mean.square()).clamp_min(0.0)
        unbiased = variance * (moments.n / max(1, moments.n - 1))
        self.mean.lerp_(mean.to(self.mean.dtype), rate)
        self.variance.lerp_(unbiased.to(self.variance.dtype), rate)


def _moments(mean: Tensor, rstd: Tensor, count: int) -> Moments:
    variance = rstd.double().pow(-2) - EPS
    return Moments(mean.double() * count, (variance + mean.double().square()) * count, count)
