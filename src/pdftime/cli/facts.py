"""Facts about series as plain data, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdftime.cli.labels import plain
from pdftime.cli.screen import SHOWN_CLASSES, count
from pdftime.data.label_text import text_of

if TYPE_CHECKING:
    from pdftime.data.series import SeriesSet


def facts_of(cases: SeriesSet, path: Path) -> dict[str, Any]:
    """What a file of series holds, ready for JSON."""
    import numpy as np

    from pdftime.data.labels import encode
    from pdftime.data.series import inside

    lost = 0
    for part in cases.chunks():
        if part.X.dtype.kind == "f":
            lost += int((np.isnan(part.X) & inside(part)[:, None, :]).sum())
    classes = None
    if cases.y is not None:
        labels, codes = encode(cases.y)
        numbers = np.bincount(codes).tolist()
        classes = [{"label": plain(label), "n_cases": n} for label, n in zip(labels.tolist(), numbers, strict=True)]
    return {
        "file": str(path),
        "name": cases.name,
        "n_cases": len(cases),
        "n_channels": cases.n_channels,
        "channel_names": list(cases.channel_names),
        "n_timepoints": {"shortest": int(cases.lengths.min()), "longest": int(cases.lengths.max())},
        "missing": lost / (int(cases.lengths.sum()) * cases.n_channels),
        "dtype": str(cases.X.dtype),
        "classes": classes,
    }


def in_words(facts: dict[str, Any]) -> str:
    """120 cases, 2 channels, 40 to 100 time points, 1.5% of the values missing"""
    shortest, longest = facts["n_timepoints"].values()
    length = count(longest, "time point") if shortest == longest else f"{shortest} to {longest} time points"
    words = f"{count(facts['n_cases'], 'case')}, {count(facts['n_channels'], 'channel')}, {length}"
    return words + (f", {facts['missing']:.2%} of the values missing" if facts["missing"] else "")


def classes_in_words(classes: list[dict[str, Any]] | None) -> str:
    """alpha 40, beta 40, gamma 40"""
    if classes is None:
        return "no labels"
    words = ", ".join(f"{text_of(each['label'])} {each['n_cases']}" for each in classes[:SHOWN_CLASSES])
    more = len(classes) - SHOWN_CLASSES
    return words + (f" and {count(more, 'class', 'classes')} more" if more > 0 else "")
