"""pdftime bench run: methods on datasets, one row each, as often as wanted from where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime.cli.bench.options import Datasets, Methods, Results, Sources, names_of, numbers_of
from pdftime.cli.options import Json
from pdftime.cli.screen import count, say, write_json
from pdftime.errors import ConfigError

if TYPE_CHECKING:
    from pdftime.bench.methods import Method
    from pdftime.bench.runner import Plan, Progress
    from pdftime.bench.store import Row

EXAMPLES = (
    "pdftime bench run archives -r results.csv",
    "pdftime bench run archives -r results.csv -m default -m rocket --seeds 0-2",
    "pdftime bench run aeon:GunPoint -r results.csv -m default:n_members=3",
    "pdftime bench run archives -r results.csv --datasets 'Gun*,ECG200' --jobs 2",
)


class Order(str, Enum):
    """Which task comes first."""

    cheap = "cheap"
    costly = "costly"
    name = "name"


def run(
    sources: Sources,
    results: Results,
    methods: Methods = None,
    datasets: Datasets = None,
    seeds: Annotated[str, typer.Option(metavar="N,N-N", help="Seeds, each a run of its own.")] = "0",
    resamples: Annotated[
        str, typer.Option(metavar="N,N-N", help="Splits: 0 is the original, others are drawn by their number.")
    ] = "0",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes at a time.")] = 1,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads of each process.")] = 1,
    max_time: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time for a fit; a method that cannot keep to it is ended and failed."),
    ] = None,
    order: Annotated[
        Order, typer.Option(metavar="cheap|costly|name", help="Which datasets come first.")
    ] = Order.cheap,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed in an earlier run.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fit and score methods on datasets, one row for each dataset, split, method and seed.

    Rows that are finished are skipped, so the same command goes on where a stopped or killed one was. A failure
    is a row with its reason, and the run goes on. Each fit has a process of its own, with one thread.
    """
    from pdftime.bench.archives import find_datasets
    from pdftime.bench.runner import plan
    from pdftime.bench.runner import run as sweep
    from pdftime.bench.store import Store

    if max_time is not None and max_time <= 0:
        raise ConfigError(f"--max-time is {max_time:g}; expected a positive number of seconds.")
    seed_numbers, splits = numbers_of(seeds, "--seeds"), numbers_of(resamples, "--resamples")
    chosen = chosen_methods(methods)
    found = find_datasets(sources, names_of(datasets))
    check_results(results)
    with Store(results) as store:
        todo = plan(
            store,
            found,
            chosen,
            seeds=seed_numbers,
            resamples=splits,
            n_threads=threads,
            max_time=max_time,
            order=order.value,
            retry_failed=retry_failed,
        )
        with Screen(todo, quiet=as_json) as screen:
            try:
                added = sweep(store, todo, n_jobs=jobs, on_progress=screen.show)
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(
                    f"Interrupted; {count(screen.n_rows, 'new row')} and all earlier ones are in {results}. "
                    "Give the same command again to go on."
                ) from stop
    if as_json:
        facts = {"results": str(results), "added": added, "failed": screen.n_failed, "skipped": todo.n_finished}
        write_json(facts | {"failed_before": todo.n_failed})
    else:
        failed = f", {screen.n_failed} of them failed" if screen.n_failed else ""
        say(f"Added {count(added, 'row')}{failed} to {results}.")


def chosen_methods(texts: Sequence[str] | None) -> list[Method]:
    """The methods that are named, each with its package at hand."""
    from pdftime.bench.methods import method_of, missing_extra

    methods = [method_of(text) for text in dict.fromkeys(texts or ["default"])]
    for method in methods:
        extra = missing_extra(method)
        if extra is not None:
            raise ConfigError(f"{method.name} needs a package that is not here; install pdftime[{extra}].")
    return methods


def check_results(path: Any) -> None:
    """Refuse a place where results cannot be kept."""
    from pdftime.cli.options import check_writable

    if path.suffix.lower() != ".csv":
        raise ConfigError(f"--results is {path}; expected a file that ends in .csv.")
    check_writable(path)


class Screen:
    """A bar with the time left on a terminal, and one line for each row anywhere."""

    def __init__(self, todo: Plan, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._quiet = quiet
        self._console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("rows", total=len(todo.tasks), left="")
        self.n_rows = self.n_failed = 0
        if not quiet:
            before = f", {count(todo.n_finished, 'row')} finished before" if todo.n_finished else ""
            failed = f", {todo.n_failed} failed before (--retry-failed tries them again)" if todo.n_failed else ""
            say(f"{count(len(todo.tasks), 'task')} to do{before}{failed}.")

    def __enter__(self) -> Screen:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        left = "" if progress.seconds_left is None else f"{duration(progress.seconds_left)} left"
        self._bar.update(self._task, completed=progress.n_done, left=left)
        if progress.row is None:
            return
        self.n_rows += 1
        self.n_failed += progress.row.status != "ok"
        if not self._quiet:
            width = len(str(progress.n_tasks))
            place = f"{progress.n_done:>{width}}/{progress.n_tasks}"
            line = f"{place}  {line_of(progress.row)}"
            if self._bar.disable:
                say(f"{line}  {left}".rstrip())
            else:
                self._console.print(line, soft_wrap=True)


def line_of(row: Row) -> str:
    """A row in one line."""
    split = f" resample {row.resample}" if row.resample else ""
    head = f"{row.dataset}{split}  {row.method}  seed {row.seed}"
    if row.status != "ok":
        return f"{head}  failed: {row.reason}"
    return (
        f"{head}  accuracy {row.accuracy:.4f}  fit {row.fit_seconds:.1f} s  predict {row.predict_seconds:.1f} s  "
        f"{row.peak_memory_mb:.0f} MB"
    )


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(200), duration(9000)
    ('42 s', '3 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
