"""FrequencyMask: one learnable real gain per channel and frequency (section 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FrequencyMask(nn.Module):
    """x -> irfft(W_f * rfft(x)): a zero-phase filter, the identity at the start."""

    def __init__(self, n_channels: int, n_timepoints: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n_channels, n_timepoints // 2 + 1))

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, t) -> (b, c, t)."""
        filtered: Tensor = torch.fft.irfft(self.gain * torch.fft.rfft(x), n=x.shape[-1])
        return filtered
