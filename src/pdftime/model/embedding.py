"""Embeddings: series in, one vector per time point out (section 4.2); all in (b, t, d) layout."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.model.convolution import convolve_all
from pdftime.model.layers import Generator, convolution, linear, pool_tokens
from pdftime.model.norm import FeatureNorm, Moments


class Embedded(NamedTuple):
    """What an embedding makes of a batch."""

    tokens: Tensor
    """(b, n_tokens, d)"""
    mask: Tensor | None
    """(b, n_tokens), false for tokens behind the end of their series."""
    moments: list[Moments]
    """For `update_`; empty unless this was a training pass."""


class InceptionEmbedding(nn.Module):
    """L_I residual Inception layers, with fewer time points from one to the next, then a norm and a rectifier."""

    def __init__(self, n_channels: int, n_timepoints: int, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        self.stride = 1  # time points in a token
        if config.least_timepoints is not None:
            most = 2 ** (config.n_inception_layers - 1)
            while self.stride < most and n_timepoints >= 2 * self.stride * config.least_timepoints:
                self.stride *= 2
        sizes = [n_channels] + [config.d_model] * (config.n_inception_layers - 1)
        self.layers = nn.ModuleList(InceptionLayer(d_in, config, generator) for d_in in sizes)
        self.norm = FeatureNorm(config.d_model)

    def forward(self, x: Tensor, mask: Tensor | None, training: bool) -> Embedded:
        """(b, t, c) -> (b, ceil(t / stride), d); `mask` (b, t) is false behind the end of a series."""
        noted = []
        for number, layer in enumerate(self.layers):
            if number > 0 and 2**number <= self.stride:
                x, mask = pool_tokens(x, mask, 2)
            x, moments = layer(x, _inside(mask), training)
            noted.append(moments)
        x, moments = self.norm(x, _inside(mask), training)
        return Embedded(F.relu(x), mask, [each for each in (*noted, moments) if each is not None])

    def update_(self, moments: list[Moments], rate: float) -> None:
        """Move the running averages of every norm; `moments` are those of a training pass."""
        norms = [module for module in self.modules() if isinstance(module, FeatureNorm)]
        if moments:
            for norm, each in zip(norms, moments, strict=True):
                norm.update_(each, rate)


class InceptionLayer(nn.Module):
    """phi(Concat(f_1(e), ..., f_p(e))) + e: convolutions of several spans, and a max-pool branch."""

    def __init__(self, d_in: int, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        width = config.branch_width
        joined = width * (len(config.kernel_sizes) + 1)
        self.bottleneck = linear(d_in, width, generator, bias=False) if d_in > 1 else nn.Identity()
        self.convolutions = nn.ModuleList(
            convolution(width if d_in > 1 else 1, width, size, generator) for size in config.kernel_sizes
        )
        self.after_pool = linear(d_in, width, generator, bias=False)
        self.norm = FeatureNorm(joined)
        # no offset: the norms that follow would take it out again, and its gradient would be rounding alone
        self.projection = linear(joined, config.d_model, generator, bias=False)
        self.shortcut = (
            nn.Identity() if d_in == config.d_model else linear(d_in, config.d_model, generator, bias=False)
        )

    def forward(self, e: Tensor, inside: Tensor | None, training: bool) -> tuple[Tensor, Moments | None]:
        narrow = self.bottleneck(e)
        branches = convolve_all(narrow, [cast(Tensor, layer.weight) for layer in self.convolutions])
        joined = torch.cat([*branches, self.after_pool(max_of_three(e, inside))], dim=-1)
        normed, moments = self.norm(joined, inside, training)
        return self.projection(F.relu(normed)) + self.shortcut(e), moments  # without offsets, zeros outside stay


class LinearEmbedding(nn.Module):
    """One linear map per time point: the paper's ablation."""

    stride = 1

    def __init__(self, n_channels: int, n_timepoints: int, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        self.projection = linear(n_channels, config.d_model, generator)

    def forward(self, x: Tensor, mask: Tensor | None, training: bool) -> Embedded:
        out = self.projection(x)
        return Embedded(out if mask is None else out * mask[:, :, None], mask, [])

    def update_(self, moments: list[Moments], rate: float) -> None:
        """Nothing is averaged here."""


def _inside(mask: Tensor | None) -> Tensor | None:
    """(b, t, 1) true where a time point belongs to its series."""
    return None if mask is None else mask[:, :, None]


def max_of_three(x: Tensor, inside: Tensor | None = None) -> Tensor:
    """MaxPool1d(3, stride=1, padding=1) over time of (b, t, d); what is outside its series takes no part."""
    largest: Tensor
    if inside is None:
        largest = _MaxOfThree.apply(x)  # type: ignore[no-untyped-call]
        return largest
    largest = _MaxOfThree.apply(x.masked_fill(~inside, -torch.inf))  # type: ignore[no-untyped-call]
    return largest.masked_fill(~inside, 0.0)


class _MaxOfThree(torch.autograd.Function):
    """Maxima of shifted views, and their gradient in vectorised passes: many times faster than max_pool1d's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        larger = torch.empty_like(x)  # of each place and the one before it
        larger[:, :1] = x[:, :1]
        torch.maximum(x[:, 1:], x[:, :-1], out=larger[:, 1:])
        largest = torch.empty_like(x)
        largest[:, -1:] = larger[:, -1:]
        torch.maximum(larger[:, :-1], x[:, 1:], out=largest[:, :-1])
        ctx.save_for_backward(x, larger)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """To the first of the three that is the largest."""
        (gradient,), (x, larger) = gradients, ctx.saved_tensors
        to_after = _where_positive(gradient[:, :-1], x[:, 1:] - larger[:, :-1])
        result = torch.empty_like(x)
        result[:, -1:] = gradient[:, -1:]
        torch.sub(gradient[:, :-1], to_after, out=result[:, :-1])
        to_own = _where_positive(result[:, 1:], x[:, 1:] - x[:, :-1])
        to_before = result[:, 1:] - to_own
        torch.add(to_own, to_after, out=result[:, 1:])
        result[:, :-1] += to_before
        return result


def _where_positive(values: Tensor, condition: Tensor) -> Tensor:
    """`values` where `condition` > 0, else 0, in one vectorised pass, which torch.where is not."""
    return torch.ops.aten.threshold_backward(values, condition, 0.0)  # type: ignore[no-any-return]
