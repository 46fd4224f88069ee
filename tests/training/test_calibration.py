"""Probabilities mean what they say, and a few lucky cases do not make certainty."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.training.calibration import expected_calibration_error, fit_temperature


def cases(n: int, n_classes: int, temperature: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Scores, and labels drawn from softmax(scores / temperature)."""
    scores = torch.randn(n, n_classes, generator=generator_for(seed), dtype=torch.float64) * 3.0
    y = torch.multinomial(torch.softmax(scores / temperature, dim=1), 1, generator=generator_for(seed, "y"))
    return scores, y[:, 0]


def smoothed_likelihood(scores: Tensor, y: Tensor, temperature: float) -> float:
    """Platt's: the label counts for (n + 1) / (n + 2), the other classes share the rest."""
    n, n_classes = scores.shape
    log_p = torch.log_softmax(scores.double() / temperature, dim=1).numpy()
    total = 0.0
    for case in range(n):
        for code in range(n_classes):
            share = (n + 1) / (n + 2) if code == int(y[case]) else 1 / (n + 2) / (n_classes - 1)
            total += share * log_p[case, code]
    return total


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000), n=st.integers(1, 30), n_classes=st.integers(2, 5), size=st.sampled_from([0.01, 1, 30])
)
def test_the_temperature_is_the_best_of_a_fine_grid(seed: int, n: int, n_classes: int, size: float) -> None:
    scores, y = cases(n, n_classes, 1.0, seed)
    scores = scores * size
    found = fit_temperature(scores, y)
    grid = np.geomspace(0.05, 20.0, 60)
    best = max(smoothed_likelihood(scores, y, float(t)) for t in grid)
    assert 0.05 <= found <= 20.0
    near = np.clip(found * np.exp(np.linspace(-1e-4, 1e-4, 21)), 0.05, 20.0)  # the search ends within 1e-4 of log t
    assert max(smoothed_likelihood(scores, y, float(t)) for t in near) >= best - 1e-5 * n


@pytest.mark.parametrize("planted", [0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_a_planted_temperature_is_found_on_many_cases(planted: float, n_classes: int) -> None:
    scores, y = cases(20_000, n_classes, planted)
    assert fit_temperature(scores.float(), y) == pytest.approx(planted, rel=0.05)


@pytest.mark.parametrize(("n", "n_classes"), [(1, 2), (3, 2), (5, 10)])
def test_a_few_cases_that_are_all_right_do_not_make_probabilities_of_one(n: int, n_classes: int) -> None:
    y = torch.arange(n) % n_classes
    scores = torch.nn.functional.one_hot(y, n_classes).float()
    top = torch.softmax(scores / fit_temperature(scores, y), dim=1).max()
    assert top.item() == pytest.approx((n + 1) / (n + 2), abs=0.01)


def test_the_order_of_classes_never_changes() -> None:
    scores, y = cases(50, 4, 1.0)
    temperature = fit_temperature(scores, y)
    assert torch.equal((scores / temperature).argmax(dim=1), scores.argmax(dim=1))


def test_scores_that_say_nothing_or_only_wrong_things_give_the_flattest_allowed() -> None:
    y = torch.tensor([0, 1, 0, 1])
    wrong = torch.tensor([[0.0, 5.0], [5.0, 0.0]] * 2)
    assert fit_temperature(wrong, y) == pytest.approx(20.0, rel=1e-3)
    assert 0.05 <= fit_temperature(torch.zeros(4, 2), y) <= 20.0


# The calibration error


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 80), n_bins=st.integers(1, 20))
def test_the_calibration_error_is_the_mean_gap_of_its_bins(seed: int, n: int, n_bins: int) -> None:
    scores, y = cases(n, 3, 1.0, seed)
    probabilities = torch.softmax(scores, dim=1)
    gap = 0.0
    for place in range(n_bins):
        inside = []
        for case in range(n):
            confidence = float(probabilities[case].max())
            if min(math.floor(confidence * n_bins), n_bins - 1) == place:
                inside.append((confidence, bool(probabilities[case].argmax() == y[case])))
        if inside:
            confidence = sum(each for each, _ in inside) / len(inside)
            accuracy = sum(right for _, right in inside) / len(inside)
            gap += len(inside) / n * abs(confidence - accuracy)
    assert expected_calibration_error(probabilities, y, n_bins) == pytest.approx(gap, abs=1e-9)


def test_certainty_is_an_error_of_zero_where_right_and_of_one_where_wrong() -> None:
    certain = torch.eye(3)
    assert expected_calibration_error(certain, torch.tensor([0, 1, 2])) == 0.0
    assert expected_calibration_error(certain, torch.tensor([1, 2, 0])) == 1.0


def test_calibration_lowers_the_error_of_overconfident_scores() -> None:
    scores, y = cases(5000, 4, 1.0)
    scores = scores * 5.0
    before = expected_calibration_error(torch.softmax(scores, dim=1), y)
    after = expected_calibration_error(torch.softmax(scores / fit_temperature(scores, y), dim=1), y)
    assert before > 0.1
    assert after < 0.03
