"""What an explanation and a report of 50 cases cost, by size of the series.

    python benchmarks/report.py [--presets default network] [--sizes 1x500 6x500]

Seconds of one core for an explanation and for a report with its checks; then what the same report takes by the clock
with as many threads as torch takes by default.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from pdftime import PDFTimeClassifier

SIZES = ("1x100", "1x500", "6x500", "60x300")
N_CASES = 120
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "network": {"preset": "network", "max_epochs": 6}}


class Cost(NamedTuple):
    """Seconds, and the size of the page."""

    explanation: float
    report: float
    by_the_clock: float
    n_bytes: int


def cost(options: dict[str, Any], n_channels: int, n_timepoints: int) -> Cost:
    rng = np.random.default_rng(0)
    y = np.arange(N_CASES) % 3
    X = rng.normal(size=(N_CASES, n_channels, n_timepoints))
    X[:, 0, 20:80] += 2.0 * np.sin(np.arange(60) / (2 + y[:, None]))
    model = PDFTimeClassifier(n_threads=1, **options).fit(X, y)
    start = time.process_time()
    model.explain(X[:4])
    alone = (time.process_time() - start) / 4
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        report = model.report(X, y, Path(folder) / "report.html", max_cases=50)
        one_core = time.process_time() - start
        began = time.perf_counter()
        model.set_params(n_threads=None).report(X, y, Path(folder) / "report.html", max_cases=50)
        return Cost(alone, one_core, time.perf_counter() - began, report.n_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    options = parser.parse_args()
    many = f"{torch.get_num_threads()} threads, s"
    print(f"{'preset':8} {'size':>8} {'explain, s':>10} {'report, s':>9} {many:>12} {'MB':>5}")
    for preset in options.presets:
        for size in options.sizes:
            found = cost(PRESETS[preset], *(int(each) for each in size.split("x")))
            form = f"{preset:8} {size:>8} {found.explanation:10.2f} {found.report:9.1f} {found.by_the_clock:12.1f}"
            print(f"{form} {found.n_bytes / 1e6:5.1f}", flush=True)


if __name__ == "__main__":
    main()
