"""The UCR archive's text form: one case a line, label first, then the values of its one channel."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pdftime.data.files.padded import padded
from pdftime.data.files.text import label_texts, lines, number_texts, numbers, stem
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

FLOAT_NOTATION = re.compile(r"[-+]?\d+(\.\d*([eE][-+]?\d+)?|[eE][-+]?\d+)")


def read_ucr(path: Path, *, old: bool) -> SeriesSet:
    """The cases of a .tsv; or of an `old` .txt, with tabs, commas or spaces as its first line has it."""
    separator: str | None = "\t"
    rows: list[NDArray[np.float64]] = []
    labels: list[str] = []
    for place, text in lines(path):
        if not text.strip():
            continue
        if not rows and old:
            separator = next((mark for mark in "\t," if mark in text), None)
        label, *rest = text.strip(" ").split(separator, 1)
        if not rest or not label.strip():
            raise place.error("expected a label and at least one value. Is the line cut off?")
        row = numbers(place, rest[0], separator)
        if rows and len(row) != len(rows[0]):
            raise place.error(
                f"{len(row)} values; expected {len(rows[0])} as in the first case. "
                "A shorter series is filled up with NaN."
            )
        rows.append(row)
        labels.append(_whole_number(label.strip()) if old else label.strip())
    if not rows:
        raise SeriesFileError(f"{path} has no cases; it is empty.")
    return check_series(np.stack(rows), labels, name=stem(path))


def ucr_bytes(cases: SeriesSet, path: Path, *, old: bool) -> bytes:
    """The cases as a .tsv or, `old`, .txt file; with tabs in both."""
    if cases.n_channels != 1:
        raise SeriesFileError(f"{path} cannot hold {cases.n_channels} channels; write another file type.")
    if cases.y is None:
        raise SeriesFileError(f"{path} cannot be written without labels; write .ts, .csv, .parquet or .npz.")
    labels = label_texts(cases.y, path, "\t\r\n")
    for label in set(labels):
        if old and _whole_number(label) != label:
            raise SeriesFileError(f"{path} cannot hold the label {label!r}: it would be read as a whole number.")
    rows = zip(labels, padded(cases, path)[:, 0], strict=True)
    return "".join("\t".join([label, *number_texts(row, "NaN")]) + "\n" for label, row in rows).encode()


def _whole_number(label: str) -> str:
    """`1.0000000e+00` as `1`; every other label as it is."""
    if FLOAT_NOTATION.fullmatch(label) and float(label).is_integer():
        return str(int(float(label)))
    return label
