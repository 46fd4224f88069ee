"""Rows about growth: how time and peak memory rise with length, cases, channels and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .timing import Record, exponent, spread_of
from .worker import in_a_process

LENGTHS = tuple(256 * 2**power for power in range(7))
CASES = (100, 1_000, 10_000, 100_000)
CHANNELS = (1, 4, 16, 64, 256)
CLASSES = (2, 5, 10, 20, 50, 100)


def growth(quick: bool, repetitions: int) -> list[Record]:
    """(d) Exponents fitted in logarithms over sizes; every measurement in a process of its own."""
    rounds = min(repetitions, 3)
    steps = {"task": "steps", "n_steps": 1 if quick else 2}
    fit = {"task": "fit", "n_epochs": 1 if quick else 2, "n_timepoints": 64}
    few = {"n_cases": 100 if quick else 400}
    return [
        *_grow("training steps", "n_timepoints", LENGTHS[:3] if quick else LENGTHS, steps, rounds),
        *_grow("fit, length 64", "n_cases", CASES[:2] if quick else CASES, fit, rounds),
        *_grow("fit, length 64", "n_channels", CHANNELS[:3] if quick else CHANNELS, fit | few, rounds),
        *_grow("fit, length 64", "n_classes", CLASSES[:3] if quick else CLASSES, fit | few, rounds),
    ]


def _grow(what: str, name: str, sizes: tuple[int, ...], options: dict[str, Any], rounds: int) -> list[Record]:
    measured = [[in_a_process(**options, **{name: size}) for size in sizes] for _ in range(rounds)]
    records = []
    for kind, key in (("time", "seconds"), ("peak memory", "bytes")):
        values = np.array([[each[key] for each in once] for once in measured])
        middle = np.median(values, axis=0)
        facts = {
            "against": name,
            "of": kind,
            "sizes": list(sizes),
            key: middle.tolist(),
            "exponent_of_the_last_two": exponent(sizes[-2:], middle[-2:]),
        }
        fitted = spread_of([exponent(sizes, once) for once in values])
        subject = f"{what}, {name} {sizes[0]} to {sizes[-1]}"
        records.append(Record("d", subject, f"exponent of {kind}", fitted, "", facts))
    return records
