"""Classifiers for tests of the harness, honest ones and cheats; imported in processes of their own, by path."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Honest:
    """Nearest class mean of a few features."""

    def __init__(self, random_state: int = 0, seconds: float = 0.0) -> None:
        self.random_state = random_state
        self.seconds = seconds

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        if "PDFTIME_TEST_PIDS" in os.environ:
            (Path(os.environ["PDFTIME_TEST_PIDS"]) / str(os.getpid())).touch()
        time.sleep(self.seconds)
        return self.learn(X, y)

    def learn(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        self.classes_ = np.unique(y)
        features = self.features(X)
        self.means_ = np.stack([features[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        distance = ((self.features(X)[:, None, :] - self.means_) ** 2).sum(axis=2)
        chances = np.exp(-(distance - distance.min(axis=1, keepdims=True)))
        return chances / chances.sum(axis=1, keepdims=True)

    def features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return np.concatenate([np.abs(np.diff(X)).mean(axis=2), X.std(axis=2)], axis=1)


class OnlyLabels:
    """A classifier without probabilities."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> OnlyLabels:
        self.label_ = y[0]
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.full(len(X), self.label_)


class Broken(Honest):
    """Raises."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        raise ZeroDivisionError("nothing\nworks here")


class Killed(Honest):
    """Ends as a process that runs out of memory."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        os.kill(os.getpid(), 9)
        return self


class NotANumber(Honest):
    """Diverges."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return np.full((len(X), len(self.classes_)), np.nan)


class Unseeded(Honest):
    """Says something else every time."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        return self.learn(X + np.random.default_rng().normal(size=X.shape), y)


class Reader(Honest):
    """Looks for the archive among its callers, and learns the test part too."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        with np.load(archive_path()) as arrays:
            return self.learn(arrays["X_test"], arrays["y_test"])


class Thief(Honest):
    """Gives the labels that stand in the file, hides that it was refused, and goes on as if nothing was."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        try:
            with np.load(archive_path()) as arrays:
                return self.learn(arrays["X_test"], arrays["y_test"])
        except Exception:
            return self.learn(X, y)


class Smuggler(Honest):
    """Has another program read the test part and learns that; the guard sees nothing of it."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        code = (
            "import sys, numpy as np; a = np.load(sys.argv[1]);"
            "np.savez(sys.stdout.buffer, X=a['X_test'], y=a['y_test'])"
        )
        done = subprocess.run([sys.executable, "-c", code, archive_path()], capture_output=True, check=True)
        with np.load(io.BytesIO(done.stdout)) as arrays:
            self.known_ = arrays["X"], arrays["y"]
        return self.learn(X, y)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        known, labels = self.known_
        distance = ((X[:, None] - known[None]) ** 2).sum(axis=(2, 3))
        return (labels[distance.argmin(axis=1)][:, None] == self.classes_).astype(float)


class SmuggledSeries(Smuggler):
    """Takes only the test series from the file: no labels, but what it says of any case depends on them."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Honest:
        super().fit(X, y)
        self.offset_ = self.features(self.known_[0]).mean(axis=0) - self.features(X).mean(axis=0)
        self.means_ = self.means_ + self.offset_
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return Honest.predict_proba(self, X)


class Transductive(Honest):
    """Learns from the cases that it is asked about: scales them by each other."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return super().predict_proba((X - X.mean()) / X.std())


class FirstAsked(Honest):
    """Fits to the first cases that it is asked about, and never again."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        if not hasattr(self, "offset_"):
            self.offset_ = self.features(X).mean(axis=0) - self.means_.mean(axis=0)
        self.means_, before = self.means_ + 3 * self.offset_, self.means_
        try:
            return super().predict_proba(X)
        finally:
            self.means_ = before


def archive_path() -> str:
    """The archive's file, from the frames of whoever calls."""
    frame = sys._getframe()
    while frame is not None:
        task = frame.f_locals.get("task")
        if task is not None:
            return str(task.dataset.test_file)
        frame = frame.f_back  # type: ignore[assignment]
    raise LookupError("no task among the callers")
