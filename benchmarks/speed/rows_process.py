"""Rows about whole processes: how long they take to start, and how much memory a large prediction takes."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from .timing import Record, compare, spread_of
from .worker import in_a_process

COMMANDS = {"import pdftime": ["-c", "import pdftime"], "pdftime --help": ["-m", "pdftime", "--help"]}


def start(quick: bool, repetitions: int) -> list[Record]:
    """(e) Import and `--help` against the bare interpreter; and whether torch is imported on the way."""
    timed = compare(
        {name: partial(_python, *arguments) for name, arguments in {"bare": ["-c", ""], **COMMANDS}.items()},
        3 if quick else max(repetitions, 11),
    )
    return [
        Record(
            "e",
            name,
            f"{name} / bare interpreter",
            timed.ratio(name, "bare"),
            facts={
                "seconds": timed.of(name).value,
                "bare_seconds": timed.of("bare").value,
                "imports_torch": imports_torch(arguments),
            },
        )
        for name, arguments in COMMANDS.items()
    ]


def imports_torch(arguments: list[str]) -> bool:
    """Whether a Python process with these arguments imports torch."""
    told = _python("-X", "importtime", *arguments).stderr.splitlines()
    return "torch" in {line.rpartition("|")[2].strip() for line in told}


def memory_of_prediction(quick: bool, repetitions: int) -> list[Record]:
    """(g) `predict_proba` on memory-mapped series of length 128: very many with a tiny network, some with ours."""
    records = []
    for tiny, n_cases in ((True, 20_000 if quick else 1_000_000), (False, 5_000 if quick else 50_000)):
        runs = [
            in_a_process("predict", n_cases=n_cases, tiny=tiny, n_timepoints=128, n_classes=2)
            for _ in range(1 if tiny else min(repetitions, 3))
        ]
        network = "tiny" if tiny else "default"
        facts = {"n_cases": n_cases, "n_timepoints": 128, "network": network}
        facts |= {"seconds": spread_of([run["seconds"] for run in runs]).value}
        megabytes = spread_of([run["bytes"] / 1e6 for run in runs])
        subject = f"predict_proba, {n_cases} memory-mapped series of length 128, {network} network"
        records.append(Record("g", subject, "peak extra memory", megabytes, "MB", facts))
    return records


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
