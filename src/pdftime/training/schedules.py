"""Learning rate and prototype momentum as pure functions of progress."""

from __future__ import annotations

import math

from pdftime.config import TrainConfig


def prototype_momentum(epoch: int, config: TrainConfig) -> float:
    """gamma(t) of Algorithm 1: frozen, then a linear way down to gamma_a, then exponentially up to gamma_b.

    >>> from pdftime.config import preset
    >>> paper = preset("paper").training
    >>> [round(prototype_momentum(epoch, paper), 4) for epoch in (0, 2, 3, 8, 13, 43)]
    [1.0, 1.0, 1.0, 0.995, 0.99, 0.9957]
    """
    if config.momentum is not None:
        return config.momentum
    if epoch < config.warm_epochs:
        return 1.0
    if epoch < config.warm_epochs + config.active_epochs:
        return 1.0 - (1.0 - config.gamma_a) * (epoch - config.warm_epochs) / config.active_epochs
    late = epoch - config.warm_epochs - config.active_epochs
    return config.gamma_a + (config.gamma_b - config.gamma_a) * (1.0 - math.exp(-late / config.momentum_tau))


def learning_rate(progress: float, config: TrainConfig) -> float:
    """The rate at a progress from 0 to 1: a linear warm-up, then constant or half a cosine down to zero."""
    rate = config.learning_rate
    if progress < config.warmup:
        return rate * progress / config.warmup
    if config.schedule == "constant":
        return rate
    return rate * 0.5 * (1.0 + math.cos(math.pi * (progress - config.warmup) / (1.0 - config.warmup)))
