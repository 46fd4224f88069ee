"""The frequency mask is a filter: a gain for every frequency of every channel, and nothing at first."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.model.spectrum import FrequencyMask

LENGTHS = pytest.mark.parametrize("t", [1, 2, 3, 8, 17, 30])


def series(b: int, c: int, t: int) -> Tensor:
    return torch.randn(b, c, t, generator=generator_for(t), dtype=torch.float64)


def drawn(c: int, t: int) -> FrequencyMask:
    mask = FrequencyMask(c, t).double()
    torch.nn.init.normal_(mask.gain, generator=generator_for("gain"))
    return mask


@LENGTHS
def test_it_is_the_identity_at_the_start(t: int) -> None:
    x = series(2, 3, t)
    torch.testing.assert_close(FrequencyMask(3, t)(x), x)


@LENGTHS
def test_it_is_a_gain_between_the_fourier_matrix_and_its_inverse(t: int) -> None:
    x, mask = series(2, 3, t), drawn(3, t)
    place = torch.arange(t, dtype=torch.float64)
    fourier = torch.exp(-2j * torch.pi * place[:, None] * place / t)  # (t, t)
    both_sides = mask.gain[:, [min(k, t - k) for k in range(t)]]  # frequency k stands at k and at t - k
    spectrum = both_sides * (x.to(fourier.dtype) @ fourier.T)
    expected = spectrum @ fourier.conj() / t
    torch.testing.assert_close(expected.imag, torch.zeros_like(x))
    torch.testing.assert_close(mask(x), expected.real)


@LENGTHS
def test_every_gain_learns(t: int) -> None:
    mask = drawn(2, t)
    mask(series(4, 2, t)).square().sum().backward()
    assert mask.gain.grad is not None
    assert mask.gain.shape == (2, t // 2 + 1)
    assert (mask.gain.grad != 0.0).all()


def test_a_pure_oscillation_is_taken_out_by_a_zero_at_its_frequency() -> None:
    place = torch.arange(40.0)
    slow, fast = torch.sin(2 * torch.pi * 3 * place / 40), torch.sin(2 * torch.pi * 11 * place / 40)
    mask = FrequencyMask(1, 40)
    with torch.no_grad():
        mask.gain[0, 11] = 0.0
    torch.testing.assert_close(mask((slow + fast)[None, None]), slow[None, None], atol=1e-5, rtol=0)


def test_channels_are_filtered_apart() -> None:
    x, mask = series(1, 2, 9), drawn(2, 9)
    changed = x.clone()
    changed[:, 1] += 1.0
    assert torch.equal(mask(changed)[:, 0], mask(x)[:, 0])
    assert not torch.equal(mask(changed)[:, 1], mask(x)[:, 1])
