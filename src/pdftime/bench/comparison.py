"""Our rows beside published accuracies on the same datasets, archive by archive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdftime.bench import published
from pdftime.bench.gathered import is_ours, labels_of, mean_by_dataset
from pdftime.bench.statistics import Scores
from pdftime.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pdftime.bench.store import Row

AGAINST = ("HIVE-COTE 2.0", "MultiROCKET-Hydra", "InceptionTime", "ROCKET")
"""What our rows are compared with where nothing else is said."""
AS_PRINTED = "PDFTime, as printed in its paper"
OTHER_PROTOCOL = "as printed, other protocol"
OWN = "own"
"""The archive of datasets that belong to neither UCR nor UEA."""


@dataclass(frozen=True)
class Beside:
    """Figures that are shown beside ours and never compared with them as equals."""

    name: str
    standing: str
    accuracies: Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """Everything to be said about one archive."""

    archive: str
    ran: tuple[str, ...]
    """The methods that were run here, first in `scores`, PDFTime before peers."""
    ours: tuple[str, ...]
    """Those of them that are PDFTime."""
    scores: Scores
    """Run and published methods that may be compared as equals."""
    beside: tuple[Beside, ...]
    fit_seconds: Mapping[str, Mapping[str, float]]
    """Of the methods that were run: by method and dataset."""
    sizes: Mapping[str, tuple[int | None, int | None, int | None]]
    """By dataset: training cases, classes, time points."""
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return "own datasets" if self.archive == OWN else f"{self.archive.upper()} archive"

    def peer(self, name: str) -> str | None:
        """The published method of this name among those compared, as it is called in tables."""
        if self.archive == OWN:
            return None
        column = _column(self.archive, name, self.scores.datasets)
        return column.label if column is not None and column.label in self.scores.methods else None


def compare(rows: Iterable[Row], against: Sequence[str] | None = None) -> list[Comparison]:
    """One comparison for every archive in the rows, with the published methods of these names.

    Seeds are averaged first, dataset by dataset. Published figures are for the original split, so where there are any
    only rows of the original split (resample 0) take part.
    """
    kept = list(rows)
    if not any(row.status == "ok" for row in kept):
        raise DataError(f"None of {_rows(len(kept))} is finished, so there is nothing to compare.")
    by_archive: dict[str, list[Row]] = defaultdict(list)
    for row in kept:
        by_archive[published.archive_of(row.dataset) or OWN].append(row)
    _check_known(against or (), by_archive)
    order = (*published.ARCHIVES, OWN)
    found = [
        _comparison(archive, by_archive[archive], AGAINST if against is None else against)
        for archive in order
        if any(row.status == "ok" for row in by_archive[archive])
    ]
    return [each for each in found if each is not None]


def _comparison(archive: str, rows: Sequence[Row], against: Sequence[str]) -> Comparison | None:
    notes: list[str] = []
    failed = [row for row in rows if row.status != "ok"]
    if failed:
        names = sorted({f"{row.method} on {row.dataset}" for row in failed})
        notes.append(f"{_rows(len(failed))} failed: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}.")
    original = [row for row in rows if row.resample == 0]
    if archive != OWN and against:
        if len(original) < len(rows):
            notes.append(
                f"Only the original split is compared: {_rows(len(rows) - len(original))} of resamples left out."
            )
        rows = original
    accuracies: dict[str, Mapping[str, float]] = dict(mean_by_dataset(rows))
    labels = labels_of(row for row in rows if row.status == "ok")
    own = {row.method for row in rows if is_ours(row)}
    if not accuracies:
        return None
    methods = tuple(accuracies)
    ran = {name for scores in accuracies.values() for name in scores}
    aside: list[Beside] = []
    variants: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in against if archive != OWN else ():
        column = _column(archive, name, ran)
        if column is None:
            notes.append(f"Nothing is published here for {name} on this archive.")
        elif column.is_equal:
            accuracies[column.label] = column.accuracies
            variants[tuple(sorted(ran.intersection(column.variants), key=str.lower))].append(column.label)
        else:
            aside.append(Beside(f"{column.family} ({column.origin})", column.standing, column.accuracies))
    notes += [
        f"{', '.join(who)} had the archive's filled or equal-length form of {', '.join(names)}."
        for names, who in variants.items()
        if names
    ]
    if archive != OWN:
        aside.append(Beside(AS_PRINTED, OTHER_PROTOCOL, published.printed(archive)["PDFTime"]))
    scores = Scores.of({method: {k: v for k, v in own.items() if k in ran} for method, own in accuracies.items()})
    return Comparison(
        archive=archive,
        ran=methods,
        ours=tuple(label for (method, _), label in labels.items() if label in methods and method in own),
        scores=scores,
        beside=tuple(aside),
        fit_seconds=mean_by_dataset(rows, "fit_seconds"),
        sizes={row.dataset: (row.n_train, row.n_classes, row.n_timepoints) for row in rows if row.status == "ok"},
        notes=(*_about_common(scores, ran), *notes),
    )


def _about_common(scores: Scores, ran: Collection[str]) -> list[str]:
    """What has to be said about the datasets that enter."""
    absent = np.isnan(scores.values)
    notes = []
    n_common = int((~absent.any(axis=1)).sum())
    if n_common < len(ran):
        fewest = scores.methods[int(absent.sum(axis=0).argmax())]
        notes.append(
            f"Only the {n_datasets(n_common)} of {len(ran)} that every method has enter; "
            f"{fewest} has {int((~absent).sum(axis=0).min())}."
        )
    for name, reason in published.DOUBTFUL.items():
        if name in scores.datasets and not absent[scores.datasets.index(name)].any():
            notes.append(f"{name} is among them: {reason}.")
    return notes


def _column(archive: str, name: str, ran: Collection[str]) -> published.Column | None:
    try:
        column = published.find(archive, name, ran)
    except ConfigError:
        return None
    return column if column.n_known(ran) else None


def _check_known(against: Sequence[str], archives: Collection[str]) -> None:
    """Refuse a name that no archive at hand knows."""
    for name in against:
        errors = []
        for archive in set(archives) - {OWN}:
            try:
                published.find(archive, name, ())
            except ConfigError as error:
                errors.append(error)
        if errors and len(errors) == len(set(archives) - {OWN}):
            raise errors[0]


def n_datasets(n: int) -> str:
    """
    >>> n_datasets(1), n_datasets(2)
    ('1 dataset', '2 datasets')
    """
    return f"{n} dataset{'s' if n != 1 else ''}"


def _rows(n: int) -> str:
    return f"{n} row{'s' if n != 1 else ''}"
