"""pdftime bench table: results beside published accuracies, as tables and pictures."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdftime.cli.bench.options import Datasets, names_of
from pdftime.cli.options import Json, check_writable
from pdftime.cli.screen import console, count, say, show, write_json
from pdftime.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pdftime.bench.comparison import Comparison
    from pdftime.bench.store import Row
    from pdftime.bench.tables import Table

EXAMPLES = (
    "pdftime bench table results.csv",
    "pdftime bench table mine.csv peers.csv --against hivecote2,rocket",
    "pdftime bench table results.csv --form latex -o table.tex --pictures pictures",
)


class Archive(str, Enum):
    """Where a dataset belongs, by its name."""

    ucr = "ucr"
    uea = "uea"
    own = "own"


class Form(str, Enum):
    """How tables are written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"
    html = "html"


FormOption = Annotated[
    Form, typer.Option("--form", metavar="terminal|markdown|csv|latex|html", help="How tables are written.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the tables there; not as terminal.")
]


def run(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="The .csv files of `pdftime bench run`.")
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Published methods to compare with, separated by commas; none for none.",
            show_default="HIVE-COTE 2.0, MultiROCKET-Hydra, InceptionTime, ROCKET",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="METHOD",
            help="Only this method of RESULTS; may be repeated.",
            show_default="all",
        ),
    ] = None,
    datasets: Datasets = None,
    archive: Annotated[
        Archive | None, typer.Option(metavar="ucr|uea|own", help="Only datasets of this archive.", show_default="all")
    ] = None,
    behind: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="List the datasets on which ours is furthest behind these, of --against."),
    ] = None,
    form: FormOption = Form.terminal,
    output: Output = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw the comparisons there, as .png and .svg.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare results with each other and with published accuracies on the same datasets and the original split.

    Seeds are averaged first. Only datasets that all methods have enter a mean, and every table says how many. Figures
    that were chosen on test data, and those that the paper prints, stand in a table of their own and are not compared
    as equals.
    """
    from pdftime.bench.comparison import compare
    from pdftime.bench.overview import agreement, all_tables
    from pdftime.bench.store import read_rows

    check_output(output, form)
    rows = [row for path in results for row in read_rows(path)]
    wanted = None if against is None else [] if against == "none" else names_of(against)
    kept = _kept(rows, datasets, methods)
    comparisons = [each for each in compare(kept, wanted) if archive is None or each.archive == archive.value]
    if not comparisons:
        raise DataError(f"No finished row is of the archive {archive.value if archive else ''}.")
    worse = names_of(behind)
    strange = [name for name in worse if not any(each.peer(name) for each in comparisons)]
    if strange:
        raise ConfigError(f"--behind names {', '.join(strange)}, which is not among those of --against.")
    ran = {name for each in comparisons for name in each.scores.datasets}
    tables = all_tables(comparisons, worse) + agreement(row for row in kept if row.dataset in ran)
    if pictures is not None:
        drawn = draw(comparisons, pictures)
    give(tables, form, output, as_json=as_json)
    if pictures is not None and not as_json and (form is Form.terminal or output is not None):
        say(f"Drew {count(drawn, 'picture')} to {pictures}.")


def check_output(output: Path | None, form: Form) -> None:
    """Refuse, before any work, what cannot be written."""
    if output is not None and form is Form.terminal:
        raise ConfigError("--output takes no terminal table; say --form markdown, csv, latex or html.")
    if output is not None:
        check_writable(output)


def give(tables: Sequence[Table], form: Form, output: Path | None, *, as_json: bool) -> None:
    """Tables where they are wanted: on the screen, as text, in a file, or as JSON."""
    from pdftime.bench.tables import render

    if as_json:
        write_json(
            [
                {
                    "title": table.title,
                    "columns": [column.name for column in table.columns],
                    "rows": [list(row) for row in table.rows],
                    "notes": list(table.notes),
                }
                for table in tables
            ]
        )
    elif form is Form.terminal:
        for table in tables:
            show_table(table)
    elif output is None:
        typer.echo(render(tables, form.value), nl=False)
    else:
        output.write_text(render(tables, form.value), encoding="utf-8")
        say(f"Wrote {count(len(tables), 'table')} to {output}.")


def show_table(table: Table) -> None:
    """A table on the screen, its title above, its notes below; long headings are wrapped."""
    from rich import box
    from rich.table import Table as ScreenTable
    from rich.text import Text

    shown = ScreenTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        shown.add_column(
            column.name,
            justify="right" if column.is_number else "left",
            no_wrap=not column.is_number,
            overflow="fold",
        )
    for place, row in enumerate(table.texts()):
        shown.add_row(*(Text(text, "bold" if (place, n) in table.strong else "") for n, text in enumerate(row)))
    say(table.title, style="bold")
    show(shown)
    for note in table.notes:
        say(note, style="dim")
    console().print()


def draw(comparisons: Sequence[Comparison], folder: Path) -> int:
    """Every picture in both forms; how many there are."""
    from pdftime.bench.pictures import SUFFIXES, figures_of, save

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be made: {error}. Choose another place.") from error
    figures = {name: figure for each in comparisons for name, figure in figures_of(each).items()}
    for name, figure in figures.items():
        for suffix in SUFFIXES:
            save(figure, folder / f"{name}{suffix}")
    return len(figures) * len(SUFFIXES)


def _kept(rows: Sequence[Row], datasets: str | None, methods: Sequence[str] | None) -> list[Row]:
    """The rows of these datasets, by name or pattern, and of these methods."""
    there = {row.dataset for row in rows}
    patterns = names_of(datasets) or ["*"]
    strange = [name for name in patterns if not fnmatch.filter(there, name)]
    if strange:
        raise DataError(
            f"The results hold no dataset {', '.join(strange)}; they hold {', '.join(sorted(there)[:10])}."
        )
    ran = {row.method for row in rows}
    unknown = [method for method in methods or () if method not in ran]
    if unknown:
        raise DataError(f"The results hold no method {', '.join(unknown)}; they hold {', '.join(sorted(ran)[:10])}.")
    return [
        row
        for row in rows
        if any(fnmatch.fnmatchcase(row.dataset, pattern) for pattern in patterns)
        and (not methods or row.method in methods)
    ]
