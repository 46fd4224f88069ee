"""What a report of 50 cases costs on one core, by size of the series: `python benchmarks/report.py`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from pdftime import PDFTimeClassifier

SIZES = ((1, 100), (1, 500), (6, 500), (60, 300))
N_CASES = 120


def cost(n_channels: int, n_timepoints: int) -> tuple[float, int]:
    """Seconds of processor time and bytes of a report of a default model, fitted for a few epochs only."""
    rng = np.random.default_rng(0)
    y = np.arange(N_CASES) % 3
    X = rng.normal(size=(N_CASES, n_channels, n_timepoints))
    X[:, 0, 20:80] += 2.0 * np.sin(np.arange(60) / (2 + y[:, None]))
    model = PDFTimeClassifier(preset="network", n_threads=1, max_epochs=6).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        report = model.report(X, y, Path(folder) / "report.html", max_cases=50)
        return time.process_time() - start, report.n_bytes


def main() -> None:
    print(f"{'channels':>8} {'time points':>11} {'seconds':>8} {'MB':>5}")
    for n_channels, n_timepoints in SIZES:
        seconds, n_bytes = cost(n_channels, n_timepoints)
        print(f"{n_channels:8} {n_timepoints:11} {seconds:8.1f} {n_bytes / 1e6:5.1f}", flush=True)


if __name__ == "__main__":
    main()
