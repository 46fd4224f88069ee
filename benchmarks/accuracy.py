"""Accuracy on original splits: fit on the training part, touch the other part once, print and store one row a set.

    python benchmarks/accuracy.py FOLDER [--names BME CBF ...] [--seeds 0] [--preset default] [--out results/x.csv]

FOLDER holds NAME.npz files (X_train, y_train, X_test, y_test) at any depth.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import rows

from pdftime import PDFTimeClassifier, read_series

SMALL = (
    "BME CBF Chinatown ECG200 GunPoint ItalyPowerDemand MoteStrain SonyAIBORobotSurface1 "
    "SyntheticControl TwoLeadECG UMD Plane JapaneseVowels"
).split()


def measure(path: Path, seed: int, preset: str, n_threads: int) -> dict[str, object]:
    """Fit on the training part alone; score the other part once."""
    train = read_series(path, part="train")
    started = time.perf_counter()
    model = PDFTimeClassifier(preset=preset, random_state=seed, n_threads=n_threads).fit(train, train.y)
    fitted = time.perf_counter()
    test = read_series(path, part="test")
    predicted = model.predict(test)
    member = model.metrics_["members"][0]
    return {
        "dataset": path.stem,
        "preset": preset,
        "seed": seed,
        "n_train": len(train),
        "n_test": len(test),
        "accuracy": round(float(np.mean(predicted == test.y)), 6),
        "validation_accuracy": member.get("validation_accuracy", ""),
        "epochs": member["epochs"],
        "fit_seconds": round(fitted - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", nargs="*", default=SMALL)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--preset", default="default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    measured = []
    for name in options.names:
        found = sorted(options.folder.rglob(f"{name}.npz"))
        if not found:
            sys.exit(f"error: no {name}.npz below {options.folder}")
        for seed in options.seeds:
            measured.append(measure(found[0], seed, options.preset, options.threads))
            rows.show(measured[-1])
    univariate = [float(str(row["accuracy"])) for row in measured if row["dataset"] != "JapaneseVowels"]
    print(f"mean accuracy without JapaneseVowels: {np.mean(univariate):.4f} over {len(univariate)} runs")
    rows.write(options.out, measured)


if __name__ == "__main__":
    main()
