"""Interleaved measurement: every repetition runs each competitor once, so that a slow moment hits them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Spread(NamedTuple):
    """A median with its quartiles."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Record:
    """One line of the table."""

    row: str
    """The row function that made it."""
    subject: str
    """What was measured, in words."""
    measure: str
    """Which figure of it: 'plain / ours', 'exponent of time'."""
    spread: Spread
    unit: str = "times"
    facts: dict[str, Any] = field(default_factory=dict)
    """Sizes, and the medians behind a ratio in seconds."""

    def to_json(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "subject": self.subject,
            "measure": self.measure,
            **self.spread._asdict(),
            "unit": self.unit,
            "facts": self.facts,
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Record:
        spread = Spread(state["value"], state["low"], state["high"])
        return cls(state["row"], state["subject"], state["measure"], spread, state["unit"], state["facts"])


@dataclass(frozen=True)
class Comparison:
    """Seconds of every competitor, one per repetition; the same place is the same moment."""

    seconds: dict[str, list[float]]

    def of(self, name: str) -> Spread:
        return spread_of(self.seconds[name])

    def ratio(self, over: str, under: str) -> Spread:
        """Seconds of `over` in units of `under`, repetition by repetition."""
        return spread_of([a / b for a, b in zip(self.seconds[over], self.seconds[under], strict=True)])

    def medians(self) -> dict[str, float]:
        return {f"{name}_seconds": self.of(name).value for name in self.seconds}


def compare(
    functions: Mapping[str, Callable[[], Any]], repetitions: int, *, warm_up: int = 1, runs: int = 1
) -> Comparison:
    """Time the functions in turn, every other repetition in reverse; one time is the mean of `runs` runs."""
    for _ in range(warm_up):
        for function in functions.values():
            function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repetition in range(repetitions):
        for name in list(functions)[:: -1 if repetition % 2 else 1]:
            began = time.perf_counter()
            for _ in range(runs):
                functions[name]()
            seconds[name].append((time.perf_counter() - began) / runs)
    return Comparison(seconds)


def spread_of(values: Sequence[float]) -> Spread:
    low, median, high = np.percentile(values, [25, 50, 75])
    return Spread(float(median), float(low), float(high))


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """b of value = a * size**b by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
