"""Convolutions are conv1d's, whichever way they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from pdftime.data.batches import generator_for
from pdftime.model import convolution as module
from pdftime.model.convolution import convolve_all, convolve_by_fft, convolve_directly, fft_length
from pdftime.model.layers import convolution

Way = Callable[[Tensor, Sequence[Tensor]], list[Tensor]]


@pytest.mark.parametrize("way", [convolve_directly, convolve_by_fft, convolve_all])
@pytest.mark.parametrize("t", [1, 2, 7, 40, 130])
@pytest.mark.parametrize(("d_in", "sizes"), [(1, (9, 19, 39)), (5, (1,)), (4, (5, 3)), (32, (3, 39))])
def test_convolutions_are_conv1d_forwards_and_backwards(way: Way, t: int, d_in: int, sizes: tuple[int, ...]) -> None:
    d_out = 32 if d_in == 32 else 6
    ours = [convolution(d_in, d_out, size, generator_for("weights", size)) for size in sizes]
    x = torch.randn(3, t, d_in, generator=generator_for("x")).requires_grad_(True)
    again = x.detach().clone().requires_grad_(True)
    made = way(x, [layer.weight for layer in ours])
    for layer, y, size in zip(ours, made, sizes, strict=True):
        plain = nn.Conv1d(d_in, d_out, size, padding=size // 2, bias=False)
        plain.weight.data.copy_(layer.weight.data[:, :, 0])
        expected = plain(again.transpose(1, 2)).transpose(1, 2)
        torch.testing.assert_close(y, expected, atol=1e-5, rtol=1e-4)
        weight = torch.randn(y.shape, generator=generator_for("gradient", size))
        for out in (y, expected):
            (out * weight).sum().backward(retain_graph=True)
        torch.testing.assert_close(layer.weight.grad[:, :, 0], plain.weight.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(x.grad, again.grad, atol=1e-4, rtol=1e-4)


@given(n=st.integers(1, 5000))
@settings(max_examples=50, deadline=None)
def test_the_length_of_a_transform_is_even_smooth_and_near(n: int) -> None:
    chosen = fft_length(n)
    assert n <= chosen <= max(2, 1.25 * n + 2)
    assert chosen % 2 == 0
    for prime in (2, 3, 5):
        while chosen % prime == 0:
            chosen //= prime
    assert chosen == 1


@pytest.mark.parametrize(("width", "t", "by_fft"), [(32, 100, True), (16, 100, False), (32, 1000, False)])
def test_the_way_is_chosen_by_size(width: int, t: int, by_fft: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    for name in ("convolve_by_fft", "convolve_directly"):
        monkeypatch.setattr(module, name, lambda *_, name=name: taken.append(name))
    convolve_all(torch.zeros(1, t, width), [torch.zeros(width, width, 1, 3)])
    assert taken == ["convolve_by_fft" if by_fft else "convolve_directly"]
