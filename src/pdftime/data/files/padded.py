"""Series as rows of one width, for formats in which NaN at the end means that the series is shorter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet
from pdftime.errors import SeriesFileError


def padded(cases: SeriesSet, path: Path) -> NDArray[Any]:
    """X as floats, NaN behind each end; a series whose last value is missing is refused."""
    X = plain_floats(cases.X).copy()
    X[np.broadcast_to((np.arange(X.shape[2]) >= cases.lengths[:, None])[:, None], X.shape)] = np.nan
    last = X[np.arange(len(X)), :, cases.lengths - 1]  # (n_cases, n_channels)
    open_ended = np.isnan(last).all(axis=1)
    if open_ended.any():
        raise SeriesFileError(
            f"{path} cannot hold case {int(np.argmax(open_ended))}: its last value is missing, and here "
            "missing values at the end mean a shorter series. Write .ts, .npz or a long table (form='long')."
        )
    return X


def plain_floats(values: NDArray[Any]) -> NDArray[Any]:
    """The values as float32 if they are, otherwise as float64."""
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)
