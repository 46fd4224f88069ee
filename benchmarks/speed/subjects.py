"""What is timed: generated series, and training runs of ours and of the plain network on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pdftime.config import Settings, preset
from pdftime.data.batches import generator_for
from pdftime.model.network import PDFTime
from pdftime.training.loop import Examples, start, train

from .plain import PlainNetwork, PlainTraining


class Shape(NamedTuple):
    """Facts of generated data."""

    n_timepoints: int
    n_channels: int = 1
    n_classes: int = 5


def series(n_cases: int, shape: Shape, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Noise with a level that tells the class; every class comes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_cases) % shape.n_classes
    X = rng.standard_normal((n_cases, shape.n_channels, shape.n_timepoints), dtype=np.float32)
    return X + y[:, None, None].astype(np.float32) / shape.n_classes, y


def settings_for(name: str, batch_size: int) -> Settings:
    """The preset at a constant rate and a momentum below 1, so that every step does all there is to do."""
    return preset(name).but(
        batch_size=batch_size, momentum=0.99, schedule="constant", warmup=0.0, max_epochs=1_000_000
    )


def network_for(settings: Settings, shape: Shape) -> PDFTime:
    return PDFTime(settings.model, shape.n_channels, shape.n_timepoints, shape.n_classes, generator_for(0, "weights"))


def our_epoch(network: PDFTime, settings: Settings, shape: Shape, n_steps: int) -> Callable[[], object]:
    """A function that trains for one epoch of `n_steps` steps with the library's own loop."""
    X, y = series(n_steps * settings.training.batch_size, shape)
    examples = Examples(torch.from_numpy(X), None, torch.from_numpy(y), torch.ones(len(y)))
    run = start(network, len(y), settings.training, seed=0)
    return lambda: train(run, examples, callbacks=[lambda run: True])


def plain_epoch(network: PlainNetwork, settings: Settings, shape: Shape, n_steps: int) -> Callable[[], object]:
    """The same epoch with the plain network; numbers near zero count as zero here too."""
    X, y = (torch.from_numpy(array) for array in series(n_steps * settings.training.batch_size, shape))
    training = PlainTraining(network, settings)

    def epoch() -> None:
        torch.set_flush_denormal(True)
        training.epoch(X, y)
        torch.set_flush_denormal(False)

    return epoch


def output_difference(network: PDFTime, plain: PlainNetwork, shape: Shape) -> float:
    """The largest difference between the scores of ours and of the plain network, outside training."""
    x = torch.from_numpy(series(16, shape)[0])
    with torch.no_grad():
        ours, theirs = network.eval()(x).scores, plain.eval()(x)[0]
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
