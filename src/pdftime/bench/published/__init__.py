"""Published accuracies on the original splits, each with its source and standing; the paper's tables as printed."""

from __future__ import annotations

import csv
import difflib
import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files

from pdftime.errors import ConfigError

ARCHIVES = ("ucr", "uea")
EQUAL = "equal"
# Of sources that know equally many of the wanted datasets, the first one here is taken.
PREFERRED = ("tsml-eval", "authors", "Multiverse", "aeon, MambaSL repo", "LITE repo", "CF-4-TSC")
DOUBTFUL = {
    "PigAirwayPressure": "its published accuracies differ strongly between sources (ROCKET: 0.10 by its authors, "
    "0.39 by tsml-eval), so the archive seems to have changed",
    "JapaneseVowels": "ROCKET's published accuracies on it go from 0.82 (Multiverse) to 0.96 (collected from papers, "
    "protocol not verifiable)",
}
"""Datasets whose published accuracies deserve a warning, and why."""


@dataclass(frozen=True)
class Column:
    """One method's accuracies from one source, under one protocol."""

    archive: str
    method: str
    """The whole name: 'ROCKET (authors)'; a name without brackets is tsml-eval's."""
    family: str
    """The method alone: 'ROCKET'."""
    origin: str
    standing: str
    """'equal' where it may be compared with ours; else 'selects on test', 'not verifiable' or 'other split'."""
    protocol: str
    source: str
    variants: tuple[str, ...]
    """Datasets measured in the archive's second form, made equal in length or free of missing values."""
    accuracies: Mapping[str, float]

    @property
    def is_equal(self) -> bool:
        return self.standing == EQUAL

    @property
    def label(self) -> str:
        """The name in tables: the method, whose figures, and what is wrong with them if anything."""
        return (
            f"{self.family} ({self.origin})" if self.is_equal else f"{self.family} ({self.origin}; {self.standing})"
        )

    def n_known(self, datasets: Collection[str]) -> int:
        return sum(name in self.accuracies for name in datasets)


@functools.cache
def columns(archive: str) -> tuple[Column, ...]:
    """Everything published on an archive, 'ucr' or 'uea'."""
    accuracies = _wide(archive)
    return tuple(
        Column(
            archive=archive,
            method=row["method"],
            family=row["family"],
            origin=row["origin"],
            standing=row["standing"],
            protocol=row["protocol"],
            source=row["source"],
            variants=tuple(row["variants"].split()),
            accuracies=accuracies[row["method"]],
        )
        for row in _rows("sources")
        if row["archive"] == archive
    )


@functools.cache
def printed(archive: str) -> dict[str, dict[str, float]]:
    """The paper's table as printed, method by method; another protocol than ours, never compared as an equal.

    >>> printed("uea")["PDFTime"]["Handwriting"]
    0.713
    """
    return _wide(f"printed_{archive}")


def archive_of(dataset: str) -> str | None:
    """The archive that a dataset belongs to, by its name.

    >>> archive_of("GunPoint"), archive_of("NATOPS"), archive_of("my-own")
    ('ucr', 'uea', None)
    """
    return next((archive for archive in ARCHIVES if dataset in _datasets(archive)), None)


def find(archive: str, name: str, datasets: Collection[str]) -> Column:
    """The column of this name; of several sources the one that knows most of these datasets, then the preferred one.

    Case, blanks and marks do not count. A method's name alone finds only figures that may be compared as equals,
    where there are any; the whole name, as in `columns`, finds exactly that one.

    >>> find("ucr", "hivecote2", ["GunPoint"]).label, find("ucr", "rocket", ["GunPoint", "PLAID"]).label
    ('HIVE-COTE 2.0 (tsml-eval)', 'ROCKET (authors)')
    """
    wanted = _key(name)
    every = columns(archive)
    exact = [column for column in every if wanted in (_key(column.method), _key(f"{column.family} {column.origin}"))]
    family = [column for column in every if wanted == _key(column.family)]
    named = family or exact
    if not named:
        raise ConfigError(_unknown(archive, name))
    usable = [column for column in named if column.is_equal] or named
    return max(usable, key=lambda column: (column.n_known(datasets), -_place(column.origin)))


def _unknown(archive: str, name: str) -> str:
    families = {_key(column.family): column.family for column in columns(archive)}
    near = difflib.get_close_matches(_key(name), families, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(families[each] for each in near)}?" if near else ""
    some = "HIVE-COTE 2.0, MultiROCKET-Hydra, InceptionTime, ROCKET"
    return f"Nothing is published here for {name!r} on the {archive.upper()} archive; expected such as {some}. {hint}"


def _place(origin: str) -> int:
    return PREFERRED.index(origin) if origin in PREFERRED else len(PREFERRED)


def _key(name: str) -> str:
    """
    >>> _key("HIVE-COTE 2.0"), _key("multirocket-hydra")
    ('hivecote2', 'multirockethydra')
    """
    return re.sub(r"[^a-z0-9+]", "", name.lower().replace("2.0", "2").replace("1.0", "1"))


@functools.cache
def _datasets(archive: str) -> frozenset[str]:
    return frozenset(name for column in columns(archive) for name in column.accuracies)


def _wide(name: str) -> dict[str, dict[str, float]]:
    """A wide table, method by method; an empty cell is not there."""
    rows = _rows(name)
    methods = [column for column in rows[0] if column != "dataset"]
    return {method: {row["dataset"]: float(row[method]) for row in rows if row[method]} for method in methods}


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__name__) / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
