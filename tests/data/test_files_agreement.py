"""aeon's and sktime's readers agree with ours on every file they ship and on files that we write."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

OTHER = r"@targetlabel true"
ROUNDED = 1e-15  # pandas, which reads .tsv for both, is not exact in the last digit


def shipped(library: str, suffix: str, *, classes: bool = True) -> list[Path]:
    """The files inside an installed library that hold a classification problem, or those that do not."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        return []
    found = sorted((Path(spec.origin).parent / "datasets" / "data").rglob(f"*{suffix}"))
    return [path for path in found if classes != bool(re.search(OTHER, path.read_text(), re.IGNORECASE))]


def every_file(library: str, suffix: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", shipped(library, suffix), ids=lambda path: path.name)


def assert_agree(found: SeriesSet, X: Any, y: Any, rtol: float = 0) -> None:
    assert len(found) == len(X)
    for index in range(len(found)):
        assert found.series(index).shape == np.shape(X[index])
        np.testing.assert_allclose(found.series(index), np.asarray(X[index], float), rtol=rtol)
    # both libraries may write labels small
    assert [str(label).lower() for label in found.y] == [str(label).lower() for label in y]


def aeon_ts(path: Path) -> tuple[Any, Any]:
    return pytest.importorskip("aeon.datasets").load_from_ts_file(str(path))  # type: ignore[no-any-return]


def sktime_ts(path: Path) -> tuple[Any, Any]:
    """sktime's nested frame (a Series in every cell) as one array per case."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"sktime\..*")
        module = pytest.importorskip("sktime.datasets")
        frame, y = module.load_from_tsfile(str(path), return_data_type="nested_univ")
    return [np.stack([np.asarray(cell, float) for cell in row]) for row in frame.to_numpy()], y


@every_file("aeon", ".ts")
def test_ts_files_of_aeon(path: Path) -> None:
    assert_agree(read_series(path), *aeon_ts(path))


@every_file("sktime", ".ts")
def test_ts_files_of_sktime(path: Path) -> None:
    assert_agree(read_series(path), *sktime_ts(path))


@every_file("aeon", ".tsv")
def test_tsv_files_of_aeon(path: Path) -> None:
    assert_agree(read_series(path), *pytest.importorskip("aeon.datasets").load_from_tsv_file(str(path)), rtol=ROUNDED)


@every_file("aeon", ".arff")
def test_arff_files_of_aeon(path: Path) -> None:
    assert_agree(read_series(path), *pytest.importorskip("aeon.datasets").load_from_arff_file(str(path)))


@pytest.mark.parametrize(
    "path",
    [*shipped("aeon", ".ts", classes=False), *shipped("sktime", ".ts", classes=False)],
    ids=lambda path: path.name,
)
def test_shipped_files_that_hold_no_classification_problem_are_refused(path: Path) -> None:
    with pytest.raises(SeriesFileError, match="regression problem"):
        read_series(path)


@pytest.mark.parametrize("reader", [aeon_ts, sktime_ts])
@pytest.mark.parametrize("lengths", [(4, 4), (4, 3)])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_other_libraries_read_the_ts_files_that_we_write(
    tmp_path: Path, reader: Any, lengths: tuple[int, ...], n_channels: int
) -> None:
    rng = np.random.default_rng(3)
    series = [rng.normal(size=(n_channels, length)) for length in lengths]
    series[0][0, 1] = np.nan
    write_series(check_series(series, ["down", "up"]), tmp_path / "x.ts")
    assert_agree(read_series(tmp_path / "x.ts"), *reader(tmp_path / "x.ts"))


def test_aeon_reads_the_tsv_and_arff_files_that_we_write(tmp_path: Path) -> None:
    datasets = pytest.importorskip("aeon.datasets")
    cases = check_series(np.random.default_rng(3).normal(size=(3, 1, 5)), ["1", "2", "1"])
    write_series(cases, tmp_path / "x.tsv")
    assert_agree(cases, *datasets.load_from_tsv_file(str(tmp_path / "x.tsv")), rtol=ROUNDED)
    for n_channels in (1, 2):
        cases = check_series(np.random.default_rng(3).normal(size=(3, n_channels, 5)), ["1", "2", "1"])
        write_series(cases, tmp_path / "x.arff")
        assert_agree(cases, *datasets.load_from_arff_file(str(tmp_path / "x.arff")))


@pytest.mark.parametrize("labels", [["up", "down"], None])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_we_read_the_ts_files_that_aeon_writes(tmp_path: Path, labels: Any, n_channels: int) -> None:
    X = np.random.default_rng(3).normal(size=(2, n_channels, 4))
    y = None if labels is None else np.array(labels)
    pytest.importorskip("aeon.datasets").save_to_ts_file(
        X, y, label_type="classification", path=str(tmp_path), problem_name="made"
    )
    found = read_series(tmp_path / "made.ts")
    assert np.allclose(found.X, X)
    assert (found.y is None) == (labels is None)
