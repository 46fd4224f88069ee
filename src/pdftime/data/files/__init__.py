"""Series files in and out: .ts, .tsv, .txt, .arff, .csv, .parquet and .npz to and from `SeriesSet`."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Literal

from pdftime.data.files.arff import arff_bytes, read_arff
from pdftime.data.files.npz import npz_bytes, read_npz
from pdftime.data.files.tables import Layout, csv_bytes, parquet_bytes, read_csv, read_parquet
from pdftime.data.files.ts import read_ts, ts_bytes
from pdftime.data.files.ucr import read_ucr, ucr_bytes
from pdftime.data.series import SeriesSet
from pdftime.errors import DataError, SeriesFileError

TEXTS = (".ts", ".tsv", ".txt", ".arff", ".csv")
"""File types that may also be compressed, with .gz behind."""
SUFFIXES = (*TEXTS, ".parquet", ".npz")
"""Every file type that is read and written."""
TABLES = (".csv", ".parquet")


def read_series(
    path: str | os.PathLike[str],
    *,
    part: Literal["train", "test"] | None = None,
    form: Literal["wide", "long"] | None = None,
    label_column: str = "label",
    case_column: str = "case",
    time_column: str = "time",
) -> SeriesSet:
    """The series of one file, with labels where the file has them; its suffix says how it is read.

    `form` and the three column names are for tables (.csv, .parquet); without `form`, a table that has both a
    case and a time column is long. `part` chooses between the two halves of an .npz benchmark file.
    Whatever does not fit raises `SeriesFileError`, which names the file and, where there is one, the line.
    """
    path = Path(path)
    suffix = _suffix(path)
    _check_options(path, suffix, part, form)
    layout = Layout(form, label_column, case_column, time_column)
    try:
        match suffix:
            case ".ts":
                return read_ts(path)
            case ".tsv" | ".txt":
                return read_ucr(path, old=suffix == ".txt")
            case ".arff":
                return read_arff(path)
            case ".csv":
                return read_csv(path, layout)
            case ".parquet":
                return read_parquet(path, layout)
            case _:
                return read_npz(path, part)
    except SeriesFileError:
        raise
    except DataError as error:
        raise SeriesFileError(f"{path}: {error}") from error


def write_series(
    cases: SeriesSet,
    path: str | os.PathLike[str],
    *,
    form: Literal["wide", "long"] | None = None,
    label_column: str = "label",
    case_column: str = "case",
    time_column: str = "time",
) -> None:
    """Write series so that `read_series` returns them; the file is there entirely or not at all.

    What a format cannot hold (several channels in .tsv, a label with a space in .ts) is refused, not bent.
    """
    from pdftime.container import write_atomically

    path = Path(path)
    suffix = _suffix(path)
    _check_options(path, suffix, None, form)
    layout = Layout(form, label_column, case_column, time_column)
    match suffix:
        case ".ts":
            data = ts_bytes(cases, path)
        case ".tsv" | ".txt":
            data = ucr_bytes(cases, path, old=suffix == ".txt")
        case ".arff":
            data = arff_bytes(cases, path)
        case ".csv":
            data = csv_bytes(cases, path, layout)
        case ".parquet":
            data = parquet_bytes(cases, path, layout)
        case _:
            data = npz_bytes(cases, path)
    if path.suffix.lower() == ".gz":
        data = gzip.compress(data, mtime=0)  # same series, same bytes
    write_atomically(path, data, SeriesFileError)


def _suffix(path: Path) -> str:
    """The suffix that decides the format: the one before .gz, if there is one."""
    zipped = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem) if zipped else path).suffix.lower()
    if suffix not in (TEXTS if zipped else SUFFIXES):
        raise SeriesFileError(
            f"{path} is of no known file type. Supported are {', '.join(SUFFIXES)}, "
            f"and .gz behind {', '.join(TEXTS)}."
        )
    return suffix


def _check_options(path: Path, suffix: str, part: str | None, form: str | None) -> None:
    """Options that would go unused are refused, for their caller expects something of them."""
    if part not in (None, "train", "test") or form not in (None, "wide", "long"):
        raise SeriesFileError(
            f"part is {part!r} and form is {form!r}; part may be 'train' or 'test', form 'wide' or 'long'."
        )
    if part is not None and suffix != ".npz":
        raise SeriesFileError(f"{path} has no parts; leave part={part!r} out, it is for .npz files.")
    if form is not None and suffix not in TABLES:
        raise SeriesFileError(f"{path} is no table; leave form={form!r} out, it is for .csv and .parquet.")
