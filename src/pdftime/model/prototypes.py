"""PrototypeHead: classes as sets of unit vectors at several levels, moved by averages (section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.model.layers import Generator

EPS = 1e-8


class Statistics(NamedTuple):
    """What a batch says about one level's prototypes; sums and counts, so that shards add up exactly."""

    sums: Tensor
    """(n_classes, k, d): features of a class's cases, each weighted by its assignment."""
    mass: Tensor
    """(n_classes, k): the weights added up; 0 for a class that is absent."""


class PrototypeHead(nn.Module):
    """Scores a case by its cosine to the prototypes of each class; the last level decides."""

    def __init__(self, n_classes: int, config: ModelConfig, generator: Generator) -> None:
        super().__init__()
        self.temperature: float | Tensor = config.temperature
        self.assignment_temperature = config.assignment_temperature
        self.by_gradient = config.prototype_update == "gradient"
        for level, k in enumerate(config.n_prototypes):
            start = orthogonal_start(n_classes, k, config.d_model, generator)
            if self.by_gradient:
                self.register_parameter(f"level_{level}", nn.Parameter(start))
            else:
                self.register_buffer(f"level_{level}", start)
        self.n_levels = len(config.n_prototypes)

    @property
    def levels(self) -> list[Tensor]:
        """Unit prototypes (n_classes, k, d) of each level, first to last."""
        stored = [getattr(self, f"level_{level}") for level in range(self.n_levels)]
        return [F.normalize(each, dim=-1) for each in stored] if self.by_gradient else stored

    def similarities(self, z: Tensor) -> list[Tensor]:
        """Per level the cosine of each case to each prototype, (b, n_classes, k)."""
        unit = F.normalize(z, dim=-1)
        return [torch.einsum("bd,ckd->bck", unit, prototypes) for prototypes in self.levels]

    @property
    def masses(self) -> list[Tensor]:
        """Per level (n_classes, k): what a prototype counts in its class; 0 for one that is not there."""
        return [torch.ones(prototypes.shape[:2]) for prototypes in self.levels]

    def forward(self, z: Tensor) -> list[Tensor]:
        """Per level s_c(z) = log sum_k exp(cos(z, p_k^c) / T), (b, n_classes)."""
        return [torch.logsumexp(cosine / self.temperature, dim=-1) for cosine in self.similarities(z)]

    @torch.no_grad()
    def statistics(self, z: Tensor, y: Tensor, weight: Tensor | None = None) -> list[Statistics]:
        """Per level the soft-assigned sums and masses of a batch; q = softmax_k(cos / assignment temperature)."""
        unit = F.normalize(z, dim=-1)
        result = []
        for prototypes, cosine in zip(self.levels, self.similarities(z), strict=True):
            n_classes, k, d = prototypes.shape
            own = cosine[torch.arange(len(y)), y]
            q = torch.softmax(own / self.assignment_temperature, dim=-1)  # (b, k)
            if weight is not None:
                q = q * weight[:, None]
            member = F.one_hot(y, n_classes).to(q.dtype)[:, :, None] * q[:, None, :]  # (b, n_classes, k)
            sums = (member.flatten(1).T @ unit).view(n_classes, k, d)
            result.append(Statistics(sums, member.sum(0)))
        return result

    @torch.no_grad()
    def update_(self, statistics: Sequence[Statistics], momentum: float, diversity_step: float = 0.0) -> None:
        """Move prototypes towards their members' mean, and apart from each other; absent classes stay."""
        if self.by_gradient or momentum == 1.0:
            return
        for level, (old, (sums, mass)) in enumerate(zip(self.levels, statistics, strict=True)):
            mean = sums / mass.clamp_min(EPS)[..., None]
            target = torch.where(mass[..., None] > EPS, mean, old)  # one without members aims at where it is
            if diversity_step:
                target = target - diversity_step * diversity_gradient(old)
            moved = F.normalize(momentum * old + (1.0 - momentum) * target, dim=-1)
            present = mass.sum(dim=1) > 0.0
            stored = getattr(self, f"level_{level}")
            stored.copy_(torch.where(present[:, None, None], moved, stored))


class FixedPrototypes(PrototypeHead):
    """Prototypes that were found in closed form, as many as each class needs, with the mass that each stands for."""

    level_0: Tensor
    mass: Tensor
    temperature: Tensor

    def __init__(self, prototypes: Tensor, mass: Tensor, temperature: Tensor) -> None:
        """(n_classes, k, d) unit vectors, (n_classes, k) shares of the class, 0 for one that repeats another."""
        nn.Module.__init__(self)
        self.by_gradient, self.n_levels = False, 1
        self.register_buffer("level_0", prototypes)
        self.register_buffer("mass", mass)
        self.register_buffer("temperature", temperature)

    @property
    def masses(self) -> list[Tensor]:
        return [self.mass]

    def forward(self, z: Tensor) -> list[Tensor]:
        """s_c(z) = log sum_k m_k^c exp(cos(z, p_k^c) / T), (b, n_classes)."""
        (cosine,) = self.similarities(z)
        return [torch.logsumexp(cosine / self.temperature + self.mass.log(), dim=-1)]


def orthogonal_start(n_classes: int, k: int, d: int, generator: Generator) -> Tensor:
    """(n_classes, k, d) unit vectors, orthogonal inside a class (in groups of d where k > d), by QR."""
    groups = -(-k // d)
    random = torch.randn(n_classes, groups, d, min(k, d), generator=generator)
    basis: Tensor = torch.linalg.qr(random).Q.transpose(-1, -2)  # (n_classes, groups, min(k, d), d)
    return basis.reshape(n_classes, -1, d)[:, :k].contiguous()


def diversity_loss(prototypes: Tensor) -> Tensor:
    """L_div of one level: the mean over classes of ||P P^T - I||_F^2."""
    gram = prototypes @ prototypes.transpose(-1, -2)
    return (gram - torch.eye(gram.shape[-1], dtype=gram.dtype)).square().sum(dim=(-1, -2)).mean()


def diversity_gradient(prototypes: Tensor) -> Tensor:
    """d ||P P^T - I||_F^2 / dP of each class: 4 (P P^T - I) P."""
    gram = prototypes @ prototypes.transpose(-1, -2)
    return 4.0 * (gram - torch.eye(gram.shape[-1], dtype=gram.dtype)) @ prototypes
