"""One task in a process of its own: fit on the training part, predict the test series, then score.

A method gets the training part; after that the series of the test part; never a test label.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.bench.archives import Dataset, Split, archive_of
from pdftime.bench.guard import ArchiveGuard
from pdftime.bench.methods import Method
from pdftime.bench.process import answer
from pdftime.bench.store import Identity, Row
from pdftime.config import PrepareConfig
from pdftime.data.labels import encode
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError
from pdftime.version import __version__

WARM_TIMEPOINTS = 60


@dataclass(frozen=True)
class Task:
    """What one process does."""

    dataset: Dataset
    resample: int
    method: Method
    seed: int
    n_threads: int = 1
    max_time: float | None = None

    @property
    def identity(self) -> Identity:
        configuration = self.method.configuration(self.max_time)
        return Identity(self.dataset.name, self.resample, self.method.name, self.seed, configuration)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Task:
        return cls(**{**state, "dataset": Dataset(**state["dataset"]), "method": Method(**state["method"])})

    def row(self, view: str | None = None, **facts: Any) -> Row:
        """A row of this task, or of one view of its model alone."""
        identity, method = self.identity, self.method
        if view is not None:
            identity = identity._replace(method=f"{identity.method}/{view}")
            method = replace(method, summary={**method.summary, "view": view})
        return Row(
            **{"archive": self.dataset.archive, **identity._asdict()},
            n_threads=self.n_threads,
            settings=method.settings(self.max_time),
            host=host(),
            finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            **facts,
        )


def run_task(task: Task) -> list[Row]:
    """Fit, predict, score: the row of a finished task, and those of its views. Whatever goes wrong is raised."""
    split = Split(task.dataset, task.resample)
    work = fit_and_predict(task, split)
    peak = peak_memory_mb()  # before the scorer brings its own
    labels = split.test_labels()
    train = work.train
    rows = []
    for view, said in work.answers.items():
        row = task.row(
            view,
            status="ok",
            **_scores(said.probabilities, labels, work.learner.classes),
            fit_seconds=round(said.fit_seconds, 3),
            predict_seconds=round(said.predict_seconds, 3),
            peak_memory_mb=round(peak, 1),
            epochs=_epochs(work.learner.classifier, view),
            n_train=len(train),
            n_test=len(said.probabilities),
            n_channels=train.n_channels,
            n_timepoints=train.n_timepoints,
            n_classes=len(work.learner.classes),
            versions=versions(task.method),
        )
        rows.append(replace(row, archive=archive_of(task.dataset, train.n_channels)))
    return rows


class Work(NamedTuple):
    """A method after it has learnt and predicted; no test label has been read."""

    train: SeriesSet
    test: SeriesSet
    learner: Learner
    answers: dict[str | None, Answer]
    """None: the method's own; of ours with two views also that of each view alone, from the same fit."""

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(n_cases, n_classes) of the test series, the method's own."""
        return self.answers[None].probabilities


class Answer(NamedTuple):
    """What was said of the test series, and what it took."""

    probabilities: NDArray[np.float64]
    """(n_cases, n_classes)"""
    fit_seconds: float
    predict_seconds: float


def fit_and_predict(task: Task, split: Split, before: Callable[[Learner, SeriesSet], None] | None = None) -> Work:
    """Fit on the training part, then read the test series and predict them, both with the archive closed.

    `before` may use the fitted learner before any test series is read.
    """
    guard = ArchiveGuard([task.dataset.train_file, task.dataset.test_file])
    train = split.train()
    learner = Learner(task.method.build(task.seed, task.n_threads, task.max_time), takes_series=task.method.is_ours)
    with guard.closed():
        if task.method.warm_up:
            _warm_up(task, train)
        started = time.perf_counter()
        learner.fit(train)
        fitted = time.perf_counter()
        if before is not None:
            before(learner, train)
    test = split.test()
    ready = time.perf_counter()
    with guard.closed():
        probabilities = learner.probabilities(test)
        own = Answer(probabilities, fitted - started, time.perf_counter() - ready)
        views = _views_alone(learner.classifier, test) if task.method.is_ours else {}
    return Work(train, test, learner, {None: own, **views})


def _views_alone(classifier: Any, test: SeriesSet) -> dict[str | None, Answer]:
    """What bank and network of a classifier with both say, each without the other."""
    model, measured = classifier.model_, classifier.metrics_["members"]
    views = {member.view for member in model.members}
    answers: dict[str | None, Answer] = {}
    for view in sorted(views) if len(views) > 1 else ():
        started = time.perf_counter()
        probabilities = model.of_view(view).probabilities(test)
        fit_seconds = sum(each["seconds"] for each in measured if each["view"] == view)
        answers[view] = Answer(probabilities, fit_seconds, time.perf_counter() - started)
    return answers


class Learner:
    """A classifier of any package behind one face: it is given checked series and answers probabilities.

    Ours take series as they are. Others get (n_cases, n_channels, n_timepoints), or one row a case where they
    are scikit-learn's; series of unequal length or with missing values are filled and resampled before, by what
    the training cases say.
    """

    def __init__(self, classifier: Any, *, takes_series: bool) -> None:
        self.classifier = classifier
        self._takes_series = takes_series
        self._preparation: Preparation | None = None
        self._prepares = False

    def fit(self, train: SeriesSet) -> None:
        self._prepares = not train.equal_length or train.has_missing
        prepared = Preparation.fit(train, PrepareConfig(scaling="none", lengths="resample"))
        self._preparation = replace(prepared, equal_length=False)
        self.classifier.fit(self._form(train), train.y)
        self.classes: NDArray[Any] = encode(train.y).classes  # type: ignore[arg-type]

    def probabilities(self, cases: SeriesSet) -> NDArray[np.float64]:
        """(n_cases, n_classes) in the order of `classes`; one and zeros where there are only labels."""
        X = self._form(cases)
        if hasattr(self.classifier, "predict_proba"):
            found = np.asarray(self.classifier.predict_proba(X), np.float64)
            classes = list(np.asarray(self.classifier.classes_).tolist())
            columns = [classes.index(label) for label in self.classes.tolist()]
            if found.shape != (len(cases), len(classes)):
                raise DataError(f"predict_proba gave {found.shape} for {len(cases)} cases of {len(classes)} classes.")
            if not np.isfinite(found).all():
                raise DataError("predict_proba gave values that are not finite.")
            ordered: NDArray[np.float64] = np.ascontiguousarray(found[:, columns])
            return ordered
        labels = np.asarray(self.classifier.predict(X))
        if labels.shape != (len(cases),):
            raise DataError(f"predict gave {labels.shape} for {len(cases)} cases.")
        chosen: NDArray[np.float64] = (labels[:, None] == self.classes[None, :]).astype(np.float64)
        return chosen

    def _form(self, cases: SeriesSet) -> Any:
        """Series as the classifier takes them."""
        if self._takes_series:
            return replace(cases, y=None)
        assert self._preparation is not None
        length = self._preparation.n_timepoints
        if self._prepares or not cases.equal_length or cases.n_timepoints != length or cases.has_missing:
            X = self._preparation(cases).x.astype(np.float64)
        else:
            X = np.ascontiguousarray(cases.X, np.float64)
        return X.reshape(len(X), -1) if _is_flat(self.classifier) else X


def _is_flat(classifier: Any) -> bool:
    """Whether it is scikit-learn's kind of classifier, one row a case; aeon's and sktime's are not."""
    base = sys.modules.get("sklearn.base")  # not imported, not its kind
    if base is None or not isinstance(classifier, base.BaseEstimator) or hasattr(classifier, "get_tag"):
        return False
    return not classifier.__sklearn_tags__().input_tags.three_d_array


def _scores(probabilities: NDArray[np.float64], y: NDArray[Any], classes: NDArray[Any]) -> dict[str, float | None]:
    from pdftime.scores import score

    place = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([place.setdefault(label, len(place)) for label in y.tolist()], np.int64)
    if len(codes) != len(probabilities):
        raise DataError(f"There are {len(probabilities)} predictions for {len(codes)} test labels.")
    scores = score(probabilities, codes)._asdict()
    if ((probabilities == 0.0) | (probabilities == 1.0)).all():  # labels, and no probabilities
        scores |= {"log_loss": math.nan, "calibration_error": math.nan}
    return {name: None if math.isnan(value) else round(value, 6) for name, value in scores.items()}


def _warm_up(task: Task, train: SeriesSet) -> None:
    """Compile what will be used: the same method on a few short random series with as many channels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, train.n_channels, min(train.n_timepoints, WARM_TIMEPOINTS)))
    tiny = check_series(X, np.repeat(["a", "b"], 6))
    learner = Learner(task.method.build(0, task.n_threads, task.max_time), takes_series=task.method.is_ours)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(tiny)
        learner.probabilities(tiny)


def _epochs(classifier: Any, view: str | None = None) -> int | None:
    """Passes over the training cases, where the classifier says how many."""
    metrics = getattr(classifier, "metrics_", None)
    if isinstance(metrics, dict) and "members" in metrics:
        members = [member for member in metrics["members"] if view in (None, member.get("view"))]
        return sum(int(member.get("epochs", 0)) for member in members)
    epochs = getattr(classifier, "num_epochs", None)
    return int(epochs) if isinstance(epochs, int) else None


def peak_memory_mb() -> float:
    """The most memory that this process ever held."""
    with contextlib.suppress(OSError, StopIteration):
        # ru_maxrss would count what the parent held when it started this process.
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def versions(method: Method) -> str:
    """What took part: our version, the method's package, torch where it was used, Python."""
    parts = [f"pdftime {__version__}"]
    packages = [method.class_path.partition(":")[0].partition(".")[0], "pypots", "numba", "torch"]
    for package in dict.fromkeys(packages):
        if package != "pdftime" and package in sys.modules:
            with contextlib.suppress(metadata.PackageNotFoundError):
                parts.append(f"{package} {metadata.version('scikit-learn' if package == 'sklearn' else package)}")
    return "; ".join([*parts, f"python {platform.python_version()}"])


def host() -> str:
    """The machine, without its name: processor and number of cores."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{model}, {os.cpu_count()} cores"


def main() -> None:
    """Answer one task with its rows; an error becomes the reason of a failed one."""
    answer(lambda question: {"rows": [asdict(row) for row in run_task(Task.from_json(question))]})


if __name__ == "__main__":
    main()
