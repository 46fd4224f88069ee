"""Rows about whole fits: against peers on the same data, and what a tiny fit spends outside tensor arithmetic."""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from aeon.classification.convolution_based import MultiRocketHydraClassifier, RocketClassifier
from aeon.classification.interval_based import QUANTClassifier
from aeon.datasets import (
    load_basic_motions,
    load_gunpoint,
    load_italy_power_demand,
    load_japanese_vowels,
    load_osuleaf,
)
from sktime.classification.deep_learning import InceptionTimeClassifierTorch
from torch.profiler import ProfilerActivity, profile

from pdftime import PDFTimeClassifier
from pdftime.data.prepare import resample

from .subjects import Shape, series
from .timing import Record, compare, spread_of

EPOCHS = 5  # of ours and of InceptionTime, where they are compared at equal epochs
DATASETS = {
    "GunPoint": load_gunpoint,
    "ItalyPowerDemand": load_italy_power_demand,
    "OSULeaf": load_osuleaf,
    "JapaneseVowels": load_japanese_vowels,
    "BasicMotions": load_basic_motions,
}
OURS, INCEPTION = f"ours, {EPOCHS} epochs", f"InceptionTime, {EPOCHS} epochs"
OURS_WHOLE = "ours"
PAIRS = ((OURS, INCEPTION), *((OURS_WHOLE, peer) for peer in ("MultiRocketHydra", "Rocket", "QUANT")))


def fit_against_peers(quick: bool, repetitions: int) -> list[Record]:
    """(c) Whole `fit` and `predict` on the same data; at equal epochs against InceptionTime, as it comes else."""
    warnings.filterwarnings("ignore", module="sktime|aeon|sklearn")
    records = []
    for name in ["ItalyPowerDemand"] if quick else DATASETS:
        X, y = equal_length(DATASETS[name], "train")
        X_fresh, _ = equal_length(DATASETS[name], "test")
        models = classifiers(quick)
        fits = compare({peer: partial(model.fit, X, y) for peer, model in models.items()}, min(repetitions, 3))
        predicts = compare({peer: partial(model.predict, X_fresh) for peer, model in models.items()}, repetitions)
        for verb, timed in (("fit", fits), ("predict", predicts)):
            for ours, peer in PAIRS:
                facts = {"dataset": name, "peer": peer, "n_cases": len(X if verb == "fit" else X_fresh)}
                facts |= {"ours_seconds": timed.of(ours).value, "peer_seconds": timed.of(peer).value}
                records.append(
                    Record("c", f"{verb} on {name}, {ours}", f"{peer} / ours", timed.ratio(peer, ours), facts=facts)
                )
    return records


def classifiers(quick: bool) -> dict[str, Any]:
    """Ours twice, then the peers; each with one job."""
    return {
        OURS: PDFTimeClassifier(preset="network", max_epochs=EPOCHS),
        OURS_WHOLE: PDFTimeClassifier(preset="network", max_epochs=EPOCHS if quick else None),
        INCEPTION: InceptionTimeClassifierTorch(num_epochs=EPOCHS, random_state=0),
        "MultiRocketHydra": MultiRocketHydraClassifier(n_jobs=1, random_state=0),
        "Rocket": RocketClassifier(n_jobs=1, random_state=0),
        "QUANT": QUANTClassifier(random_state=0),
    }


def equal_length(load: Callable[..., Any], split: str) -> tuple[np.ndarray, np.ndarray]:
    """A bundled set as one array; series of unequal length are resampled to the longest training series."""
    X, y = load(split=split)
    if isinstance(X, list):
        longest = max(case.shape[1] for case in load(split="train")[0])
        X = np.stack([resample(case, longest) for case in X])
    return np.asarray(X, np.float64), y


def small_fit(quick: bool, repetitions: int) -> list[Record]:
    """(h) A fit on 20 cases of length 24: the share of its time outside torch's operators, as profiled."""
    X, y = series(20, Shape(24, n_classes=2))
    model = PDFTimeClassifier(preset="network", max_epochs=20 if quick else None)
    model.fit(X, y)
    outside, seconds, bare = [], [], []
    for _ in range(min(repetitions, 3)):
        began = time.perf_counter()
        model.fit(X, y)
        bare.append(time.perf_counter() - began)
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            began = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - began)
        outside.append(100 * (1 - seconds_in_operators(profiled) / seconds[-1]))
    facts = {"n_cases": 20, "n_timepoints": 24, "fit_seconds": spread_of(bare).value}
    facts |= {"profiled_seconds": spread_of(seconds).value, "n_threads": torch.get_num_threads()}
    return [
        Record("h", "fit on 20 cases of length 24", "time outside tensor operators", spread_of(outside), "%", facts)
    ]


def seconds_in_operators(profiled: profile) -> float:
    """Time inside at least one `aten::` operator, from the trace; tables of torch.profiler take minutes to add up."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    spans = sorted((each["ts"], each["ts"] + each["dur"]) for each in events if each["name"].startswith("aten::"))
    inside, reached = 0.0, -math.inf
    for begin, end in spans:
        inside += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return inside / 1e6
