"""Duplicates across a split: test cases that are, or nearly are, training cases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pdftime.bench.archives import Dataset
from pdftime.config import PrepareConfig
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet

NEAR = 0.01
"""A normalised distance up to this makes two cases near duplicates."""
CHUNK = 1024  # test cases that are compared together
SHOWN = 5


@dataclass(frozen=True)
class Duplicates:
    """How many test cases of a dataset stand in its training part too."""

    dataset: str
    n_train: int
    n_test: int
    n_exact: int
    n_near: int
    """Not counting the exact ones."""
    nearest: float
    """The smallest normalised distance between the two parts."""
    pairs: tuple[tuple[int, int, float], ...]
    """(test case, training case, normalised distance) of the nearest few that are exact or near."""


def find_duplicates(dataset: Dataset, near: float = NEAR) -> Duplicates:
    """For every test case its nearest training case; labels are not looked at.

    The normalised distance is the root mean square difference of two cases, in units of the root mean square
    deviation of the training cases from their mean (two cases that have nothing in common are about 1.4 apart), or
    of the test case's own standard deviation where that is smaller: quiet cases are not alike for being quiet.
    Series of unequal length are resampled to the longest training series, and missing values filled in, before.
    """
    train, test = dataset.train(), dataset.test()
    a, b, own = _points(train, test)
    distance, place = _nearest(a, b)
    distance /= np.clip(own, 1e-9, 1.0)
    exact = _exact(train, test, place, distance)
    close = np.flatnonzero(exact | (distance <= near))
    order = close[np.argsort(distance[close], kind="stable")][:SHOWN]
    return Duplicates(
        dataset=dataset.name,
        n_train=len(train),
        n_test=len(test),
        n_exact=int(exact.sum()),
        n_near=int((~exact & (distance <= near)).sum()),
        nearest=float(distance.min()),
        pairs=tuple((int(case), int(place[case]), round(float(distance[case]), 6)) for case in order),
    )


def _points(
    train: SeriesSet, test: SeriesSet
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Both parts as rows, centred at the mean training case, in units of the usual deviation from it.

    And the test cases' own standard deviations, in the same units.
    """
    fitted = Preparation.fit(train, PrepareConfig(scaling="train", lengths="resample"))
    prepare = replace(fitted, equal_length=False)
    a, b = (prepare(part).x.astype(np.float64) for part in (train, test))
    own = np.sqrt(b.var(axis=2).sum(axis=1) * b.shape[2])
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    mean = a.mean(axis=0)
    a, b = a - mean, b - mean
    unit = np.sqrt((a**2).sum(axis=1).mean()) or 1.0
    return a / unit, b / unit, own / unit


def _nearest(train: NDArray[np.float64], test: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(n_test,) distance to the nearest training case, and which it is."""
    squares = (train**2).sum(axis=1)
    place = np.concatenate(
        [
            (squares - 2.0 * test[start : start + CHUNK] @ train.T).argmin(axis=1)
            for start in range(0, len(test), CHUNK)
        ]
    )
    return np.sqrt(((test - train[place]) ** 2).sum(axis=1)), place


def _exact(
    train: SeriesSet, test: SeriesSet, place: NDArray[np.int64], distance: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which test cases equal their nearest training case value by value, gaps and length included."""
    exact = np.zeros(len(test), np.bool_)
    for case in np.flatnonzero(distance < 1e-6):
        exact[case] = np.array_equal(test.series(case), train.series(place[case]), equal_nan=True)
    return exact
