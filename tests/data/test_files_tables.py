"""Tables, .csv and .parquet: wide and long forms are told apart, what holds no series is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError


def read(tmp_path: Path, content: str, **options: Any) -> SeriesSet:
    (tmp_path / "x.csv").write_text(content)
    return read_series(tmp_path / "x.csv", **options)


def test_a_wide_table_is_one_case_a_row_in_the_order_of_its_columns(tmp_path: Path) -> None:
    cases = read(tmp_path, "t1,label,t2,t0\n1,a,2,3\n4,b,,6\n7,a,8,\n")
    assert np.array_equal(cases.X[:, 0], [[1, 2, 3], [4, np.nan, 6], [7, 8, np.nan]], equal_nan=True)
    assert cases.lengths.tolist() == [3, 3, 2]
    assert cases.y.tolist() == ["a", "b", "a"]


def test_a_wide_table_may_have_several_channels(tmp_path: Path) -> None:
    cases = read(tmp_path, "x__0,y__1,x__1,label,y__0\n1,4,2,0,3\n")
    assert cases.channel_names == ("x", "y")
    assert cases.X.tolist() == [[[1, 2], [3, 4]]]


def test_a_long_table_is_one_time_point_a_row(tmp_path: Path) -> None:
    content = "case,time,x,y,label\nb,0,1,2,up\nb,5,3,,up\na,0,5,6,down\n"
    for options in ({}, {"form": "long"}):
        cases = read(tmp_path, content, **options)
        assert cases.channel_names == ("x", "y")
        assert cases.lengths.tolist() == [2, 1]
        assert cases.y.tolist() == ["up", "down"]
        assert np.array_equal(cases.series(0), [[1, 3], [2, np.nan]], equal_nan=True)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    cases = read(
        tmp_path, "id,t,x,class\n1,0,5,a\n1,1,6,a\n", label_column="class", case_column="id", time_column="t"
    )
    assert cases.X.tolist() == [[[5, 6]]]
    assert cases.y.tolist() == ["a"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2024-01-01", "2024-01-02"], ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]),
        (["2024-01-01 10:00:00", "2024-01-01 10:00:00.5"], ["2024-01-01T10:00:00.000", "2024-01-01T10:00:00.500"]),
        (["10:00:00", "10:00:01"], [36000.0, 36001.0]),
        (["-0.5", "1e3"], [-0.5, 1000.0]),
        (["1", "2"], [1.0, 2.0]),
    ],
)
def test_times_are_kept_and_must_be_in_order(tmp_path: Path, times: list[str], expected: list[Any]) -> None:
    rows = "".join(f"1,{time},{index}\n" for index, time in enumerate(times))
    cases = read(tmp_path, "case,time,x\n" + rows)
    assert cases.X.tolist() == [[[0, 1]]]
    assert cases.times is not None
    stamps = np.array(expected, None if isinstance(expected[0], float) else "datetime64")
    assert (cases.times[0] == stamps).all()
    backwards = "".join(f"1,{time},0\n" for time in reversed(times))
    with pytest.raises(SeriesFileError, match="sort the rows of a case by time"):
        read(tmp_path, "case,time,x\n" + backwards)


def test_times_that_only_count_from_0_are_no_time_stamps(tmp_path: Path) -> None:
    assert read(tmp_path, "case,time,x\na,0,5\na,1,6\nb,0,7\n").times is None


def test_spans_of_time_are_read_as_seconds(tmp_path: Path) -> None:
    spans = pa.array(np.array([0, 1500], "timedelta64[ms]"))
    pq.write_table(pa.table({"case": [1, 1], "time": spans, "x": [1.0, 2.0]}), tmp_path / "x.parquet")
    cases = read_series(tmp_path / "x.parquet")
    assert cases.times is not None
    assert cases.times.tolist() == [[0.0, 1.5]]


def test_case_names_are_compared_as_written(tmp_path: Path) -> None:
    assert len(read(tmp_path, "case,time,x\n01,0,5\n1,0,6\n")) == 2


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1", "2"], [1, 2]),
        (["true", "false"], [True, False]),
        (["1", "a"], ["1", "a"]),
        (["NA", "x"], ["NA", "x"]),
        (["2024-01-01", "b"], ["2024-01-01", "b"]),
        (["1.0", "2.0"], [1.0, 2.0]),
        (['"a,b"', '"c ""d"""'], ["a,b", 'c "d"']),
        (["", ""], None),
    ],
)
def test_csv_labels_get_the_kind_they_look_like(tmp_path: Path, cells: list[str], labels: Any) -> None:
    found = read(tmp_path, f"0,label\n1,{cells[0]}\n2,{cells[1]}\n").y
    assert labels is None if found is None else found.tolist() == labels
    if found is not None:
        assert [type(label) for label in found.tolist()] == [type(label) for label in labels]


def test_a_column_of_whole_numbers_may_turn_to_fractions_late(tmp_path: Path) -> None:
    rows = "".join(f"{index},a\n" for index in range(200_000))
    assert read(tmp_path, f"0,label\n{rows}0.5,a\n").X[-1].tolist() == [[0.5]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0,1,label\n1,2,a\n1,x,b\n", "column '1' holds 'x' in row 2"),
        ("0,1,label\n1,2,a\n1,2\n", "row 2: 2 cells; expected 3"),
        ("0,1,label\n1,2,a\n1,2,,b\n", "row 2: 4 cells; expected 3"),
        ("0,1,label\n1,2,a\n1,2,\n", "row 2: the column 'label' is empty here"),
        ("0,1,target\n1,2,5\n", "'target' does not look like a time point beside '0'"),
        ("id,0,1,label\n9,1,2,a\n", "'id' does not look like a time point"),
        ("1,0.5,0.7\n2,0.1,0.3\n", "are numbers that do not increase"),
        ("x__0,x__1,y1,label\n1,2,3,a\n", "'y1' is not"),
        ("x__0,x__1,y__0,label\n1,2,3,a\n", "no column 'y__1'"),
        ("0,0,label\n1,2,a\n", "2 columns '0'"),
        ("label\na\n", "no series"),
        ("0,label\n", "0 rows"),
        ("0,label\n1,0.5\n2,0.7\n", "continuous"),
        ("a,b\n1,x\n", "column 'b' holds 'x' in row 1"),
        ("case,time,x,label\na,0,1,u\na,0,2,u\n", "row 2: case 'a' has the time 0.* twice"),
        ("case,time,x,label\na,1,1,u\na,0,2,u\n", "row 2: case 'a' has the time 0.* after 1.*; sort"),
        ("case,time,x,label\na,0,1,u\nb,0,2,u\na,1,1,u\n", "row 3: case 'a' appears again"),
        ("case,time,x,label\na,0,1,u\na,1,2,v\n", "row 2: case 'a' changes its label from 'u' to 'v'"),
        ("case,time,x,label\na,0,1,u\na,1,2,\n", "row 2: the column 'label' is empty"),
        ("case,time,x\na,0,1\n,1,2\n", "row 2: the column 'case' is empty"),
        ("case,time,x\na,0,1\na,,2\n", "row 2: the column 'time' is empty"),
        ("case,time,x\na,soon,1\n", "column 'time' holds 'soon' in row 1"),
        ("case,time,x\na,0,1\na,1,y\n", "column 'x' holds 'y' in row 2"),
        ("case,time\na,0\n", "no series"),
        ("case,x,label\na,0,u\n", "lacks the column 'time'"),
        ("time,x,label\n0,0,u\n", "lacks the column 'case'"),
    ],
)
def test_what_is_no_table_of_series_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(SeriesFileError, match=rf"x\.csv.*{sentence}"):
        read(tmp_path, content)


def test_the_long_form_needs_its_columns(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="no column 'case', which the long form needs"):
        read(tmp_path, "0,1,label\n1,2,a\n", form="long")


def test_a_wide_table_may_call_a_time_point_time_if_one_says_wide(tmp_path: Path) -> None:
    assert read(tmp_path, "case,time\n1,2\n", form="wide").X.tolist() == [[[1, 2]]]


def test_csv_and_parquet_of_one_table_read_alike(tmp_path: Path) -> None:
    for table in (
        pa.table({"0": [1.5, None], "1": [2.0, 3.0], "label": ["a", "b"]}),
        pa.table({"case": ["a", "a", "b"], "time": [0, 1, 0], "x": [1.0, 2.0, 3.0], "label": [True, True, False]}),
    ):
        pyarrow.csv.write_csv(table, tmp_path / "x.csv")
        pq.write_table(table, tmp_path / "x.parquet")
        one, other = read_series(tmp_path / "x.csv"), read_series(tmp_path / "x.parquet")
        assert np.array_equal(one.X, other.X, equal_nan=True)
        assert one.lengths.tolist() == other.lengths.tolist()
        assert one.y.tolist() == other.y.tolist()


def test_parquet_keeps_float32_and_reads_whole_numbers_nulls_and_categories(tmp_path: Path) -> None:
    table = pa.table({"0": pa.array([1, None], pa.int8()), "1": pa.nulls(2), "2": pa.array([1, 2], pa.float32())})
    table = table.append_column("label", pa.array(["a", "b"]).dictionary_encode())
    pq.write_table(table, tmp_path / "x.parquet")
    cases = read_series(tmp_path / "x.parquet")
    assert np.array_equal(cases.X[:, 0], [[1, np.nan, 1], [np.nan, np.nan, 2]], equal_nan=True)
    assert cases.y.tolist() == ["a", "b"]
    pq.write_table(table.select(["2"]), tmp_path / "x.parquet")
    assert read_series(tmp_path / "x.parquet").X.dtype == np.float32


@pytest.mark.parametrize("cells", [["1", "2"], [True, False], [[1], [2]], [b"x", b"y"]])
def test_a_parquet_column_that_is_not_numbers_is_refused_by_name(tmp_path: Path, cells: list[Any]) -> None:
    pq.write_table(pa.table({"0": [1.0, 2.0], "1": cells}), tmp_path / "x.parquet")
    with pytest.raises(SeriesFileError, match="column '1' holds"):
        read_series(tmp_path / "x.parquet")


def test_a_cut_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_series(check_series(np.ones((2, 3)), ["a", "b"]), path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 11):
        path.write_bytes(whole[:end])
        with pytest.raises(SeriesFileError, match="cannot be read"):
            read_series(path)


def test_a_changed_byte_never_changes_a_parquet_value(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    X = np.arange(1.0, 7).reshape(2, 1, 3)
    write_series(check_series(X), path)
    whole = path.read_bytes()
    for place in range(whole.index(b"ARROW")):  # the pages; behind them is what describes them
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            found = read_series(path)
        except SeriesFileError:
            continue
        assert np.array_equal(found.X, X)


@pytest.mark.parametrize("content", [b"0,label\n1,\xff\n", b"0,1\n1,\xff\n"])
def test_a_csv_in_another_encoding_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(SeriesFileError, match=r"x\.csv cannot be read"):
        read_series(tmp_path / "x.csv")


@pytest.mark.parametrize(("form", "name"), [("long", "time"), ("long", "label"), ("wide", "0")])
def test_columns_that_would_have_one_name_are_refused(tmp_path: Path, form: Any, name: str) -> None:
    cases = check_series(np.ones((2, 2)), [0, 1], channel_names=None if form == "wide" else [name])
    with pytest.raises(SeriesFileError, match=f"two columns '{name}'"):
        write_series(cases, tmp_path / "x.csv", form=form, label_column=name if form == "wide" else "label")


@pytest.mark.parametrize("y", [["", "a"], [10**30, 1]])
def test_labels_a_table_cannot_hold_are_refused(tmp_path: Path, y: list[Any]) -> None:
    with pytest.raises(SeriesFileError, match="cannot hold"):
        write_series(check_series(np.ones((2, 2)), y), tmp_path / "x.parquet")


def test_a_label_with_a_line_break_comes_back(tmp_path: Path) -> None:
    write_series(check_series(np.ones((2, 2)), ["a\nb", "c"]), tmp_path / "x.csv")
    assert read_series(tmp_path / "x.csv").y.tolist() == ["a\nb", "c"]
