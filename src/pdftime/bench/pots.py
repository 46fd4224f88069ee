"""PatchTST and TimesNet of PyPOTS behind scikit-learn's face: fit, predict_proba, classes_."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.config import PrepareConfig
from pdftime.data.labels import encode
from pdftime.data.prepare import Preparation
from pdftime.data.series import check_series
from pdftime.errors import ConfigError


class PotsClassifier:
    """A network of PyPOTS, whose models take dictionaries and want to know sizes before they see data.

    Series are scaled per channel by the training cases. Keywords are those of the PyPOTS model.
    """

    model_name = ""

    def __init__(self, random_state: int = 0, **keywords: Any) -> None:
        _pypots()  # takes seconds, which are not to be counted as training
        self.random_state = random_state
        self.keywords = keywords

    def defaults(self, n_timepoints: int) -> dict[str, Any]:
        """The model's own keywords for series of this length, where none are given."""
        raise NotImplementedError

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> PotsClassifier:
        """Train on (n_cases, n_channels, n_timepoints) series."""
        classification, set_random_seed = _pypots()
        set_random_seed(self.random_state)
        cases = check_series(X)
        self.preparation_ = Preparation.fit(cases, PrepareConfig(scaling="train"))
        self.classes_, codes = encode(np.asarray(y))
        keywords = self.defaults(cases.n_timepoints) | self.keywords
        self.num_epochs = keywords["epochs"]
        self.model_ = getattr(classification, self.model_name)(
            n_steps=cases.n_timepoints,
            n_features=cases.n_channels,
            n_classes=len(self.classes_),
            device="cpu",
            model_saving_strategy=None,
            verbose=False,
            **keywords,
        )
        self.model_.fit({"X": self._steps(X), "y": codes})
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """(n_cases, n_classes) in the order of `classes_`."""
        return np.asarray(self.model_.predict_proba({"X": self._steps(X)}), np.float64)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """(n_cases,) labels."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def _steps(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """(n_cases, n_timepoints, n_channels), as PyPOTS has it."""
        return np.ascontiguousarray(self.preparation_(check_series(X)).x.transpose(0, 2, 1))


def _pypots() -> tuple[Any, Any]:
    """PyPOTS' classifiers, and its function that seeds them."""
    try:
        from pypots import classification
        from pypots.utils.random import set_random_seed
    except ImportError as error:
        raise ConfigError("PatchTST and TimesNet need PyPOTS; install pdftime[pypots].") from error
    return classification, set_random_seed


class PatchTSTClassifier(PotsClassifier):
    """PatchTST: a transformer over patches of each series."""

    model_name = "PatchTST"

    def defaults(self, n_timepoints: int) -> dict[str, Any]:
        patch = min(16, n_timepoints)
        return {
            "patch_size": patch,
            "patch_stride": max(1, patch // 2),
            "n_layers": 3,
            "d_model": 128,
            "n_heads": 8,
            "d_k": 16,
            "d_v": 16,
            "d_ffn": 256,
            "dropout": 0.1,
            "attn_dropout": 0.0,
            "batch_size": 16,
            "epochs": 100,
        }


class TimesNetClassifier(PotsClassifier):
    """TimesNet: convolutions over series folded by their strongest periods."""

    model_name = "TimesNet"

    def defaults(self, n_timepoints: int) -> dict[str, Any]:
        return {
            "n_layers": 2,
            "top_k": min(3, max(1, n_timepoints // 2)),
            "d_model": 32,
            "d_ffn": 64,
            "n_kernels": 6,
            "dropout": 0.1,
            "batch_size": 16,
            "epochs": 30,
        }
