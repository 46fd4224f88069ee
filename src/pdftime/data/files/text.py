"""What the text formats share: lines with their place, rows of numbers, labels as words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import SeriesFileError

SHOWN = 40  # characters of a wrong cell that are worth reading


class Place(NamedTuple):
    """A line of a file, for messages."""

    path: Path
    line: int

    def error(self, sentence: str) -> SeriesFileError:
        return SeriesFileError(f"{self.path}, line {self.line}: {sentence}")


def lines(path: Path) -> Iterator[tuple[Place, str]]:
    """Every line with its place and without its line end."""
    place = Place(path, 0)
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, 1):
                place = Place(path, number)
                if b"\0" in raw:
                    raise place.error("this is binary data, not text.")
                yield place, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise place.error("this is not UTF-8 text; save the file as UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from error


def whole(path: Path) -> bytes:
    """The content of a file, unpacked if it ends in .gz."""
    try:
        with _open(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> SeriesFileError:
    """What the system or a decoder says about a file, as our error."""
    return SeriesFileError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def stem(path: Path) -> str:
    """The file's name without suffixes: the name of a set whose file does not give one."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def numbers(place: Place, text: str, separator: str | None = ",", what: str = "value") -> NDArray[np.float64]:
    """A row of numbers, NaN where it says ? or NaN; what is no finite number is refused by position."""
    cells = text.split(separator)
    if "?" in text:
        cells = ["nan" if cell.strip() == "?" else cell for cell in cells]
    # float() would also take 1_000 and the digits of other scripts
    if text.isascii() and "_" not in text:
        try:
            values = np.array([float(cell) for cell in cells])
        except ValueError:
            pass
        else:
            if np.isinf(values).any():
                position = int(np.argmax(np.isinf(values)))
                raise place.error(f"{what} {position + 1} is infinite ({cells[position].strip()!r}).")
            return values
    position, cell = next((p, cell) for p, cell in enumerate(cells, 1) if not _is_number(cell))
    raise place.error(
        f"{what} {position} is {cell.strip()[:SHOWN]!r}; expected a number, or ? or NaN where it is missing."
    )


def number_texts(values: NDArray[Any], missing: str) -> list[str]:
    """The shortest texts that read back as the same numbers of the same dtype."""
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    texts: list[str] = values.astype(str).tolist()
    return [missing if text == "nan" else text for text in texts]


def label_texts(y: NDArray[Any], path: Path, forbidden: str) -> list[str]:
    """Labels as words of a text file; those that would not come back as they are, are refused."""
    words: dict[Any, str] = {}
    for label in dict.fromkeys(y.tolist()):
        word = str(label)
        if isinstance(label, bytes) or word != word.strip() or not word or not set(word).isdisjoint(forbidden):
            raise SeriesFileError(
                f"{path} cannot hold the label {label!r}: in this format a label is a text that is not empty "
                f"and has none of the characters {list(forbidden)}. Rename it, or write .parquet or .npz."
            )
        words[label] = word
    if len(set(words.values())) != len(words):
        raise SeriesFileError(f"{path} cannot tell labels of different kinds apart, as 1 from '1'.")
    return [words[label] for label in y.tolist()]


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell
