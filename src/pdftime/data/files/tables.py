"""Tables, .csv and .parquet: wide (a row is a case) or long (a row is a time point of a case)."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.data.files.columns import check_alike, check_increasing
from pdftime.data.files.padded import padded, plain_floats
from pdftime.data.files.text import SHOWN, stem, unreadable, whole
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

if TYPE_CHECKING:
    import pyarrow as pa

CHANNEL_AND_TIME = re.compile(r"(.+)__(\d+)")
ONE_CHANNEL = ("channel_0",)  # the name of a channel that was given none


class Layout(NamedTuple):
    """The form of a table, found out if None, and the names of its special columns."""

    form: Literal["wide", "long"] | None
    label: str
    case: str
    time: str

    def is_long(self, path: Path, names: Sequence[str]) -> bool:
        """Whether a table with these columns is long; refuses columns that fit no form."""
        name, times = Counter(names).most_common(1)[0] if names else ("", 0)
        if times > 1:
            raise SeriesFileError(f"{path} has {times} columns {name!r}; expected different names.")
        absent = [name for name in (self.case, self.time) if name not in names]
        if self.form == "long" and absent:
            raise SeriesFileError(
                f"{path} has no column {absent[0]!r}, which the long form needs; its columns are "
                f"{list(names[:10])}. Name them with case_column= and time_column=."
            )
        if self.form is None and len(absent) == 1:
            raise SeriesFileError(
                f"{path} lacks the column {absent[0]!r} of the two that make a long table. Name both with "
                "case_column= and time_column=, or say form='wide'."
            )
        return self.form == "long" or (self.form is None and not absent)


def read_csv(path: Path, layout: Layout) -> SeriesSet:
    """The cases of a .csv file with a header line; empty cells are missing values."""
    import pyarrow as pa

    data = whole(path)
    names = _csv_names(path, data)
    text = {layout.label, layout.case} if layout.is_long(path, names) else {layout.label}
    values = [name for name in names if name not in text and (layout.case not in text or name != layout.time)]
    types = dict.fromkeys(text, pa.string())
    try:
        table = _parse_csv(path, data, types | dict.fromkeys(values, pa.float64()))
    except pa.ArrowInvalid as error:
        with suppress(pa.ArrowInvalid):  # then no single cell is to blame
            as_text = _parse_csv(path, data, types | dict.fromkeys(values, pa.string()))
            _refuse_guilty_cell(path, as_text, values)
        raise unreadable(path, error) from error
    if layout.label in names:
        position = names.index(layout.label)
        table = table.set_column(position, layout.label, _inferred(table.column(position)))
    return _from_table(path, table, layout)


def read_parquet(path: Path, layout: Layout) -> SeriesSet:
    """The cases of a .parquet file; null and NaN are missing values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = whole(path)
    try:
        table = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return _from_table(path, table, layout)


def csv_bytes(cases: SeriesSet, path: Path, layout: Layout) -> bytes:
    """The cases as a .csv file."""
    from pyarrow.csv import write_csv

    buffer = io.BytesIO()
    write_csv(_to_table(cases, path, layout), buffer)
    return buffer.getvalue()


def parquet_bytes(cases: SeriesSet, path: Path, layout: Layout) -> bytes:
    """The cases as a .parquet file."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(_to_table(cases, path, layout), buffer, write_page_checksum=True)
    return buffer.getvalue()


def _csv_names(path: Path, data: bytes) -> list[str]:
    try:
        header = data.partition(b"\n")[0].decode("utf-8-sig").strip("\r")
    except UnicodeDecodeError as error:
        raise SeriesFileError(f"{path}, line 1: this is not UTF-8 text; save the file as UTF-8.") from error
    if not header.strip() or "\0" in header:
        raise SeriesFileError(f"{path}, line 1: expected the names of the columns; the file is empty or no text.")
    return next(csv.reader([header]))


def _parse_csv(path: Path, data: bytes, types: dict[str, pa.DataType]) -> pa.Table:
    """The whole text as a table; a row with too few or too many cells is refused by number."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    uneven: list[arrow.InvalidRow] = []

    def note(row: arrow.InvalidRow) -> str:
        uneven.append(row)
        return "error"

    try:
        return arrow.read_csv(
            io.BytesIO(data),
            # one block and one thread, so that a broken row knows its number
            read_options=arrow.ReadOptions(use_threads=False, block_size=min(len(data) + 1, 2**31 - 1)),
            parse_options=arrow.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
            convert_options=arrow.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        if not uneven:
            raise
        row = uneven[0]
        raise SeriesFileError(
            f"{path}, row {row.number - 1}: {row.actual_columns} cells; expected {row.expected_columns}, "
            "as many as columns. Is the file cut off?"
        ) from error


def _refuse_guilty_cell(path: Path, table: pa.Table, names: Sequence[str]) -> None:
    import pyarrow as pa

    for name in names:
        for row, cell in enumerate(table.column(name), 1):
            try:
                cell.cast(pa.float64())
            except pa.ArrowInvalid:
                if cell.as_py():
                    raise _not_a_number(path, name, row, cell.as_py()) from None


def _not_a_number(path: Path, name: str, row: int, cell: Any) -> SeriesFileError:
    return SeriesFileError(
        f"{path}: column {name!r} holds {str(cell)[:SHOWN]!r} in row {row}; expected a number, or nothing "
        "where a value is missing. Name the column of the labels with label_column=, and drop other columns."
    )


def _inferred(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels that came as text, as whole numbers, numbers or booleans if all of them are."""
    import pyarrow as pa

    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            return labels.cast(kind)
        except pa.ArrowInvalid:
            continue
    return labels


def _from_table(path: Path, table: pa.Table, layout: Layout) -> SeriesSet:
    names = table.column_names
    special = {layout.label, layout.case, layout.time} if layout.is_long(path, names) else {layout.label}
    values = [name for name in names if name not in special]
    if not values or not table.num_rows:
        raise SeriesFileError(f"{path} has {table.num_rows} rows and {len(values)} columns of values; no series.")
    if layout.case in special:
        return _from_long(path, table, layout, values)
    return _from_wide(path, table, layout, values)


def _from_wide(path: Path, table: pa.Table, layout: Layout, names: list[str]) -> SeriesSet:
    """A row is a case; columns are time points, or channels and time points as in x__0, x__1, y__0, y__1."""
    try:
        check_alike(names, "column")
        check_increasing(names)
    except ValueError as error:
        raise SeriesFileError(
            f"{path}: {error} The first line must name the columns, the labels' column is named with "
            "label_column=, and columns that are not part of the series must be dropped."
        ) from error
    channels: list[str] = []
    plain = [name for name in names if not CHANNEL_AND_TIME.fullmatch(name)]
    if plain and len(plain) < len(names):
        raise SeriesFileError(
            f"{path}: only some columns are named by channel and time as in x__0; {plain[0]!r} is not."
        )
    if not plain:
        channels, names = _channels_in_order(path, names)
    columns = [_values(path, table, name) for name in names]
    X = np.stack(columns, axis=1).reshape(table.num_rows, max(len(channels), 1), -1)
    return check_series(X, _labels(path, table, layout), channel_names=channels, name=stem(path))


def _channels_in_order(path: Path, names: list[str]) -> tuple[list[str], list[str]]:
    """The channels, and the columns ordered by channel and time; every channel must have every time."""
    times: dict[str, dict[int, str]] = {}
    for name in names:
        channel, time = name.rsplit("__", 1)
        times.setdefault(channel, {})[int(time)] = name
    n_timepoints = max(max(columns) for columns in times.values()) + 1
    for channel, columns in times.items():
        absent = set(range(n_timepoints)) - columns.keys()
        if absent:
            raise SeriesFileError(
                f"{path} has no column {f'{channel}__{min(absent)}'!r}; every channel needs the time points "
                f"0 to {n_timepoints - 1}."
            )
    return list(times), [columns[time] for columns in times.values() for time in range(n_timepoints)]


def _from_long(path: Path, table: pa.Table, layout: Layout, names: list[str]) -> SeriesSet:
    """A row is a time point; a case's rows stand together, in the order of time."""
    ids = table.column(layout.case).to_pylist()
    _refuse_missing(path, layout.case, (cell in (None, "") for cell in ids))
    codes = _codes(ids)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    again = np.flatnonzero(codes[starts] != np.arange(len(starts)))
    if len(again):
        row = int(starts[again[0]])
        raise SeriesFileError(
            f"{path}, row {row + 1}: case {ids[row]!r} appears again after other cases; sort the rows by case."
        )
    times = _times(path, table, layout, ids, starts)
    labels = _labels(path, table, layout)
    if labels is not None:
        own = _codes(labels)
        changed = np.flatnonzero(own != own[starts][codes])
        if len(changed):
            row = int(changed[0])
            raise SeriesFileError(
                f"{path}, row {row + 1}: case {ids[row]!r} changes its label from "
                f"{labels[starts[codes[row]]]!r} to {labels[row]!r}; a case has one label."
            )
        labels = [labels[start] for start in starts]
    X = np.stack([_values(path, table, name) for name in names])  # (n_channels, n_rows)
    return check_series(
        np.split(X, starts[1:], axis=1),
        labels,
        lengths=np.bincount(codes),
        channel_names=names,
        name=stem(path),
        times=times,
    )


def _times(
    path: Path, table: pa.Table, layout: Layout, ids: list[Any], starts: NDArray[np.int64]
) -> list[NDArray[Any]] | None:
    """The time stamps of each case, which must grow inside it; None where all are counted from 0."""
    import pyarrow as pa

    column = table.column(layout.time)
    _refuse_missing(path, layout.time, column.is_null().to_pylist())
    if not (
        pa.types.is_temporal(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    ):
        raise _not_a_number(path, layout.time, 1, column[0].as_py())
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        times = _seconds(column)
    else:
        times = column.to_numpy()
    wrong = np.append(False, ~(times[1:] > times[:-1]))
    wrong[starts] = False
    if wrong.any():
        row = int(np.argmax(wrong))
        here = f"{path}, row {row + 1}: case {ids[row]!r} has the time {times[row]}"
        if times[row] == times[row - 1]:
            raise SeriesFileError(f"{here} twice.")
        raise SeriesFileError(f"{here} after {times[row - 1]}; sort the rows of a case by time.")
    rows = np.split(times, starts[1:])
    return None if all(np.array_equal(row, np.arange(len(row))) for row in rows) else rows


def _seconds(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Times of day or spans of time as seconds."""
    import pyarrow as pa

    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    seconds: NDArray[np.float64] = column.cast(whole).to_numpy() / per_second
    return seconds


def _values(path: Path, table: pa.Table, name: str) -> NDArray[Any]:
    """A column of numbers, NaN where it is empty."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise _not_a_number(path, name, 1, column[0].as_py())
    return plain_floats(column.to_numpy())


def _labels(path: Path, table: pa.Table, layout: Layout) -> list[Any] | None:
    """One label per row; None if there is no such column or nothing in it."""
    if layout.label not in table.column_names:
        return None
    labels: list[Any] = table.column(layout.label).to_pylist()
    missing = [label in (None, "") for label in labels]
    if all(missing):
        return None
    _refuse_missing(path, layout.label, missing)
    return labels


def _refuse_missing(path: Path, name: str, missing: Iterable[bool]) -> None:
    for row, empty in enumerate(missing, 1):
        if empty:
            raise SeriesFileError(f"{path}, row {row}: the column {name!r} is empty here; every row needs it.")


def _codes(cells: list[Any]) -> NDArray[np.int64]:
    """Cells as numbers in the order of their first appearance."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(cell, len(seen)) for cell in cells], np.int64)


def _to_table(cases: SeriesSet, path: Path, layout: Layout) -> pa.Table:
    """The cases as a table: as asked for, otherwise long with time stamps and wide without."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if layout.form == "long" or (layout.form is None and cases.times is not None):
        repeats = cases.lengths
        columns[layout.case] = np.repeat(np.arange(len(cases)), repeats)
        stamps = [cases.times_of(index) for index in range(len(cases))]
        counted = [np.arange(length) if own is None else own for own, length in zip(stamps, repeats, strict=True)]
        columns[layout.time] = np.concatenate(counted)
        values = plain_floats(np.concatenate([cases.series(index) for index in range(len(cases))], axis=1))
        names = list(cases.channel_names)
    else:
        repeats = np.ones(len(cases), np.int64)
        values = padded(cases, path).reshape(len(cases), -1).T
        alone = cases.channel_names == ONE_CHANNEL
        names = [
            str(time) if alone else f"{channel}__{time}"
            for channel in cases.channel_names
            for time in range(cases.n_timepoints)
        ]
    taken = {layout.label, *columns} & set(names)
    if taken:
        raise SeriesFileError(f"{path} would have two columns {taken.pop()!r}; rename the channel or the column.")
    for name, column in zip(names, values, strict=True):
        columns[name] = pa.array(column, from_pandas=True)  # NaN as an empty cell
    if cases.y is not None:
        labels = np.repeat(cases.y, repeats).tolist()
        try:
            columns[layout.label] = pa.array(labels)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SeriesFileError(
                f"{path} cannot hold labels of mixed kinds or beyond 64 bits, as {labels[:5]}; make them all text."
            ) from error
        if "" in labels:
            raise SeriesFileError(f"{path} cannot hold an empty label; give it a name.")
    return pa.table(columns)
