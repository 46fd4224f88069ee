"""Rows of results for tests, made and not measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pdftime.bench.store import Row


def row(dataset: str, accuracy: float, method: str = "default", seed: int = 0, **more: Any) -> Row:
    """A finished row of ours, or of a peer where `settings` says so."""
    facts: dict[str, Any] = {
        "archive": "ucr",
        "resample": 0,
        "configuration": hashlib.sha256(method.encode()).hexdigest()[:12],
        "status": "ok",
        "fit_seconds": 10.0,
        "predict_seconds": 1.0,
        "n_train": 20,
        "n_classes": 2,
        "n_timepoints": 50,
        "n_threads": 1,
        "settings": '{"preset": "default"}',
        "host": "a processor, 2 cores",
        **more,
    }
    return Row(dataset=dataset, accuracy=accuracy, method=method, seed=seed, **facts)


def peer(dataset: str, accuracy: float, method: str = "rocket", **more: Any) -> Row:
    """A finished row of a peer."""
    return row(dataset, accuracy, method, **{"settings": '{"class": "some:Class"}', "fit_seconds": 2.0, **more})


def rows_of(accuracies: Mapping[str, float], method: str = "default", **more: Any) -> list[Row]:
    return [row(name, accuracy, method, **more) for name, accuracy in accuracies.items()]
