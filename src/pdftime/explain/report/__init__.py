"""The report: predictions with their reasons, checks and limits, in one HTML file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pdftime.container import write_atomically
from pdftime.data.series import SeriesSet
from pdftime.errors import ConfigError, DataError
from pdftime.explain.checks import check_together
from pdftime.explain.evidence import explain
from pdftime.explain.gallery import explain_model
from pdftime.explain.report.case_content import Shown
from pdftime.explain.report.content import About, Names, page_content
from pdftime.explain.report.page import html_page
from pdftime.fitted import FittedModel

__all__ = ["MAX_CASES", "Names", "Report", "check_place", "write_report"]

MAX_CASES = 50
TOGETHER = 16  # cases explained and checked at a time

Progress = Callable[[int, int], None]
"""Called with the number of cases done and of all."""


class Report(NamedTuple):
    """What was written."""

    path: Path
    n_bytes: int
    cases: list[int]
    """Places in the data of the cases that are shown."""
    n_passed: int
    """How many of them passed every check."""


def write_report(
    path: str | os.PathLike[str],
    model: FittedModel,
    cases: SeriesSet,
    *,
    chosen: Sequence[int] | None = None,
    max_cases: int = MAX_CASES,
    names: Names | None = None,
    progress: Progress | None = None,
) -> Report:
    """Explain and check cases, and write them with the model's own view as one HTML file, entirely or not at all.

    Labels in `cases`, if there are any, say what is right. The cases at the places `chosen` are shown; without
    them, at most `max_cases`, spread evenly over the data.
    """
    check_place(path)
    places = choose(len(cases), chosen, max_cases)
    overview = explain_model(model, None if cases.y is None else cases)  # refuses labels of another problem
    shown: list[Shown] = []
    for start in range(0, len(places), TOGETHER):
        part = places[start : start + TOGETHER]
        explanations = explain(model, cases.take(np.array(part)))
        checks = check_together(explanations)
        for place, explanation, own in zip(part, explanations, checks, strict=True):
            explanation.keep_checks_(own)
            label = None if cases.y is None else cases.y[place : place + 1].tolist()[0]
            shown.append(Shown(place, label, explanation))
            if progress is not None:
                progress(len(shown), len(places))
    about = About(names or Names(), len(cases), chosen=chosen is not None)
    page = html_page(page_content(model, overview, shown, about)).encode()
    write_atomically(path, page, DataError)
    n_passed = sum(each.explanation.check().passed for each in shown)
    return Report(Path(path), len(page), places, n_passed)


def choose(n_cases: int, chosen: Sequence[int] | None, max_cases: int) -> list[int]:
    """Places of the cases to show, each once and in order.

    >>> choose(10, None, 4), choose(3, None, 4), choose(10, [7, 2, 7], 4)
    ([0, 3, 6, 9], [0, 1, 2], [2, 7])
    """
    if chosen is None:
        if not _is_whole(max_cases) or max_cases < 1:
            raise ConfigError(f"max_cases is {max_cases!r}; expected a whole number from 1.")
        return sorted({round(place) for place in np.linspace(0, n_cases - 1, min(n_cases, max_cases))})
    strange = [place for place in chosen if not _is_whole(place) or not 0 <= place < n_cases]
    if strange or not len(chosen):
        raise DataError(
            f"The cases to show are {list(chosen)[:10]}; expected places from 0 to {n_cases - 1}, at least one."
        )
    return sorted({int(place) for place in chosen})


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is no place for a page, before any work is done for it."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"{target} is no name for a report; it is an HTML page, such as report.html.")
    if target.is_dir() or not target.resolve().parent.is_dir():
        reason = "it is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise DataError(f"{target} cannot be written: {reason}. Choose another place.")
