"""pdftime bench export: the CSV of results from its database, whatever became of the runner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdftime.cli.options import Json, check_writable
from pdftime.cli.screen import count, say, write_json
from pdftime.errors import DataError

EXAMPLES = ("pdftime bench export results.csv", "pdftime bench export results.csv -o copy.csv --json")


def run(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="The .csv file of results of `pdftime bench run`.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Another .csv file to write.", show_default="RESULTS"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write all rows of the database beside RESULTS, and those of RESULTS itself, as one CSV file.

    A run does this every minute and at its end; after a kill this saves waiting for the next run.
    """
    from pdftime.bench.store import Store, database_of, write_rows

    if not results.exists() and not database_of(results).exists():
        raise DataError(f"There is neither {results} nor {database_of(results)}. Make them with pdftime bench run.")
    target = output or results
    check_writable(target)
    with Store(results) as store:
        rows = store.rows()
    write_rows(target, rows)
    failed = sum(row.status != "ok" for row in rows)
    if as_json:
        write_json({"output": str(target), "n_rows": len(rows), "n_failed": failed})
    else:
        say(f"Wrote {count(len(rows), 'row')}, {failed} of them failures, to {target}.")
