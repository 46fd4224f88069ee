"""The sweep: every task in a fresh process of its own, rows kept as they come, what is finished skipped."""

from __future__ import annotations

import contextlib
import math
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from pdftime.bench.archives import Dataset
from pdftime.bench.methods import Method
from pdftime.bench.process import Process
from pdftime.bench.store import Row, Store
from pdftime.bench.task import Task
from pdftime.errors import ConfigError

GRACE_S = 60.0  # for a process that knows no limit: importing, compiling, reading
PATIENCE = 3.0  # a method that keeps the limit by itself may take this many times as long, predictions included
EXPORT_S = 60.0
POLL_S = 0.05
LOOK_S = 1.0  # between two looks for a task that nobody else is at
TELL_S = 1.0
ORDERS = ("cheap", "costly", "name")


class Progress(NamedTuple):
    """How far a sweep is, after each of its rows."""

    row: Row | None
    """The row that was just kept; None while nothing new has come."""
    n_done: int
    n_tasks: int
    seconds_left: float | None
    """None while nothing is known to judge by."""


@dataclass(frozen=True)
class Plan:
    """The tasks of a sweep that are still to do, in order, and what was found finished."""

    tasks: list[Task]
    costs: dict[str, int]
    """About how many training values each dataset has."""
    n_finished: int
    n_failed: int
    """Failures of an earlier run that are not tried again."""


def plan(
    store: Store,
    datasets: Sequence[Dataset],
    methods: Sequence[Method],
    *,
    seeds: Sequence[int] = (0,),
    resamples: Sequence[int] = (0,),
    n_threads: int = 1,
    max_time: float | None = None,
    order: str = "cheap",
    retry_failed: bool = False,
) -> Plan:
    """Every (dataset, resample, method, seed) that has no row yet."""
    if order not in ORDERS:
        raise ConfigError(f"order is {order!r}; expected one of {', '.join(ORDERS)}.")
    costs = {dataset.name: dataset.cost() for dataset in datasets}
    status = {row.identity: row.status for row in store.rows()}
    wanted = [
        Task(dataset, resample, method, seed, n_threads, max_time)
        for dataset in datasets
        for resample in resamples
        for seed in seeds
        for method in methods
    ]
    finished = [task for task in wanted if status.get(task.identity) == "ok"]
    failed = [task for task in wanted if status.get(task.identity) == "failed"]
    done = {task.identity for task in (finished if retry_failed else finished + failed)}
    tasks = [task for task in wanted if task.identity not in done]
    if order != "name":
        tasks.sort(key=lambda task: costs[task.dataset.name], reverse=order == "costly")
    return Plan(tasks, costs, len(finished), 0 if retry_failed else len(failed))


def run(
    store: Store,
    todo: Plan,
    *,
    n_jobs: int = 1,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Do the tasks, `n_jobs` at a time; the number of rows that were added. An interrupt leaves what is finished.

    Tasks that another runner with the same store has begun are left to it.
    """
    known = {row.identity: row for row in store.rows()}
    clock = Clock(todo, list(known.values()))
    waiting = list(todo.tasks)
    running: list[_Job] = []
    added = 0
    exported = told = looked = 0.0

    def tell(row: Row | None = None) -> None:
        n_done = len(todo.tasks) - len(waiting) - len(running)
        on_progress(Progress(row, n_done, len(todo.tasks), clock.left([job.task for job in running], n_jobs)))

    with tempfile.TemporaryDirectory(prefix="pdftime-bench-") as folder, _terminated_as_interrupted():
        try:
            while waiting or running:
                now = time.monotonic()
                if len(running) < n_jobs and now - looked > LOOK_S:
                    looked = now
                    for task in list(waiting):
                        if len(running) == n_jobs:
                            break
                        if not store.claim(task.identity):
                            continue
                        waiting.remove(task)
                        if store.get(task.identity) == known.get(task.identity):
                            running.append(_Job(task, Path(folder)))
                        else:  # another runner was faster
                            store.release(task.identity)
                            clock.remove(task)
                for job in [job for job in running if job.process.has_ended()]:
                    running.remove(job)
                    row, *of_views = job.rows()
                    store.add([row, *of_views])
                    store.release(row.identity)
                    clock.remove(job.task, row)
                    added, looked = added + 1, 0.0
                    told = time.monotonic()
                    tell(row)
                if now - exported > EXPORT_S:
                    store.export()
                    exported = now
                if now - told > TELL_S:
                    told = now
                    tell()
                if waiting or running:
                    time.sleep(POLL_S)
        finally:
            for job in running:
                job.process.kill()
            store.export()
    return added


class _Job:
    """A task and the process that does it."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task = task
        self.process = Process(
            "pdftime.bench.task", task.to_json(), folder, n_threads=task.n_threads, limit=allowed_seconds(task)
        )

    def rows(self) -> list[Row]:
        """What the process left, the task's own row first, or why it left nothing."""
        answer, reason = self.process.outcome()
        if answer is None:
            return [self.task.row(status="failed", reason=reason)]
        return [Row(**row) for row in answer["rows"]]


def allowed_seconds(task: Task) -> float | None:
    """How long a process may take before it is ended."""
    if task.max_time is None:
        return None
    return GRACE_S + task.max_time * (1.0 if task.method.time_keyword is None else PATIENCE)


class Clock:
    """Time left: log seconds is taken to be linear in log training values, with one level per method."""

    def __init__(self, todo: Plan, rows: Sequence[Row]) -> None:
        self._costs = todo.costs
        self._left = {task.identity: task for task in todo.tasks}
        self._points: list[tuple[str, float, float]] = []
        configurations = {task.identity.configuration for task in todo.tasks}
        for row in rows:
            if row.configuration in configurations and row.dataset in todo.costs:
                self._learn(row)

    def remove(self, task: Task, row: Row | None = None) -> None:
        """A task is done, with this row."""
        self._left.pop(task.identity, None)
        if row is not None:
            self._learn(row)

    def left(self, running: Sequence[Task], n_jobs: int) -> float | None:
        """Seconds until all is done; a task at work counts half."""
        if not self._points:
            return None
        slope, levels, usual = self._fitted()
        seconds = 0.0
        busy = {task.identity for task in running}
        for identity, task in self._left.items():
            level = levels.get(task.method.name, usual)
            expected = math.exp(level + slope * math.log(max(self._costs[task.dataset.name], 1)))
            if task.max_time is not None:
                expected = min(expected, PATIENCE * task.max_time + GRACE_S)
            seconds += expected * (0.5 if identity in busy else 1.0)
        return seconds / max(1, min(n_jobs, len(self._left)))

    def _learn(self, row: Row) -> None:
        if row.status == "ok" and row.fit_seconds is not None and row.predict_seconds is not None:
            seconds = row.fit_seconds + row.predict_seconds + 2.0  # a process starts in about two seconds
            self._points.append((row.method, math.log(max(self._costs[row.dataset], 1)), math.log(seconds)))

    def _fitted(self) -> tuple[float, dict[str, float], float]:
        """Slope within methods, level of each, mean level."""
        groups: dict[str, list[tuple[float, float]]] = {}
        for method, x, y in self._points:
            groups.setdefault(method, []).append((x, y))
        means = {
            method: (sum(x for x, _ in each) / len(each), sum(y for _, y in each) / len(each))
            for method, each in groups.items()
        }
        products, squares = 1.2, 2.0  # as if a slope of 0.6 had been seen before
        for method, each in groups.items():
            products += sum((x - means[method][0]) * (y - means[method][1]) for x, y in each)
            squares += sum((x - means[method][0]) ** 2 for x, _ in each)
        slope = min(max(products / squares, 0.0), 1.5)
        levels = {method: y - slope * x for method, (x, y) in means.items()}
        return slope, levels, sum(levels.values()) / len(levels)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """A polite end (SIGTERM) is treated as Ctrl-C, where this thread may say so."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before: Any = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
