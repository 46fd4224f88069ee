"""The .arff form of the archives: numeric attributes, or a relational one of several channels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pdftime.data.files.columns import check_alike
from pdftime.data.files.padded import padded
from pdftime.data.files.text import SHOWN, Place, label_texts, lines, number_texts, numbers, stem
from pdftime.data.labels import encode
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
WORD = re.compile(rf"\s*({QUOTED}|[^,'\"]*)\s*(?:,|$)")
ATTRIBUTE = re.compile(rf"({QUOTED}|[^\s{{]+)\s*(.*)")
LABELLED = re.compile(rf"(.*),\s*({QUOTED}|[^,'\"]*?)\s*")
NUMERIC = ("numeric", "real", "integer")
PLAIN = re.compile(r"[\w.+-]+")  # words that need no quotes
NEW_CHANNEL = "\\n"  # a backslash and an n, as it stands in the file


@dataclass
class Header:
    """What the lines before @data declare."""

    name: str = ""
    points: list[str] = field(default_factory=list)
    """Names of the numeric attributes: the time points."""
    relational: bool = False
    """Whether the time points stand inside a relational attribute."""
    inside: bool = False
    """Whether the relational attribute is still open."""
    labels: frozenset[str] | None = None


def read_arff(path: Path) -> SeriesSet:
    """The cases of an .arff file, with one channel (numeric attributes) or several (relational attribute)."""
    rows = _content(path)
    header = _read_header(path, rows)
    cases: list[NDArray[np.float64]] = []
    labels: list[str | None] = []
    for place, line in rows:
        text, label = _split_label(place, line, header)
        values = _read_values(place, text, header)
        if cases and len(values) != len(cases[0]):
            raise place.error(f"{len(values)} channels; expected {len(cases[0])} as in the first case.")
        cases.append(values)
        labels.append(label)
        if (label is None) != (labels[0] is None):
            raise place.error("some cases have a label and some have ?; expected all or none.")
    if not cases:
        raise SeriesFileError(f"{path} has no cases after @data; is it cut off?")
    y = None if labels[0] is None else labels
    return check_series(np.stack(cases), y, name=header.name or stem(path))


def arff_bytes(cases: SeriesSet, path: Path) -> bytes:
    """The cases as an .arff file, relational if they have several channels."""
    X = padded(cases, path)
    points = [f"@attribute att{time} numeric" for time in range(cases.n_timepoints)]
    if cases.n_channels > 1:
        points = ["@attribute series relational", *points, "@end series"]
    header = [f"@relation {_quote(' '.join((cases.name or stem(path)).split()))}", *points]
    ends = [""] * len(cases)
    if cases.y is not None:
        ends = [f",{_quote(label)}" for label in label_texts(cases.y, path, "\r\n")]
        classes = (_quote(str(label)) for label in encode(cases.y).classes.tolist())
        header.append(f"@attribute target {{{','.join(classes)}}}")
    body = []
    for series, end in zip(X, ends, strict=True):
        text = NEW_CHANNEL.join(",".join(number_texts(channel, "?")) for channel in series)
        body.append((f"'{text}'" if cases.n_channels > 1 else text) + end)
    return "\n".join([*header, "@data", *body, ""]).encode()


def _content(path: Path) -> Iterator[tuple[Place, str]]:
    """The lines that are neither empty nor comments."""
    for place, text in lines(path):
        line = text.strip()
        if line and not line.startswith("%"):
            yield place, line


def _read_header(path: Path, rows: Iterator[tuple[Place, str]]) -> Header:
    """Everything up to and including @data."""
    header = Header()
    place = Place(path, 1)
    for place, line in rows:
        key, rest = [*line.split(None, 1), ""][:2]
        match key.lower():
            case "@data":
                _check_header(place, header)
                return header
            case "@relation":
                header.name = _unquote(rest)
            case "@end":
                header.inside = False
            case "@attribute":
                _take(place, header, rest)
            case _:
                raise place.error(f"expected @relation, @attribute, @end or @data, got {line[:SHOWN]!r}.")
    raise place.error("the file ends without a line '@data'; it is empty, cut off or no .arff file.")


def _take(place: Place, header: Header, declaration: str) -> None:
    """One attribute into the header."""
    found = ATTRIBUTE.fullmatch(declaration)
    name, kind = (_unquote(found[1]), found[2]) if found else (declaration, "")
    if header.labels is not None:
        raise place.error(f"the attribute {name!r} comes after the nominal one; expected the class to be last.")
    if kind.startswith("{") and kind.endswith("}") and not header.inside:
        header.labels = frozenset(_words(kind[1:-1]))
    elif kind.lower() == "relational" and not header.points and not header.relational:
        header.relational = header.inside = True
    elif kind.lower() in NUMERIC and header.inside == header.relational:
        header.points.append(name)
    else:
        raise place.error(
            f"the attribute {name!r} of type {kind[:SHOWN]!r} does not fit. Expected numeric time points, "
            "alone or inside one relational attribute, and then the class as {a,b,c}."
        )


def _check_header(place: Place, header: Header) -> None:
    if not header.points:
        raise place.error("the header declares no numeric attributes, that is no time points.")
    if header.inside:
        raise place.error("the relational attribute is not closed by @end.")
    try:
        check_alike(header.points, "attribute")
    except ValueError as error:
        raise place.error(f"{error} The class is declared as a list, {{a,b,c}}.") from error


def _split_label(place: Place, line: str, header: Header) -> tuple[str, str | None]:
    """The text of the values and the label; None where the file has no label, or ? in its place."""
    if header.labels is None:
        return line, None
    found = LABELLED.fullmatch(line)
    if found is None:
        raise place.error("expected values and a label, separated by a comma. Is the line cut off?")
    if found[2] == "?":
        return found[1], None
    label = _unquote(found[2])
    if label not in header.labels:
        raise place.error(f"the label {label[:SHOWN]!r} is not declared; known are {sorted(header.labels)[:10]}.")
    return found[1], label


def _read_values(place: Place, text: str, header: Header) -> NDArray[np.float64]:
    """The values (n_channels, n_timepoints) of one line."""
    text = text.strip()
    channels = [text]
    if header.relational:
        if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
            raise place.error("expected the channels in quotes. Is the line cut off?")
        channels = text[1:-1].split(NEW_CHANNEL)
    rows = [
        numbers(place, channel, what=f"channel {index}, value" if header.relational else "value")
        for index, channel in enumerate(channels, 1)
    ]
    for row in rows:
        if len(row) != len(header.points):
            raise place.error(f"{len(row)} values; expected {len(header.points)}, as many as numeric attributes.")
    return np.stack(rows)


def _words(text: str) -> list[str]:
    """The words of a list separated by commas, quotes taken off."""
    return [_unquote(match[1].strip()) for match in WORD.finditer(text) if match[1].strip()]


def _quote(word: str) -> str:
    return word if PLAIN.fullmatch(word) else "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unquote(word: str) -> str:
    if len(word) >= 2 and word[0] in "'\"" and word[-1] == word[0]:
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word
