"""PDFTimeAeonClassifier: PDFTimeClassifier as a classifier of aeon."""

from __future__ import annotations

from typing import Any, ClassVar

from aeon.classification.base import BaseClassifier

from pdftime.compat.delegation import Delegate, tiny_settings


class PDFTimeAeonClassifier(Delegate, BaseClassifier):  # type: ignore[misc]
    """A time series classifier whose decisions rest on prototypes, for aeon's pipelines and comparisons.

    Keywords are those of `pdftime.PDFTimeClassifier`; the fitted one is `classifier_`, with explanations,
    history and `save`.

    >>> from aeon.datasets import load_unit_test
    >>> from pdftime.compat.aeon import PDFTimeAeonClassifier
    >>> X, y = load_unit_test(split="train")
    >>> model = PDFTimeAeonClassifier().fit(X, y)
    >>> model.predict(X).shape == y.shape
    True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "algorithm_type": "convolution",
        "python_dependencies": "torch",
    }

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return tiny_settings()
