"""The .ts reader: every line is held against the header, every error names file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

UNIVARIATE = "@univariate true\n@classLabel true a b\n"
BIVARIATE = "@univariate false\n@dimensions 2\n@classLabel true a b\n"


def read(tmp_path: Path, content: str) -> SeriesSet:
    (tmp_path / "x.ts").write_text(content, encoding="utf-8")
    return read_series(tmp_path / "x.ts")


def test_headers_are_read_in_any_case_and_comments_are_skipped(tmp_path: Path) -> None:
    cases = read(
        tmp_path,
        "# a comment\n% another\n\n@PROBLEMNAME Two  words\n@TimeStamps FALSE\n@Missing True\n@univariate\t"
        "false\n@dimension 2\n@EqualLength false\n@targetLabel false\n@CLASSLABEL True Up down\n@DATA\n"
        "# inside\n1,2 , 3: 4,?,NaN:Up\n\n5:6:down\n",
    )
    assert cases.name == "Two words"
    assert cases.y.tolist() == ["Up", "down"]
    assert cases.lengths.tolist() == [3, 1]
    assert cases.series(0)[0].tolist() == [1, 2, 3]
    assert np.isnan(cases.series(0)[1]).tolist() == [False, True, True]


def test_labels_stay_text_as_written(tmp_path: Path) -> None:
    assert read(tmp_path, "@classLabel true 1 1.0\n@data\n5:1\n5:1.0\n").y.tolist() == ["1", "1.0"]


@pytest.mark.parametrize("header", ["@classLabel false", "@targetlabel false"])
def test_a_file_without_labels_has_none(tmp_path: Path, header: str) -> None:
    cases = read(tmp_path, f"{header}\n@data\n1,2:3,4\n")
    assert cases.y is None
    assert cases.X.tolist() == [[[1, 2], [3, 4]]]


def test_missing_values_at_the_end_of_a_line_belong_to_the_series(tmp_path: Path) -> None:
    cases = read(tmp_path, f"@seriesLength 3\n{UNIVARIATE}@data\n1,2,?:a\n1,?,?:b\n")
    assert cases.lengths.tolist() == [3, 3]
    assert cases.has_missing


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("(0,1.5),(2.5, ?) : (0,3),(2.5,4):a", [0.0, 2.5]),
        (
            "(2024-01-01 10:00:00,1.5),(2024-01-01 10:00:30,?):(2024-01-01 10:00:00,3),(2024-01-01 10:00:30,4):a",
            ["2024-01-01T10:00:00", "2024-01-01T10:00:30"],
        ),
    ],
)
def test_time_stamps_stand_before_their_values(tmp_path: Path, line: str, times: list[Any]) -> None:
    cases = read(tmp_path, f"{BIVARIATE}@timeStamps true\n@data\n{line}\n")
    assert np.array_equal(cases.X, [[[1.5, np.nan], [3, 4]]], equal_nan=True)
    assert cases.times is not None
    assert cases.times[0].astype(type(times[0])).tolist() == times


def test_a_name_is_taken_from_the_file_if_the_header_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, f"{UNIVARIATE}@data\n1:a\n").name == "x"


@pytest.mark.parametrize(
    ("content", "line", "sentence"),
    [
        ("@univariate true\n@classLabel true a\n1,2:a\n", 3, "expected a header line"),
        (UNIVARIATE, 2, "without a line '@data'"),
        ("", 1, "without a line '@data'"),
        ("# only this\n", 1, "without a line '@data'"),
        (f"{UNIVARIATE}@timeStamps true\n@data\n1,2:a\n", 5, "every value with its time stamp"),
        (f"{UNIVARIATE}@timeStamps true\n@data\n(0,1),(1,2:a\n", 5, "every value with its time stamp"),
        (f"{UNIVARIATE}@timeStamps true\n@data\n(soon,1):a\n", 5, "time stamp 1 is 'soon'"),
        (f"{UNIVARIATE}@timeStamps true\n@data\n(2020-02-31,1):a\n", 5, "no date"),
        (f"{BIVARIATE}@timeStamps true\n@data\n(0,1),(1,2):(0,1),(2,2):a\n", 6, "dimension 2 has other time stamps"),
        ("@targetlabel true\n@data\n1:2\n", 1, "regression"),
        ("@univariate perhaps\n", 1, "'perhaps'; expected true or false"),
        ("@univariate\n", 1, "expected true or false"),
        ("@dimensions two\n", 1, "whole number"),
        ("@seriesLength 0\n", 1, "whole number"),
        ("@classLabel true\n", 1, "every label"),
        ("@classLabel false a b\n", 1, "every label"),
        ("@colour blue\n", 1, "@colour is unknown"),
        ("@missing true\n@missing false\n", 2, "given twice"),
        ("@univariate true\n@data\n1,2:a\n", 2, "no @classLabel"),
        ("@univariate true\n@dimensions 2\n@classLabel false\n@data\n", 4, "'@dimensions 2'"),
        (f"{UNIVARIATE}@data now\n", 3, "stands alone"),
        (f"{UNIVARIATE}@data\n1,2:c\n", 4, "label 'c' is not declared"),
        (f"{UNIVARIATE}@data\n1,2:A\n", 4, "label 'A' is not declared"),
        (f"{UNIVARIATE}@data\n1,2:a\n1,2:\n", 5, "label '' is not declared"),
        (f"{UNIVARIATE}@data\n1,2:a\n1,2\n", 5, "0 dimensions and a label"),
        (f"{UNIVARIATE}@data\n1,2:3,4:a\n", 4, "2 dimensions and a label"),
        (f"{UNIVARIATE}@seriesLength 3\n@data\n1,2,3:a\n1,2:a\n", 6, "2 values; expected 3"),
        (f"{UNIVARIATE}@equalLength true\n@data\n1,2,3:a\n1,2:a\n", 6, "2 values; expected 3"),
        (f"{UNIVARIATE}@missing false\n@data\n1,2:a\n1,?:a\n", 6, "value 2 of dimension 1 is missing"),
        (f"{UNIVARIATE}@missing false\n@data\n1,nan:a\n", 5, "is missing"),
        (f"{UNIVARIATE}@data\n(0,1.2),(1,1.3):a\n", 4, "must say '@timeStamps true'"),
        (f"{UNIVARIATE}@data\n(2020-01-01 00:00:00,1.2):a\n", 4, "must say '@timeStamps true'"),
        (f"{UNIVARIATE}@data\n1,two:a\n", 4, "value 2 is 'two'; expected a number"),
        (f"{UNIVARIATE}@data\n1,,3:a\n", 4, "value 2 is ''"),
        (f"{UNIVARIATE}@data\n1,2,:a\n", 4, "value 3 is ''"),
        (f"{UNIVARIATE}@data\n:a\n", 4, "0 dimensions and a label"),
        (f"{UNIVARIATE}@data\n1 2:a\n", 4, "value 1 is '1 2'"),
        (f"{UNIVARIATE}@data\n1_000:a\n", 4, "value 1 is '1_000'"),
        (f"{UNIVARIATE}@data\n1,\u0661:a\n", 4, "value 2 is"),
        (f"{UNIVARIATE}@data\n1,-?:a\n", 4, "value 2 is '-\\?'"),
        (f"{UNIVARIATE}@data\n1,inf:a\n", 4, "value 2 is infinite"),
        (f"{BIVARIATE}@data\n1,2:3,4:a\n1,2:a\n", 6, "1 dimensions and a label"),
        (f"{BIVARIATE}@data\n1,2:3,4:a\n1,2:3,4\n", 6, "1 dimensions and a label"),
        (f"{BIVARIATE}@data\n1,2:3:a\n", 5, r"\[2, 1\] values"),
        (f"{BIVARIATE}@data\n1,2:3,x:a\n", 5, "dimension 2, value 2 is 'x'"),
        ("@univariate false\n@classLabel true a\n@data\n1:2:3:a\n1:2:a\n", 5, "expected 3 and a label"),
        (f"{UNIVARIATE}@data\n1,2:a\n\0\0\0", 5, "binary data"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_line(
    tmp_path: Path, content: str, line: int, sentence: str
) -> None:
    with pytest.raises(SeriesFileError, match=rf"x\.ts, line {line}: .*{sentence}"):
        read(tmp_path, content)


def test_text_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.ts").write_bytes(b"@problemName x\n# Fr\xfchling\n")
    with pytest.raises(SeriesFileError, match=r"x\.ts, line 2: .*UTF-8"):
        read_series(tmp_path / "x.ts")


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="no cases after @data"):
        read(tmp_path, f"{UNIVARIATE}@data\n")


@pytest.mark.parametrize("n_channels", [1, 2])
def test_a_file_cut_anywhere_is_refused_or_holds_its_whole_first_cases(tmp_path: Path, n_channels: int) -> None:
    """Labels of equal width: only a cut at the end of a line leaves a file that says nothing false."""
    X = np.arange(1, 1 + 3 * n_channels * 4).reshape(3, n_channels, 4) / 7
    write_series(check_series(X, ["left", "rite", "left"]), tmp_path / "x.ts")
    whole = (tmp_path / "x.ts").read_text()
    readable = 0
    for end in range(len(whole)):
        try:
            found = read(tmp_path, whole[:end])
        except SeriesFileError:
            continue
        readable += 1
        assert whole[end] == "\n" or whole[end - 1] == "\n"
        assert np.array_equal(found.X, X[: len(found)])
    assert readable == 5  # behind the first and second case with and without line end, behind the third without


@pytest.mark.parametrize("label", ["a b", "a:b", "a\tb"])
def test_labels_that_the_format_would_break_are_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(SeriesFileError, match="cannot hold the label"):
        write_series(check_series(np.ones((1, 2)), [label]), tmp_path / "x.ts")


def test_labels_with_signs_of_the_format_elsewhere_come_back(tmp_path: Path) -> None:
    labels = ["(x", "#1", "@a", "?", "nan", "ü", "a,b"]
    write_series(check_series(np.ones((7, 2)), labels), tmp_path / "x.ts")
    assert read_series(tmp_path / "x.ts").y.tolist() == labels
