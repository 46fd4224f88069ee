"""Convolutions over time of (b, t, d): several spans of one input at once, directly or by FFT, as size asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

FFT_WIDTH, FFT_LENGTH = 32, 320  # measured: FFT wins from this width on, up to this length (docs/performance.md)


def convolve_all(x: Tensor, kernels: Sequence[Tensor]) -> list[Tensor]:
    """(b, t, d_in) -> per kernel (d_out, d_in, 1, k), k odd, the convolution (b, t, d_out) of the same length."""
    d_out, d_in = kernels[0].shape[:2]
    if min(d_in, d_out) >= FFT_WIDTH and x.shape[1] <= FFT_LENGTH:
        return convolve_by_fft(x, kernels)
    return convolve_directly(x, kernels)


def convolve_directly(x: Tensor, kernels: Sequence[Tensor]) -> list[Tensor]:
    """As channels-last images of height 1: 3 times faster than conv1d, and the views copy nothing."""
    image = x.transpose(1, 2).unsqueeze(2)
    made = [F.conv2d(image, kernel, padding=(0, kernel.shape[3] // 2)) for kernel in kernels]
    return [each.squeeze(2).transpose(1, 2) for each in made]


def convolve_by_fft(x: Tensor, kernels: Sequence[Tensor]) -> list[Tensor]:
    """One transform of the input and of all kernels, a product of matrices per frequency, and one way back."""
    span = max(kernel.shape[3] for kernel in kernels)
    centred = [F.pad(kernel.squeeze(2), [(span - kernel.shape[3]) // 2] * 2) for kernel in kernels]
    n = fft_length(x.shape[1] + span - 1)
    signal = torch.fft.rfft(x.transpose(1, 2), n).permute(2, 0, 1).contiguous()  # (f, b, d_in)
    filters = torch.fft.rfft(torch.cat(centred).flip(2), n).permute(2, 1, 0).contiguous()  # (f, d_in, all d_out)
    made = torch.fft.irfft((signal @ filters).permute(1, 2, 0).contiguous(), n)  # (b, all d_out, n)
    inside = made[..., span // 2 : span // 2 + x.shape[1]].transpose(1, 2)
    return list(inside.split([kernel.shape[0] for kernel in kernels], dim=2))


@lru_cache(maxsize=256)
def fft_length(at_least: int) -> int:
    """The next even number with no prime factor above 5: transforms of such lengths are fast.

    >>> fft_length(167), fft_length(1)
    (180, 2)
    """
    n = at_least + at_least % 2
    while _rest(n) > 1:
        n += 2
    return n


def _rest(n: int) -> int:
    """What is left of a number without its factors 2, 3 and 5."""
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n
