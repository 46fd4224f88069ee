"""The face for sktime passes sktime's own checks and adds nothing to PDFTimeClassifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pdftime import PDFTimeClassifier

pytest.importorskip("sktime")

import pandas as pd
from sktime.utils.estimator_checks import check_estimator

from pdftime.compat.delegation import tiny_settings
from pdftime.compat.sktime import PDFTimeSktimeClassifier

X = np.random.default_rng(0).standard_normal((12, 2, 10))
Y = np.array(["a", "b", "c"] * 4)


@pytest.mark.slow
def test_sktime_checks_pass() -> None:
    results = check_estimator(PDFTimeSktimeClassifier, raise_exceptions=False, verbose=False)
    assert len(results) > 200
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


def test_its_keywords_are_those_of_the_classifier() -> None:
    assert PDFTimeSktimeClassifier().get_params() == PDFTimeClassifier().get_params()


@pytest.mark.parametrize("keywords", tiny_settings())
def test_it_predicts_what_the_classifier_predicts(keywords: dict[str, Any]) -> None:
    model = PDFTimeSktimeClassifier(**keywords).fit(X, Y)
    ours = PDFTimeClassifier(**keywords).fit(X, Y)
    assert (model.predict_proba(X) == ours.predict_proba(X)).all()
    assert (model.predict(X) == ours.predict(X)).all()
    assert model.classes_.tolist() == ours.classes_.tolist()


@pytest.mark.parametrize("keywords", tiny_settings())
def test_frames_of_unequal_length_with_missing_values_pass_through(keywords: dict[str, Any]) -> None:
    series = [case[:, : 6 + number % 5].copy() for number, case in enumerate(X)]
    series[2][0, 1] = np.nan
    frames = [pd.DataFrame(case.T, columns=["flow", "pressure"]) for case in series]
    model = PDFTimeSktimeClassifier(**keywords).fit(frames, Y)
    ours = PDFTimeClassifier(**keywords).fit(series, Y)
    assert (model.predict_proba(frames) == ours.predict_proba(series)).all()


def test_a_clone_is_equal_and_unfitted() -> None:
    model = PDFTimeSktimeClassifier(**tiny_settings()[0]).fit(X, Y)
    again = model.clone()
    assert not again.is_fitted
    assert again.get_params() == model.get_params()


def test_the_classifier_inside_explains_and_saves(tmp_path: Any) -> None:
    model = PDFTimeSktimeClassifier(**tiny_settings()[0]).fit(X, Y)
    assert len(model.classifier_.explain(X[:2])) == 2
    model.classifier_.save(tmp_path / "model.pdftime")
    again = PDFTimeClassifier.load(tmp_path / "model.pdftime")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
