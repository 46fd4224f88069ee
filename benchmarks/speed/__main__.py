"""python -m benchmarks.speed [--rows a b ...] [--quick] [--threads 1] [--repetitions 7] [--out results/speed.json]

From the root of the repository. Prints a table of ratios, those of a row measured in one run, interleaved, and
which targets they reach. The file that is written keeps what it has of rows that are not measured this time.
Rows: a step against plain, a2 against the paper's form, b predict, c fit against peers, d growth, e start of a
process, f utilisation, g memory of prediction, h small fit, i torch.compile, j accuracy of ours and plain,
k bank against MultiROCKET-Hydra, l a million cases.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from .targets import TARGETS
from .timing import Record

ROWS = {
    "a": "rows_step.step_against_plain",
    "a2": "rows_step.step_against_paper",
    "b": "rows_step.predict",
    "c": "rows_fit.fit_against_peers",
    "d": "rows_growth.growth",
    "e": "rows_process.start",
    "f": "rows_step.utilisation",
    "g": "rows_process.memory_of_prediction",
    "h": "rows_fit.small_fit",
    "i": "rows_step.compiled",
    "j": "rows_accuracy.accuracy_of_both",
    "k": "rows_bank.bank_against_peer",
    "l": "rows_bank.million",
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, 3 repetitions: whether it runs, no verdict"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, help="7, or 3 with --quick")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(options.threads)))  # read when the libraries are imported
    repetitions = options.repetitions or (3 if options.quick else 7)
    console = Console()
    rows = _read(options.out)
    for row in track(options.rows, "measuring", console=Console(stderr=True)):
        module, function = ROWS[row].split(".")
        measured = getattr(import_module(f".{module}", __package__), function)(options.quick, repetitions)
        console.print(_table(measured))
        circumstances = {"host": _host(options.threads), "quick": options.quick, "repetitions": repetitions}
        rows[row] = {**circumstances, "records": [record.to_json() for record in measured]}
        verdicts = _verdicts(rows)
        if options.out is not None:
            state = {"rows": dict(sorted(rows.items())), "targets": [vars(verdict) for verdict in verdicts]}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(state, indent=1) + "\n")
    console.print(_verdict_table(verdicts, options.quick))


def _read(path: Path | None) -> dict[str, Any]:
    """The rows that a file of earlier measurements holds, by name."""
    return json.loads(path.read_text())["rows"] if path is not None and path.exists() else {}


def _verdicts(rows: dict[str, Any]) -> list[Any]:
    records = [Record.from_json(record) for row in rows.values() for record in row["records"]]
    return [verdict for target in TARGETS if (verdict := target.verdict(records)) is not None]


def _table(records: list[Record]) -> Table:
    table = Table("row", "subject", "measure", "median", "quartiles", "behind it")
    for record in records:
        value, low, high = (_short(each) for each in record.spread)
        behind = _behind(record.facts)
        table.add_row(
            record.row, record.subject, record.measure, f"{value} {record.unit}", f"{low} to {high}", behind
        )
    return table


def _behind(facts: dict[str, Any]) -> str:
    """The seconds behind a ratio, and what shows whether growth is still speeding up."""
    told = [
        f"{name.removesuffix('_seconds')} {_time(value)}"
        for name, value in facts.items()
        if name.endswith("seconds") and isinstance(value, float)
    ]
    if "exponent_of_the_last_two" in facts:
        told.append(f"between the last two {_short(facts['exponent_of_the_last_two'])}")
    return ", ".join(told)


def _verdict_table(verdicts: list[Any], quick: bool) -> Table:
    title = "targets (quick sizes: no verdict)" if quick else "targets"
    table = Table("target", "worst median", "expected", "reached", title=title)
    for verdict in verdicts:
        reached = "[green]yes[/]" if verdict.reached else "[red]no[/]"
        table.add_row(verdict.promise, _short(verdict.worst), verdict.expected, reached)
    return table


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _host(threads: int) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - after the number of threads is set

    described = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "cpu": next((line.partition(":")[2].strip() for line in described if line.startswith("model name")), ""),
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


if __name__ == "__main__":
    main()
