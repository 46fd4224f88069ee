"""Rows of results gathered: a name for every method in them, and one number for each method and dataset."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pdftime.bench.store import Row


def mean_by_dataset(rows: Iterable[Row], value: str = "accuracy") -> dict[str, dict[str, float]]:
    """By method, then dataset: the mean of a column over seeds and resamples; ours come first."""
    finished = sorted((row for row in rows if row.status == "ok"), key=lambda row: not is_ours(row))
    labels = labels_of(finished)
    gathered: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in finished:
        number = getattr(row, value)
        if number is not None:
            gathered[labels[row.method, row.configuration]][row.dataset].append(number)
    return {
        method: {name: float(np.mean(numbers)) for name, numbers in by_dataset.items()}
        for method, by_dataset in gathered.items()
    }


def labels_of(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """A name in tables for every (method, configuration).

    Configurations of one method that differ in nothing but their time limit, and share no task, are one method;
    others are told apart by the beginning of their digest.
    """
    tasks: dict[str, dict[str, set[tuple[str, int, int]]]] = defaultdict(lambda: defaultdict(set))
    kinds: dict[str, dict[str, tuple[str, float | None]]] = defaultdict(dict)
    ours: dict[str, bool] = {}
    for row in rows:
        tasks[row.method][row.configuration].add((row.dataset, row.resample, row.seed))
        kinds[row.method][row.configuration] = (json.dumps(_unlimited(row), sort_keys=True), time_limit(row))
        ours[row.method] = is_ours(row)
    labels = {}
    for method, configurations in tasks.items():
        name = f"pdftime {method}" if ours[method] else f"{method} (run here)"
        shown = [settings for settings, _ in kinds[method].values()]
        limits = [limit for _, limit in kinds[method].values()]
        n_tasks = sum(len(each) for each in configurations.values())
        is_one = (
            len(set(shown)) == 1
            and len(set(limits)) == len(limits)
            and n_tasks == len(set().union(*configurations.values()))
        )
        for configuration in configurations:
            labels[method, configuration] = name if is_one else f"{name} [{configuration[:6]}]"
    return labels


def is_ours(row: Row) -> bool:
    """Whether it is a result of PDFTime, not of a peer."""
    return "preset" in _settings(row)


def is_view(row: Row) -> bool:
    """Whether it is of one view of a model alone; the row of the whole model stands beside it."""
    return "view" in _settings(row)


def time_limit(row: Row) -> float | None:
    """The seconds that a fit was allowed, if they were limited."""
    limit = _settings(row).get("max_time")
    return None if limit is None else float(limit)


def ended_by_limit(rows: Iterable[Row]) -> list[str]:
    """The datasets on which a fit of ours used up its time."""
    used_up = {
        row.dataset
        for row in rows
        if row.fit_seconds is not None and row.fit_seconds > 0.95 * (time_limit(row) or math.inf)
    }
    return sorted(used_up, key=str.lower)


def _settings(row: Row) -> dict[str, Any]:
    try:
        settings = json.loads(row.settings or "{}")
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}


def _unlimited(row: Row) -> dict[str, Any]:
    return {name: value for name, value in _settings(row).items() if name != "max_time"}
