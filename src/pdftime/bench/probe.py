"""One look of the audit at a method, in a process of its own: what it predicts, in two orders and in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdftime.bench.archives import Split
from pdftime.bench.process import answer
from pdftime.bench.task import Learner, Task, fit_and_predict
from pdftime.data.series import SeriesSet

N_PROBES = 16
"""Training cases whose predictions are watched."""
N_SINGLE = 16
"""Test cases that are also predicted one by one."""


def look(task: Task, *, probe_first: bool, in_pieces: bool) -> dict[str, Any]:
    """Probabilities of the test part and of some training cases; these before the test part is read, or after."""
    split = Split(task.dataset, task.resample)
    told: dict[str, Any] = {}

    def probe(learner: Learner, train: SeriesSet) -> None:
        told["probe"] = learner.probabilities(train.take(slice(N_PROBES))).tolist()

    work = fit_and_predict(task, split, probe if probe_first else None)
    told["classes"] = [str(label) for label in work.learner.classes.tolist()]
    told["test"] = work.probabilities.tolist()
    if not probe_first:
        probe(work.learner, work.train)
    if in_pieces:
        rows = np.linspace(0, len(work.test) - 1, min(N_SINGLE, len(work.test))).astype(int)
        told["rows"] = rows.tolist()
        told["single"] = [work.learner.probabilities(work.test.take([row]))[0].tolist() for row in rows]
        told["again"] = work.learner.probabilities(work.test).tolist()
    return told


def main() -> None:
    """Answer one look."""
    answer(
        lambda question: look(
            Task.from_json(question["task"]),
            probe_first=question["probe_first"],
            in_pieces=question["in_pieces"],
        )
    )


if __name__ == "__main__":
    main()
