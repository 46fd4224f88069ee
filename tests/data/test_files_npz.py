"""Numpy archives: our own form and benchmark files, never pickles, never a broken zip."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pdftime.data.files import read_series, write_series
from pdftime.data.series import check_series
from pdftime.errors import SeriesFileError


def test_an_array_alone_is_enough(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.array([[1.0, 2, np.nan], [3, 4, 5]]))
    cases = read_series(tmp_path / "x.npz")
    assert cases.y is None
    assert cases.lengths.tolist() == [2, 3]
    assert cases.name == "x"


def test_a_benchmark_file_is_read_by_part(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.savez(path, X_train=X, y_train=np.array(["a", "b"]), X_test=-X[:1])
    train, test = read_series(path, part="train"), read_series(path, part="test")
    assert np.array_equal(train.X, X)
    assert train.y.tolist() == ["a", "b"]
    assert np.array_equal(test.X, -X[:1])
    assert test.y is None
    with pytest.raises(SeriesFileError, match="part='train' or part='test'"):
        read_series(path)


def test_asking_for_a_part_that_is_not_there_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", X=np.ones((2, 3)))
    with pytest.raises(SeriesFileError, match="has no parts"):
        read_series(tmp_path / "own.npz", part="train")
    np.savez(tmp_path / "half.npz", X_train=np.ones((2, 3)))
    with pytest.raises(SeriesFileError, match="expected X_test"):
        read_series(tmp_path / "half.npz", part="test")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(SeriesFileError, match=r"\['a'\]; expected X"):
        read_series(tmp_path / "other.npz")


def test_python_objects_are_refused_and_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.ones((2, 3)), y=np.array(["a", 1], object))
    with pytest.raises(SeriesFileError, match="holds Python objects in 'y'"):
        read_series(tmp_path / "x.npz")


def test_lengths_that_do_not_fit_are_refused_with_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.ones((2, 3)), lengths=np.array([3, 9]))
    with pytest.raises(SeriesFileError, match=r"x\.npz: lengths go from 3 to 9"):
        read_series(tmp_path / "x.npz")


def test_a_zip_of_other_things_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X", b"hello")
    (tmp_path / "x.npz").write_bytes(buffer.getvalue())
    with pytest.raises(SeriesFileError, match="no arrays"):
        read_series(tmp_path / "x.npz")


def test_every_prefix_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_series(check_series(np.ones((2, 3)), ["a", "b"]), path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(SeriesFileError):
            read_series(path)


def test_a_changed_byte_never_changes_a_value(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    X = np.arange(6.0).reshape(2, 1, 3)
    write_series(check_series(X, ["a", "b"]), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            found = read_series(path)
        except SeriesFileError:
            continue
        assert np.array_equal(found.X, X)
