"""Rows about whole processes: how long they take to start, and how much memory a large prediction takes."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from .timing import Record, Spread, compare
from .worker import TINY, in_a_process

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
    """(g) `predict_proba` on a memory-mapped array of series of length 128; once, with a tiny network."""
    n_cases = 20_000 if quick else 1_000_000
    measured = in_a_process("predict", n_cases=n_cases, n_timepoints=128, n_classes=2)
    facts = {"n_cases": n_cases, "n_timepoints": 128, "network": TINY, "seconds": measured["seconds"]}
    megabytes = measured["bytes"] / 1e6
    subject = f"predict_proba, {n_cases} memory-mapped series of length 128, tiny network"
    return [Record("g", subject, "peak extra memory", Spread(megabytes, megabytes, megabytes), "MB", facts)]


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
