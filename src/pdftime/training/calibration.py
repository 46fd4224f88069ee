"""Probabilities that mean what they say: one temperature found on validation cases, and its error."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from pdftime.scores import calibration_error


def fit_temperature(scores: Tensor, y: Tensor) -> float:
    """The temperature t in [0.05, 20] for which softmax(scores / t) gives the labels the highest likelihood.

    A label counts for (n + 1) / (n + 2), as in Platt scaling: a few cases that are all right do not make
    probabilities of one. The likelihood is unimodal in t, so a golden-section search over log t finds it.
    """
    ratio = (5.0**0.5 - 1.0) / 2.0
    scores = scores.double()
    n_cases, n_classes = scores.shape
    smoothing = n_classes / ((n_classes - 1) * (n_cases + 2))

    def loss(log_t: float) -> float:
        return float(F.cross_entropy(scores / math.exp(log_t), y, label_smoothing=min(smoothing, 1.0)))

    low, high = math.log(0.05), math.log(20.0)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    loss_left, loss_right = loss(left), loss(right)
    while high - low > 1e-4:
        if loss_left < loss_right:
            high, right, loss_right = right, left, loss_left
            left = high - ratio * (high - low)
            loss_left = loss(left)
        else:
            low, left, loss_left = left, right, loss_right
            right = low + ratio * (high - low)
            loss_right = loss(right)
    return math.exp((low + high) / 2.0)


def expected_calibration_error(probabilities: Tensor, y: Tensor, n_bins: int = 15) -> float:
    """`pdftime.scores.calibration_error` of tensors.

    >>> import torch
    >>> expected_calibration_error(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 0, 1]))
    0.0
    """
    return calibration_error(probabilities.double().numpy(), y.numpy(), n_bins)
