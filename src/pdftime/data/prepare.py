"""Preparation: missing values, scale and length; fitted on training cases, the same for every later case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.config import PrepareConfig
from pdftime.data.series import SeriesSet, inside
from pdftime.errors import DataError

Floats = NDArray[np.float64]
LIMIT = 1e6  # prepared values are cut here: one absurd reading must not turn a whole prediction into NaN
HUGE = 1e150  # and raw ones here, so that their squares can be added up


class Prepared(NamedTuple):
    """Series as the network takes them."""

    x: NDArray[np.float32]
    """(n_cases, n_channels, n_timepoints) without missing values."""
    mask: NDArray[np.bool_] | None
    """(n_cases, n_timepoints), true where a time point belongs to its series; None where all do."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What training cases say about filling, scaling and length; travels with the weights."""

    config: PrepareConfig
    n_timepoints: int
    """The unified length: that of the longest training series."""
    equal_length: bool
    """Whether all training series had that length; if so, another length is refused later."""
    mean: Floats
    """(n_channels,) over the training cases; also stands in where a case lacks a whole channel."""
    scale: Floats
    """(n_channels,) standard deviation over the training cases; 1 for a constant channel, more for a huge one."""

    @property
    def n_channels(self) -> int:
        return len(self.mean)

    @classmethod
    def fit(cls, cases: SeriesSet, config: PrepareConfig) -> Preparation:
        mean, scale = _moments(cases)
        return cls(config, cases.n_timepoints, cases.equal_length, mean, scale)

    def check(self, cases: SeriesSet) -> None:
        """Refuse cases whose channels or lengths the training cases say nothing about."""
        if cases.n_channels != self.n_channels:
            raise DataError(
                f"X has {cases.n_channels} channels; the model was trained on {self.n_channels}. "
                "Pass the same channels in the same order."
            )
        if self.equal_length and not (cases.lengths == self.n_timepoints).all():
            other = int(cases.lengths[cases.lengths != self.n_timepoints][0])
            raise DataError(
                f"X holds a series of {other} time points; every training series had {self.n_timepoints}. "
                "Cut or resample it (pdftime.data.prepare.resample), or train on series of several lengths."
            )

    def __call__(self, cases: SeriesSet) -> Prepared:
        """Fill, scale and bring to length; costs a few copies of `cases`, so pass large sets in chunks."""
        self.check(cases)
        X = cases.X.astype(np.float64)  # a copy: what the caller holds stays as it is
        np.clip(X, -HUGE, HUGE, out=X)
        within = inside(cases)
        _fill_(X, cases.lengths, self.mean)
        with np.errstate(over="ignore"):
            X = self._scaled(X, within).clip(-LIMIT, LIMIT)
        if not cases.equal_length or cases.n_timepoints != self.n_timepoints:
            X, lengths = self._to_length(X, cases.lengths)
            within = np.arange(self.n_timepoints) < lengths[:, None]
        x = np.where(within[:, None, :], X, 0.0).astype(np.float32)
        return Prepared(x, None if self.config.lengths == "resample" or self.equal_length else within)

    def _scaled(self, X: Floats, within: NDArray[np.bool_]) -> Floats:
        if self.config.scaling == "none":
            return X
        if self.config.scaling == "train":
            return (X - self.mean[:, None]) / self.scale[:, None]
        weight = within[:, None, :] / within.sum(axis=1)[:, None, None]
        X = np.where(within[:, None, :], X, 0.0)
        centred = X - (X * weight).sum(axis=2, keepdims=True)
        spread = np.sqrt((centred**2 * weight).sum(axis=2, keepdims=True))
        scaled: Floats = centred / _divisor(spread, np.abs(X).max(axis=2, keepdims=True))
        return scaled

    def _to_length(self, X: Floats, lengths: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
        """Resampled to the unified length, or padded to it; a padded one that is longer is resampled."""
        result = np.zeros((*X.shape[:2], self.n_timepoints))
        pad = self.config.lengths == "pad"
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            if pad and length <= self.n_timepoints:
                result[rows, :, :length] = X[rows, :, :length]
            else:
                result[rows] = resample(X[rows, :, :length], self.n_timepoints)
        reached = np.minimum(lengths, self.n_timepoints) if pad else np.full_like(lengths, self.n_timepoints)
        return result, reached

    def to_json(self) -> dict[str, Any]:
        return {
            "config": self.config.to_json(),
            "n_timepoints": self.n_timepoints,
            "equal_length": self.equal_length,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Preparation:
        mean, scale = (np.array(state[key], dtype=np.float64) for key in ("mean", "scale"))
        n_timepoints = int(state["n_timepoints"])
        good = mean.ndim == 1 and mean.shape == scale.shape and len(mean) > 0 and n_timepoints > 0
        if not (good and np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise DataError("The stored preparation is not consistent: mean, scale or length are out of range.")
        return cls(PrepareConfig.from_json(state["config"]), n_timepoints, bool(state["equal_length"]), mean, scale)


def resample(X: NDArray[Any], n_timepoints: int) -> Floats:
    """(..., t) -> (..., n_timepoints) by straight lines between neighbours; first and last value stay.

    >>> import numpy as np
    >>> from pdftime.data.prepare import resample
    >>> resample(np.array([0.0, 2.0, 4.0]), 5).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    position = np.linspace(0.0, X.shape[-1] - 1.0, n_timepoints)
    left = np.minimum(position.astype(np.int64), max(X.shape[-1] - 2, 0))
    right = np.minimum(left + 1, X.shape[-1] - 1)
    share = position - left
    result: Floats = X[..., left] * (1.0 - share) + X[..., right] * share
    return result


def _fill_(X: Floats, lengths: NDArray[np.int64], mean: Floats) -> None:
    """Missing values: straight lines inside, edge values at the ends, the training mean for a lost channel."""
    lost = np.isnan(X) & (np.arange(X.shape[2]) < lengths[:, None])[:, None, :]
    for case, channel in np.argwhere(lost.any(axis=2)):
        row = X[case, channel, : lengths[case]]
        missing = lost[case, channel, : lengths[case]]
        if missing.all():
            row[:] = mean[channel]
        else:
            row[missing] = np.interp(np.flatnonzero(missing), np.flatnonzero(~missing), row[~missing])


@np.errstate(over="ignore", invalid="ignore")
def _moments(cases: SeriesSet) -> tuple[Floats, Floats]:
    """Mean and standard deviation per channel over the values that are there, in bounded memory."""
    count, total = np.zeros(cases.n_channels), np.zeros(cases.n_channels)
    for part, there in _observed(cases):
        count += there.sum(axis=(0, 2))
        total += np.where(there, part, 0.0).sum(axis=(0, 2))
    count = np.maximum(count, 1.0)  # a channel that is missing everywhere gets mean 0 and scale 1
    mean = total / count
    squares, largest = np.zeros(cases.n_channels), np.zeros(cases.n_channels)
    for part, there in _observed(cases):
        squares += np.where(there, (part - mean[:, None]) ** 2, 0.0).sum(axis=(0, 2))
        largest = np.maximum(largest, np.where(there, np.abs(part), 0.0).max(axis=(0, 2)))
    scale = np.sqrt(squares / count)
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise DataError(
            f"X holds values up to {largest.max():.3g}, too large to average. Divide the series by a constant first."
        )
    return mean, _divisor(scale, largest)


def _observed(cases: SeriesSet) -> Any:
    """Parts of the set in double precision, with the places where a value is there."""
    for part in cases.chunks():
        X = part.X.astype(np.float64)
        yield X, ~np.isnan(X) & inside(part)[:, None, :]


def _divisor(spread: Floats, largest: Floats) -> Floats:
    """The spread; but where it is only rounding of values as large as `largest`, what keeps it from mattering."""
    rounding = 1e-9 * largest
    return np.where(spread <= rounding, np.maximum(rounding, 1.0), spread)
