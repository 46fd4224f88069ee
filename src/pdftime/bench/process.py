"""Process: one job in a fresh Python process, with its threads, its time, and an end that is always known."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
REASON_CHARACTERS = 300


class Outcome(NamedTuple):
    """What a process left: its answer, or the reason why there is none."""

    answer: dict[str, Any] | None
    reason: str | None = None


class Process:
    """`python -m module` at work on one question; what it prints is kept back, unless PDFTIME_DEBUG=1."""

    def __init__(
        self, module: str, question: dict[str, Any], folder: Path, *, n_threads: int = 1, limit: float | None = None
    ) -> None:
        """`folder` takes its files; after `limit` seconds it is ended."""
        handle, name = tempfile.mkstemp(dir=folder, suffix=".json")
        os.close(handle)
        self._answer = Path(name)
        self._log = self._answer.with_suffix(".log").open("w+b")
        show = os.environ.get("PDFTIME_DEBUG") == "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, name],
            stdin=subprocess.PIPE,
            stdout=None if show else self._log,
            stderr=None if show else self._log,
            env={**os.environ, **dict.fromkeys(THREADS, str(n_threads)), "PYTHONHASHSEED": "0"},
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its processes
        )
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(json.dumps(question).encode() + b"\n")
            self._pipe.flush()  # and stays open: when it closes, the process ends
        self._started = time.monotonic()
        self._limit = limit
        self._out_of_time = False

    def has_ended(self) -> bool:
        """Whether there is an outcome; ends a process that is out of time."""
        if self._process.poll() is not None:
            return True
        if self._limit is not None and time.monotonic() - self._started > self._limit:
            self._out_of_time = True
            self.kill()
            return True
        return False

    def kill(self) -> None:
        """End it, and whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def outcome(self) -> Outcome:
        """The answer, or the reason; waits for the end."""
        if self._out_of_time:
            return Outcome(None, f"time limit: ended after {self._limit:.0f} s")
        code = self._process.wait()
        text, last = self._answer.read_text(), self._last_line()
        self._close()
        if code == 0 and text:
            answer = json.loads(text)
            return Outcome(None, answer["error"]) if "error" in answer else Outcome(answer)
        if code < 0:
            name = signal.Signals(-code).name
            return Outcome(None, f"the process was ended by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}")
        return Outcome(None, f"the process ended with code {code} and no answer: {last}"[:REASON_CHARACTERS])

    @property
    def _pipe(self) -> Any:
        return self._process.stdin

    def _last_line(self) -> str:
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing was printed")

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._log.close()


def answer(job: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """What the module of a `Process` does: the question from standard input, the answer to the file that is named."""
    question = json.loads(sys.stdin.buffer.readline())
    _end_with_parent()
    try:
        told = job(question)
    except BaseException as error:
        traceback.print_exc()
        told = {"error": reason_of(error)}
    target = Path(sys.argv[1])
    target.with_suffix(".part").write_text(json.dumps(told))
    target.with_suffix(".part").replace(target)


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:REASON_CHARACTERS] if text else type(error).__name__


def _end_with_parent() -> None:
    """Make sure that this process does not outlive its parent, however that ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; works while compiled code holds Python

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)  # nothing is ever written; the parent's end closes the pipe
        os.killpg(0, signal.SIGKILL)  # whatever this process started included

    threading.Thread(target=watch, daemon=True).start()
