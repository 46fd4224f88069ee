"""One task: what a method is given and when, what is scored, and that test data change nothing that was learnt."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bench_settings import TINY
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from pdftime.bench import task as task_module
from pdftime.bench.archives import Dataset, Split, find_datasets
from pdftime.bench.audit import tampered_copies
from pdftime.bench.guard import ArchiveGuard, PeekError
from pdftime.bench.methods import method_of
from pdftime.bench.task import Learner, Task, fit_and_predict, host, run_task
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError


def dataset_of(archive: Path, name: str) -> Dataset:
    return find_datasets([str(archive)], [name])[0]


# Leakage


@pytest.mark.parametrize("tampered", ["labels", "noise"])
def test_other_test_data_leave_the_trained_weights_bit_identical(
    archive: Path, tmp_path: Path, tampered: str
) -> None:
    copies = tampered_copies(dataset_of(archive, "Waves"), tmp_path)
    method = method_of(TINY)
    weights = []
    for name in ("as it is", tampered):
        work = fit_and_predict(Task(copies[name], 0, method, seed=0), Split(copies[name]))
        weights.append(work.learner.classifier.model_.members[0].network.state_dict())
    assert weights[0].keys() == weights[1].keys()
    for key in weights[0]:
        assert torch.equal(weights[0][key], weights[1][key]), key


def test_the_tampered_copies_are_what_they_say(archive: Path, tmp_path: Path) -> None:
    whole = dataset_of(archive, "Uneven")
    copies = tampered_copies(whole, tmp_path)
    for copy in copies.values():
        assert np.array_equal(copy.train().X, whole.train().X, equal_nan=True)
        assert copy.train().y.tolist() == whole.train().y.tolist()  # type: ignore[union-attr]
    assert np.array_equal(copies["labels"].test().X, whole.test().X, equal_nan=True)
    assert (copies["labels"].test_labels() != whole.test_labels()).all()
    assert copies["noise"].test_labels().tolist() == whole.test_labels().tolist()
    assert copies["noise"].test().lengths.tolist() == whole.test().lengths.tolist()
    assert not np.array_equal(copies["noise"].test().X, whole.test().X, equal_nan=True)


class Witness:
    """Writes down what it is given, and what has been read by then."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def fit(self, X: Any, y: Any) -> Witness:
        self.events.append("fit")
        self.classes_ = np.unique(y)
        self.n_fit = len(X)
        return self

    def predict_proba(self, X: Any) -> Any:
        self.events.append("predict")
        assert type(X) is np.ndarray
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("resample", [0, 1])
def test_test_series_are_read_after_fitting_and_labels_after_predicting(
    archive: Path, monkeypatch: pytest.MonkeyPatch, resample: int
) -> None:
    events: list[str] = []
    for name in ("train", "test", "test_labels"):
        original = getattr(Split, name)

        def noted(self: Split, name: str = name, original: Any = original) -> Any:
            events.append(name)
            return original(self)

        monkeypatch.setattr(Split, name, noted)
    task = Task(dataset_of(archive, "Waves"), resample, method_of("default"), seed=0)
    monkeypatch.setattr(task_module.Method, "build", lambda *_: Witness(events))
    monkeypatch.setattr(task_module.Method, "is_ours", False)
    run_task(task)
    assert events == ["train", "fit", "test", "predict", "test_labels"]


def test_ours_is_given_series_without_labels_beside_them(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pdftime import PDFTimeClassifier

    given: list[SeriesSet] = []
    predict = PDFTimeClassifier.predict_proba

    def noted(self: PDFTimeClassifier, X: SeriesSet) -> Any:
        given.append(X)
        return predict(self, X)

    monkeypatch.setattr(PDFTimeClassifier, "predict_proba", noted)
    run_task(Task(dataset_of(archive, "Waves"), 0, method_of(TINY), seed=0))
    assert [cases.y for cases in given] == [None]


def test_the_guard_refuses_the_archive_and_nothing_else(archive: Path, tmp_path: Path) -> None:
    path = archive / "ucr" / "Waves.npz"
    guard = ArchiveGuard([str(path)])
    path.open("rb").close()
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    elsewhere = tmp_path / "Waves.npz"  # a copy of the same name
    elsewhere.write_bytes(path.read_bytes())
    with guard.closed():
        assert other.read_text() == "mine"
    for peek in (path, archive / "ucr" / ".." / "ucr" / "Waves.npz", archive / "ucr" / "Larger.npz", elsewhere):
        with pytest.raises(PeekError, match="by itself"), ArchiveGuard([str(path)]).closed():
            peek.open("rb")
    with pytest.raises(PeekError), guard.closed(), contextlib.suppress(PeekError):  # as a cheat would have it
        path.open("rb")
    path.open("rb").close()


@pytest.mark.parametrize("cheat", ["Reader", "Thief"])
def test_a_method_that_opens_the_archive_gets_no_row(archive: Path, contestants: Path, cheat: str) -> None:
    with pytest.raises(PeekError, match=r"Waves\.npz"):
        run_task(Task(dataset_of(archive, "Waves"), 0, method_of(f"contestants:{cheat}"), seed=0))


# What is measured


def test_scores_and_facts_are_those_of_the_predictions(archive: Path, contestants: Path) -> None:
    dataset = dataset_of(archive, "Pair")
    method = method_of("contestants:Honest")
    (row,) = run_task(Task(dataset, 0, method, seed=4))
    train, test, y = dataset.train(), dataset.test(), dataset.test_labels()
    model = method.build(4, 1, None).fit(train.X, train.y)
    probabilities = model.predict_proba(test.X)
    predicted = model.classes_[probabilities.argmax(axis=1)]
    assert row.accuracy == pytest.approx(accuracy_score(y, predicted), abs=1e-6)
    assert row.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, predicted), abs=1e-6)
    assert row.log_loss == pytest.approx(log_loss(y, probabilities), abs=1e-6)
    assert (row.archive, row.dataset, row.resample, row.method, row.seed) == ("uea", "Pair", 0, method.name, 4)
    assert (row.n_train, row.n_test, row.n_channels, row.n_timepoints, row.n_classes) == (12, 12, 4, 60, 3)
    assert (row.status, row.reason, row.epochs, row.n_threads) == ("ok", None, None, 1)
    assert row.configuration == method.configuration(None)
    assert row.settings == '{"class": "contestants:Honest"}'
    assert row.versions is not None
    assert row.versions.startswith("pdftime ")
    assert "python 3" in row.versions
    assert row.host == host()
    assert row.finished is not None
    assert row.finished.endswith("+00:00")
    assert row.peak_memory_mb is not None
    assert 20 < row.peak_memory_mb < 10_000


def test_ours_says_how_many_epochs_it_took(archive: Path) -> None:
    (row,) = run_task(Task(dataset_of(archive, "Uneven"), 0, method_of(TINY + ",n_members=2"), seed=0))
    assert (row.archive, row.epochs) == ("ucr", 2)


def test_labels_without_probabilities_have_no_log_loss(archive: Path, contestants: Path) -> None:
    (row,) = run_task(Task(dataset_of(archive, "Waves"), 0, method_of("contestants:OnlyLabels"), seed=0))
    assert row.accuracy == pytest.approx(1 / 3, abs=1e-6)
    assert (row.log_loss, row.calibration_error) == (None, None)


def test_scikit_learn_is_given_one_row_a_case(archive: Path) -> None:
    method = method_of('sklearn.neighbors:KNeighborsClassifier{"n_neighbors": 1}')
    (row,) = run_task(Task(dataset_of(archive, "Pair"), 0, method, seed=0))
    assert row.status == "ok"


def test_predictions_that_are_no_numbers_are_an_error(archive: Path, contestants: Path) -> None:
    with pytest.raises(DataError, match="not finite"):
        run_task(Task(dataset_of(archive, "Waves"), 0, method_of("contestants:NotANumber"), seed=0))


def test_peers_get_filled_series_of_one_length_by_what_training_cases_say() -> None:
    given: list[Any] = []

    class Peer:
        def fit(self, X: Any, y: Any) -> None:
            given.append(X)
            self.classes_ = np.unique(y)

        def predict_proba(self, X: Any) -> Any:
            given.append(X)
            return np.full((len(X), 2), 0.5)

    learner = Learner(Peer(), takes_series=False)
    train = check_series([[[0.0, np.nan, 2.0, 3.0, 4.0]], [[0.0, 4.0]]], ["a", "b"])
    learner.fit(train)
    learner.probabilities(check_series([[[1.0, 3.0, 5.0]], [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]]))
    assert given[0].tolist() == [[[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]]]
    assert given[1].tolist() == [[[1, 2, 3, 4, 5]], [[0, 2, 4, 6, 8]]]
    assert given[0].dtype == np.float64


def test_clean_series_reach_peers_unchanged() -> None:
    given: list[Any] = []

    class Peer:
        def fit(self, X: Any, y: Any) -> None:
            given.append(X)

    X = np.random.default_rng(0).normal(size=(4, 2, 7)) * 1e9
    Learner(Peer(), takes_series=False).fit(check_series(X, [0, 0, 1, 1]))
    assert (given[0] == X).all()


def test_probabilities_are_put_in_the_order_of_the_classes() -> None:
    class Peer:
        classes_ = np.array(["b", "a"])

        def fit(self, X: Any, y: Any) -> None:
            pass

        def predict_proba(self, X: Any) -> Any:
            return np.tile([0.2, 0.8], (len(X), 1))

    learner = Learner(Peer(), takes_series=False)
    cases = check_series(np.zeros((2, 1, 3)), ["a", "b"])
    learner.fit(cases)
    assert learner.probabilities(cases).tolist() == [[0.8, 0.2], [0.8, 0.2]]


def test_a_test_label_that_training_lacks_is_wrong_and_outside_the_log_loss() -> None:
    classes = np.array(["a", "b"])
    scores = task_module._scores(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array(["a", "new"]), classes)
    assert scores["accuracy"] == 0.5
    assert scores["log_loss"] == pytest.approx(-np.log(0.9), abs=1e-6)
    assert task_module._scores(np.array([[0.9, 0.1]]), np.array(["new"]), classes)["log_loss"] is None


def test_a_task_comes_back_from_json(archive: Path) -> None:
    task = Task(dataset_of(archive, "Waves"), 2, method_of("paper:dropout=0.1"), 3, 1, 60.0)
    import json

    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task


def test_two_views_leave_a_row_each_which_is_that_of_the_view_by_itself(archive: Path) -> None:
    network = "max_epochs=1,d_model=8,branch_width=2,n_inception_layers=1,max_tokens=8"
    bank = "n_groups=1,n_biases=1"
    dataset = dataset_of(archive, "Waves")
    both, *views = run_task(Task(dataset, 0, method_of(f"strong:{network},{bank}"), seed=3))
    network += ",n_folds=4,n_steps=1000,least_timepoints=64"  # as strong has it
    assert [row.method.partition("/")[2] for row in views] == ["bank", "network"]
    assert len({row.identity for row in (both, *views)}) == 3
    assert sum(row.fit_seconds for row in views) <= both.fit_seconds
    for row, alone in zip(views, (f"fast:{bank}", f"network:{network}"), strict=True):
        (expected,) = run_task(Task(dataset, 0, method_of(alone), seed=3))
        for score in ("accuracy", "balanced_accuracy", "log_loss", "calibration_error", "epochs"):
            assert getattr(row, score) == getattr(expected, score)
