"""PDFTimeClassifier keeps scikit-learn's promises and its own."""

from __future__ import annotations

import importlib.util
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import pdftime
from pdftime import PDFTimeClassifier, check_series
from pdftime.config import PRESETS
from pdftime.errors import ConfigError, DataError, DataTypeError
from pdftime.training.loop import Run

SMALL = {"branch_width": 4, "n_inception_layers": 1, "kernel_sizes": (3,)}

NOT_PASSED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "A case of weight 2 is one case of a mini-batch and of its normalisation, a repeated case is two, perhaps "
        "in different batches: the model is another one. (A weight of zero does equal a removed case, see below.)"
    ),
    "check_methods_subset_invariance": (
        "Single precision: torch chooses its kernels by batch size, and the last bits of a probability with them. "
        "The check allows 1e-7 where about 3e-7 is seen. (That it stays this small is tested below.)"
    ),
}
"""scikit-learn's checks that this classifier cannot pass, and why."""


def tiny(**keywords: Any) -> PDFTimeClassifier:
    """A classifier whose training takes milliseconds."""
    settings = {**SMALL, **keywords.pop("settings", {})}
    return PDFTimeClassifier(**{"preset": "network", "d_model": 8, "max_epochs": 4, "settings": settings, **keywords})


def waves(n_cases: int = 24, seed: int = 0, *, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2, 20) series and labels: slow waves and fast ones, of random phase, in noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_cases) % 2, "slow", "fast")
    cycles = np.where(y == "slow", 1.0, 4.0)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, (n_cases, 2, 1))
    X = np.sin(2 * np.pi * cycles * np.arange(20) / 20 + phase)
    return X + noise * rng.standard_normal(X.shape), y


def unequal(n_cases: int = 24, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """The same, cut to 12 to 20 time points."""
    X, y = waves(n_cases, seed)
    ends = np.random.default_rng(seed).integers(12, 21, n_cases)
    ends[0] = 20
    return [series[:, :end] for series, end in zip(X, ends, strict=True)], y


X, Y = waves()
FRESH, FRESH_Y = waves(40, seed=1)


@pytest.fixture(scope="module")
def fitted() -> PDFTimeClassifier:
    return tiny(max_epochs=30, learning_rate=0.02).fit(X, Y)


def identical(one: PDFTimeClassifier, two: PDFTimeClassifier, cases: Any = FRESH) -> bool:
    return bool((one.predict_proba(cases) == two.predict_proba(cases)).all())


# scikit-learn's own word for it.


@pytest.mark.slow
def test_scikit_learn_checks_pass_but_for_those_explained() -> None:
    results = check_estimator(tiny(max_epochs=15, learning_rate=0.02), on_fail=None, on_skip=None)
    skipped = {each["check_name"] for each in results if each["status"] == "skipped"}
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    assert len(results) > 60
    assert skipped <= {"check_array_api_input"}  # arrays of other libraries, only if the environment asks for them
    assert failed.keys() - NOT_PASSED.keys() == set(), failed
    rounding = {"check_methods_subset_invariance"}  # another processor's kernels may round alike
    assert NOT_PASSED.keys() - failed.keys() <= rounding, "passes now: take it off the list"


def test_the_size_of_all_weights_together_changes_nothing() -> None:
    weight = np.linspace(1.0, 2.0, len(Y))
    one, other = (tiny().fit(X, Y, sample_weight=weight * size) for size in (1.0, 4.0))
    assert (one.predict_proba(FRESH) == other.predict_proba(FRESH)).all()


def test_grid_search_finds_among_settings() -> None:
    search = GridSearchCV(tiny(), {"d_model": [4, 8], "n_prototypes": [1, (1, 2)]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.model_.settings.model.d_model == search.best_params_["d_model"]
    assert search.predict(FRESH).shape == FRESH_Y.shape


def test_cross_validation_beats_chance() -> None:
    scores = cross_val_score(tiny(max_epochs=30, learning_rate=0.02), X, Y, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert scores.mean() > 0.8


def test_pipeline_passes_series_through() -> None:
    steps = [("root", FunctionTransformer(lambda series: np.sign(series) * np.abs(series) ** 0.5)), ("us", tiny())]
    piped = Pipeline(steps).fit(X, Y)
    by_hand = tiny().fit(np.sign(X) * np.abs(X) ** 0.5, Y)
    assert (piped.predict_proba(FRESH) == by_hand.predict_proba(np.sign(FRESH) * np.abs(FRESH) ** 0.5)).all()


def test_calibration_by_cross_validation_works() -> None:
    calibrated = CalibratedClassifierCV(tiny(max_epochs=10), cv=2).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(FRESH).sum(axis=1), 1.0)


def test_clone_is_unfitted_and_trains_to_the_same_model() -> None:
    first = tiny(n_members=2, class_weight={"slow": 2.0}).fit(X, Y)
    again = clone(first)
    assert not hasattr(again, "model_")
    assert again.get_params() == first.get_params()
    assert identical(first, again.fit(X, Y))


def test_pickled_predicts_the_same_bits(fitted: PDFTimeClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert identical(fitted, again)
    assert again.history_ == fitted.history_
    assert (again.classes_ == fitted.classes_).all()


def test_parameters_are_read_and_set_by_name() -> None:
    model = PDFTimeClassifier(preset="network")
    assert model.get_params()["d_model"] is None
    assert model.set_params(d_model=4, max_epochs=1, settings=SMALL) is model
    assert model.fit(X, Y).transform(FRESH).shape == (40, 4)
    with pytest.raises(ValueError, match="Invalid parameter 'epochs'"):
        model.set_params(epochs=3)


def test_keywords_win_over_settings_and_settings_over_the_preset() -> None:
    chosen = tiny(d_model=4, settings={"d_model": 8, "dropout": 0.5}).fit(X, Y).model_.settings.model
    assert (chosen.d_model, chosen.dropout, chosen.n_heads) == (4, 0.5, PRESETS["network"].model.n_heads)


def test_unequal_lengths_go_through_fit_predict_and_cross_validation() -> None:
    series, y = unequal(48)
    for lengths in ("resample", "pad"):
        model = tiny(lengths=lengths, max_epochs=20, learning_rate=0.02)
        assert cross_val_score(model, series, y, cv=3, error_score="raise").mean() > 0.8
        model.fit(series, y)
        assert model.predict_proba([FRESH[0], FRESH[1][:, :7], FRESH[2][:, :1]]).shape == (3, 2)


# Forms of input that mean the same.


@pytest.mark.parametrize(
    "form",
    [
        lambda series: series[:, 0, :],
        lambda series: [each[:1] for each in series],
        lambda series: [each[0] for each in series],
        lambda series: series[:, 0, :].tolist(),
        lambda series: check_series(series[:, :1]),
        lambda series: np.asfortranarray(series[:, :1]),
    ],
    ids=["2-D", "list of 2-D", "list of 1-D", "lists", "SeriesSet", "column order"],
)
def test_every_form_of_one_channel_is_the_same(form: Callable[[np.ndarray], Any]) -> None:
    expected = tiny().fit(X[:, :1], Y)
    assert (tiny().fit(form(X), Y).predict_proba(form(FRESH)) == expected.predict_proba(FRESH[:, :1])).all()


def test_fit_and_predict_leave_their_input_alone() -> None:
    given, labels, weights = X.copy(), Y.copy(), np.linspace(0, 1, len(Y))
    given[3, 0, 4:6] = np.nan
    before = given.copy(), labels.copy(), weights.copy()
    tiny().fit(given, labels, sample_weight=weights).predict(given)
    for now, then in zip((given, labels, weights), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_missing_values_are_allowed_in_training_and_prediction() -> None:
    holes = np.random.default_rng(2).random(X.shape) < 0.2
    model = tiny(max_epochs=30, learning_rate=0.02).fit(np.where(holes, np.nan, X), Y)
    assert (model.predict(FRESH) == FRESH_Y).mean() > 0.8
    lost_channel = FRESH.copy()
    lost_channel[:, 1] = np.nan
    assert np.isfinite(model.predict_proba(lost_channel)).all()


# Labels come back as they were given.


@pytest.mark.parametrize(
    "pair",
    [
        ["yes", "no"],
        [7, -3],
        [True, False],
        [2.0, 1.0],
        np.array([5, 3], np.int8),
        np.array(["b", "a"]),
        np.array([b"b", b"a"]),
        ["text", 3],
        [2**70, 1],
    ],
    ids=["text", "whole", "boolean", "float", "int8", "numpy text", "bytes", "mixed", "beyond 64 bits"],
)
def test_labels_are_kept_as_given(pair: Any) -> None:
    labels = [pair[code] for code in (Y == "slow").astype(int)]
    y = np.array(labels, pair.dtype) if isinstance(pair, np.ndarray) else labels
    model = tiny().fit(X, y)
    predicted = model.predict(FRESH)
    assert set(predicted.tolist()) <= set(model.classes_.tolist()) == set(np.asarray(y, object))
    assert predicted.dtype == model.classes_.dtype
    if isinstance(pair, np.ndarray):
        assert model.classes_.dtype == pair.dtype
    kinds = {type(each) for each in model.classes_.tolist()}
    assert kinds == {type(each) for each in (pair.tolist() if isinstance(pair, np.ndarray) else pair)}


def test_the_order_of_labels_in_y_does_not_matter_for_classes() -> None:
    assert tiny().fit(X, Y).classes_.tolist() == tiny().fit(X[::-1], Y[::-1]).classes_.tolist() == ["fast", "slow"]


# Weights.


def imbalanced() -> tuple[np.ndarray, np.ndarray]:
    """Sixty noisy fast waves and six slow ones."""
    series, y = waves(120, seed=3, noise=1.5)
    rare = np.flatnonzero(y == "slow")[:6]
    rows = np.sort(np.concatenate([np.flatnonzero(y == "fast"), rare]))
    return series[rows], y[rows]


@pytest.mark.parametrize("class_weight", ["balanced", {"slow": 10.0}, {"slow": 1.0, "fast": 0.1}])
def test_class_weight_helps_a_rare_class(class_weight: Any) -> None:
    series, y = imbalanced()
    fresh, fresh_y = waves(200, seed=4, noise=1.5)
    plain = tiny(max_epochs=10, learning_rate=0.01).fit(series, y)
    weighted = tiny(max_epochs=10, learning_rate=0.01, class_weight=class_weight).fit(series, y)

    def found(model: PDFTimeClassifier) -> float:
        return float((model.predict(fresh)[fresh_y == "slow"] == "slow").mean())

    assert found(weighted) > found(plain) + 0.2
    assert weighted.score(fresh, fresh_y) > plain.score(fresh, fresh_y)


def test_class_weight_is_sample_weight_by_class() -> None:
    by_class = tiny(class_weight={"slow": 4.0}).fit(X, Y)
    by_case = tiny().fit(X, Y, sample_weight=np.where(Y == "slow", 4.0, 1.0))
    assert identical(by_class, by_case)
    assert not identical(by_class, tiny().fit(X, Y))


def test_only_the_proportions_of_weights_count() -> None:
    weights = np.random.default_rng(5).choice([1.0, 2.0, 4.0], len(Y))
    assert identical(tiny().fit(X, Y, weights), tiny().fit(X, Y, weights * 2.0**1000))
    assert identical(tiny().fit(X, Y), tiny().fit(X, Y, np.full(len(Y), 0.25)))


@pytest.mark.parametrize("keywords", [{}, {"class_weight": "balanced"}, {"n_members": 2, "validation_fraction": 0.3}])
def test_a_weight_of_zero_is_a_removed_case(keywords: dict[str, Any]) -> None:
    weights = np.random.default_rng(6).choice([0.0, 1.0, 3.0], len(Y))
    weights[0] = 0.0
    weighted = tiny(**keywords).fit(X, Y, sample_weight=weights)
    removed = tiny(**keywords).fit(X[weights > 0], Y[weights > 0], sample_weight=weights[weights > 0])
    assert identical(weighted, removed)
    rows = np.flatnonzero(weights > 0)
    assert (weighted.model_.exemplars.numbers == rows[removed.model_.exemplars.numbers]).all()


def test_a_weight_of_zero_removes_a_length_and_a_class_too() -> None:
    series, y = unequal()
    longest = np.array([each.shape[1] for each in series]) == 20
    y = np.where(longest, "long", y)
    kept = [each for each, out in zip(series, longest, strict=True) if not out]
    weighted = tiny().fit(series, y, sample_weight=~longest)
    assert weighted.classes_.tolist() == ["fast", "slow"]
    assert identical(weighted, tiny().fit(kept, y[~longest]), kept)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.zeros(24), "zero for every case"),
        (np.r_[-1.0, np.ones(23)], "negative"),
        (np.r_[np.nan, np.ones(23)], "NaN"),
        (np.r_[np.inf, np.ones(23)], "infinite"),
        (np.ones(3), r"shape \(3,\); expected one weight per case, shape \(24,\)"),
        (np.ones((24, 2)), r"shape \(24, 2\)"),
        (["heavy"] * 24, "not made of numbers"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        tiny().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    "class_weight", ["even", ["slow", 2.0], 3, {"quick": 2.0}, {"slow": 0.0}, {"slow": "2"}, {"slow": np.nan}]
)
def test_class_weights_that_cannot_be_used_are_refused(class_weight: Any) -> None:
    with pytest.raises(ConfigError, match="class_weight is"):
        tiny(class_weight=class_weight).fit(X, Y)


def test_absurd_weights_do_not_stop_training() -> None:
    tiny(batch_size=2).fit(X, Y, sample_weight=np.where(np.arange(24) < 6, 1.0, 1e-200))
    tiny(batch_size=2).fit(X, Y, sample_weight=np.full(24, 1e308))


# Validation.


def test_given_validation_cases_are_used_and_only_watched() -> None:
    model = tiny(max_epochs=6)
    one = clone(model).fit(X, Y, X_val=FRESH, y_val=FRESH_Y)
    two = clone(model).fit(X, Y, X_val=100.0 * FRESH[:9], y_val=FRESH_Y[8::-1])
    assert one.metrics_["members"][0]["n_validation"] == 40
    assert two.metrics_["members"][0]["n_validation"] == 9
    assert "validation_log_loss" in one.metrics_["members"][0]
    assert [each["loss"] for each in one.history_] == [each["loss"] for each in two.history_]
    assert (one.model_.preparation.mean == two.model_.preparation.mean).all()
    assert [each["validation_loss"] for each in one.history_] != [each["validation_loss"] for each in two.history_]


def test_training_stops_where_validation_stops_improving() -> None:
    wrong = np.where(FRESH_Y == "slow", "fast", "slow")
    model = tiny(max_epochs=200, patience=3, learning_rate=0.05).fit(X, Y, X_val=FRESH, y_val=wrong)
    assert len(model.history_) < 20
    losses = [each["validation_loss"] for each in model.history_]
    assert model.metrics_["members"][0]["best_epoch"] == np.argmin(losses) + 1 == len(losses) - 3


def test_without_validation_cases_a_part_is_kept_if_asked_for() -> None:
    model = tiny(validation_fraction=0.25).fit(X, Y)
    assert model.metrics_["members"][0]["n_validation"] == 6
    assert tiny().fit(X, Y).metrics_["members"][0]["n_validation"] == 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"X_val": FRESH}, "X_val and y_val belong together"),
        ({"y_val": FRESH_Y}, "X_val and y_val belong together"),
        (
            {"X_val": FRESH, "y_val": np.where(FRESH_Y == "slow", "slower", "fast")},
            r"y_val holds labels \['slower'\]",
        ),
        ({"X_val": FRESH, "y_val": FRESH_Y[1:]}, "39 labels and X has 40 cases"),
        ({"X_val": FRESH[:, :1], "y_val": FRESH_Y}, "1 channels; the model was trained on 2"),
        ({"X_val": FRESH[:, :, :9], "y_val": FRESH_Y}, "9 time points; every training series had 20"),
        ({"X_val": FRESH[:0], "y_val": FRESH_Y[:0]}, "no cases"),
    ],
)
def test_validation_cases_that_cannot_be_used_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        tiny().fit(X, Y, **given)


# Ensembles.


def test_an_ensemble_is_the_mean_of_its_members_log_odds() -> None:
    model = tiny(n_members=3, validation_fraction=0.25).fit(X, Y)
    alone = [replace(model.model_, members=[each]) for each in model.model_.members]
    each = [member.probabilities(check_series(FRESH)) for member in alone]
    log_odds = [np.log(said[:, 0] / said[:, 1]) for said in (*each, model.predict_proba(FRESH))]
    np.testing.assert_allclose(log_odds[-1], np.mean(log_odds[:-1], axis=0), rtol=0, atol=1e-9)
    assert not (each[0] == each[1]).all()
    assert model.transform(FRESH).shape == (40, 3 * 8)
    assert {record["member"] for record in model.history_} == {0, 1, 2}


def test_the_first_member_of_an_ensemble_is_the_single_model() -> None:
    first = tiny(n_members=2).fit(X, Y).model_.members[0].network.state_dict()
    single = tiny().fit(X, Y).model_.members[0].network.state_dict()
    assert all((first[name] == single[name]).all() for name in single)


# Chance.


@pytest.mark.parametrize("seed", [0, 1, -4, np.int64(7), 2**70])
def test_same_seed_gives_the_same_bits(seed: int) -> None:
    assert identical(tiny(random_state=seed).fit(X, Y), tiny(random_state=seed).fit(X, Y))
    assert not identical(tiny(random_state=seed).fit(X, Y), tiny(random_state=seed + 1).fit(X, Y))


def test_fitting_again_begins_anew() -> None:
    model = tiny().fit(FRESH, FRESH_Y)
    assert identical(model.fit(X, Y), tiny().fit(X, Y))


def test_no_seed_gives_another_model_each_time() -> None:
    assert not identical(tiny(random_state=None).fit(X, Y), tiny(random_state=None).fit(X, Y))


def test_a_random_state_object_is_drawn_from() -> None:
    state = np.random.RandomState(3)
    model = tiny(random_state=state)
    first = clone(model).fit(X, Y)  # a clone has a copy of the state
    assert identical(first, model.fit(X, Y))
    assert not identical(first, model.fit(X, Y))


@pytest.mark.parametrize("state", ["three", 1.5, [1]])
def test_what_is_no_seed_is_refused(state: Any) -> None:
    with pytest.raises(ConfigError, match="random_state is"):
        tiny(random_state=state).fit(X, Y)


def test_global_generators_are_left_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    model = tiny(random_state=None, validation_fraction=0.25, settings={"dropout": 0.5}).fit(X, Y)
    model.explain(FRESH[:2])
    model.predict(FRESH)
    assert random.getstate() == before[0]
    assert (np.random.get_state()[1] == before[1]).all()
    assert (torch.get_rng_state() == before[2]).all()


def test_what_global_generators_hold_changes_nothing() -> None:
    first = tiny().fit(X, Y)
    torch.manual_seed(123)
    np.random.seed(123)
    assert identical(first, tiny().fit(X, Y))


# Running a fit.


def test_threads_are_set_meanwhile_and_restored() -> None:
    seen = []
    torch.set_num_threads(2)
    try:
        model = tiny(n_threads=1, callbacks=[lambda run: seen.append(torch.get_num_threads())]).fit(X, Y)
        model.predict(FRESH)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            tiny(n_threads=1, callbacks=[lambda run: bool(1 / 0)]).fit(X, Y)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_callbacks_are_told_of_every_epoch_and_can_stop() -> None:
    epochs: list[int] = []

    def stop_after_three(run: Run) -> bool:
        epochs.append(run.epoch)
        return run.epoch == 3

    model = tiny(max_epochs=9, callbacks=[stop_after_three]).fit(X, Y)
    assert epochs == [1, 2, 3]
    assert len(model.history_) == 3


def test_the_time_limit_is_kept_by_all_members_together() -> None:
    began = time.perf_counter()
    model = tiny(max_epochs=1_000_000, max_time_s=0.3, n_members=3).fit(X, Y)
    assert time.perf_counter() - began < 5.0
    assert {record["member"] for record in model.history_} == {0, 1, 2}
    assert len(model.history_) < 1000


@pytest.mark.parametrize("verbose", [0, 1])
def test_nothing_is_printed_where_nobody_looks(verbose: int, capfd: pytest.CaptureFixture[str]) -> None:
    tiny(verbose=verbose).fit(X, Y).predict(FRESH)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_on_the_error_stream(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    tiny(verbose=1, n_members=2).fit(X, Y)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "member 2 of 2" in shown.err
    assert "4/4" in shown.err
    assert "loss" in shown.err
    tiny(verbose=0).fit(X, Y)
    assert capfd.readouterr() == ("", "")


# What a fitted model tells.


def test_history_has_a_record_per_epoch(fitted: PDFTimeClassifier) -> None:
    assert [record["epoch"] for record in fitted.history_] == list(range(1, 31))
    assert all(np.isfinite(record["loss"]) and record["seconds"] > 0 for record in fitted.history_)
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]


def test_metrics_say_what_was_fitted(fitted: PDFTimeClassifier) -> None:
    assert fitted.metrics_["n_cases"] == 24
    assert fitted.metrics_["seconds"] > 0
    (member,) = fitted.metrics_["members"]
    assert member.pop("seconds") == fitted.metrics_["seconds"]
    assert member == {"view": "network", "epochs": 30, "best_epoch": 30, "n_validation": 0}


def test_prototypes_are_unit_vectors_of_every_level() -> None:
    model = tiny(n_members=2, n_prototypes=(1, 3)).fit(X, Y)
    assert [level.shape for level in model.prototypes_] == [(2, 2, 1, 8), (2, 2, 3, 8)]
    for level in model.prototypes_:
        np.testing.assert_allclose(np.linalg.norm(level, axis=-1), 1.0, rtol=1e-5)


def test_transform_gives_what_the_prototypes_are_compared_with(fitted: PDFTimeClassifier) -> None:
    z = fitted.transform(FRESH)
    assert z.dtype == np.float32
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosines = np.einsum("nd,ckd->nck", unit, fitted.prototypes_[-1][0])
    scores = np.log(np.exp(cosines / fitted.model_.settings.model.temperature).sum(axis=-1))
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(FRESH), expected, atol=1e-4)


def test_explanations_agree_with_predictions(fitted: PDFTimeClassifier) -> None:
    explained = fitted.explain(FRESH[:5])
    probabilities = fitted.predict_proba(FRESH[:5])
    assert [each.predicted for each in explained] == fitted.predict(FRESH[:5]).tolist()
    np.testing.assert_allclose([each.target.probability for each in explained], probabilities.max(axis=1))
    for each in explained:
        assert each.token_evidence.sum() + each.target.entropy == pytest.approx(each.target.score, abs=1e-4)
        assert each.input_map.shape == (2, 20)
        assert {near.label for match in each.target.matches for near in match.neighbours} == {each.predicted}
        assert repr(each.predicted) in each.summary()


def test_neighbours_are_numbered_as_in_the_training_data() -> None:
    weights = (np.arange(24) >= 10).astype(float)
    explained = tiny().fit(X, Y, sample_weight=weights).explain(FRESH[:3])
    for each in explained:
        for match in each.target.matches:
            assert match.wrong is not None
            for neighbour in (*match.neighbours, match.wrong):
                assert neighbour.index >= 10
                assert Y[neighbour.index] == neighbour.label


# A case is judged by itself.


def test_a_prediction_does_not_depend_on_the_other_cases(fitted: PDFTimeClassifier) -> None:
    others = FRESH.copy()
    others[1:] = 1e5 * np.random.default_rng(7).standard_normal(others[1:].shape)
    assert (fitted.predict_proba(others)[0] == fitted.predict_proba(FRESH)[0]).all()
    one_by_one = np.concatenate([fitted.predict_proba(case[None]) for case in FRESH])
    np.testing.assert_allclose(one_by_one, fitted.predict_proba(FRESH), rtol=0, atol=1e-5)


def test_series_longer_and_shorter_than_any_before_do_not_change_their_neighbours() -> None:
    series, y = unequal()
    for lengths in ("resample", "pad"):
        model = tiny(lengths=lengths).fit(series, y)
        fresh = [FRESH[0][:, :15], FRESH[1]]
        beside_long = [fresh[0], np.tile(FRESH[1], 3)]
        np.testing.assert_allclose(
            model.predict_proba(beside_long)[0], model.predict_proba(fresh)[0], rtol=0, atol=1e-6
        )


# Every choice of network trains.


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_trains(name: str) -> None:
    model = (PDFTimeClassifier(preset=name) if name in ("default", "fast") else tiny(preset=name)).fit(X, Y)
    assert model.predict_proba(FRESH).shape == (40, 2)


CHOICES: dict[str, dict[str, Any]] = {
    "no frequency mask": {"frequency_mask": False},
    "linear embedding": {"embedding": "linear"},
    "window": {"encoder": "window", "window": 2},
    "no encoder": {"encoder": "none"},
    "class token": {"pooling": "token"},
    "linear head": {"head": "linear"},
    "prototypes by gradient": {"prototype_update": "gradient"},
    "every time point": {"max_tokens": None},
    "few tokens": {"max_tokens": 3},
    "one level": {"n_prototypes": 2},
    "three levels": {"n_prototypes": (1, 2, 3)},
    "more prototypes than features": {"n_prototypes": 9},
    "fixed momentum": {"momentum": 0.5},
    "no diversity": {"diversity_step": 0.0, "diversity_weight": 0.0},
    "smoothed labels": {"label_smoothing": 0.1},
    "each series scaled": {"scaling": "series"},
    "no scaling": {"scaling": "none"},
    "batches of one": {"batch_size": 1},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_learns(choice: str) -> None:
    model = tiny(max_epochs=8, learning_rate=0.01, settings={"warm_epochs": 1, **CHOICES[choice]}).fit(X, Y)
    losses = [record["loss"] for record in model.history_]
    assert losses[-1] < losses[0]
    probabilities = model.predict_proba(FRESH)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert len(model.explain(FRESH[:2])) == 2
    assert model.explain_model().accuracy is not None


def test_a_backbone_of_yours_is_trained_as_a_copy() -> None:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    before = {name: weight.clone() for name, weight in backbone.state_dict().items()}
    model = tiny(backbone=backbone, n_members=2).fit(X, Y)
    assert all((backbone.state_dict()[name] == weight).all() for name, weight in before.items())
    for member in model.model_.members:
        trained = member.network.backbone.state_dict()
        assert not any((trained[name] == weight).all() for name, weight in before.items())
    assert len(model.explain(FRESH[:1])) == 1
    assert identical(model, clone(model).fit(X, Y))


# Keywords that cannot work.


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"preset": "best"}, "Unknown preset 'best'; expected one of"),
        ({"d_model": 0}, "d_model is 0; expected a whole number from 2"),
        ({"encoder": "rnn"}, "encoder is 'rnn'; expected one of 'attention'"),
        ({"settings": {"depth": 3}}, r"Unknown settings \['depth'\]"),
        ({"settings": {3: 3}}, r"Unknown settings \['3'\]"),
        ({"n_members": 0}, "n_members is 0; expected a whole number from 1"),
        ({"n_members": "two"}, "n_members is 'two'"),
        ({"n_threads": 0}, "n_threads is 0; expected a whole number from 1 or None"),
        ({"max_time_s": 0.0}, "max_time_s is 0.0; expected a positive number of seconds"),
        ({"max_time_s": "1 h"}, "max_time_s is '1 h'"),
        ({"callbacks": 3}, "callbacks is 3; expected a list of functions"),
        ({"callbacks": [3]}, r"callbacks is \[3\]"),
        ({"backbone": "resnet"}, "backbone is 'resnet'; expected a torch.nn.Module"),
    ],
)
def test_keywords_that_cannot_work_are_refused_when_fitting(keywords: dict[str, Any], sentence: str) -> None:
    model = tiny(**keywords)  # scikit-learn: nothing is checked before fit
    with pytest.raises(ConfigError, match=sentence):
        model.fit(X, Y)


def test_settings_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(ConfigError, match="settings is 'small'; expected a mapping or None"):
        PDFTimeClassifier(settings="small").fit(X, Y)  # type: ignore[arg-type]


# Series and labels that cannot be used.


def changed(place: tuple[int, ...], value: Any, dtype: Any = float) -> np.ndarray:
    series = X.astype(dtype)
    series[place] = value
    return series


BAD_SERIES: dict[str, tuple[Any, type[DataError], str]] = {
    "none at all": (None, DataError, "X"),
    "no cases": (X[:0], DataError, "no cases"),
    "an empty list": ([], DataError, "no cases"),
    "no time points": (X[:, :, :0], DataError, "a series needs a channel and a time point"),
    "no channels": (X[:, :0], DataError, "a series needs a channel and a time point"),
    "one dimension": (X[0, 0], DataError, "too few dimensions"),
    "four dimensions": (X[None], DataError, "too many dimensions"),
    "a case without values": (changed((3,), np.nan), DataError, "Case 3 holds only missing values"),
    "infinity": (changed((2, 1, 4), -np.inf), DataError, "infinite value in case 2, channel 1, time point 4"),
    "objects in 3-D": (changed((0, 0, 0), None, object), DataTypeError, "3-D array of Python objects"),
    "None in a cell": (changed((0, 0, 0), None, object)[:, 0], DataTypeError, r"None at \(0, 0\)"),
    "text in a cell": (changed((0, 0, 0), "low", object)[:, 0], DataTypeError, r"the text 'low' at \(0, 0\)"),
    "text": (X.astype(str), DataTypeError, "expected numbers"),
    "complex numbers": (X.astype(complex), DataTypeError, "Complex data not supported"),
    "times": (np.zeros((24, 2, 20), "M8[s]"), DataTypeError, "expected numbers"),
    "ragged channels": ([[[1.0, 2.0], [1.0]]] * 24, DataError, "channels of case 0 differ in length"),
    "cases of unequal channels": ([X[0], X[1][:1], *X[2:]], DataError, "Case 1 has 1 channels and case 0 has 2"),
    "a masked array": (np.ma.masked_greater(X, 1.0), DataError, "masked array"),
}


@pytest.mark.parametrize("kind", BAD_SERIES)
def test_series_that_cannot_be_used_are_refused(kind: str, fitted: PDFTimeClassifier) -> None:
    series, error, sentence = BAD_SERIES[kind]
    with pytest.raises(error, match=sentence):
        tiny().fit(series, Y)
    for method in (fitted.predict, fitted.predict_proba, fitted.transform, fitted.explain):
        with pytest.raises(error, match=sentence):
            method(series)


BAD_LABELS: dict[str, tuple[Any, str]] = {
    "none at all": (None, "requires y to be passed"),
    "one class": (["same"] * 24, "one class, 'same'"),
    "a missing label": ([*Y[:-1].tolist(), None], "label of case 23 is missing"),
    "NaN": (np.r_[np.nan, np.ones(23)], r"label of case 0 is missing \(NaN\)"),
    "measurements": (np.linspace(0.0, 1.0, 24), "continuous"),
    "too few": (Y[:5], "5 labels and X has 24 cases"),
    "two columns": (np.stack([Y, Y], axis=1), r"shape \(24, 2\)"),
    "lists": ([["a"], ["b"]] * 12 + [["a", "b"]], "labels"),
    "complex numbers": (np.ones(24, complex), "Unknown label type"),
}


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_labels_that_cannot_be_used_are_refused(kind: str) -> None:
    labels, sentence = BAD_LABELS[kind]
    with pytest.raises(DataError, match=sentence):
        tiny().fit(X, labels)


def test_one_case_is_refused() -> None:
    with pytest.raises(DataError, match=r"one class, 'fast', in 1 case"):
        tiny().fit(X[:1], Y[:1])


def test_two_cases_are_enough() -> None:
    assert tiny().fit(X[:2], Y[:2]).predict_proba(FRESH).shape == (40, 2)


def test_other_channels_at_prediction_are_refused(fitted: PDFTimeClassifier) -> None:
    with pytest.raises(DataError, match="X has 3 channels; the model was trained on 2"):
        fitted.predict(np.zeros((1, 3, 20)))


def test_another_length_at_prediction_is_refused(fitted: PDFTimeClassifier) -> None:
    with pytest.raises(DataError, match="19 time points; every training series had 20"):
        fitted.predict(FRESH[:, :, :19])
    with pytest.raises(DataError, match="19 time points; every training series had 20"):
        fitted.predict([FRESH[0], FRESH[1][:, :19]])


def test_a_column_more_of_a_table_is_refused() -> None:
    model = tiny().fit(X[:, 0], Y)
    with pytest.raises(DataError, match="X has 21 features, but PDFTimeClassifier is expecting 20 features"):
        model.predict(np.zeros((3, 21)))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "explain"])
def test_an_unfitted_model_says_so_before_it_looks_at_the_series(method: str) -> None:
    for series in (X, None):
        with pytest.raises(NotFittedError):
            getattr(tiny(), method)(series)


@pytest.mark.parametrize("name", ["history_", "metrics_", "prototypes_"])
def test_an_unfitted_model_has_nothing_to_tell(name: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(tiny(), name)


def test_an_unfitted_model_is_not_saved(tmp_path: Any) -> None:
    with pytest.raises(NotFittedError):
        tiny().save(tmp_path / "model.pdftime")
    assert list(tmp_path.iterdir()) == []


# Light to import.


def modules_after(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after running this."""
    tail = "\nimport sys\nprint('loaded:', *{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return set(run.stdout.rpartition("loaded:")[2].split()) & {"torch", "sklearn", "pandas", "aeon", "sktime"}


def test_import_pdftime_is_light() -> None:
    assert modules_after("import pdftime; pdftime.__version__") == set()


@pytest.mark.skipif(importlib.util.find_spec("pdftime.cli") is None, reason="there is no command line yet")
def test_help_of_the_command_line_is_light() -> None:
    code = "import sys; from pdftime.cli import main; sys.argv = ['pdftime', '--help']"
    assert modules_after(f"{code}\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code") == set()


def test_the_estimator_needs_neither_aeon_nor_sktime() -> None:
    assert modules_after("from pdftime import PDFTimeClassifier") & {"aeon", "sktime"} == set()


def test_every_public_name_can_be_imported() -> None:
    for name in pdftime.__all__:
        assert getattr(pdftime, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pdftime.nothing
