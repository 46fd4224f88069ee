"""total_loss: every term of the objective by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pdftime.config import TrainConfig
from pdftime.model.prototypes import diversity_loss


class Losses(NamedTuple):
    """L = sum over levels of w_l L_cls + lambda L_div."""

    total: Tensor
    classification: tuple[Tensor, ...]
    """Per level: cross-entropy of the class scores, times the case's weight, averaged."""
    diversity: tuple[Tensor, ...]
    """Per level: how far its prototypes are from orthogonal inside their classes; empty for a linear head."""

    def as_floats(self) -> dict[str, float]:
        """Each term by name, for the history."""
        terms = {"loss": self.total}
        terms |= {f"classification_{level}": term for level, term in enumerate(self.classification)}
        terms |= {f"diversity_{level}": term for level, term in enumerate(self.diversity)}
        return {name: float(term.detach()) for name, term in terms.items()}


def total_loss(
    scores: Sequence[Tensor], levels: Sequence[Tensor], y: Tensor, weight: Tensor, config: TrainConfig
) -> Losses:
    """The objective from class scores and prototypes of every level; weights are 1 on average over all cases."""
    classification = tuple(
        (weight * F.cross_entropy(each, y, reduction="none", label_smoothing=config.label_smoothing)).mean()
        for each in scores
    )
    diversity = tuple(diversity_loss(prototypes) for prototypes in levels)
    weights = level_weights(len(scores), config)
    total = torch.stack([w * term for w, term in zip(weights, classification, strict=True)]).sum()
    if diversity:
        total = total + config.diversity_weight * torch.stack(diversity).sum()
    return Losses(total, classification, diversity)


def level_weights(n_levels: int, config: TrainConfig) -> tuple[float, ...]:
    """w_l of each level: as set, the last one repeated where there are more levels than weights."""
    given = config.level_weights[-n_levels:]
    return (*given, *[given[-1]] * (n_levels - len(given)))
