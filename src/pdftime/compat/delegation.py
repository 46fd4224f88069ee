"""Delegate: what the faces for other libraries share. All work is done by a PDFTimeClassifier inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.estimator import Keywords, PDFTimeClassifier


class Delegate(Keywords):
    """PDFTimeClassifier's keywords, and the methods that both libraries ask a classifier for."""

    def _fit(self, X: Any, y: Any) -> Any:
        keywords = self.get_params(deep=False)  # type: ignore[attr-defined]
        self.classifier_ = PDFTimeClassifier(**keywords).fit(self._series(X), y)
        return self

    def _predict(self, X: Any) -> NDArray[Any]:
        return self.classifier_.predict(self._series(X))

    def _predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.classifier_.predict_proba(self._series(X))

    def _series(self, X: Any) -> Any:
        """Series from the library's form to ours."""
        return X


def tiny_settings() -> list[dict[str, Any]]:
    """Two choices of keywords whose training takes no time, for the libraries' own checks."""
    tiny = {"branch_width": 2, "n_inception_layers": 1, "kernel_sizes": (3,), "max_tokens": 8}
    return [
        {"preset": "network", "d_model": 4, "max_epochs": 2, "settings": tiny},
        {"settings": {"n_groups": 1, "n_biases": 1}, "lengths": "pad"},
    ]
