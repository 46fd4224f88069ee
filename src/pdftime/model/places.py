"""Values at their places: means of equal intervals of a series, which a bank that pools over time does not see."""

from __future__ import annotations

import torch
from torch import Tensor

from pdftime.model.bank import lengths_of

N_PLACES = 64  # intervals of a series, where it has as many time points
MOST_VALUES = 4096  # of all channels together


def n_places(n_channels: int, n_timepoints: int) -> int:
    """Into how many intervals each channel is divided."""
    return min(N_PLACES, n_timepoints, max(1, MOST_VALUES // n_channels))


def place_values(x: Tensor, mask: Tensor | None, n: int) -> Tensor:
    """(b, c, t) -> (b, c * n): the mean of each channel in each of n equal intervals from its start to its end."""
    return torch.matmul(x, interval_shares(x, mask, n).transpose(1, 2)).flatten(1)


def interval_shares(x: Tensor, mask: Tensor | None, n: int) -> Tensor:
    """(b, n, t), or (1, n, t) without a mask: the share of each time point in each interval; over time they sum to 1.

    An edge may lie within a time point, which then belongs to both its intervals in parts.
    """
    lengths = lengths_of(x, mask)[: 1 if mask is None else None, None, None]
    steps, number = torch.arange(x.shape[2]), torch.arange(n)[:, None]
    first, last = lengths * number / n, lengths * (number + 1) / n
    overlap = torch.minimum(last, steps + 1) - torch.maximum(first, steps)
    return overlap.clamp_min_(0.0).mul_(n / lengths)


def place_spectrum(x: Tensor, mask: Tensor | None, n: int) -> Tensor:
    """(b, c, f): the share of each frequency in the power of the series that averages over intervals let through."""
    t = x.shape[2]
    power = torch.fft.rfft(x if mask is None else x * mask[:, None, :]).abs().square()
    frequencies = torch.arange(t // 2 + 1) / t
    seen = power * torch.sinc(frequencies * lengths_of(x, mask)[:, None, None] / n).square()
    seen[..., 0] += 1e-20  # of a series without any power all is constant
    shares: Tensor = seen / seen.sum(dim=-1, keepdim=True)
    return shares
