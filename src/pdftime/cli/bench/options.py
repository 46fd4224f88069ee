"""What several commands of the harness ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdftime.errors import ConfigError

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Folders with NAME.npz or NAME_TRAIN/NAME_TEST .ts .tsv .arff .txt files at any depth; or aeon:NAME.",
    ),
]
Datasets = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Only these, separated by commas; * stands for any letters.", show_default="all"
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="METHOD",
        help="A method; may be repeated. `pdftime bench methods` lists them.",
        show_default="default",
    ),
]
Results = Annotated[
    Path,
    typer.Option("--results", "-r", metavar="FILE", help="The .csv file of results; its database stands beside it."),
]


def names_of(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def numbers_of(text: str, what: str) -> list[int]:
    """Whole numbers separated by commas, with ranges.

    >>> numbers_of("0-2,7", "--seeds")
    [0, 1, 2, 7]
    """
    numbers: list[int] = []
    for part in names_of(text):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise ConfigError(f"{what} is {text!r}; expected whole numbers, as in 0, 0,3 or 0-4.")
        numbers += range(int(first), int(last if dash else first) + 1)
    if not numbers:
        raise ConfigError(f"{what} is empty; expected whole numbers, as in 0, 0,3 or 0-4.")
    return list(dict.fromkeys(numbers))
