"""Results as rows: one line each while they come, a CSV file at the end."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
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
