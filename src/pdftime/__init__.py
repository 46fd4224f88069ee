"""Time series classification by learned prototypes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pdftime.version import __version__

if TYPE_CHECKING:
    from pdftime.data.files import read_series, write_series
    from pdftime.data.series import SeriesSet, check_series
    from pdftime.estimator import PDFTimeClassifier, load

_HOMES = {
    "PDFTimeClassifier": "pdftime.estimator",
    "SeriesSet": "pdftime.data.series",
    "check_series": "pdftime.data.series",
    "load": "pdftime.estimator",
    "read_series": "pdftime.data.files",
    "write_series": "pdftime.data.files",
}

__all__ = [
    "PDFTimeClassifier",
    "SeriesSet",
    "__version__",
    "check_series",
    "load",
    "read_series",
    "write_series",
]


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that `import pdftime` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pdftime' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
