"""Scores: how well probabilities agree with known classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scores(NamedTuple):
    """What a benchmark and `pdftime evaluate` say of the same predictions."""

    accuracy: float
    balanced_accuracy: float
    """Mean over the classes that occur of the share of each that is right."""
    log_loss: float
    """Mean over the cases of known classes."""
    calibration_error: float


def score(probabilities: NDArray[np.float64], codes: NDArray[np.int64]) -> Scores:
    """Scores of probabilities (n_cases, n_classes) against codes; a code from n_classes on is never right.

    Such a code stands for a class that the classifier does not know.

    >>> import numpy as np
    >>> score(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), np.array([0, 0, 2])).accuracy
    0.6666666666666666
    """
    predicted = probabilities.argmax(axis=1)
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    recall = np.bincount(place.ravel(), predicted == codes, len(counts)) / counts
    known = codes < probabilities.shape[1]
    own = probabilities[known, codes[known]]
    return Scores(
        accuracy=float((predicted == codes).mean()),
        balanced_accuracy=float(recall.mean()),
        log_loss=float(-np.log(own.clip(np.finfo(float).tiny)).mean()) if len(own) else float("nan"),
        calibration_error=calibration_error(probabilities, codes),
    )


def calibration_error(probabilities: NDArray[np.float64], codes: NDArray[np.int64], n_bins: int = 15) -> float:
    """The gap between confidence and accuracy, averaged over equal bins of confidence, weighted by cases.

    >>> import numpy as np
    >>> calibration_error(np.array([[0.75, 0.25]] * 4), np.array([0, 0, 0, 1]))
    0.0
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == codes
    place = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(place, confidence - right, n_bins)
    return float(np.abs(gaps).sum() / len(codes))
