"""Numbers for drawing in few bytes: 16 bits each, and long series thinned without losing their peaks."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MISSING = -32768
LARGEST = 32767
PACKED_BYTES = 8 / 3  # of one number: two bytes in base64


def pack(values: Floats, *, signed: bool = False) -> dict[str, Any]:
    """Rows of numbers as base64 of int16, value = middle + number * scale; NaN is MISSING.

    With `signed` the middle is 0, so that 0 stays exactly 0.

    >>> import numpy as np
    >>> pack(np.array([[0.0, 32767.0]]), signed=True)
    {'rows': 1, 'middle': 0.0, 'scale': 1.0, 'data': 'AAD/fw=='}
    """
    present = values[np.isfinite(values)]
    low, high = (float(present.min()), float(present.max())) if present.size else (0.0, 0.0)
    middle = 0.0 if signed else low / 2 + high / 2
    scale = max(high - middle, middle - low) / LARGEST or 1.0
    steps = np.full(values.shape, MISSING, "<i2")
    steps[np.isfinite(values)] = np.rint((present - middle) / scale).clip(-LARGEST, LARGEST)
    return {
        "rows": int(values.shape[0]),
        "middle": middle,
        "scale": scale,
        "data": base64.b64encode(steps.tobytes()).decode("ascii"),
    }


def thinned(values: Floats, step: int) -> Floats:
    """(n_channels, 2 * ceil(length / step)): the least and the greatest of every `step` values, in their order.

    >>> import numpy as np
    >>> thinned(np.array([[0.0, 5.0, 1.0, 3.0, 2.0, 2.0]]), 3).tolist()
    [[0.0, 5.0, 3.0, 2.0]]
    """
    if step == 1:
        return values
    bins = _bins(values, step, np.nan)
    empty = np.isnan(bins).all(axis=2)
    least = np.argmin(np.where(np.isnan(bins), np.inf, bins), axis=2)
    greatest = np.argmax(np.where(np.isnan(bins), -np.inf, bins), axis=2)
    places = np.stack([np.minimum(least, greatest), np.maximum(least, greatest)], axis=2)
    pairs = np.take_along_axis(bins, places, axis=2)
    pairs[empty] = np.nan
    result: Floats = pairs.reshape(len(values), -1)
    return result


def summed(values: Floats, step: int) -> Floats:
    """(n_channels, ceil(length / step)): the sum of every `step` values; the total stays.

    >>> import numpy as np
    >>> summed(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[3.0, 3.0]]
    """
    sums: Floats = values if step == 1 else _bins(values, step, 0.0).sum(axis=2)
    return sums


def _bins(values: Floats, step: int, fill: float) -> Floats:
    """(n_channels, n_bins, step), the last bin filled up."""
    n_bins = -(-values.shape[1] // step)
    padded = np.full((len(values), n_bins * step), fill)
    padded[:, : values.shape[1]] = values
    return padded.reshape(len(values), n_bins, step)


def step_within(n_values: int, allowed: float) -> int:
    """Every how many values one is kept so that about `allowed` remain.

    >>> step_within(100, 200), step_within(1000, 200)
    (1, 5)
    """
    return max(1, int(np.ceil(n_values / max(allowed, 1.0))))


def short(value: float | None) -> float | None:
    """Six digits; None for what is no number."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.6g}")


def shorts(values: Floats) -> list[float | None]:
    return [short(float(value)) for value in values]


def drawing(series: Floats, drawn: list[int], step: int) -> dict[str, Any]:
    """The drawn channels of a series, with the mean and deviation by which a model may scale it."""
    own = np.asarray(series, np.float64)[drawn]
    present = ~np.isnan(own)
    n = np.maximum(present.sum(axis=1), 1)
    means = np.where(present, own, 0.0).sum(axis=1) / n
    deviations = np.sqrt((np.where(present, own - means[:, None], 0.0) ** 2).sum(axis=1) / n)
    return {
        "means": shorts(means),
        "deviations": shorts(deviations),
        "values": pack(thinned(own, step)),
    }
