"""Benchmark sets made from training splits alone, to choose settings on: no test part is read.

    python benchmarks/inner_splits.py FOLDER OUT

FOLDER holds NAME.npz files (X_train, y_train, X_test, y_test) at any depth; OUT gets `search/NAME.npz` and
`confirm/NAME.npz` of the same form, whose two parts are both from X_train: 60% of the cases, at most 250, to fit on
and at most 1000 of the others to judge by. `pdftime bench run OUT/search ...` compares settings on them.
`few/NAME.npz` are for fits on very few cases, 24 or four of each class, judged by at most 500 others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pdftime.data.batches import stratified_split

SMALLEST, LARGEST_FIT, LARGEST_JUDGE = 60, 250, 1000  # cases
LONGEST = 600  # time points
FEW, FEW_JUDGE = 24, 500  # cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    number = 0
    for path in sorted(options.folder.rglob("*.npz"), key=lambda path: path.stem):
        with np.load(path) as archive:
            X, y = archive["X_train"], archive["y_train"]  # nothing else of the archive is opened
        few = few_split(y) if len(X) >= 5 * FEW and X.shape[2] <= 320 and X.shape[1] <= 6 else None
        if few is not None:
            _write(options.out / "few" / path.parent.name, path.name, X, y, *few)
        if len(X) < SMALLEST or X.shape[2] > LONGEST or min(np.unique(y, return_counts=True)[1]) < 4:
            continue
        fit, judge = inner_split(y)
        group = options.out / ("search", "confirm")[number % 2] / path.parent.name
        _write(group, path.name, X, y, fit, judge)
        number += 1


def _write(
    folder: Path,
    name: str,
    X: NDArray[np.float32],
    y: NDArray[np.str_],
    fit: NDArray[np.int64],
    judge: NDArray[np.int64],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / name, X_train=X[fit], y_train=y[fit], X_test=X[judge], y_test=y[judge])
    print(f"{folder.parent.name:8s}{name:32s}{len(fit):5d} to fit on{len(judge):6d} to judge by")


def inner_split(y: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places to fit on and to judge by, classes in the same shares."""
    codes = np.unique(y, return_inverse=True)[1]
    fit, judge = stratified_split(codes, 0.4, seed=0)
    if len(fit) > LARGEST_FIT:
        rows, _ = stratified_split(codes[fit], 1.0 - LARGEST_FIT / len(fit), seed=1)
        fit = fit[rows]
    return fit, np.random.default_rng(0).permutation(judge)[:LARGEST_JUDGE]


def few_split(y: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Few places to fit on and others to judge by; None where there are too many classes for that."""
    codes = np.unique(y, return_inverse=True)[1]
    n_classes = codes.max() + 1
    if n_classes > 8:
        return None
    fit, judge = stratified_split(codes, 1.0 - max(FEW, 4 * n_classes) / len(codes), seed=5)
    if not len(judge):  # a class is too rare to be divided
        return None
    return fit, np.random.default_rng(0).permutation(judge)[:FEW_JUDGE]


if __name__ == "__main__":
    main()
