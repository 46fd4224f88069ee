"""Rows of the explanation benchmark: a CSV file of them, and tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pdftime.bench.tables import Column, Table
from pdftime.errors import SeriesFileError


@dataclass(frozen=True)
class Row:
    """What one map is worth on one problem or dataset; None where a measure does not apply."""

    data: str
    """A generated problem or a dataset."""
    kind: str
    """'moments': they are known; 'deletion': the target's probability is watched while parts are taken away."""
    encoder: str
    seed: int
    map: str
    accuracy: float
    """Of the model on fresh or test cases: a map of a model that is wrong says little."""
    n_cases: int
    """Cases that were explained."""
    auprc: float | None = None
    ndcg: float | None = None
    iou: float | None = None
    aopc: float | None = None
    agreement: float | None = None
    """Share of predictions that stay when prototypes are replaced by their nearest training series."""
    purity: float | None = None
    """Median over deciding prototypes of the share of their class among the ten nearest training series."""
    gap: float | None = None
    """Largest completeness gap among the explained cases."""
    locality: float | None = None
    """Mean over the explained cases."""


def read_rows(path: Path) -> list[Row]:
    """Rows of an earlier run; none if there is no file."""
    if not path.exists():
        return []
    kinds = {each.name: str(each.type) for each in fields(Row)}
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != list(kinds):
            raise SeriesFileError(f"{path} holds other columns than this benchmark writes; choose another file.")
        return [Row(**{name: _cell(text, kinds[name]) for name, text in line.items()}) for line in reader]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """All rows as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _text(value) for key, value in asdict(row).items()})


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(text: str, kind: str) -> Any:
    if kind.startswith("float"):
        return None if text == "" else float(text)
    return int(text) if kind == "int" else text


def tables_of(rows: Sequence[Row]) -> list[Table]:
    """Means over seeds per problem and map, and over datasets per map."""
    return [*_moments_tables(rows), *_deletion_tables(rows)]


def _moments_tables(rows: Sequence[Row]) -> Iterator[Table]:
    own = [row for row in rows if row.kind == "moments"]
    for data, encoder in dict.fromkeys((row.data, row.encoder) for row in own):
        here = [row for row in own if (row.data, row.encoder) == (data, encoder)]
        cells: list[tuple[str, float, float, float, float, float]] = []
        for name in dict.fromkeys(row.map for row in here):
            same = [row for row in here if row.map == name]
            auprc, ndcg, iou, accuracy = (
                float(np.mean([getattr(row, key) for row in same])) for key in ("auprc", "ndcg", "iou", "accuracy")
            )
            lowest = min(row.auprc for row in same if row.auprc is not None)
            cells.append((name, auprc, lowest, ndcg, iou, accuracy))
        cells.sort(key=lambda cell: -cell[1])
        n_seeds = len({row.seed for row in here})
        yield Table(
            f"{data}, encoder {encoder}, {n_seeds} seed{'s' * (n_seeds > 1)}",
            (
                Column("map"),
                Column("AUPRC", ".3f"),
                Column("lowest", ".3f"),
                Column("NDCG@n", ".3f"),
                Column("IoU at 10%", ".3f"),
                Column("accuracy", ".3f"),
            ),
            tuple(cells),
        )


def _deletion_tables(rows: Sequence[Row]) -> Iterator[Table]:
    own = [row for row in rows if row.kind == "deletion"]
    if not own:
        return
    by_data: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in own:
        by_data.setdefault((row.data, row.encoder, row.seed), {})[row.map] = row
    names = ["score map", "margin map", "token evidence", "untrained network", "|x - median|", "random"]
    yield Table(
        "AOPC: probability lost while 10% to 90% of a series are taken away",
        (Column("dataset"), *(Column(name, ".3f") for name in names), Column("accuracy", ".3f")),
        tuple(
            (data, *(found[name].aopc for name in names), found["score map"].accuracy)
            for (data, _, _), found in sorted(by_data.items())
        ),
    )
    beaten = []
    for name in names[1:]:
        pairs = [(found["score map"].aopc or 0.0, found[name].aopc or 0.0) for found in by_data.values()]
        beaten.append((name, float(np.mean([ours > theirs for ours, theirs in pairs])), len(pairs)))
    yield Table(
        "Share of datasets on which the score map loses more than another",
        (Column("other"), Column("share", ".3f"), Column("datasets", "d")),
        tuple(beaten),
    )
    models = [found["score map"] for found in by_data.values()]
    above = [row.purity >= max(0.9, row.accuracy) for row in models if row.purity is not None]
    facts = (
        ("agreement with nearest training series, median", _median([row.agreement for row in models])),
        ("purity of the ten nearest, median", _median([row.purity for row in models])),
        ("datasets with purity of at least max(0.9, accuracy)", float(np.mean(above)) if above else None),
        ("completeness gap, median of the largest per dataset", _median([row.gap for row in models])),
        ("locality, median", _median([row.locality for row in models])),
    )
    yield Table("Prototypes and maps", (Column("measure"), Column("value", ".4f")), facts)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
