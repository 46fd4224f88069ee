"""What people and programs see: sentences, tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHOWN_CLASSES = 12


def console() -> Console:
    """Standard output as it is now; labels and file names are shown as they are, brackets and all."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)


def say(text: str = "", style: str | None = None) -> None:
    """A sentence; wrapped between words on a terminal, one line elsewhere."""
    screen = console()
    screen.print(text, style=style, soft_wrap=not screen.is_terminal)


def show(table: Table) -> None:
    """A table, as wide as it must be where nobody sees it."""
    screen = console()
    if not screen.is_terminal:
        screen.width = 1000
    screen.print(table)


def table_of(columns: Sequence[str], *, right_from: int = 1) -> Table:
    """An empty table; columns from `right_from` on hold numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place >= right_from else "left", no_wrap=True)
    return table


def suggest(commands: Sequence[str]) -> None:
    """Commands to try next, each on one line, to be copied."""
    say("Next:")
    for command in commands:
        console().print(f"  {command}", style="cyan", soft_wrap=True)


@contextmanager
def progress_bar(what: str, unit: str, *, enabled: bool) -> Iterator[Callable[[int, int], None]]:
    """A function that draws how many of how many are done, on standard error and only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, disable=not (enabled and screen.is_terminal), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_json(data: Any) -> None:
    """Plain data on standard output; only ASCII, so that no terminal can spoil it."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def count(n: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(1, "case"), count(2, "class", "classes")
    ('1 case', '2 classes')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def size_text(n_bytes: int) -> str:
    """
    >>> size_text(1_500_000)
    '1.5 MB'
    """
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"
