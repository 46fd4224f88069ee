"""PDFTime: frequency mask, embedding, encoder and head, wired in order."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.model.embedding import InceptionEmbedding, LinearEmbedding
from pdftime.model.encoder import Encoder
from pdftime.model.layers import Generator, linear, pool_tokens
from pdftime.model.norm import Moments
from pdftime.model.prototypes import PrototypeHead
from pdftime.model.spectrum import FrequencyMask


class Output(NamedTuple):
    """What the network makes of a batch."""

    scores: list[Tensor]
    """Per prototype level (b, n_classes); the last one decides."""
    z: Tensor
    """(b, d), what the head compares with prototypes."""
    tokens: Tensor
    """(b, n_tokens, d); with mean pooling, z is the mean of those inside."""
    inside: Tensor | None
    """(b, n_tokens), false for tokens behind the end of their series; None where there are none."""
    moments: list[Moments]
    """For `PDFTime.update_norms_`; empty unless this was a training pass."""


class PDFTime(nn.Module):
    """The paper's network. Facts of the data are arguments, choices are in `config`."""

    def __init__(
        self,
        config: ModelConfig,
        n_channels: int,
        n_timepoints: int,
        n_classes: int,
        generator: Generator = None,
        backbone: nn.Module | None = None,
    ) -> None:
        """Weights are drawn from `generator`; a `backbone` (tokens in, tokens out) takes the encoder's place."""
        super().__init__()
        self.d_model = d = config.d_model
        self.spectrum = FrequencyMask(n_channels, n_timepoints) if config.frequency_mask else None
        embedding = InceptionEmbedding if config.embedding == "inception" else LinearEmbedding
        self.embedding = embedding(n_channels, n_timepoints, config, generator)
        embedded = -(-n_timepoints // self.embedding.stride)
        self.pool_stride = 1 if config.max_tokens is None else -(-embedded // config.max_tokens)
        self.stride = self.embedding.stride * self.pool_stride  # time points in a token
        self.class_token = nn.Parameter(torch.zeros(d)) if config.pooling == "token" else None
        self.backbone = backbone
        has_encoder = backbone is None and config.encoder != "none"
        self.encoder = Encoder(config, generator) if has_encoder else None
        self.norm = nn.LayerNorm(d)
        head = PrototypeHead if config.head == "prototypes" else LinearHead
        self.head: PrototypeHead | LinearHead = head(n_classes, config, generator)

    def forward(self, x: Tensor, mask: Tensor | None = None, generator: Generator = None) -> Output:
        """(b, c, t) -> Output. With a generator it is a training pass; without one, a pure function of x.

        `mask` (b, t) is false behind the end of a series; what stands there changes nothing.
        """
        x = self._filtered(x, mask)
        tokens, mask, moments = self.embedding(x.transpose(1, 2).contiguous(), mask, generator is not None)
        tokens, token_mask = pool_tokens(tokens, mask, self.pool_stride)
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(len(x), 1, -1), tokens], dim=1)
            token_mask = None if token_mask is None else F.pad(token_mask, (1, 0), value=True)
        if self.backbone is not None:
            tokens = self.backbone(tokens)
        elif self.encoder is not None:
            tokens = self.encoder(tokens, token_mask, generator)
        tokens = self.norm(tokens)
        z = mean_over_tokens(tokens, token_mask) if self.class_token is None else tokens[:, 0]
        return Output(self.head(z), z, tokens, token_mask, moments)

    def update_norms_(self, moments: list[Moments], rate: float) -> None:
        """Move the running averages of the embedding's norms."""
        self.embedding.update_(moments, rate)

    def _filtered(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The series through the frequency mask; zeros behind their ends, before and after."""
        if mask is not None:
            x = torch.where(mask[:, None, :], x, 0.0)
        if self.spectrum is not None:
            x = self.spectrum(x)
            if mask is not None:
                x = x * mask[:, None, :]
        return x


class LinearHead(nn.Module):
    """One linear map to class scores: the paper's ablation; it has no prototypes."""

    levels: tuple[Tensor, ...] = ()
    masses: tuple[Tensor, ...] = ()

    def __init__(self, n_classes: int, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        self.projection = linear(config.d_model, n_classes, generator)

    def forward(self, z: Tensor) -> list[Tensor]:
        return [self.projection(z)]


def mean_over_tokens(tokens: Tensor, inside: Tensor | None) -> Tensor:
    """(b, t, d) -> (b, d), over the tokens inside their series."""
    if inside is None:
        return tokens.mean(dim=1)
    weight = inside.to(tokens.dtype)[:, :, None]
    return (tokens * weight).sum(dim=1) / weight.sum(dim=1)
