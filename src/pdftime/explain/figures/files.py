"""save_figure(): a figure as PNG, SVG or PDF, there entirely or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdftime.container import write_atomically
from pdftime.errors import ConfigError, PDFTimeError
from pdftime.explain.figures.style import look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
DPI = 300
UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = DPI) -> None:
    """Write a figure; the suffix says how. The same figure gives the same bytes."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{os.fspath(path)} has the suffix {suffix!r}; a figure is written as one of {', '.join(SUFFIXES)}."
        )
    buffer = io.BytesIO()
    with look():
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=UNDATED[suffix])
    write_atomically(path, buffer.getvalue(), PDFTimeError)
