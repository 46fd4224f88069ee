"""SeriesSet, the one in-memory form of many series; check_series, the one door into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.labels import check_labels
from pdftime.data.times import check_times
from pdftime.errors import DataError, DataTypeError

CHUNK_CELLS = 4_000_000  # cells looked at together, so that checks of a memory-mapped array stay small
SHAPES = (
    "Expected (n_cases, n_channels, n_timepoints), (n_cases, n_timepoints) for one channel, "
    "or a list of (n_channels, n_timepoints) arrays for unequal lengths."
)


@dataclass(frozen=True, eq=False)
class SeriesSet:
    """Many series with their lengths and, where known, labels and names. Made by `check_series`."""

    X: NDArray[Any]
    """(n_cases, n_channels, n_timepoints), any real dtype; NaN is missing, or lies behind a series' end."""
    lengths: NDArray[np.int64]
    """(n_cases,) time points that belong to each series."""
    y: NDArray[Any] | None = None
    """(n_cases,) labels as they were given."""
    channel_names: tuple[str, ...] = ()
    """One name per channel."""
    name: str = ""
    """What the set is called, for people."""
    times: NDArray[Any] | None = None
    """(n_cases, n_timepoints) time stamps, float64 or datetime64, increasing; NaN or NaT behind a series' end."""

    @property
    def n_cases(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_channels(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_timepoints(self) -> int:
        """The length of the longest series."""
        return int(self.X.shape[2])

    @property
    def equal_length(self) -> bool:
        return bool((self.lengths == self.n_timepoints).all())

    @property
    def has_missing(self) -> bool:
        """Whether a value inside any series is missing."""
        return any(
            bool(np.isnan(part.X).any(axis=1)[inside(part)].any())
            for part in self.chunks()
            if part.X.dtype.kind == "f"
        )

    def __len__(self) -> int:
        return self.n_cases

    def series(self, index: int) -> NDArray[Any]:
        """One series, (n_channels, its own length)."""
        view: NDArray[Any] = self.X[index, :, : self.lengths[index]]
        return view

    def times_of(self, index: int) -> NDArray[Any] | None:
        """The time stamps of one series, (its own length,); None where there are none."""
        return None if self.times is None else self.times[index, : self.lengths[index]]

    def take(self, indices: Any) -> SeriesSet:
        """The cases at these positions (an index array, boolean mask or slice), labels and time stamps along."""
        return replace(
            self,
            X=self.X[indices],
            lengths=self.lengths[indices],
            y=None if self.y is None else self.y[indices],
            times=None if self.times is None else self.times[indices],
        )

    def cut(self) -> SeriesSet:
        """The cases in an array as long as the longest of them."""
        longest = int(self.lengths.max())
        return replace(self, X=self.X[:, :, :longest], times=None if self.times is None else self.times[:, :longest])

    def chunks(self, cells: int = CHUNK_CELLS) -> Iterator[SeriesSet]:
        """The set in consecutive parts of about `cells` values each; views where X is an array."""
        step = max(1, cells // max(1, self.n_channels * self.n_timepoints))
        for start in range(0, self.n_cases, step):
            yield self.take(slice(start, start + step))


def check_series(
    X: Any,
    y: Any = None,
    *,
    lengths: Any = None,
    channel_names: Sequence[str] | None = None,
    name: str = "",
    times: Any = None,
) -> SeriesSet:
    """Whatever a caller holds as series (and labels), checked once and named; no copy of a numeric array.

    A tail that is NaN in every channel lies behind the end of its series, unless `lengths` says otherwise;
    any other NaN is a missing value. A SeriesSet keeps its lengths, labels, names and time stamps where none are
    given. `times` are numbers or dates: one row for all cases, a row per case, or a list of rows; models do not
    see them, explanations name them.

    >>> import numpy as np
    >>> from pdftime.data.series import check_series
    >>> cases = check_series([np.ones((2, 5)), np.ones((2, 3))], ["up", "down"])
    >>> cases.X.shape, cases.lengths.tolist(), cases.equal_length
    ((2, 2, 5), [5, 3], False)
    """
    if isinstance(X, SeriesSet):
        y = X.y if y is None else y
        lengths = X.lengths if lengths is None else lengths
        channel_names = X.channel_names if channel_names is None else channel_names
        name = name or X.name
        times = X.times if times is None else times
        X = X.X
    array = _as_array(X)
    n_cases, n_channels, n_timepoints = array.shape
    cases = SeriesSet(
        X=array,
        lengths=np.full(n_cases, n_timepoints, np.int64) if lengths is None else _check_lengths(lengths, array),
        y=None if y is None else check_labels(y, n_cases),
        channel_names=_check_names(channel_names, n_channels),
        name=name,
    )
    own = _check_values(cases, trim=lengths is None)
    return replace(cases, lengths=own, times=None if times is None else check_times(times, own, n_timepoints))


def _as_array(X: Any) -> NDArray[Any]:
    """A 3-D numeric array; series of unequal length get NaN behind their ends."""
    if hasattr(X, "toarray") or hasattr(X, "sparse"):
        raise DataTypeError(
            "X is a sparse matrix; sparse input is not supported. Pass a dense array, such as X.toarray()."
        )
    _refuse_masked(X, "X")
    if isinstance(X, (list, tuple)):
        for index, item in enumerate(X):
            _refuse_masked(item, f"Case {index}")
    try:
        array = np.asarray(X)
    except ValueError:  # numpy's word for cases that differ in shape
        return _stack(X)
    if array.dtype == object:
        if array.ndim == 1 and array.size and all(_is_sequence(item) for item in array):
            return _stack(array)
        if array.ndim >= 3:
            raise DataTypeError(
                f"X is a {array.ndim}-D array of Python objects; expected numbers. Convert it first, for "
                "example X.astype(float), with NaN where a value is missing."
            )
        array = _numbers(array, "X")
    _check_kind(array, "X")
    if array.ndim and array.shape[0] == 0:
        raise DataError(f"X has 0 sample(s) (shape={array.shape}) while a minimum of 1 is required: no cases.")
    if array.ndim < 2:
        raise DataError(
            f"X has shape {array.shape}, too few dimensions. {SHAPES} "
            "Reshape your data with X.reshape(1, -1) if it is one series."
        )
    if array.ndim > 3:
        raise DataError(f"X has shape {array.shape}, too many dimensions. {SHAPES}")
    if 0 in array.shape:
        raise DataError(
            f"X has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required: "
            "a series needs a channel and a time point."
        )
    return array[:, None, :] if array.ndim == 2 else array


def _is_sequence(item: Any) -> bool:
    return np.iterable(item) and not isinstance(item, (str, bytes))


def _refuse_masked(array: Any, what: str) -> None:
    """numpy forgets the mask of a masked array on the way to a plain one."""
    if isinstance(array, np.ma.MaskedArray):
        raise DataError(
            f"{what} is a masked array. Pass a plain one with NaN where a value is missing, for example "
            "X.astype(float).filled(np.nan)."
        )


def _stack(items: Iterable[Any]) -> NDArray[Any]:
    """Cases of unequal length side by side, NaN behind each end."""
    arrays: list[NDArray[Any]] = []
    for index, item in enumerate(items):
        try:
            array = np.asarray(item)
        except ValueError as error:
            raise DataError(
                f"The channels of case {index} differ in length; expected one length per case. Fill the "
                "shorter channels with NaN."
            ) from error
        if array.dtype == object:
            array = _numbers(array, f"Case {index}")
        _check_kind(array, f"Case {index}")
        if array.ndim == 1:
            array = array[None, :]
        if array.ndim != 2 or 0 in array.shape:
            raise DataError(
                f"Case {index} has shape {array.shape}; expected (n_channels, n_timepoints) with at least "
                "one channel and one time point."
            )
        arrays.append(array)
        if array.shape[0] != arrays[0].shape[0]:
            raise DataError(
                f"Case {index} has {array.shape[0]} channels and case 0 has {arrays[0].shape[0]}; "
                "every case needs the same channels."
            )
    dtype = np.result_type(np.float32, *{array.dtype for array in arrays})
    X = np.full((len(arrays), arrays[0].shape[0], max(array.shape[1] for array in arrays)), np.nan, dtype)
    for row, array in zip(X, arrays, strict=True):
        row[:, : array.shape[1]] = array
    return X


def _numbers(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    """An object array as floats; text and None are refused rather than guessed."""
    for position, cell in np.ndenumerate(array):
        if cell is None:
            raise DataTypeError(f"{what} holds None at {position}; write missing values as NaN.")
        if isinstance(cell, (str, bytes)):
            raise DataTypeError(f"{what} holds the text {cell!r} at {position}; expected a number.")
        if isinstance(cell, complex) or np.iscomplexobj(cell):
            raise DataTypeError(f"Complex data not supported: {what} holds {cell!r} at {position}.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataTypeError(f"{what} holds a cell that is not a number: {error}") from error


def _check_kind(array: NDArray[Any], what: str) -> None:
    if array.dtype.kind == "c":
        raise DataTypeError(
            f"Complex data not supported: {what} has dtype {array.dtype}. Pass the real and the imaginary "
            "part, or amplitude and phase, as two channels."
        )
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{what} has dtype {array.dtype}; expected numbers (float, integer or boolean).")


def _check_lengths(lengths: Any, X: NDArray[Any]) -> NDArray[np.int64]:
    array = np.asarray(lengths)
    if array.shape != (X.shape[0],) or array.dtype.kind not in "iu":
        raise DataError(
            f"lengths has shape {array.shape} and dtype {array.dtype}; expected {X.shape[0]} whole numbers, "
            "one per case."
        )
    if array.min() < 1 or array.max() > X.shape[2]:
        raise DataError(
            f"lengths go from {array.min()} to {array.max()}; expected 1 to {X.shape[2]} (time points of X)."
        )
    return array.astype(np.int64)


def _check_names(names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    if names is None or len(names) == 0:
        return tuple(f"channel_{index}" for index in range(n_channels))
    known = (names,) if isinstance(names, str) else tuple(str(each) for each in names)
    if len(known) != n_channels or len(set(known)) != n_channels:
        raise DataError(f"channel_names are {list(known)}; expected {n_channels} different names.")
    return known


def _check_values(cases: SeriesSet, *, trim: bool) -> NDArray[np.int64]:
    """The lengths, with NaN tails cut off if `trim`; refuses infinite values and cases without any value."""
    if cases.X.dtype.kind != "f":
        return cases.lengths
    lengths = cases.lengths.copy()
    start = 0
    for part in cases.chunks():
        present = ~np.isnan(part.X)
        if np.isinf(part.X).any():
            case, channel, time = np.argwhere(np.isinf(part.X))[0]
            raise DataError(
                f"X holds an infinite value in case {start + case}, channel {channel}, time point {time} "
                "(infinity). Replace it by a number, or by NaN if the value is missing."
            )
        any_channel = present.any(axis=1) & inside(part)
        if not any_channel.any(axis=1).all():
            case = start + int(np.argmin(any_channel.any(axis=1)))
            raise DataError(f"Case {case} holds only missing values (NaN); leave it out.")
        if trim:
            ends = any_channel.shape[1] - np.argmax(any_channel[:, ::-1], axis=1)
            lengths[start : start + len(part)] = ends
        start += len(part)
    return lengths


def inside(cases: SeriesSet) -> NDArray[np.bool_]:
    """(n_cases, n_timepoints), true where a time point belongs to its series."""
    return np.arange(cases.n_timepoints) < cases.lengths[:, None]
