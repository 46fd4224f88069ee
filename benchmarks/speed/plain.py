"""The same equations written the plain way: (b, c, t) layout, stock layers, a loop over classes.

`PlainNetwork` has the weights of a `PDFTime` and its outputs; `attention_dropout` adds what the paper's
configuration drops and ours does not.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig, Settings
from pdftime.model.encoder import sinusoidal_positions
from pdftime.model.network import PDFTime

ENCODER_NAMES = {
    "norm_attention": "norm1",
    "query_key_value.": "self_attn.in_proj_",
    "output": "self_attn.out_proj",
    "norm_feed_forward": "norm2",
    "widen": "linear1",
    "narrow": "linear2",
}


class PlainNetwork(nn.Module):
    """Frequency mask, Inception layers, encoder and prototypes; for series of equal length and mean pooling."""

    def __init__(
        self, config: ModelConfig, n_channels: int, n_timepoints: int, n_classes: int, attention_dropout: float = 0.0
    ) -> None:
        super().__init__()
        d = config.d_model
        stride = 1 if config.max_tokens is None else -(-n_timepoints // config.max_tokens)
        n_tokens = -(-n_timepoints // stride)
        self.config = config
        self.gain = nn.Parameter(torch.ones(n_channels, n_timepoints // 2 + 1))
        sizes = [n_channels] + [d] * (config.n_inception_layers - 1)
        self.inception = nn.Sequential(*[PlainInceptionLayer(d_in, config) for d_in in sizes])
        self.inception_norm = nn.BatchNorm1d(d)
        self.pool = nn.AvgPool1d(stride, ceil_mode=True)
        self.register_buffer("positions", sinusoidal_positions(n_tokens, d))
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.Sequential(*[encoder_layer(config, attention_dropout) for _ in range(config.n_layers)])
        self.norm = nn.LayerNorm(d)
        self.prototypes = [torch.zeros(n_classes, k, d) for k in config.n_prototypes]

    def forward(self, x: Tensor) -> tuple[list[Tensor], Tensor]:
        """(b, c, t) -> class scores of every level, and what they are made from."""
        x = torch.fft.irfft(self.gain * torch.fft.rfft(x), n=x.shape[-1])
        features = self.pool(F.relu(self.inception_norm(self.inception(x))))
        tokens = self.encoder(self.dropout(features.transpose(1, 2) + self.positions))
        z = self.norm(tokens).mean(dim=1)
        unit = F.normalize(z, dim=-1)
        cosines = [torch.einsum("bd,ckd->bck", unit, level) for level in self.prototypes]
        return [torch.logsumexp(cosine / self.config.temperature, dim=-1) for cosine in cosines], z

    @classmethod
    def like(
        cls, network: PDFTime, config: ModelConfig, n_timepoints: int, attention_dropout: float = 0.0
    ) -> PlainNetwork:
        """A plain network with the weights of ours."""
        n_channels, n_classes = len(network.spectrum.gain), len(network.head.levels[0])
        plain = cls(config, n_channels, n_timepoints, n_classes, attention_dropout)
        plain.to(network.spectrum.gain.dtype)
        with torch.no_grad():
            for ours, same in paired(network, plain):
                same.copy_(ours.reshape(same.shape))
        plain.prototypes = [level.detach().clone() for level in network.head.levels]
        return plain.train(network.training)


class PlainInceptionLayer(nn.Module):
    """Convolutions of several spans and a max-pool branch, joined, normed, projected, plus a shortcut."""

    def __init__(self, d_in: int, config: ModelConfig) -> None:
        super().__init__()
        width, d = config.branch_width, config.d_model
        joined = width * (len(config.kernel_sizes) + 1)
        narrow = width if d_in > 1 else 1
        self.bottleneck = nn.Conv1d(d_in, width, 1, bias=False) if d_in > 1 else nn.Identity()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(narrow, width, size, padding=size // 2, bias=False) for size in config.kernel_sizes
        )
        self.max_pool = nn.MaxPool1d(3, stride=1, padding=1)
        self.after_pool = nn.Conv1d(d_in, width, 1, bias=False)
        self.norm = nn.BatchNorm1d(joined)
        self.projection = nn.Conv1d(joined, d, 1, bias=False)
        self.shortcut = nn.Identity() if d_in == d else nn.Conv1d(d_in, d, 1, bias=False)

    def forward(self, e: Tensor) -> Tensor:
        narrow = self.bottleneck(e)
        branches = [convolution(narrow) for convolution in self.convolutions]
        joined = torch.cat([*branches, self.after_pool(self.max_pool(e))], dim=1)
        return self.projection(F.relu(self.norm(joined))) + self.shortcut(e)


def encoder_layer(config: ModelConfig, attention_dropout: float) -> nn.TransformerEncoderLayer:
    layer = nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.feed_forward * config.d_model,
        config.dropout,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    layer.self_attn.dropout = attention_dropout
    return layer


class PlainTraining:
    """A plain step: forward, loss, backward, clip, AdamW without fusion, prototypes class by class."""

    def __init__(self, network: PlainNetwork, settings: Settings) -> None:
        self.network, self.config = network, settings.training
        matrices = [p for name, p in network.named_parameters() if p.ndim > 1 and name != "gain"]
        vectors = [p for name, p in network.named_parameters() if p.ndim <= 1 or name == "gain"]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
            lr=self.config.learning_rate,
            weight_decay=self.config.weight_decay,
            foreach=False,
            fused=False,
        )

    def epoch(self, x: Tensor, y: Tensor) -> float:
        """One pass in random order; the mean loss."""
        self.network.train()
        batches = torch.randperm(len(y)).split(self.config.batch_size)
        return sum(self.step(x[rows], y[rows]) for rows in batches) / len(batches)

    def step(self, x: Tensor, y: Tensor) -> float:
        scores, z = self.network(x)
        loss = self.loss(scores, y)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_norm, foreach=False)
        self.optimizer.step()
        self.move_prototypes_(z.detach(), y)
        return loss.item()

    def loss(self, scores: list[Tensor], y: Tensor) -> Tensor:
        """For level weights of 1, as both presets have them."""
        each = [F.cross_entropy(level, y, label_smoothing=self.config.label_smoothing) for level in scores]
        apart = [gram_error(level).square().sum(dim=(1, 2)).mean() for level in self.network.prototypes]
        return sum(each) + self.config.diversity_weight * sum(apart)

    @torch.no_grad()
    def move_prototypes_(self, z: Tensor, y: Tensor) -> None:
        """Algorithm 1 with a fixed momentum."""
        momentum, unit = self.config.momentum, F.normalize(z, dim=-1)
        for level in self.network.prototypes:
            for code in range(len(level)):
                members = unit[y == code]
                if len(members):
                    old = level[code]
                    q = torch.softmax(members @ old.T / self.network.config.assignment_temperature, dim=1)
                    mean = (q.T @ members) / q.sum(dim=0)[:, None]
                    target = mean - self.config.diversity_step * 4.0 * gram_error(old) @ old
                    level[code] = F.normalize(momentum * old + (1.0 - momentum) * target, dim=-1)


def gram_error(prototypes: Tensor) -> Tensor:
    """P P^T - I."""
    gram = prototypes @ prototypes.transpose(-1, -2)
    return gram - torch.eye(gram.shape[-1], dtype=gram.dtype)


def paired(network: PDFTime, plain: PlainNetwork) -> list[tuple[Tensor, Tensor]]:
    """Every weight and running average of ours with the one that means the same here."""
    theirs = {**dict(plain.named_parameters()), **dict(plain.named_buffers())}
    ours = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return [(tensor, theirs[plain_name(name)]) for name, tensor in ours.items() if not name.startswith("head.")]


def plain_name(name: str) -> str:
    """What our weight of this name is called in the plain network."""
    if name.startswith("encoder."):
        _, _, number, rest = name.split(".", 3)
        ours = next(each for each in ENCODER_NAMES if rest.startswith(each))
        return f"encoder.{number}.{ENCODER_NAMES[ours]}{rest.removeprefix(ours)}"
    name = name.replace("spectrum.", "").replace("embedding.layers.", "inception.")
    name = name.replace("embedding.norm.", "inception_norm.")
    return name.replace("norm.mean", "norm.running_mean").replace("norm.variance", "norm.running_var")
