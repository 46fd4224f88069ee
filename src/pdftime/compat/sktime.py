"""PDFTimeSktimeClassifier: PDFTimeClassifier as a classifier of sktime."""

from __future__ import annotations

from typing import Any, ClassVar

from sktime.classification.base import BaseClassifier

from pdftime.compat.delegation import Delegate, tiny_settings


class PDFTimeSktimeClassifier(Delegate, BaseClassifier):  # type: ignore[misc]
    """A time series classifier whose decisions rest on prototypes, for sktime's pipelines and comparisons.

    Keywords are those of `pdftime.PDFTimeClassifier`; the fitted one is `classifier_`, with explanations,
    history and `save`.

    Examples
    --------
    >>> from sktime.datasets import load_unit_test
    >>> from pdftime.compat.sktime import PDFTimeSktimeClassifier
    >>> X, y = load_unit_test(split="train")
    >>> model = PDFTimeSktimeClassifier().fit(X, y)
    >>> model.predict(X).shape == y.shape
    True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["the PDFTime developers"],
        "maintainers": ["the PDFTime developers"],
        "python_dependencies": "torch",
        "X_inner_mtype": ["df-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "capability:categorical_in_X": False,
        "capability:predict_proba": True,
        "capability:class_weight": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
    }

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Keywords with which sktime checks this class."""
        return tiny_settings()

    def _series(self, X: Any) -> Any:
        """A list of frames, (time points, channels) each, turned round; an array is as we have it."""
        return [frame.to_numpy().T for frame in X] if isinstance(X, list) else X
