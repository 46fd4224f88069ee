"""What the network's first settings were chosen on: variants compared inside training splits. No test part is read.

    python benchmarks/choices.py FOLDER [--variants default T=0.1 ...] [--seeds 0] [--out results/choices.csv]

Of each set's training split a few cases are fitted, and up to 200 of the others are predicted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import rows

from pdftime import PDFTimeClassifier, SeriesSet, read_series

SUITE = {
    "FacesUCR": 70, "SyntheticControl": 40, "ECG5000": 60, "ElectricDevices": 100, "MiddlePhalanxOutlineCorrect": 80,
    "PowerCons": 30, "Plane": 28, "ItalyPowerDemand": 20, "ECG200": 40, "GunPointAgeSpan": 30, "Crop": 140,
    "PenDigits": 50, "SpokenArabicDigits": 60, "NATOPS": 60,
}  # fmt: skip
BASE = {"diversity_step": 0.02, "learning_rate": 1e-3, "n_steps": 1000}  # as when the results were measured
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "T=0.1": {"temperature": 0.1},
    "no encoder": {"encoder": "none"},
    "linear head": {"head": "linear"},
}


def split(cases: SeriesSet, n_fit: int, seed: int) -> tuple[SeriesSet, SeriesSet]:
    """About `n_fit` cases, the same share of every class and at least two, and up to 200 of the others."""
    order = np.random.default_rng(seed).permutation(len(cases))
    chosen: list[int] = []
    for label in np.unique(cases.y):
        members = [case for case in order if cases.y[case] == label]  # type: ignore[index]
        chosen += members[: max(2, round(len(members) * n_fit / len(cases)))]
    rest = [case for case in order if case not in set(chosen)][:200]
    return cases.take(chosen), cases.take(rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    measured = []
    for name, n_fit in SUITE.items():
        path = next(options.folder.rglob(f"{name}.npz"))
        for seed in options.seeds:
            fitting, judging = split(read_series(path, part="train"), n_fit, seed)
            for variant in options.variants:
                model = PDFTimeClassifier(
                    preset="network",
                    settings={**BASE, **VARIANTS[variant]},
                    validation_fraction=0.0,
                    random_state=seed,
                    n_threads=1,
                )
                accuracy = np.mean(model.fit(fitting, fitting.y).predict(judging) == judging.y)
                row = {"dataset": name, "variant": variant, "seed": seed, "accuracy": round(float(accuracy), 4)}
                measured.append(row)
                rows.show(row)
    for variant in options.variants:
        print(f"{variant}: mean {np.mean([row['accuracy'] for row in measured if row['variant'] == variant]):.4f}")
    rows.write(options.out, measured)


if __name__ == "__main__":
    main()
