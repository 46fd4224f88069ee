"""Small problems and the small models of every kind that the tests of explanations look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.config import preset
from pdftime.data.series import SeriesSet, check_series
from pdftime.fitted import FittedModel
from pdftime.fitting import FitOptions, LabelledCases, fit_model

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 5),
    "n_inception_layers": 2,
    "n_heads": 2,
    "max_tokens": 8,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warm_epochs": 1,
    "active_epochs": 2,
    "max_epochs": 25,
}
BANK = {"n_groups": 2, "n_biases": 1}
VIEWS = ["bank", "padded bank", "both", "padded both"]
CLASSES = np.array(["up", "down"])
LENGTHS = {"equal": (24, 24), "padded": (8, 40), "resampled": (8, 40)}
"""Lengths that the models of three kinds can be asked to explain."""
OTHERS: dict[str, dict[str, Any]] = {
    "linear head": {"head": "linear"},
    "class token": {"pooling": "token"},
    "no encoder": {"encoder": "none"},
    "window": {"encoder": "window", "window": 1},
    "by gradient": {"prototype_update": "gradient"},
    "unscaled": {"scaling": "none"},
    "each scaled": {"scaling": "series"},
    "linear embedding": {"embedding": "linear", "frequency_mask": False},
    "padded token": {"pooling": "token", "lengths": "pad"},
    "padded linear": {"head": "linear", "lengths": "pad"},
    "bank": {"views": "bank"},
    "padded bank": {"views": "bank", "lengths": "pad"},
    "both": {"views": "both", "validation_fraction": 0.4},
    "padded both": {"views": "both", "lengths": "pad", "n_members": 2, "validation_fraction": 0.4},
}
"""Settings of further models, hardly trained."""


def bumps(n: int, lengths: tuple[int, int], seed: int = 0) -> tuple[SeriesSet, NDArray[np.int64]]:
    """A bump up or down on the second of two channels, the first is noise."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    series = []
    for code in codes:
        length = int(rng.integers(lengths[0], lengths[1] + 1))
        x = 0.3 * rng.normal(size=(2, length))
        start = int(rng.integers(0, length - 6))
        x[1, start : start + 6] += 3.0 - 6.0 * code
        series.append(x)
    return check_series(series, channel_names=["idle", "busy"]), codes


def fitted(span: tuple[int, int] = (24, 24), n_members: int = 1, options: Any = None, **changes: Any) -> FittedModel:
    cases, codes = bumps(24, span)
    configured = preset("network").but(**{**TINY, **BANK, **changes})
    data = LabelledCases(cases, codes, np.ones(24))
    return fit_model(data, CLASSES, configured, FitOptions(n_members=n_members, **(options or {})))


def span_of(kind: str) -> tuple[int, int]:
    """Lengths of series that a model of this kind takes."""
    return LENGTHS.get(kind, (10, 30) if kind.startswith("padded") else (24, 24))
