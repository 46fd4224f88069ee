"""Rows about the bank of convolutions: fit and predict together against MultiROCKET-Hydra, and a million cases."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from aeon.classification.convolution_based import MultiRocketHydraClassifier

from pdftime import PDFTimeClassifier

from .rows_fit import DATASETS, equal_length
from .subjects import Shape, series
from .timing import Record, compare, spread_of

SETS = ("GunPoint", "OSULeaf", "JapaneseVowels", "BasicMotions")
GENERATED = 5000, Shape(500)
MILLION = 1_000_000, Shape(64)


def bank_against_peer(quick: bool, repetitions: int) -> list[Record]:
    """(k) `fit` on the training part and `predict` of the test part, after both have compiled what they compile."""
    warnings.filterwarnings("ignore", module="aeon|sklearn|numba")
    records = []
    for name in ["GunPoint"] if quick else SETS:
        X, y = equal_length(DATASETS[name], "train")
        fresh, _ = equal_length(DATASETS[name], "test")
        records.append(_against(name, X, y, fresh, min(repetitions, 3)))
    if not quick:
        n_cases, shape = GENERATED
        X, y = series(n_cases, shape)
        records.append(_against("5000 generated series of length 500", X, y, X[:1000], 1))
    return records


def _against(name: str, X: Any, y: Any, fresh: Any, repetitions: int) -> Record:
    def work(make: Callable[[], Any]) -> Callable[[], object]:
        return lambda: make().fit(X, y).predict(fresh)

    peer, ours = "MultiRocketHydra", "preset fast"
    some = slice(None, None, 7 if len(X) < 1000 else 101)  # of every class a few: enough to compile everything
    MultiRocketHydraClassifier(n_jobs=1).fit(X[some], y[some]).predict(fresh[:2])
    PDFTimeClassifier(preset="fast").fit(X[some], y[some]).predict(fresh[:2])
    timed = compare(
        {
            ours: work(lambda: PDFTimeClassifier(preset="fast")),
            peer: work(lambda: MultiRocketHydraClassifier(n_jobs=1, random_state=0)),
        },
        repetitions,
        warm_up=0,
    )
    facts = {"dataset": name, "n_cases": len(X), "n_fresh": len(fresh)}
    facts |= {"ours_seconds": timed.of(ours).value, "peer_seconds": timed.of(peer).value}
    return Record("k", f"fit and predict on {name}", f"{peer} / ours", timed.ratio(peer, ours), facts=facts)


def million(quick: bool, repetitions: int) -> list[Record]:
    """(l) A fit on a million generated series of length 64: seconds, and memory beyond what the series take."""
    n_cases, shape = (20_000, MILLION[1]) if quick else MILLION
    X, y = series(n_cases, shape)
    before = _peak_mb()
    began = time.perf_counter()
    model = PDFTimeClassifier(preset="fast").fit(X, y)
    facts = {"n_cases": n_cases, "seconds": time.perf_counter() - began, "series_mb": X.nbytes / 1e6}
    fresh, labels = series(2000, shape, seed=1)
    facts["accuracy"] = float(np.mean(model.predict(fresh) == labels))
    extra = spread_of([_peak_mb() - before])
    return [Record("l", f"fit on {n_cases} series of length 64", "extra memory at the peak", extra, "MB", facts)]


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
