"""The UCR forms .tsv and .txt: label first, NaN at the end means shorter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError


def read(tmp_path: Path, content: str, suffix: str = ".tsv") -> SeriesSet:
    (tmp_path / f"x{suffix}").write_text(content)
    return read_series(tmp_path / f"x{suffix}")


def test_nan_inside_is_missing_and_at_the_end_means_shorter(tmp_path: Path) -> None:
    cases = read(tmp_path, "1\t0.5\tNaN\t2\n2\t1\t2\tNaN\n")
    assert cases.lengths.tolist() == [3, 2]
    assert cases.y.tolist() == ["1", "2"]
    assert np.isnan(cases.X[0, 0]).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "content", ["1\t2\t3\n-1\t4\t5\n", "1,2,3\n-1,4,5\n", "  1   2  3\n -1   4  5\n\n", "1, 2, 3\n-1, 4, 5"]
)
def test_txt_may_have_tabs_commas_or_spaces(tmp_path: Path, content: str) -> None:
    cases = read(tmp_path, content, ".txt")
    assert cases.X[:, 0].tolist() == [[2, 3], [4, 5]]
    assert cases.y.tolist() == ["1", "-1"]


def test_old_labels_in_float_notation_become_whole_numbers(tmp_path: Path) -> None:
    content = "  1.0000000e+00 5e-01\n -1.0000000e+00 5e-01\n 2.5 1\n word 1\n 007 1\n"
    assert read(tmp_path, content, ".txt").y.tolist() == ["1", "-1", "2.5", "word", "007"]


def test_labels_in_tsv_stay_as_written(tmp_path: Path) -> None:
    assert read(tmp_path, "1.0\t5\n1\t5\na b\t5\n").y.tolist() == ["1.0", "1", "a b"]


@pytest.mark.parametrize(
    ("content", "line", "sentence"),
    [
        ("1\t2\t3\n1\t2\n", 2, "1 values; expected 2"),
        ("1\t2\t3\n1\n", 2, "a label and at least one value"),
        ("1\t2\t3\n\t2\t3\n", 2, "a label and at least one value"),
        ("1\t2\tx\n", 1, "value 2 is 'x'"),
        ("1\t2\t\t4\n", 1, "value 2 is ''"),
        ("1,2,3\n", 1, "a label and at least one value"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_line(
    tmp_path: Path, content: str, line: int, sentence: str
) -> None:
    with pytest.raises(SeriesFileError, match=rf"x\.tsv, line {line}: .*{sentence}"):
        read(tmp_path, content)


def test_an_empty_cell_between_commas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match=r"x\.txt, line 1: value 2 is ''"):
        read(tmp_path, "1,2,,4\n", ".txt")


def test_a_label_that_txt_would_change_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="would be read as a whole number"):
        write_series(check_series(np.ones((1, 2)), ["1.0"]), tmp_path / "x.txt")
