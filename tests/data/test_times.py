"""Time stamps: whatever form they come in, they stay with their series; what cannot be a time is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest

from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError, DataTypeError

SECONDS = np.datetime64("2024-05-01T12:00:00") + np.arange(4)


def two(times: Any, **options: Any) -> SeriesSet:
    """Series of 4 and of 3 time points."""
    return check_series([np.ones((2, 4)), np.ones((2, 3))], times=times, **options)


@pytest.mark.parametrize(
    "times",
    [
        [[0.0, 1.0, 2.5, 7.0], [1, 2, 4]],
        ([0.0, 1.0, 2.5, 7.0], np.array([1, 2, 4])),
        np.array([[0.0, 1.0, 2.5, 7.0], [1, 2, 4, np.nan]]),
        np.array([[0.0, 1.0, 2.5, 7.0], [1, 2, 4, 0]]),  # what stands behind an end is not looked at
    ],
)
def test_each_series_has_its_own_times(times: Any) -> None:
    cases = two(times)
    assert cases.times is not None
    assert np.array_equal(cases.times, [[0, 1, 2.5, 7], [1, 2, 4, np.nan]], equal_nan=True)
    assert cases.times_of(1) is not None
    assert cases.times_of(1).tolist() == [1.0, 2.0, 4.0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "times",
    [SECONDS, SECONDS.tolist(), SECONDS.astype("datetime64[ns]"), [SECONDS, SECONDS[:3]], [*SECONDS]],
    ids=["array", "Python's", "nanoseconds", "list of arrays", "list of stamps"],
)
def test_dates_may_be_the_same_for_all_cases(times: Any) -> None:
    cases = two(times)
    assert cases.times is not None
    assert cases.times.dtype.kind == "M"
    assert (cases.times[0] == SECONDS).all()
    assert (cases.times_of(1) == SECONDS[:3]).all()
    assert np.isnat(cases.times[1, 3])


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h"])
def test_coarse_dates_are_kept_to_the_second(unit: str) -> None:
    cases = two(np.arange(4).astype(f"datetime64[{unit}]"))
    assert cases.times is not None
    assert cases.times.dtype == "datetime64[s]"
    assert (cases.times[0] == np.arange(4).astype(f"datetime64[{unit}]")).all()


def test_times_follow_take_chunks_cut_and_the_door() -> None:
    cases = two([[0.0, 1.0, 2.5, 7.0], [1, 2, 4]])
    parts = [cases.take([1]), cases.take(np.array([False, True])), cases.take(slice(1, 2)), list(cases.chunks(1))[1]]
    for part in parts:
        assert part.times_of(0) is not None
        assert part.times_of(0).tolist() == [1.0, 2.0, 4.0]  # type: ignore[union-attr]
        again = check_series(part.cut())
        assert again.times is not None
        assert again.times.tolist() == [[1.0, 2.0, 4.0]]
    other = check_series(cases, times=SECONDS)
    assert (other.times_of(0) == SECONDS).all()
    assert check_series(cases.X).times is None
    assert check_series(cases.X).times_of(0) is None


@pytest.mark.parametrize(
    ("times", "kind", "sentence"),
    [
        (np.zeros((3, 4)), DataError, r"shape \(3, 4\); expected \(2, 4\)"),
        (np.arange(3), DataError, r"shape \(3,\); expected \(2, 4\)"),
        (5.0, DataError, r"shape \(\)"),
        ([[0, 1, 2, 3]], DataError, "given for 1 cases; expected 2"),
        ([[0, 1, 2, 3], [0, 1]], DataError, r"Case 1 has 3 time points and times of shape \(2,\)"),
        ([[0, 1, 2, 2], [0, 1, 2]], DataError, "case 0 do not increase: 2 at time point 2, then 2"),
        ([[0, 1, 2, 3], [0, 3, 2]], DataError, "case 1 do not increase: 3 at time point 1, then 2"),
        (SECONDS[::-1], DataError, "2024-05-01 12:00:03 at time point 0, then 2024-05-01 12:00:02"),
        ([0, np.nan, 2, 3], DataError, "nan at time point 1 of case 0"),
        ([0, 1, 2, np.inf], DataError, "inf at time point 3 of case 0"),
        (np.array(["2024-01-01", "NaT", "2024-01-03", "2024-01-04"], "M8[D]"), DataError, "NaT at time point 1"),
        (["a", "b", "c", "d"], DataTypeError, "dtype <U1; expected numbers, or dates"),
        ([True, False, True, False], DataTypeError, "dtype bool"),
        (SECONDS - SECONDS[0], DataTypeError, r"timedelta64.*dividing"),
        ([0, 1, 2, None], DataTypeError, "neither all numbers nor all dates: they hold None"),
        ([SECONDS, [0, 1, 2]], DataTypeError, "dates in some cases and numbers in others"),
        ([datetime(2024, 1, 1), 2, 3, "x"], DataTypeError, "they hold 'x'"),
    ],
)
def test_times_that_cannot_be_are_refused_with_a_sentence(times: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        two(times)
