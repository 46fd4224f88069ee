"""What the names of columns tell about a row of time points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def check_alike(names: Sequence[str], noun: str) -> None:
    """Raise ValueError if only some names end in a digit: an id or a label would pass as a value."""
    numbered = [name for name in names if name[-1:].isdigit()]
    others = [name for name in names if not name[-1:].isdigit()]
    if numbered and others:
        (odd, *_), (usual, *_) = sorted((numbered, others), key=len)
        raise ValueError(f"The {noun} {odd!r} does not look like a time point beside {usual!r}.")


def check_increasing(names: Sequence[str]) -> None:
    """Raise ValueError if the names are numbers out of order: the values of a first case, not a header."""
    try:
        times = [float(name) for name in names]
    except ValueError:
        return
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ValueError(f"The column names {list(names[:3])} are numbers that do not increase.")
