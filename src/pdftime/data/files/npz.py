"""Numpy archives: our own form (X, y, lengths, times, channel_names, name) and benchmark files with two parts."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.files.text import stem, whole
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: Path, part: str | None) -> SeriesSet:
    """The series of an .npz file, or of one part of a benchmark file. Pickled objects are never loaded."""
    arrays = _load(path)
    if "X" in arrays and part is None:
        return check_series(
            arrays["X"],
            arrays.get("y"),
            lengths=arrays.get("lengths"),
            channel_names=None if "channel_names" not in arrays else arrays["channel_names"].tolist(),
            name=str(arrays["name"]) if "name" in arrays else stem(path),
            times=arrays.get("times"),
        )
    if "X" in arrays:
        raise SeriesFileError(f"{path} has no parts; leave part={part!r} out.")
    if part is None and {"X_train", "X_test"} & arrays.keys():
        raise SeriesFileError(f"{path} has a training and a test part; say which: part='train' or part='test'.")
    if f"X_{part}" not in arrays:
        wanted = "X" if part is None else f"X_{part}"
        raise SeriesFileError(f"{path} holds the arrays {sorted(arrays)[:10]}; expected {wanted}.")
    return check_series(arrays[f"X_{part}"], arrays.get(f"y_{part}"), name=stem(path))


def npz_bytes(cases: SeriesSet, path: Path) -> bytes:
    """The cases as an .npz file in our own form."""
    arrays: dict[str, Any] = {
        "X": cases.X,
        "lengths": cases.lengths,
        "channel_names": np.array(cases.channel_names),
        "name": np.array(cases.name or stem(path)),
    }
    if cases.times is not None:
        arrays["times"] = cases.times
    if cases.y is not None:
        if cases.y.dtype == object:
            raise SeriesFileError(
                f"{path} cannot hold labels of mixed kinds, as {cases.y[:5].tolist()}; make them all text."
            )
        arrays["y"] = cases.y
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _load(path: Path) -> dict[str, NDArray[Any]]:
    data = whole(path)
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise SeriesFileError(f"{path} is no .npz file (a zip of arrays), or it is cut off.")
    name = ""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {}
            for name in archive.files:
                arrays[name] = archive[name]
    except BROKEN as error:
        if "allow_pickle" in str(error):
            raise SeriesFileError(
                f"{path} holds Python objects in {name!r}, which are never loaded. Save numbers, and labels "
                "as numbers or text: np.savez(path, X=X.astype(float), y=y.astype(str))."
            ) from error
        raise SeriesFileError(f"{path} is broken: {error or type(error).__name__}.") from error
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange:
        raise SeriesFileError(f"{path} holds {strange[:5]}, which are no arrays; it is no .npz file.")
    return arrays
