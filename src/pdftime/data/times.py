"""Time stamps of series: numbers or dates beside the values, checked, and in words."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import DataError, DataTypeError

UNITS = ("s", "ms", "us", "ns")


class TimeAxis(NamedTuple):
    """How the time axis of a drawing is named and marked."""

    name: str
    texts: list[str]
    """One for every time point; without the day where it is one and the same, which is then in the name."""


def check_times(times: Any, lengths: NDArray[np.int64], n_timepoints: int) -> NDArray[Any]:
    """(n_cases, n_timepoints) float64 or datetime64 from a row for all cases, a row per case, or a list of rows.

    Every stamp inside a series must be there and later than the one before; behind its end stands NaN or NaT.
    """
    array = _as_rows(times, lengths, n_timepoints)
    inside = np.arange(n_timepoints) < lengths[:, None]
    result = np.where(inside, array, np.array("NaT" if array.dtype.kind == "M" else np.nan, array.dtype))
    absent = inside & (np.isnat(result) if array.dtype.kind == "M" else ~np.isfinite(result))
    if absent.any():
        case, step = np.argwhere(absent)[0]
        raise DataError(
            f"times hold {result[case, step]} at time point {step} of case {case}; expected a time stamp for every "
            "time point, also where a value is missing."
        )
    behind = inside[:, 1:] & ~(result[:, 1:] > result[:, :-1])
    if behind.any():
        case, step = np.argwhere(behind)[0] + (0, 1)
        before, after = time_text(result[case, step - 1]), time_text(result[case, step])
        raise DataError(
            f"times of case {case} do not increase: {before} at time point {step - 1}, then {after}. Sort each "
            "series by time, and keep one value a time."
        )
    return result


def time_text(time: Any) -> str:
    """One time stamp as people write it.

    >>> time_text(np.datetime64("2024-05-01T12:30:00.000")), time_text(np.datetime64("2024-05-01T00:00"))
    ('2024-05-01 12:30', '2024-05-01')
    >>> time_text(0.25), time_text(1e6)
    ('0.25', '1000000')
    """
    if isinstance(time, np.datetime64):
        return str(np.datetime_as_string(time, unit="auto")).replace("T", " ")
    return f"{float(time):.10g}"


def span_text(first: Any, last: Any) -> str:
    """From one time stamp to another; the day once where it is the same.

    >>> span_text(np.datetime64("2024-05-01T12:30"), np.datetime64("2024-05-01T12:45"))
    '2024-05-01 12:30 to 12:45'
    >>> span_text(0.5, 2.0), span_text(3.0, 3.0)
    ('0.5 to 2', '3')
    """
    start, end = time_text(first), time_text(last)
    if start == end:
        return start
    day, _, hour = end.partition(" ")
    return f"{start} to {hour if hour and start.startswith(day) else end}"


def time_axis_of(times: NDArray[Any]) -> TimeAxis:
    """What to write at an axis over these time stamps (n_timepoints,).

    >>> time_axis_of(np.array(["2024-05-01T12:30:00", "2024-05-01T12:31:30"], "datetime64[s]"))
    TimeAxis(name='time on 2024-05-01', texts=['12:30', '12:31:30'])
    >>> time_axis_of(np.array(["2024-05-01", "2024-06-01"], "datetime64[s]"))
    TimeAxis(name='time', texts=['2024-05-01', '2024-06-01'])
    >>> time_axis_of(np.array([0.5, 1.0]))
    TimeAxis(name='time stamp', texts=['0.5', '1'])
    """
    texts = [time_text(time) for time in times]
    if times.dtype.kind != "M":
        return TimeAxis("time stamp", texts)
    days = {text[:10] for text in texts}
    if len(days) > 1 or len(texts) == 1:
        return TimeAxis("time", texts)
    return TimeAxis(f"time on {days.pop()}", [text[11:] or "00:00" for text in texts])


def _as_rows(times: Any, lengths: NDArray[np.int64], n_timepoints: int) -> NDArray[Any]:
    """Time stamps as (n_cases, n_timepoints) in their dtype, not yet looked at."""
    nested = isinstance(times, (list, tuple)) and len(times) > 0 and isinstance(times[0], (list, tuple, np.ndarray))
    array = _side_by_side([_stamps(row) for row in times], lengths, n_timepoints) if nested else _stamps(times)
    shape = (len(lengths), n_timepoints)
    if array.shape not in (shape, shape[1:]):
        raise DataError(
            f"times have shape {array.shape}; expected {shape}, one for every time point of every case, {shape[1:]} "
            "for all cases alike, or a list of arrays, each as long as its series."
        )
    return np.broadcast_to(array, shape)


def _side_by_side(rows: list[NDArray[Any]], lengths: NDArray[np.int64], n_timepoints: int) -> NDArray[Any]:
    """Rows as long as their series, or as the longest of all, in one array."""
    if len(rows) != len(lengths):
        raise DataError(f"times are given for {len(rows)} cases; expected {len(lengths)}.")
    if len({row.dtype.kind for row in rows}) > 1:
        raise DataTypeError("times are dates in some cases and numbers in others; expected one kind.")
    dtype = np.result_type(*rows)
    array = np.full((len(rows), n_timepoints), np.array("NaT" if dtype.kind == "M" else np.nan, dtype))
    for case, (row, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
        if row.shape not in ((length,), (n_timepoints,)):
            raise DataError(
                f"Case {case} has {length} time points and times of shape {row.shape}; expected one for each. "
                "Missing values at the end of a series belong to it only where lengths say so."
            )
        array[case, : len(row)] = row
    return array


def _stamps(times: Any) -> NDArray[Any]:
    """Numbers as float64, dates as datetime64 of a second or less."""
    array = np.asarray(times)
    if array.dtype == object:
        strange = [each for each in array.ravel().tolist() if not isinstance(each, date)]
        if strange:
            raise DataTypeError(f"times are neither all numbers nor all dates: they hold {strange[-1]!r:.100}.")
        array = array.astype("datetime64[us]")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    unit = next((unit for unit in UNITS if np.can_cast(array.dtype, f"datetime64[{unit}]")), None)
    if array.dtype.kind != "M" or unit is None:
        raise DataTypeError(
            f"times have dtype {array.dtype}; expected numbers, or dates as datetime64 of up to nanoseconds. Spans "
            "of time become numbers by dividing, such as times / np.timedelta64(1, 's')."
        )
    return array.astype(f"datetime64[{unit}]")
