"""One measurement in a process of its own: `python -m benchmarks.speed.worker '{"task": "fit", ...}'`.

Prints seconds and peak extra bytes as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pdftime import PDFTimeClassifier

from .memory import extra_anonymous_memory, extra_memory
from .subjects import Shape, network_for, our_epoch, series, settings_for

ROOT = Path(__file__).parents[2]
TINY = {"d_model": 8, "branch_width": 4, "n_inception_layers": 1, "kernel_sizes": (9,), "n_heads": 2}
PART = 10_000  # generated series that are written together


def steps(n_steps: int, **shape: int) -> dict[str, float]:
    """Training steps at batch 16 with the default preset; the first, not timed, is for warming up."""
    settings, shape = settings_for("network", batch_size=16), Shape(**shape)
    our_epoch(network_for(settings, Shape(16)), settings, Shape(16), 1)()
    with extra_memory() as peak:
        network = network_for(settings, shape)
        our_epoch(network, settings, shape, 1)()
        epoch = our_epoch(network, settings, shape, n_steps)
        began = time.perf_counter()
        epoch()
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "bytes": peak[0]}


def fit(n_cases: int, n_epochs: int, **shape: int) -> dict[str, float]:
    """A whole fit with the default preset on data made before; a tenth is kept for validation."""
    model = PDFTimeClassifier(preset="network", max_epochs=n_epochs, validation_fraction=0.1)
    model.fit(*series(8, Shape(16, n_classes=2)))
    X, y = series(n_cases, Shape(**shape))
    with extra_memory() as peak:
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "bytes": peak[0]}


def predict(n_cases: int, tiny: bool, **shape: int) -> dict[str, float]:
    """`predict_proba` on a memory-mapped array, of a tiny network or the default one."""
    shape = Shape(**shape)
    model = PDFTimeClassifier(preset="network", settings=TINY if tiny else None, max_epochs=1).fit(*series(50, shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        sizes = (n_cases, shape.n_channels, shape.n_timepoints)
        written = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=sizes)
        for begin in range(0, n_cases, PART):
            written[begin : begin + PART] = series(min(PART, n_cases - begin), shape, seed=begin)[0]
        del written
        X = np.load(path, mmap_mode="r")
        model.predict_proba(X[:1])
        with extra_anonymous_memory() as peak:
            began = time.perf_counter()
            probabilities = model.predict_proba(X)
            seconds = time.perf_counter() - began
    if probabilities.shape != (n_cases, shape.n_classes):
        raise AssertionError(f"Probabilities have shape {probabilities.shape}; expected one row per case.")
    return {"seconds": seconds, "bytes": peak[0]}


TASKS = {"steps": steps, "fit": fit, "predict": predict}


def in_a_process(task: str, **options: Any) -> dict[str, float]:
    """The measurement of a fresh process."""
    command = [sys.executable, "-m", "benchmarks.speed.worker", json.dumps({"task": task, **options})]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{task} with {options} failed:\n{done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(TASKS[given.pop("task")](**given)))
