"""The presets `fast` and `strong`, a bank alone and beside a network, keep the classifier's promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from pdftime import PDFTimeClassifier, check_series, load
from pdftime.errors import ConfigError
from pdftime.training import closed_form

BANK = {"n_groups": 2, "n_biases": 1}
NETWORK = {"branch_width": 4, "n_inception_layers": 1, "kernel_sizes": (3,), "d_model": 8, "max_epochs": 3}
PRESETS = pytest.mark.parametrize("preset", ["fast", "strong"])

NOT_PASSED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "Strength, prototypes and temperature are chosen by predictions of cases that are left out. A case of weight "
        "2 is left out entirely; of a repeated case, which stands there twice, its copy stays and is recognised."
    ),
}
"""scikit-learn's checks that a bank cannot pass, and why."""


def tiny(preset: str = "fast", **keywords: Any) -> PDFTimeClassifier:
    of_network = {} if preset == "fast" else NETWORK
    if preset == "fast":  # it keeps no cases: each is left out in turn
        keywords.pop("validation_fraction", None)
    return PDFTimeClassifier(
        preset=preset, settings={**BANK, **of_network, **keywords.pop("settings", {})}, **keywords
    )


def waves(n_cases: int = 24, seed: int = 0, *, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """(n, 1, 20) series and labels: slow waves and fast ones, of random phase, in noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_cases) % 2, "slow", "fast")
    cycles = np.where(y == "slow", 1.0, 4.0)[:, None, None]
    X = np.sin(2 * np.pi * cycles * np.arange(20) / 20 + rng.uniform(0, 2 * np.pi, (n_cases, 1, 1)))
    return X + noise * rng.standard_normal(X.shape), y


X, Y = waves()
FRESH, FRESH_Y = waves(40, seed=1)


def identical(one: PDFTimeClassifier, two: PDFTimeClassifier, cases: Any = FRESH) -> bool:
    return bool((one.predict_proba(cases) == two.predict_proba(cases)).all())


@pytest.mark.slow
def test_scikit_learn_checks_pass_for_a_bank_but_for_those_explained() -> None:
    results = check_estimator(tiny(), on_fail=None, on_skip=None)
    skipped = {each["check_name"] for each in results if each["status"] == "skipped"}
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    assert len(results) > 60
    assert skipped <= {"check_array_api_input"}
    assert failed.keys() == NOT_PASSED.keys(), failed


@PRESETS
@pytest.mark.parametrize("n_members", [1, 2])
def test_the_members_calibrated_scores_are_averaged_by_their_shares(preset: str, n_members: int) -> None:
    model = tiny(preset, n_members=n_members, validation_fraction=0.4).fit(X, Y)
    members = model.model_.members
    views = ["bank"] if preset == "fast" else ["bank", "network"]
    assert [member.view for member in members] == views * n_members
    expected = np.zeros((40, 2))
    prepared = torch.from_numpy(model.model_.preparation(check_series(FRESH)).x)
    for member in members:
        with torch.no_grad():
            scores = member.network(prepared).scores[-1].double().numpy() / member.temperature
        expected += member.weight * scores
    found = model.predict_proba(FRESH)
    together = np.exp(expected / sum(member.weight for member in members))
    np.testing.assert_allclose(found, together / together.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert model.score(FRESH, FRESH_Y) > 0.9
    assert model.transform(FRESH).shape == (40, sum(member.network.d_model for member in members))
    assert identical(model, clone(model).fit(X, Y))


@PRESETS
def test_a_saved_model_says_the_same_to_the_last_bit(preset: str, tmp_path: Path) -> None:
    model = tiny(preset, n_members=2, validation_fraction=0.4).fit(X, Y)
    model.save(tmp_path / "model.pdftime")
    loaded = load(tmp_path / "model.pdftime")
    assert model.predict_proba(FRESH).tobytes() == loaded.predict_proba(FRESH).tobytes()
    assert model.transform(FRESH).tobytes() == loaded.transform(FRESH).tobytes()
    assert model.explain(FRESH[:1])[0].to_json() == loaded.explain(FRESH[:1])[0].to_json()
    assert loaded.get_params()["n_members"] == 2
    assert [each.tobytes() for each in model.prototypes_] == [each.tobytes() for each in loaded.prototypes_]


def test_prototypes_of_banks_stand_before_those_of_networks() -> None:
    model = tiny("strong", n_members=2, n_prototypes=(1, 3), settings={"n_folds": 3}).fit(X, Y)
    banks, networks = model.prototypes_[:2], model.prototypes_[2:]
    assert [level.shape for level in networks] == [(6, 2, 1, 8), (6, 2, 3, 8)]  # three of each member
    for level, member in zip(banks, model.model_.of_view("bank").members, strict=True):
        assert level.shape[:2] == (1, 2)
        assert level.shape[3] == member.network.d_model
    for level in model.prototypes_:
        np.testing.assert_allclose(np.linalg.norm(level, axis=-1), 1.0, rtol=1e-5)


# Weights.


def imbalanced() -> tuple[np.ndarray, np.ndarray]:
    """Sixty noisy fast waves and six slow ones."""
    series, y = waves(120, seed=3, noise=1.5)
    rows = np.sort(np.concatenate([np.flatnonzero(y == "fast"), np.flatnonzero(y == "slow")[:6]]))
    return series[rows], y[rows]


@pytest.mark.parametrize("class_weight", ["balanced", {"slow": 10.0}])
def test_class_weight_helps_a_banks_rare_class(class_weight: Any) -> None:
    series, y = imbalanced()
    fresh, fresh_y = waves(200, seed=4, noise=1.5)
    plain, weighted = (tiny(class_weight=each).fit(series, y) for each in (None, class_weight))

    def found(model: PDFTimeClassifier) -> float:
        return float((model.predict(fresh)[fresh_y == "slow"] == "slow").mean())

    assert found(weighted) > found(plain) + 0.1
    assert weighted.score(fresh, fresh_y) > plain.score(fresh, fresh_y)


def test_sample_weights_of_a_bank_are_those_of_classes_and_zero_removes_a_case() -> None:
    by_class = tiny(class_weight={"slow": 4.0}).fit(X, Y)
    by_case = tiny().fit(X, Y, sample_weight=np.where(Y == "slow", 4.0, 1.0))
    assert identical(by_class, by_case)
    assert not identical(by_class, tiny().fit(X, Y))
    weights = np.random.default_rng(6).choice([0.0, 1.0, 3.0], len(Y))
    weights[0] = 0.0
    kept = weights > 0
    weighted = tiny().fit(X, Y, sample_weight=weights)
    assert identical(weighted, tiny().fit(X[kept], Y[kept], sample_weight=weights[kept]))
    assert all(
        neighbour.index in np.flatnonzero(kept)
        for each in weighted.explain(FRESH[:2])
        for match in each.target.matches
        for neighbour in match.neighbours
    )


def test_wrong_labels_of_no_weight_to_speak_of_do_not_mislead_a_bank() -> None:
    wrong = np.where(Y == "slow", "fast", "slow")
    series, labels = np.concatenate([X, X]), np.concatenate([Y, wrong])
    misled = tiny().fit(series, labels).score(FRESH, FRESH_Y)
    told = tiny().fit(series, labels, sample_weight=np.repeat([1.0, 1e-3], len(Y))).score(FRESH, FRESH_Y)
    assert told > misled
    assert told > 0.9


# Validation.


@PRESETS
def test_given_validation_cases_are_only_watched(preset: str) -> None:
    one = tiny(preset).fit(X, Y, X_val=FRESH, y_val=FRESH_Y)
    two = tiny(preset).fit(X, Y, X_val=FRESH[:9], y_val=FRESH_Y[8::-1])
    assert [each["n_validation"] for each in one.metrics_["members"]] == [40] * len(one.model_.members)
    assert one.explain_model().data == "the validation cases that were given for training"
    banks = [model.model_.members[0].network.state_dict() for model in (one, two)]
    assert all(torch.equal(tensor, banks[1][name]) for name, tensor in banks[0].items())
    accuracy = (one.predict(FRESH) == FRESH_Y).mean()
    assert one.explain_model().accuracy == pytest.approx(accuracy)
    if preset == "fast":
        assert one.metrics_["members"][0]["validation_accuracy"] == pytest.approx(accuracy)


# Series of every kind.


@PRESETS
@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_unequal_lengths_missing_values_and_single_values_go_through(preset: str, lengths: str) -> None:
    ends = np.random.default_rng(0).integers(12, 21, len(Y))
    ends[:2] = 1, 20
    series = [case[:, :end].copy() for case, end in zip(X, ends, strict=True)]
    series[3][0, 2:5] = np.nan
    model = tiny(preset, lengths=lengths).fit(series, Y)
    fresh = [FRESH[0], FRESH[1][:, :7], FRESH[2][:, :1], np.tile(FRESH[3], 3), series[3]]
    together = model.predict_proba(fresh)
    np.testing.assert_allclose(together.sum(axis=1), 1.0, atol=1e-12)
    for row, case in enumerate(fresh):
        np.testing.assert_allclose(model.predict_proba([case])[0], together[row], rtol=0, atol=1e-5)
    for case, each in zip(fresh, model.explain(fresh), strict=True):
        assert each.input_map.shape == case.shape
        assert each.tokens.additivity_error <= 1e-5
        assert each.where.completeness_gap <= 0.01
    assert (model.predict(FRESH) == FRESH_Y).mean() > 0.8


@PRESETS
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 2), (20, 5)], ids=str)
def test_two_cases_of_each_class_are_enough(preset: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 1, 1, 2, 2])
    series = rng.normal(size=(6, *shape)) + 5.0 * y[:, None, None]
    model = tiny(preset).fit(series, y)
    assert model.predict_proba(series).shape == (6, 3)
    assert np.isfinite(model.predict_proba(series)).all()
    assert model.explain(series[:1])[0].tokens.additivity_error <= 1e-5


@pytest.mark.parametrize("exact", [10_000, 4])
@PRESETS
def test_constant_series_are_predicted_and_explained(
    preset: str, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_form, "EXACT_CASES", exact)
    model = tiny(preset).fit(np.ones((6, 1, 12)), [0, 1, 0, 1, 0, 1])
    assert np.isfinite(model.predict_proba(np.ones((1, 1, 12)))).all()
    if preset == "fast":
        np.testing.assert_allclose(model.predict_proba(np.ones((1, 1, 12))), 0.5, atol=0.05)
    (each,) = model.explain(np.ones((1, 1, 12)))
    assert np.isfinite(each.input_map).all()


def test_many_cases_are_fitted_from_sums_and_a_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With more cases than can be compared with each other a bank is smaller, and its sample is left out in turn."""
    monkeypatch.setattr(closed_form, "EXACT_CASES", 16)
    model = tiny().fit(X, Y)
    assert model.metrics_["members"][0]["n_validation"] == 16
    assert model.score(FRESH, FRESH_Y) > 0.9
    model.save(tmp_path / "model.pdftime")
    assert identical(model, load(tmp_path / "model.pdftime"))
    assert model.explain(FRESH[:1])[0].tokens.additivity_error <= 1e-5
    review = model.model_.review
    assert review is not None
    assert review.confusion.sum() == 16


# What is refused, and what is not.


def test_two_views_need_prototypes_in_both() -> None:
    with pytest.raises(ConfigError, match="views is 'both' and head 'linear'"):
        tiny("strong", settings={"head": "linear"}).fit(X, Y)


def test_a_bank_alone_refuses_what_would_change_nothing() -> None:
    with pytest.raises(ConfigError, match=r"d_model, dropout: no effect with preset 'fast'.*'network' or 'strong'"):
        tiny(d_model=16, settings={"dropout": 0.5}).fit(X, Y)
    with pytest.raises(ConfigError, match=r"callbacks, keep_prototypes: no effect with preset 'default'"):
        PDFTimeClassifier(callbacks=[print], keep_prototypes=2).fit(X, Y)
    with pytest.raises(ConfigError, match=r"n_groups: no effect with preset 'network'.*'fast' or 'strong'"):
        PDFTimeClassifier(preset="network", settings={"n_groups": 4}).fit(X, Y)


def test_settings_may_bring_the_view_that_they_need() -> None:
    settings = {"views": "both", **BANK, **NETWORK}
    assert len(PDFTimeClassifier(settings=settings).fit(X, Y).model_.members) == 2


def test_the_default_is_the_bank_alone() -> None:
    assert PDFTimeClassifier().get_params()["preset"] == "default"
    assert identical(PDFTimeClassifier().fit(X, Y), PDFTimeClassifier(preset="fast").fit(X, Y))


@PRESETS
def test_a_loaded_model_can_be_cloned_and_fitted_again(preset: str, tmp_path: Path) -> None:
    model = tiny(preset).fit(X, Y)
    model.save(tmp_path / "model.pdftime")
    assert identical(clone(load(tmp_path / "model.pdftime")).fit(X, Y), model)


def test_global_generators_are_left_alone_by_a_bank() -> None:
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    model = tiny(random_state=None).fit(X, Y)
    model.explain(FRESH[:1])[0].check()
    assert (np.random.get_state()[1] == numpy_state).all()
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert not identical(tiny(random_state=1).fit(X, Y), tiny(random_state=2).fit(X, Y))


# Reports and figures.


@PRESETS
def test_reports_and_figures_are_made(preset: str, tmp_path: Path) -> None:
    from pdftime.explain.figures import draw_matches, draw_score_sheet

    model = tiny(preset, validation_fraction=0.4).fit(X, Y)
    report = model.report(FRESH[:6], FRESH_Y[:6], tmp_path / "report.html", max_cases=3)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert report is not None
    view = model.explain_model(FRESH, FRESH_Y)
    assert view.accuracy == pytest.approx(model.score(FRESH, FRESH_Y))
    (each,) = model.explain(FRESH[:1])
    assert draw_score_sheet(each).axes
    assert draw_matches(each, {n: model.model_.training_series(n) for n in model.model_.exemplars.numbers}).axes
