"""Results as rows: one line each while they come, a CSV file at the end."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def show(row: Mapping[str, Any]) -> None:
    print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)


def write(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    if path is None:
        return
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def of_inner_sets(
    about: str | None, measure: Callable[[Path], Mapping[str, Any] | None]
) -> tuple[list[Mapping[str, Any]], Path | None]:
    """A row for each set of the folder INNER on the command line that is measured, and the file that --out names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inner", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    measured = []
    for path in sorted(options.inner.rglob("*.npz"), key=lambda path: path.stat().st_size):
        row = measure(path)
        if row is not None:
            measured.append(row)
            show(row)
    return measured, options.out
