"""Encoder: sinusoidal positions and pre-norm attention layers (section 4.3)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.model.layers import Generator, dropout, linear


def sinusoidal_positions(n_tokens: int, d_model: int) -> Tensor:
    """(n_tokens, d_model): sines in even places, cosines in odd ones, wavelengths from 2 pi to 10000 * 2 pi."""
    places = torch.arange(d_model)
    rates = torch.exp(-math.log(10000.0) * (places - places % 2) / d_model)
    angles = torch.arange(n_tokens)[:, None] * rates
    return torch.where(places % 2 == 0, angles.sin(), angles.cos())


class EncoderLayer(nn.Module):
    """Z' = MHSA(LN(Z)) + Z;  Z = FFN(LN(Z')) + Z'."""

    def __init__(self, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        d = config.d_model
        self.n_heads = config.n_heads
        self.dropout = config.dropout
        self.norm_attention = nn.LayerNorm(d)
        self.query_key_value = linear(d, 3 * d, generator)
        self.output = linear(d, d, generator)
        self.norm_feed_forward = nn.LayerNorm(d)
        self.widen = linear(d, config.feed_forward * d, generator)
        self.narrow = linear(config.feed_forward * d, d, generator)

    def forward(self, tokens: Tensor, allowed: Tensor | None, generator: Generator) -> Tensor:
        """(b, t, d) -> (b, t, d); `allowed` is broadcast to (b, heads, t, t), true where a token may look."""
        b, t, d = tokens.shape
        heads = self.query_key_value(self.norm_attention(tokens)).view(b, t, 3, self.n_heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        tokens = tokens + dropout(self.output(seen.transpose(1, 2).reshape(b, t, d)), self.dropout, generator)
        hidden = dropout(F.gelu(self.widen(self.norm_feed_forward(tokens))), self.dropout, generator)
        return tokens + dropout(self.narrow(hidden), self.dropout, generator)


class Encoder(nn.Module):
    """Positions and layers; padded tokens are never looked at, and with a window neither are far ones."""

    def __init__(self, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.window = config.window if config.encoder == "window" else None
        self.layers = nn.ModuleList(EncoderLayer(config, generator) for _ in range(config.n_layers))

    def forward(self, tokens: Tensor, inside: Tensor | None, generator: Generator) -> Tensor:
        """(b, t, d) -> (b, t, d); `inside` (b, t) is false for padded tokens."""
        _, t, d = tokens.shape
        tokens = dropout(tokens + sinusoidal_positions(t, d), self.dropout, generator)
        allowed = self._allowed(t, inside)
        for layer in self.layers:
            tokens = layer(tokens, allowed, generator)
        return tokens

    def _allowed(self, t: int, inside: Tensor | None) -> Tensor | None:
        if self.window is None and inside is None:
            return None
        place = torch.arange(t)
        distance = (place[:, None] - place).abs()
        allowed = distance <= (t if self.window is None else self.window)
        if inside is None:
            return allowed
        # a padded token sees itself, or its softmax would be over nothing
        return (allowed & inside[:, None, None, :]) | (distance == 0)
