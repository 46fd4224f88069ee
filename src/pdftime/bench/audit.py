"""The audit of a method: its predictions must not depend on test labels, other test cases, or the archive's files.

A dataset is copied three times: as it is, with every test label changed, with noise in place of the test series. The
method learns and predicts on each, as a benchmark run has it, and what must not change is compared.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.bench.archives import Dataset
from pdftime.bench.methods import Method
from pdftime.bench.process import Process
from pdftime.bench.task import Task
from pdftime.data.batches import seed_for
from pdftime.data.series import SeriesSet, inside

CLOSE = 1e-3
"""Probabilities that differ by less may differ by rounding: one case and many go through other arithmetic."""
POLL_S = 0.05
PEEKED = "PeekError"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Verdict:
    """What the audit found out about one method on one dataset."""

    method: str
    dataset: str
    status: str
    """'honest', 'caught', 'unsure' (its results do not repeat) or 'failed' (it did not run)."""
    findings: tuple[str, ...] = ()
    """What was found, in sentences."""


def audit_method(
    method: Method,
    dataset: Dataset,
    *,
    seed: int = 0,
    n_threads: int = 1,
    limit: float | None = None,
) -> Verdict:
    """Run a method on the dataset and on tampered copies of it, and compare; `limit` seconds for each run."""
    with tempfile.TemporaryDirectory(prefix="pdftime-audit-") as name:
        folder = Path(name)

        def look(copy: str, *, probe_first: bool = False, in_pieces: bool = False) -> dict[str, Any]:
            task = Task(copies[copy], 0, method, seed, n_threads)
            question = {"task": task.to_json(), "probe_first": probe_first, "in_pieces": in_pieces}
            process = Process("pdftime.bench.probe", question, folder, n_threads=n_threads, limit=limit)
            try:
                while not process.has_ended():
                    time.sleep(POLL_S)
            except BaseException:
                process.kill()
                raise
            answer, reason = process.outcome()
            return {"error": reason} if answer is None else answer

        copies = tampered_copies(dataset, folder)
        verdict = _judge(look, copies["labels"])
    return Verdict(method.name, dataset.name, *verdict)


def tampered_copies(dataset: Dataset, folder: Path) -> dict[str, Dataset]:
    """The dataset `as it is`, with other test `labels`, and with `noise` for test series; each in its own folder."""
    train, test, y = dataset.train(), dataset.test(), dataset.test_labels()
    rng = np.random.default_rng(seed_for(0, "audit"))
    classes = np.unique(np.concatenate([np.unique(train.y), np.unique(y)]).astype(str))  # type: ignore[arg-type]
    codes = np.searchsorted(classes, y.astype(str))
    shift = rng.integers(1, max(len(classes), 2), len(y))
    whole = {
        "X_train": _with_ends(train),
        "y_train": train.y.astype(str),  # type: ignore[union-attr]
        "X_test": _with_ends(test),
        "y_test": y.astype(str),
    }
    noise = rng.normal(np.nanmean(whole["X_train"]), np.nanstd(whole["X_train"]) or 1.0, whole["X_test"].shape)
    versions: dict[str, Arrays] = {
        "as it is": whole,
        "labels": whole | {"y_test": classes[(codes + shift) % len(classes)]},
        "noise": whole | {"X_test": np.where(np.isnan(whole["X_test"]), np.nan, noise)},
    }
    copies = {}
    for name, arrays in versions.items():
        path = folder / name.replace(" ", "-") / f"{dataset.name}.npz"
        path.parent.mkdir()
        np.savez(path, **arrays)  # type: ignore[arg-type]
        copies[name] = replace(dataset, train_file=str(path), test_file=str(path))
    return copies


def _judge(look: Callable[..., dict[str, Any]], changed: Dataset) -> tuple[str, tuple[str, ...]]:
    """Status and findings from looks at the copies."""
    first = look("as it is", in_pieces=True)
    if "error" in first:
        peeked = first["error"].startswith(PEEKED)
        return ("caught" if peeked else "failed"), (first["error"].removeprefix(f"{PEEKED}: "),)
    found: list[str] = []
    pieces = np.array(first["test"])[first["rows"]]
    if _differ(first["single"], pieces):
        found.append("a test case is predicted differently when it is alone: the others take part in its prediction")
    elif _differ(first["again"], first["test"]):
        found.append("the same test cases are predicted differently the second time: predicting changes the method")
    other = look("as it is", probe_first=True)
    if _changed(first, other, ("test", "probe")):
        again = look("as it is", in_pieces=True)
        if _changed(first, again, ("test", "probe")):
            return "unsure", ("its results do not repeat with the same seed, so changes cannot be judged", *found)
        found.append("predictions depend on what was predicted before: predicting changes the method")
    labels = look("labels")
    if _changed(first, labels, ("test", "probe")):
        found.append(_labels_sentence(labels, changed))
    noise = look("noise")
    if _changed(first, noise, ("probe",)):
        found.append("with other test series, training cases are predicted differently: it learns from the test part")
    return ("caught", tuple(found)) if found else ("honest", ())


def _labels_sentence(labels: dict[str, Any], changed: Dataset) -> str:
    if "error" in labels:
        return f"with other test labels it fails: {labels['error']}"
    predicted = np.array(labels["classes"])[np.array(labels["test"]).argmax(axis=1)]
    right = float((predicted == changed.test_labels()).mean())
    return f"with other test labels it predicts differently ({right:.0%} of the changed labels right): it reads them"


def _changed(a: dict[str, Any], b: dict[str, Any], keys: tuple[str, ...]) -> bool:
    """Whether two looks differ; one that ended in an error differs from one that did not."""
    return "error" in b or any(_differ(a[key], b[key]) for key in keys)


def _differ(a: Any, b: Any) -> bool:
    first, second = np.asarray(a), np.asarray(b)
    return first.shape != second.shape or bool((np.abs(first - second) > CLOSE).any())


def _with_ends(cases: SeriesSet) -> NDArray[Any]:
    """The series in one array, NaN behind their ends."""
    X = cases.X if cases.X.dtype.kind == "f" else cases.X.astype(np.float64)
    return np.where(inside(cases)[:, None, :], X, np.nan).astype(X.dtype)
