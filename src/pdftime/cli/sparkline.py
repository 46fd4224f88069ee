"""A series on one line of text, with spans of it marked below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 64
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-~=+*#"


def sparkline(values: NDArray[Any], width: int = WIDTH, *, ascii_only: bool = False) -> str:
    """At most `width` characters, as high as the mean of the values below each; a blank where all are missing.

    >>> import numpy as np
    >>> sparkline(np.array([0.0, 1.0, 2.0, 3.0, np.nan, 7.0]), ascii_only=True)
    '_.-~ #'
    """
    import numpy as np

    shades = ASCII_BLOCKS if ascii_only else BLOCKS
    means = [
        float(part[np.isfinite(part)].mean()) if np.isfinite(part).any() else None
        for part in np.array_split(np.asarray(values, float), min(width, len(values)))
    ]
    present = [mean for mean in means if mean is not None]
    low, high = min(present, default=0.0), max(present, default=0.0)
    scale = (len(shades) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if mean is None else shades[round((mean - low) * scale)] for mean in means)


def marks(spans: Iterable[tuple[int, int]], length: int, width: int = WIDTH) -> str:
    """A '^' under every character of the sparkline in which a span (first, last) of a series lies.

    >>> marks([(0, 0), (3, 4)], length=6)
    '^  ^^'
    """
    import numpy as np

    inside = np.zeros(length, bool)
    for first, last in spans:
        inside[first : last + 1] = True
    return "".join("^" if part.any() else " " for part in np.array_split(inside, min(width, length))).rstrip()
