"""Comparison of methods over datasets: means, ranks, wins, signed-rank tests, groups that cannot be told apart.

Rules that hold everywhere: only datasets that every method has enter; two accuracies tie when they are equal to four
decimals; tied methods share the mean of the ranks they cover, and each of them counts as best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import DataError

DECIMALS = 4
ALPHA = 0.05


@dataclass(frozen=True)
class Scores:
    """One score per dataset and method; higher is better, NaN where there is none."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    values: NDArray[np.float64]
    """(n_datasets, n_methods)"""

    @classmethod
    def of(cls, by_method: Mapping[str, Mapping[str, float]]) -> Scores:
        """From each method's scores by dataset."""
        datasets = sorted({name for scores in by_method.values() for name in scores}, key=str.lower)
        values = [[scores.get(name, np.nan) for scores in by_method.values()] for name in datasets]
        return cls(tuple(datasets), tuple(by_method), np.array(values, float).reshape(len(datasets), len(by_method)))

    def has_common(self) -> bool:
        """Whether there is a dataset that every method has."""
        return bool((~np.isnan(self.values).any(axis=1)).any())

    def common(self) -> Scores:
        """Only the datasets that every method has; an error if there is none."""
        kept = np.flatnonzero(~np.isnan(self.values).any(axis=1))
        if not self.has_common():
            raise DataError(
                f"No dataset has a score of every one of {', '.join(self.methods)}; compare fewer, or run more."
            )
        return Scores(tuple(self.datasets[place] for place in kept), self.methods, self.values[kept])


@dataclass(frozen=True)
class Standing:
    """How one method stands among all, over the common datasets."""

    method: str
    mean: float
    mean_rank: float
    """1 is best."""
    n_best: int
    """Datasets on which no method is better."""
    wins: int
    """Against the first method: datasets on which this one is better than it."""
    ties: int
    losses: int


@dataclass(frozen=True)
class Pair:
    """Two methods over the common datasets."""

    first: str
    second: str
    mean_difference: float
    """First minus second."""
    wins: int
    """Of the first."""
    ties: int
    losses: int
    p: float
    """Two-sided signed-rank test."""
    p_holm: float
    """The same, adjusted for the number of pairs after Holm."""


def standings(scores: Scores) -> list[Standing]:
    """Every method, in the order it came; wins, ties and losses are against the first."""
    common = scores.common()
    values = common.values.round(DECIMALS)
    mean_ranks = ranks(values).mean(axis=0)
    n_best = (values == values.max(axis=1, keepdims=True)).sum(axis=0)
    return [
        Standing(
            method,
            float(common.values[:, place].mean()),
            float(mean_ranks[place]),
            int(n_best[place]),
            *wins_ties_losses(values[:, place], values[:, 0]),
        )
        for place, method in enumerate(common.methods)
    ]


def pairs(scores: Scores) -> list[Pair]:
    """Every two methods, the earlier one first."""
    common = scores.common()
    columns = list(common.values.T)
    places = [(first, second) for second in range(len(columns)) for first in range(second)]
    places.sort()
    p_values = [signed_rank_p(columns[first], columns[second]) for first, second in places]
    return [
        Pair(
            common.methods[first],
            common.methods[second],
            float((columns[first] - columns[second]).mean()),
            *wins_ties_losses(columns[first], columns[second]),
            p,
            p_holm,
        )
        for (first, second), p, p_holm in zip(places, p_values, holm(p_values), strict=True)
    ]


def cliques(scores: Scores, alpha: float = ALPHA) -> list[tuple[str, ...]]:
    """Groups for a critical-difference diagram: the longest runs of methods, in order of mean rank, in which no two
    differ at `alpha` after Holm. Runs of one method are left out."""
    order = [each.method for each in sorted(standings(scores), key=lambda each: each.mean_rank)]
    differ = {frozenset((pair.first, pair.second)) for pair in pairs(scores) if pair.p_holm <= alpha}
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(frozenset((order[end], other)) in differ for other in order[start:end]):
            end += 1
        if end - start > 1 and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return [tuple(order[start:end]) for start, end in runs]


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each score in its row, 1 for the highest; equal scores share the mean of their ranks.

    >>> ranks(np.array([[0.9, 0.8, 0.9, 0.7]])).tolist()
    [[1.5, 3.0, 1.5, 4.0]]
    """
    higher = (values[:, None, :] > values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return np.asarray(higher + (equal + 1) / 2)


def wins_ties_losses(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[int, int, int]:
    """On how many datasets the first is better, equal to four decimals, worse.

    >>> wins_ties_losses(np.array([0.9, 0.5, 0.33333]), np.array([0.8, 0.6, 0.33334]))
    (1, 1, 1)
    """
    first, second = first.round(DECIMALS), second.round(DECIMALS)
    return int((first > second).sum()), int((first == second).sum()), int((first < second).sum())


def signed_rank_p(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test, exact, also where differences are equal or zero.

    Zero differences take part in the ranking and then count for neither side (Pratt's rule); equal ones share the
    mean rank. Given the ranks, every choice of signs is equally likely if there is no difference, so the p-value is
    counted out: how many choices give a sum of positive ranks as far from the middle as this one.
    """
    differences = first.round(DECIMALS) - second.round(DECIMALS)
    sizes = np.abs(differences).round(DECIMALS)
    doubled = (2 * ranks(-sizes[None])[0]).round().astype(int)  # shared ranks are halves
    present = sizes > 0
    if not present.any():
        return 1.0
    total = int(doubled[present].sum())
    chances = np.zeros(total + 1)  # of each sum of positive ranks
    chances[0] = 1.0
    for rank in doubled[present]:
        chances = (chances + np.concatenate([np.zeros(rank), chances[: total + 1 - rank]])) / 2
    positive = int(doubled[differences > 0].sum())
    extreme = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * positive - total)
    return min(1.0, float(chances[extreme].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number: the smallest times n, the next times n - 1, never falling, at most 1.

    >>> [round(p, 3) for p in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted
