"""pdftime bench paper: the paper's experiments, each beside its printed values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pdftime.cli.bench.options import Datasets, names_of, numbers_of
from pdftime.cli.bench.table import Form, FormOption, Output, check_output, give
from pdftime.cli.options import Json
from pdftime.cli.screen import count, say

EXAMPLES = (
    "pdftime bench paper embedding archives --quick",
    "pdftime bench paper uea archives --seeds 0-2 --jobs 2",
    "pdftime bench paper momentum archives -r momentum.csv --seeds 0-2",
    "pdftime bench paper prototypes -r prototypes.csv --form markdown",
)


class Name(str, Enum):
    """A table of the paper."""

    uea = "uea"
    ucr = "ucr"
    embedding = "embedding"
    head = "head"
    momentum = "momentum"
    prototypes = "prototypes"


class Base(str, Enum):
    """Settings to start from."""

    network = "network"
    paper = "paper"


def run(
    experiment: Annotated[
        Name,
        typer.Argument(
            metavar="EXPERIMENT", help="Which table of the paper: uea, ucr, embedding, head, momentum or prototypes."
        ),
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...", help="Folders with datasets, or aeon:NAME; none: print what --results holds."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            "-r",
            metavar="FILE",
            help="The .csv file of results; its database stands beside it.",
            show_default="paper_EXPERIMENT.csv",
        ),
    ] = None,
    preset: Annotated[Base, typer.Option(metavar="network|paper", help="Settings that the table starts from.")] = (
        Base.network
    ),
    datasets: Datasets = None,
    seeds: Annotated[str, typer.Option(metavar="N,N-N", help="Seeds, each a run of its own.")] = "0",
    quick: Annotated[
        bool, typer.Option("--quick", help="A look in minutes: few steps, and the three smallest datasets.")
    ] = False,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes at a time.")] = 1,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=1e-3, help="Time that a fit may take.")
    ] = None,
    form: FormOption = Form.terminal,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Run an experiment of the paper on the datasets at hand, and print its table beside the printed values.

    uea and ucr are the main tables, on every dataset of that archive. The ablations take those of the paper's ten UEA
    datasets that are there: embedding (no weights on frequencies, linear), head (linear, one level, by gradient),
    momentum (fixed, pairs, adaptive), prototypes (per class and level). Printed values were measured under another
    protocol. Rows that are finished are not run again.
    """
    from pdftime.bench.archives import find_datasets
    from pdftime.bench.paper import QUICK, datasets_of, experiment_of, method_names, tables_of
    from pdftime.bench.runner import plan
    from pdftime.bench.runner import run as sweep
    from pdftime.bench.store import Store, read_rows
    from pdftime.cli.bench.run import Screen, check_results, chosen_methods

    check_output(output, form)
    table = experiment_of(experiment.value)
    path = results or Path(f"paper_{experiment.value}.csv")
    if not sources:
        give(tables_of(table, read_rows(path)), form, output, as_json=as_json)
        return
    names = method_names(table, preset.value, QUICK if quick else "")
    check_results(path)
    found = find_datasets(sources, names_of(datasets))
    taken = datasets_of(table, found, quick=quick, chosen=datasets is not None)
    quiet = as_json or (form is not Form.terminal and output is None)
    if not quiet:
        budget = f", reduced budget ({QUICK})" if quick else ""
        say(f"{table.title}: {count(len(names), 'method')} on {count(len(taken), 'dataset')}{budget}.")
    with Store(path) as store:
        todo = plan(store, taken, chosen_methods(names), seeds=numbers_of(seeds, "--seeds"), max_time=max_time)
        with Screen(todo, quiet=quiet) as screen:
            try:
                sweep(store, todo, n_jobs=jobs, on_progress=screen.show)
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(
                    f"Interrupted; all finished rows are in {path}. Give the same command again to go on."
                ) from stop
        rows = store.rows()
    wanted = {each.name for each in taken}
    give(
        tables_of(table, [row for row in rows if row.method in names and row.dataset in wanted]),
        form,
        output,
        as_json=as_json,
    )
