"""What an explanation and a report of 50 cases cost on one core, by size of the series.

python benchmarks/report.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pdftime import PDFTimeClassifier

SIZES = ((1, 100), (1, 500), (6, 500), (60, 300))
N_CASES = 120
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "network": {"preset": "network", "max_epochs": 6}}


def cost(options: dict[str, Any], n_channels: int, n_timepoints: int) -> tuple[float, float, int]:
    """Seconds of processor time for an explanation, and for a report with its checks, whose bytes are the last."""
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
        return alone, time.process_time() - start, report.n_bytes


def main() -> None:
    print(f"{'preset':8} {'channels':>8} {'time points':>11} {'explain, s':>10} {'report, s':>9} {'MB':>5}")
    for preset, options in PRESETS.items():
        for n_channels, n_timepoints in SIZES:
            alone, report, n_bytes = cost(options, n_channels, n_timepoints)
            form = f"{preset:8} {n_channels:8} {n_timepoints:11}"
            print(f"{form} {alone:10.2f} {report:9.1f} {n_bytes / 1e6:5.1f}", flush=True)


if __name__ == "__main__":
    main()
