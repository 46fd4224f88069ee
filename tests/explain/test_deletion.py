"""Of several maps that one is chosen without whose first parts the class is least probable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pdftime import PDFTimeClassifier
from pdftime.data.series import check_series
from pdftime.explain.deletion import CHOICE, most_missed, without
from pdftime.explain.evidence import explain
from pdftime.explain.maps import make_maps, score_and_margin
from pdftime.fitted import FittedModel


class OneValue:
    """A model that knows one value of a series: the higher it is, the more probable is class 0."""

    def __init__(self, channel: int, time: int) -> None:
        self.place = channel, time

    def probabilities_of(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        chance = torch.sigmoid(x[:, self.place[0], self.place[1]].double())
        return torch.stack([chance, 1.0 - chance], dim=1)


def points_at(channel: int, time: int, shape: tuple[int, int] = (2, 10)) -> NDArray[np.float64]:
    """A map that ranks one value first, and everything else alike."""
    found = np.zeros(shape)
    found[channel, time] = 1.0
    return found


@pytest.mark.parametrize("right", [0, 1, 2])
def test_the_map_that_names_what_counts_is_chosen(right: int) -> None:
    x = torch.full((2, 2, 10), 3.0)
    names = [(0, 9), (1, 8), (1, 9)]
    model: Any = OneValue(*names[right])
    maps = [np.stack([points_at(*name)] * 2) for name in names]
    chosen = most_missed(model, x, None, torch.zeros_like(x), np.array([0, 0]), maps)
    assert chosen.tolist() == [right, right]


def test_a_class_that_gains_by_the_loss_is_not_missed() -> None:
    """Of class 1 the value at (0, 9) takes away; a map that names it first must not be chosen."""
    x = torch.full((1, 2, 10), 3.0)
    model: Any = OneValue(0, 9)
    maps = [points_at(0, 9)[None], -points_at(0, 9)[None]]
    assert most_missed(model, x, None, torch.zeros_like(x), np.array([1]), maps).tolist() == [1]


def test_of_equals_the_first_is_chosen() -> None:
    x = torch.ones(1, 2, 10)
    model: Any = OneValue(0, 0)
    same = points_at(0, 0)[None]
    assert most_missed(model, x, None, torch.zeros_like(x), np.array([0]), [same, same]).tolist() == [0]


def test_nothing_behind_the_end_of_a_series_is_taken_away() -> None:
    inside = np.broadcast_to(np.arange(10) < 4, (2, 10))
    for left, share in zip(without(np.ones((2, 10)), inside, CHOICE), CHOICE, strict=True):
        assert left[~inside].all()
        assert (~left[inside]).sum() == round(8 * share)
    x, mask = torch.ones(1, 2, 10), torch.arange(10)[None] < 4
    model: Any = OneValue(0, 9)
    maps = [points_at(1, 0)[None], points_at(0, 9)[None]]  # the second names a value that is not there
    assert most_missed(model, x, mask, torch.zeros_like(x), np.array([0]), maps).tolist() == [0]


@pytest.fixture(scope="module")
def bank() -> FittedModel:
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 1, 40))
    X[:, 0, 10:20] += 3.0 * y[:, None]
    return PDFTimeClassifier().fit(X, y).model_


def test_the_map_that_is_shown_is_the_one_whose_parts_are_missed_more(bank: FittedModel) -> None:
    """By hand: both maps of each case, their first parts replaced, and the probability that is left."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 1, 40))
    X[::2, 0, 10:20] += 3.0
    cases = check_series(X)
    explained = explain(bank, cases)
    ((_, x, mask),) = bank.batches(cases)
    target, contrast = (
        torch.tensor([getattr(each.source, name) for each in explained]) for name in ("target", "contrast")
    )
    networks = [member.network for member in bank.members]
    with torch.no_grad():
        maps = make_maps(networks, x, mask, torch.zeros_like(x), score_and_margin(target, contrast))
    for row, each in enumerate(explained):
        left = []
        for candidate in maps:
            assert candidate is not None
            chances = []
            for share in CHOICE:
                changed = X[row].copy()
                first = np.argsort(-candidate.values[0, row, 0], kind="stable")[: round(40 * share)]
                changed[0, first] = bank.preparation.mean[0]
                chances.append(bank.probabilities(check_series(changed[None]))[0, target[row]])
            left.append(np.mean(chances))
        better = maps[int(left[1] < left[0])]
        assert better is not None
        assert abs(left[0] - left[1]) > 1e-6  # no tie that rounding decides
        np.testing.assert_allclose(each.where.values, better.values[0, row])
        np.testing.assert_allclose(each.why_not.values, better.values[1, row])
        assert each.where.method == each.why_not.method == better.method
