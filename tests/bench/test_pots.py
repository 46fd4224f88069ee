"""The adapter for PyPOTS, against a stand-in that takes what PyPOTS takes; with PyPOTS itself where it is there."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

from pdftime.bench.pots import PatchTSTClassifier, PotsClassifier, TimesNetClassifier
from pdftime.errors import ConfigError

CALLS: list[Any] = []


class StandIn:
    """Remembers how it was made and what it was given; predicts by the mean of a case."""

    def __init__(self, **keywords: Any) -> None:
        CALLS.append(keywords)
        self.n_classes = keywords["n_classes"]

    def fit(self, train_set: dict[str, Any]) -> None:
        CALLS.append(train_set)

    def predict_proba(self, test_set: dict[str, Any]) -> Any:
        CALLS.append(test_set)
        high = test_set["X"].mean(axis=(1, 2)) > 0
        return np.stack([~high, high], axis=1).astype(np.float32)


@pytest.fixture
def pypots(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    package, classification = types.ModuleType("pypots"), types.ModuleType("pypots.classification")
    utils, random = types.ModuleType("pypots.utils"), types.ModuleType("pypots.utils.random")
    classification.PatchTST = classification.TimesNet = StandIn  # type: ignore[attr-defined]
    package.classification = classification  # type: ignore[attr-defined]
    random.set_random_seed = CALLS.append  # type: ignore[attr-defined]
    for module in (package, classification, utils, random):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.parametrize("kind", [PatchTSTClassifier, TimesNetClassifier])
def test_sizes_seed_and_scaled_series_reach_the_model(pypots: None, kind: type[PotsClassifier]) -> None:
    y = np.array(["low", "high"] * 5)
    X = np.random.default_rng(0).normal(size=(10, 3, 40)) + np.where(y == "low", 40.0, 60.0)[:, None, None]
    model = kind(random_state=7, epochs=2).fit(X, y)
    seed, made, given = CALLS
    assert seed == 7
    assert (made["n_steps"], made["n_features"], made["n_classes"], made["epochs"]) == (40, 3, 2, 2)
    assert model.num_epochs == 2
    assert given["X"].shape == (10, 40, 3)
    assert given["X"].dtype == np.float32
    assert given["X"].mean(axis=(0, 1)) == pytest.approx([0, 0, 0], abs=1e-5)
    assert given["X"].std(axis=(0, 1)) == pytest.approx([1, 1, 1], abs=1e-5)
    assert given["y"].tolist() == [1, 0] * 5
    assert model.classes_.tolist() == ["high", "low"]
    assert model.predict_proba(X).dtype == np.float64
    assert model.predict(X).tolist() == np.where(y == "low", "high", "low").tolist()  # the stand-in's second class


def test_short_series_get_short_patches(pypots: None) -> None:
    PatchTSTClassifier().fit(np.random.default_rng(0).normal(size=(4, 1, 7)), np.array([0, 1, 0, 1]))
    assert (CALLS[1]["patch_size"], CALLS[1]["patch_stride"]) == (7, 3)


def test_without_pypots_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypots", None)
    with pytest.raises(ConfigError, match=r"install pdftime\[pypots\]"):
        PatchTSTClassifier()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pypots") is None, reason="PyPOTS is an extra of its own")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PatchTSTClassifier, TimesNetClassifier])
def test_pypots_itself_learns(kind: type[PotsClassifier]) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 2, 24)) + 3 * y[:, None, None]
    model = kind(epochs=3).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.7
