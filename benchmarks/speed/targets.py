"""The figures to reach, as the issue on speed gives them, and whether the records reach them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .timing import Record

SIGNS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Target:
    """A promise about some of the records; the worst of them decides."""

    promise: str
    row: str
    about: Callable[[Record], bool]
    sign: str
    limit: float
    figure: Callable[[Record], float] = lambda record: record.spread.value

    def verdict(self, records: Sequence[Record]) -> Verdict | None:
        """None where nothing was measured."""
        figures = [self.figure(record) for record in records if record.row == self.row and self.about(record)]
        if not figures:
            return None
        worst = min(figures) if self.sign == ">=" else max(figures)
        return Verdict(self.promise, worst, f"{self.sign} {self.limit:g}", bool(SIGNS[self.sign](worst, self.limit)))


@dataclass(frozen=True)
class Verdict:
    """A target with what was measured."""

    promise: str
    worst: float
    expected: str
    reached: bool


def _is(**facts: object) -> Callable[[Record], bool]:
    return lambda record: all(record.facts.get(name) == value for name, value in facts.items())


def _fit_on(dataset: str) -> Callable[[Record], bool]:
    return lambda record: (
        record.subject.startswith(f"fit on {dataset}") and record.facts["peer"].startswith("InceptionTime")
    )


TARGETS = (
    Target(
        "step against plain, length 128 to 1024", "a", lambda r: 128 <= r.facts["n_timepoints"] <= 1024, ">=", 3.0
    ),
    Target("step against plain, length 64", "a", _is(n_timepoints=64), ">=", 2.0),
    Target("largest difference to plain outputs", "a", _is(), "<=", 1e-4, lambda r: r.facts["difference"]),
    Target("default against the paper's plain form, length 256", "a2", _is(n_timepoints=256), ">=", 5.0),
    Target("default against the paper's plain form, length 2048", "a2", _is(n_timepoints=2048), ">=", 15.0),
    Target("predict of one case, in bare forward passes", "b", _is(n_cases=1), "<", 4.0),
    Target("fit against InceptionTime on OSULeaf", "c", _fit_on("OSULeaf"), ">=", 3.0),
    Target("fit against InceptionTime on JapaneseVowels", "c", _fit_on("JapaneseVowels"), ">=", 3.0),
    Target("exponent of time against length", "d", _is(against="n_timepoints", of="time"), "<=", 1.15),
    Target("exponent of peak memory against length", "d", _is(against="n_timepoints", of="peak memory"), "<=", 1.15),
    Target("processes that import torch to start", "e", _is(), "<=", 0, lambda r: float(r.facts["imports_torch"])),
    Target(
        "utilisation, default, length 512, batch 64 (%)",
        "f",
        _is(preset="network", n_timepoints=512, batch_size=64),
        ">=",
        45.0,
    ),
    Target("extra memory of 1,000,000 predictions (MB)", "g", _is(n_cases=1_000_000), "<", 500.0),
    Target("extra memory of predictions, default network (MB)", "g", _is(network="default"), "<", 500.0),
    Target("small fit, time outside tensor operators (%)", "h", _is(), "<", 50.0),
    Target("accuracy that ours lacks against plain, mean of five sets (points)", "j", _is(dataset="mean"), "<=", 2.0),
)
