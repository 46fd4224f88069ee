"""pdftime bench explain: do maps find known moments, and does taking away what they name change decisions?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdftime.cli.bench.options import Datasets, names_of, numbers_of
from pdftime.cli.bench.table import Form, FormOption, Output, check_output, give
from pdftime.cli.options import Json, check_writable
from pdftime.cli.screen import say
from pdftime.errors import ConfigError, PDFTimeError

if TYPE_CHECKING:
    from pdftime.bench.explain_rows import Row

EXAMPLES = (
    "pdftime bench explain -r explain.csv --seeds 0-4",
    "pdftime bench explain -r explain.csv --problems lowvar --encoders none",
    "pdftime bench explain archives -r explain.csv --problems none",
)


def run(
    results: Annotated[
        Path, typer.Option("--results", "-r", metavar="FILE", help="The .csv file of results; it is added to.")
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SOURCE]...", help="Datasets for deletion: folders, or aeon:NAME; none by default."),
    ] = None,
    problems: Annotated[
        str, typer.Option(metavar="NAMES", help="Generated problems, separated by commas; none for none.")
    ] = "lowvar,pulses,ramps,decoy",
    encoders: Annotated[
        str, typer.Option(metavar="NAMES", help="Encoders, separated by commas: attention, window, none; or bank.")
    ] = "attention,none",
    datasets: Datasets = None,
    seeds: Annotated[str, typer.Option(metavar="N,N-N", help="Seeds, each a problem and a model of its own.")] = "0",
    explained: Annotated[int, typer.Option(metavar="N", min=1, help="Cases to explain at most, each time.")] = 100,
    n_cases: Annotated[
        int | None,
        typer.Option(metavar="N", min=8, help="Training cases of a problem.", show_default="as the problem has"),
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time for a fit.", show_default="no limit")
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep fitted models there, and use those that are there."),
    ] = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads to compute with.")] = 1,
    form: FormOption = Form.terminal,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Measure explanations where the answer is known, and by deletion where it is not.

    On generated problems, maps are ranked by how well they find the moments that make the class; on datasets, by how
    much of the class's probability is lost while what they name is taken away. Beside ours stand random maps, the
    distance from the median, an untrained network, token evidence, and captum if it is installed. What is in FILE is
    not measured again.
    """
    check_output(output, form)
    if results.suffix.lower() != ".csv":
        raise ConfigError(f"--results is {results}; expected a file that ends in .csv.")
    check_writable(results)
    chosen = [] if problems == "none" else names_of(problems)
    wanted = names_of(encoders)
    strange = [name for name in wanted if name not in ("attention", "window", "none", "bank")]
    if strange or not wanted:
        raise ConfigError(
            f"--encoders is {encoders!r}; expected attention, window, none or bank, separated by commas."
        )
    if max_time is not None and max_time <= 0:
        raise ConfigError(f"--max-time is {max_time:g}; expected a positive number of seconds.")

    import torch

    from pdftime.bench.archives import find_datasets
    from pdftime.bench.explain import Plan, check_problem, deletion, known_moments
    from pdftime.bench.explain_rows import read_rows, tables_of, write_rows

    for name in chosen:
        check_problem(name)
    if models is not None and not models.is_dir():
        raise ConfigError(f"--models is {models}, which is no folder; make it first.")
    rows = read_rows(results)
    finished = {(row.data, row.encoder, row.seed) for row in rows}
    found = find_datasets(sources, names_of(datasets)) if sources else []
    torch.set_num_threads(threads)

    def add(new: list[Row]) -> None:
        rows.extend(new)
        write_rows(results, rows)
        if not as_json:
            say(line_of(new))

    for seed in numbers_of(seeds, "--seeds"):
        for encoder in wanted:
            plan = Plan(encoder, seed, explained, n_cases, max_time, models)
            for name in chosen:
                if (name, encoder, seed) not in finished:
                    add(known_moments(name, plan))
            for dataset in found:
                if (dataset.name, encoder, seed) not in finished:
                    try:
                        add(deletion(dataset, plan))
                    except PDFTimeError as error:
                        say(f"{dataset.name}  failed: {error}")
    give(tables_of(rows), form, output, as_json=as_json)


def line_of(rows: list[Row]) -> str:
    """The rows of one model in one line."""
    first = rows[0]
    measure = "auprc" if first.kind == "moments" else "aopc"
    values = ", ".join(f"{row.map} {getattr(row, measure):.3f}" for row in rows)
    head = f"{first.data}  encoder {first.encoder}  seed {first.seed}  accuracy {first.accuracy:.3f}"
    return f"{head}  {measure.upper()}: {values}"
