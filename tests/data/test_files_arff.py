"""The .arff forms of the archives: numeric attributes, or a relational attribute with several channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

ONE = "@relation r\n@attribute t0 numeric\n@attribute t1 REAL\n@attribute c {a,b}\n"
TWO = (
    "@relation r\n@attribute s relational\n@attribute t0 numeric\n@attribute t1 numeric\n@end s\n@attribute c {a,b}\n"
)


def read(tmp_path: Path, content: str) -> SeriesSet:
    (tmp_path / "x.arff").write_text(content)
    return read_series(tmp_path / "x.arff")


def test_comments_quotes_and_missing_values_are_understood(tmp_path: Path) -> None:
    cases = read(
        tmp_path,
        "% about\n@RELATION 'My set'\n@Attribute 't 0' numeric\n@attribute\tt1 integer\n"
        "@attribute \"t 2\" real\n@attribute 'the class' {'a, b', \"it's\" ,c, 'd\\'e'}\n\n@Data\n% inside\n"
        "?,1,2,'a, b'\n1,?,3,\"it's\"\n1,2,?, c\n4,5,6,'d\\'e'\n",
    )
    assert cases.name == "My set"
    assert cases.y.tolist() == ["a, b", "it's", "c", "d'e"]
    assert cases.lengths.tolist() == [3, 3, 2, 3]
    assert cases.X[3].tolist() == [[4, 5, 6]]


def test_channels_of_a_relational_attribute_are_separated_by_backslash_n(tmp_path: Path) -> None:
    cases = read(tmp_path, TWO + "@data\n'1,2\\n3,4',a\n\"5,?\\n7,?\",b\n")
    assert cases.X[0].tolist() == [[1, 2], [3, 4]]
    assert cases.lengths.tolist() == [2, 1]
    assert cases.y.tolist() == ["a", "b"]


def test_a_question_mark_for_every_label_means_no_labels(tmp_path: Path) -> None:
    assert read(tmp_path, ONE + "@data\n1,2,?\n3,4,?\n").y is None


def test_labels_that_need_quotes_come_back(tmp_path: Path) -> None:
    labels = ["a b", "a,b", "it's", 'say "x"', "back\\slash", "?", "{x}", "%", "plain-1.5"]
    for n_channels in (1, 2):
        write_series(check_series(np.ones((9, n_channels, 2)), labels), tmp_path / "x.arff")
        assert read_series(tmp_path / "x.arff").y.tolist() == labels


@pytest.mark.parametrize(
    ("content", "line", "sentence"),
    [
        (ONE, 4, "without a line '@data'"),
        ("", 1, "without a line '@data'"),
        ("hello\n", 1, "expected @relation"),
        ("@attribute c {a}\n@data\n1,a\n", 2, "no numeric attributes"),
        ("@attribute t0 string\n", 1, "'t0' of type 'string' does not fit"),
        ("@attribute c {a}\n@attribute t0 numeric\n", 2, "expected the class to be last"),
        ("@attribute s relational\n@attribute t0 numeric\n@data\n", 3, "not closed by @end"),
        (
            "@attribute t0 numeric\n@attribute t1 numeric\n@attribute target numeric\n@data\n",
            4,
            "'target' does not",
        ),
        (f"{ONE}@data\n1,2,c\n", 6, "label 'c' is not declared"),
        (f"{ONE}@data\n1,2,a\n1,2\n", 7, "label '2' is not declared"),
        (f"{ONE}@data\n1,2,a\n1\n", 7, "expected values and a label"),
        (f"{ONE}@data\n1,a\n", 6, "1 values; expected 2"),
        (f"{ONE}@data\n1,2,3,a\n", 6, "3 values; expected 2"),
        (f"{ONE}@data\n1,x,a\n", 6, "value 2 is 'x'"),
        (f"{ONE}@data\n{{0 1, 1 2}}\n", 6, "is not declared"),
        (f"{ONE}@data\n1,2,a\n1,2,?\n", 7, "some cases have a label"),
        (f"{TWO}@data\n1,2,a\n", 8, "channels in quotes"),
        (f"{TWO}@data\n'1,2\\n3,4\n", 8, "label '4' is not declared"),
        (f"{TWO}@data\n'1,2\\n3,4',a\n'1,2',a\n", 9, "1 channels; expected 2"),
        (f"{TWO}@data\n'1,2\\n3',a\n", 8, "1 values; expected 2"),
        (f"{TWO}@data\n'1,2\\n3,x',a\n", 8, "channel 2, value 2 is 'x'"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_line(
    tmp_path: Path, content: str, line: int, sentence: str
) -> None:
    with pytest.raises(SeriesFileError, match=rf"x\.arff, line {line}: .*{sentence}"):
        read(tmp_path, content)


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="no cases after @data"):
        read(tmp_path, f"{ONE}@data\n")
