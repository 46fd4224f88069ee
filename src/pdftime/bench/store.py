"""Rows of results: a CSV file for people, and beside it the SQLite database that many processes write."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pdftime.container import write_atomically
from pdftime.errors import DataError

BUSY_S = 60.0  # how long a writer waits for another
OPENING = 1 << 60  # the byte in the file of claims that is locked while the database is opened


class Identity(NamedTuple):
    """What tells one result from another."""

    dataset: str
    resample: int
    method: str
    seed: int
    configuration: str


@dataclass(frozen=True)
class Row:
    """One result, or one failure with its reason; the fields are the CSV's columns, None an empty cell."""

    archive: str
    """'ucr' or 'uea'; empty where a failure came before that was known."""
    dataset: str
    resample: int
    """0 is the original split."""
    method: str
    seed: int
    configuration: str
    """A digest of everything that changes the result."""
    status: str
    """'ok' or 'failed'."""
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    log_loss: float | None = None
    """Empty, as the calibration error, where a method gives labels and no probabilities."""
    calibration_error: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    peak_memory_mb: float | None = None
    """Of the whole process, libraries included."""
    epochs: int | None = None
    """Passes over the training cases, all members together."""
    n_train: int | None = None
    n_test: int | None = None
    n_channels: int | None = None
    n_timepoints: int | None = None
    n_classes: int | None = None
    n_threads: int | None = None
    reason: str | None = None
    """Why it failed."""
    settings: str | None = None
    """The method in short: its preset or class, and what differs from it."""
    versions: str | None = None
    host: str | None = None
    finished: str | None = None
    """When, in UTC."""

    @property
    def identity(self) -> Identity:
        return Identity(self.dataset, self.resample, self.method, self.seed, self.configuration)


COLUMNS = tuple(each.name for each in fields(Row))
IDENTITY = Identity._fields
_WHOLE = ("resample", "seed", "epochs", "n_train", "n_test", "n_channels", "n_timepoints", "n_classes", "n_threads")
_NUMBER = (
    "accuracy",
    "balanced_accuracy",
    "log_loss",
    "calibration_error",
    "fit_seconds",
    "predict_seconds",
    "peak_memory_mb",
)


class Store:
    """All rows of one results file. Several processes may write; a finished row is never lost or doubled."""

    def __init__(self, path: Path) -> None:
        """Rows of a CSV at `path` that the database beside it does not have are taken in."""
        self.path = path
        given = read_rows(path) if path.exists() else []
        try:
            self._claims = path.with_suffix(".sqlite-claims").open("ab")
            try:
                self._database = self._opened()
            except BaseException:
                self._claims.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"{database_of(path)} cannot be used: {error}. Choose another place, or delete it if it is broken: "
                f"finished rows are taken again from {path.name}."
            ) from error
        self.add(given)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()
        self._claims.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows for good. A row that is there stays, unless it is a failure and the new one is newer."""
        marks = ", ".join("?" for _ in COLUMNS)
        changes = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in IDENTITY)
        with self._transaction():
            self._database.executemany(
                f"INSERT INTO results VALUES ({marks}) ON CONFLICT DO UPDATE SET {changes} "
                "WHERE results.status != 'ok' "
                "AND (excluded.status = 'ok' OR coalesce(excluded.finished, '') > coalesce(results.finished, ''))",
                [astuple(row) for row in rows],
            )

    def rows(self) -> list[Row]:
        """Every row, in the order of its identity."""
        found = self._database.execute(
            f"SELECT {', '.join(COLUMNS)} FROM results ORDER BY {', '.join(_sort_key(name) for name in IDENTITY)}"
        )
        return [Row(*values) for values in found]

    def get(self, identity: Identity) -> Row | None:
        where = " AND ".join(f"{name} = ?" for name in IDENTITY)
        found = self._database.execute(f"SELECT {', '.join(COLUMNS)} FROM results WHERE {where}", identity).fetchone()
        return None if found is None else Row(*found)

    def claim(self, identity: Identity) -> bool:
        """Whether this process may work on a row: a lock that ends with the process, however that ends."""
        import fcntl  # not on every system; reading a CSV must work on all

        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(identity))
        except OSError:
            return False
        return True

    def release(self, identity: Identity) -> None:
        """Others may work on this row again."""
        import fcntl

        fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(identity))

    def export(self) -> None:
        """Write the CSV, entirely or not at all."""
        write_rows(self.path, self.rows())

    def _opened(self) -> sqlite3.Connection:
        """The database with its table; one process at a time, for SQLite does not wait where it changes its mode."""
        import fcntl

        fcntl.lockf(self._claims, fcntl.LOCK_EX, 1, OPENING)
        database = sqlite3.connect(database_of(self.path), timeout=BUSY_S, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")  # a finished row survives a power cut
            columns = ", ".join(f"{name} {_kind(name)}" for name in COLUMNS)
            key = ", ".join(IDENTITY)
            database.execute(f"CREATE TABLE IF NOT EXISTS results ({columns}, PRIMARY KEY ({key}))")
        except BaseException:
            database.close()
            raise
        finally:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, OPENING)
        return database

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def database_of(path: Path) -> Path:
    """The database that belongs to a CSV file."""
    return path.with_suffix(".sqlite")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Rows as a CSV file, entirely or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    write_atomically(path, text.getvalue().encode(), DataError)


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file that `write_rows` wrote."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not lines or tuple(lines[0]) != COLUMNS:
        found = ", ".join(lines[0]) if lines else "nothing"
        raise DataError(f"{path} has the columns {found:.300}; expected results with {', '.join(COLUMNS)}.")
    return [_row(path, number, cells) for number, cells in enumerate(lines[1:], 2)]


def _row(path: Path, line: int, cells: list[str]) -> Row:
    if len(cells) != len(COLUMNS):
        raise DataError(f"{path}, line {line}: {len(cells)} cells; expected {len(COLUMNS)}. Is the line cut off?")
    values: dict[str, Any] = {}
    for name, cell in zip(COLUMNS, cells, strict=True):
        kind = int if name in _WHOLE else float if name in _NUMBER else str
        try:
            values[name] = kind(cell) if cell else None
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {name} is {cell!r}; expected a number.") from error
    values["archive"] = values["archive"] or ""  # a dataset that could not be read may belong to any
    missing = [name for name in (*IDENTITY, "status") if values[name] is None]
    if missing:
        raise DataError(f"{path}, line {line}: {', '.join(missing)} must not be empty.")
    return Row(**values)


def _cell(value: Any) -> Any:
    """Numbers as people read them: without an exponent, and whole ones without a point."""
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return "" if value is None else value


def _kind(name: str) -> str:
    return "INTEGER" if name in _WHOLE else "REAL" if name in _NUMBER else "TEXT"


def _place(identity: Identity) -> int:
    """The byte that stands for a row in the file of claims; it need not be there to be locked."""
    digest = hashlib.sha256(repr(tuple(identity)).encode()).digest()
    return int.from_bytes(digest[:7], "little")


def _sort_key(name: str) -> str:
    return f"{name} COLLATE NOCASE, {name}" if name in ("dataset", "method") else name
