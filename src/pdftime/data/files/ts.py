"""The .ts format of the time series classification archives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.data.files.text import SHOWN, Place, label_texts, lines, number_texts, numbers, stem
from pdftime.data.labels import encode
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

COMMENTS = "#%"
SPACES = " \t\r\n\v\f"
STAMPED = re.compile(r"\(([^(),]*),([^(),]*)\)")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?")


@dataclass
class Header:
    """What the lines before @data declare; None where they are silent."""

    name: str | None = None
    time_stamps: bool = False
    univariate: bool | None = None
    dimensions: int | None = None
    equal_length: bool | None = None
    series_length: int | None = None
    missing: bool | None = None
    has_labels: bool | None = None
    labels: frozenset[str] = frozenset()


class Case(NamedTuple):
    """One line after @data."""

    values: NDArray[np.float64]
    """(n_dimensions, n_timepoints)"""
    label: str
    times: NDArray[Any] | None
    """(n_timepoints,) the time stamps that all dimensions share."""


def read_ts(path: Path) -> SeriesSet:
    """The cases of a .ts file; every line is held against what the header declares."""
    rows = _content(path)
    header = _read_header(path, rows)
    cases: list[Case] = []
    for place, line in rows:
        case = _read_case(place, line, header)
        cases.append(case)
        # what the header left open is set by the first case
        header.dimensions, length = case.values.shape
        if header.equal_length and header.series_length is None:
            header.series_length = length
    if not cases:
        raise SeriesFileError(f"{path} has no cases after @data; is it cut off?")
    return check_series(
        [case.values for case in cases],
        [case.label for case in cases] if header.has_labels else None,
        lengths=[case.values.shape[1] for case in cases],  # a line's own, also where it ends with missing values
        name=header.name or stem(path),
        times=[case.times for case in cases] if header.time_stamps else None,
    )


def ts_bytes(cases: SeriesSet, path: Path) -> bytes:
    """The cases as a .ts file."""
    equal_length = bool((cases.lengths == cases.lengths[0]).all())
    header = [
        f"@problemName {' '.join((cases.name or stem(path)).split())}",
        f"@timeStamps {_flag(cases.times is not None)}",
        f"@missing {_flag(cases.has_missing)}",
        f"@univariate {_flag(cases.n_channels == 1)}",
        f"@equalLength {_flag(equal_length)}",
    ]
    if cases.n_channels > 1:
        header.insert(4, f"@dimensions {cases.n_channels}")
    if equal_length:
        header.append(f"@seriesLength {cases.lengths[0]}")
    ends = [""] * len(cases)
    if cases.y is None:
        header.append("@classLabel false")
    else:
        ends = [f":{label}" for label in label_texts(cases.y, path, SPACES + ":")]
        header.append(f"@classLabel true {' '.join(str(label) for label in encode(cases.y).classes.tolist())}")
    body = [":".join(_dimension_texts(cases, index)) + end for index, end in enumerate(ends)]
    return "\n".join([*header, "@data", *body, ""]).encode()


def _dimension_texts(cases: SeriesSet, index: int) -> Iterator[str]:
    """The channels of one case: values, or pairs of time stamp and value."""
    times = cases.times_of(index)
    for channel in cases.series(index):
        cells = number_texts(channel, "?")
        if times is not None:
            cells = [f"({_stamp_text(time)},{cell})" for time, cell in zip(times, cells, strict=True)]
        yield ",".join(cells)


def _stamp_text(time: Any) -> str:
    """A time stamp that reads back as the same."""
    if isinstance(time, np.datetime64):
        return str(time).replace("T", " ")
    return str(int(time)) if float(time).is_integer() else repr(float(time))


def _content(path: Path) -> Iterator[tuple[Place, str]]:
    """The lines that are neither empty nor comments."""
    for place, text in lines(path):
        line = text.strip()
        if line and line[0] not in COMMENTS:
            yield place, line


def _read_header(path: Path, rows: Iterator[tuple[Place, str]]) -> Header:
    """Everything up to and including @data."""
    header = Header()
    seen: set[str] = set()
    place = Place(path, 1)
    for place, line in rows:
        if not line.startswith("@"):
            raise place.error(f"expected a header line such as '@univariate true', got {line[:SHOWN]!r}.")
        key, *words = line.split()
        key = key[1:].lower()
        if key == "data":
            _check_header(place, header, words)
            return header
        if key in seen and key != "problemname":
            raise place.error(f"@{key} is given twice.")
        seen.add(key)
        _take(place, header, key, words)
    raise place.error("the file ends without a line '@data'; it is empty, cut off or no .ts file.")


def _take(place: Place, header: Header, key: str, words: list[str]) -> None:
    """One header line into the header."""
    match key:
        case "problemname":
            header.name = " ".join(words)
        case "timestamps":
            header.time_stamps = _truth(place, key, words)
        case "univariate":
            header.univariate = _truth(place, key, words)
        case "dimensions" | "dimension":
            header.dimensions = _count(place, key, words)
        case "equallength":
            header.equal_length = _truth(place, key, words)
        case "serieslength":
            header.series_length = _count(place, key, words)
        case "missing":
            header.missing = _truth(place, key, words)
        case "targetlabel":
            if _truth(place, key, words):
                raise place.error("this is a regression problem (@targetlabel true); only classes can be read.")
            header.has_labels = bool(header.has_labels)
        case "classlabel":
            header.has_labels = _truth(place, key, words[:1])
            header.labels = frozenset(words[1:])
            if header.has_labels != bool(header.labels):
                raise place.error("expected '@classLabel true' and every label, or '@classLabel false'.")
        case _:
            raise place.error(
                f"the header @{key} is unknown. Known are @problemName, @timeStamps, @missing, @univariate, "
                "@dimensions, @equalLength, @seriesLength, @classLabel, @targetlabel and @data."
            )


def _check_header(place: Place, header: Header, words: list[str]) -> None:
    """Refuse a header that contradicts itself or leaves open whether there are labels."""
    if words:
        raise place.error("@data stands alone on its line; the cases begin on the next one.")
    if header.has_labels is None:
        raise place.error("the header has no @classLabel; expected '@classLabel true a b' or '@classLabel false'.")
    if header.univariate:
        if header.dimensions not in (None, 1):
            raise place.error(f"the header says '@univariate true' and '@dimensions {header.dimensions}'.")
        header.dimensions = 1


def _read_case(place: Place, line: str, header: Header) -> Case:
    """The values, the label and the time stamps of one line."""
    if not header.has_labels:
        line = line.removesuffix(":") + ":"  # aeon writes the colon of a label that is not there
    text, _, label = line.rpartition(":")
    label = label.strip()
    times: list[str] = []
    if header.time_stamps:
        text, times = _split_stamps(place, text)
    elif "(" in text:
        raise place.error(
            "values in brackets are time stamps and values; then the header must say '@timeStamps true'."
        )
    dimensions = text.split(":") if text else []
    expected = header.dimensions or max(len(dimensions), 1)
    if len(dimensions) != expected:
        tail = " and a label" if header.has_labels else ""
        raise place.error(
            f"{len(dimensions)} dimensions{tail}, separated by ':'; expected {expected}{tail}. Is the line cut off?"
        )
    if header.has_labels and label not in header.labels:
        raise place.error(
            f"the label {label[:SHOWN]!r} is not declared; @classLabel lists {sorted(header.labels)[:10]}."
        )
    rows = [
        numbers(place, dimension, what=f"dimension {index}, value" if expected > 1 else "value")
        for index, dimension in enumerate(dimensions, 1)
    ]
    _check_lengths(place, rows, header)
    values = np.stack(rows)
    if header.missing is False and np.isnan(values).any():
        dimension, time = np.argwhere(np.isnan(values))[0] + 1
        raise place.error(f"value {time} of dimension {dimension} is missing, but the header says '@missing false'.")
    return Case(values, label, _stamps(place, times, values) if header.time_stamps else None)


def _split_stamps(place: Place, text: str) -> tuple[str, list[str]]:
    """A line of (time, value) pairs as a line of values, and the times of all dimensions one after the other."""
    times = [time.strip() for time, _ in STAMPED.findall(text)]
    values = STAMPED.sub(lambda pair: pair[2], text)
    if "(" in values or ")" in values or values.count(",") + values.count(":") + 1 != len(times):
        raise place.error("expected every value with its time stamp, as in (0,1.5),(1,2.5). Is the line cut off?")
    return values, times


def _stamps(place: Place, texts: list[str], values: NDArray[np.float64]) -> NDArray[Any]:
    """(n_timepoints,) times of a case, which must be the same in every dimension."""
    times: NDArray[Any]
    if all(DATE.fullmatch(text) for text in texts):
        try:
            times = np.array(texts, "datetime64")
        except ValueError as error:
            raise place.error(f"a time stamp is no date: {error}.") from error
    else:
        times = numbers(place, ",".join(texts), what="time stamp")
        if np.isnan(times).any():
            raise place.error(f"time stamp {int(np.argmax(np.isnan(times))) + 1} is missing; every value needs one.")
    rows = times.reshape(values.shape)
    if not (rows == rows[0]).all():
        dimension = int(np.argmin((rows == rows[0]).all(axis=1))) + 1
        raise place.error(
            f"dimension {dimension} has other time stamps than the first; all dimensions of a case need the same, "
            "with ? where one has no value."
        )
    own: NDArray[Any] = rows[0]
    return own


def _check_lengths(place: Place, rows: list[NDArray[np.float64]], header: Header) -> None:
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise place.error(f"the dimensions have {lengths} values; expected as many in each.")
    if header.equal_length is not False and header.series_length not in (None, lengths[0]):
        raise place.error(
            f"{lengths[0]} values; expected {header.series_length}, the length of every series in this file. "
            "If lengths differ, the header must say '@equalLength false'."
        )


def _truth(place: Place, key: str, words: list[str]) -> bool:
    word = " ".join(words).lower()
    if word not in ("true", "false"):
        raise place.error(f"@{key} is {word!r}; expected true or false.")
    return word == "true"


def _count(place: Place, key: str, words: list[str]) -> int:
    word = " ".join(words)
    if not (word.isascii() and word.isdigit() and int(word) > 0):
        raise place.error(f"@{key} is {word!r}; expected a whole number above zero.")
    return int(word)


def _flag(value: bool) -> str:
    return "true" if value else "false"
