"""ArchiveGuard: while a method works, nobody opens a file of the archive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdftime.data.files import SUFFIXES
from pdftime.errors import DataError


class PeekError(DataError):
    """A method opened a benchmark file by itself."""


class ArchiveGuard:
    """Refuses to open data files in a dataset's folder, and files of its names anywhere, while it is closed."""

    def __init__(self, paths: Sequence[str]) -> None:
        real = [Path(os.path.realpath(path)) for path in paths]
        self._names = {path.name for path in real}
        self._folders = {path.parent for path in real}
        self._closed = False
        self._peeked: str | None = None
        sys.addaudithook(self._hook)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Nothing of the archive can be opened inside; that it was tried is an error, even if the method hid it."""
        self._closed = True
        try:
            yield
        finally:
            self._closed = False
        if self._peeked is not None:
            raise PeekError(_sentence(self._peeked))

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._closed or event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path = Path(os.path.realpath(os.fsdecode(arguments[0])))
        suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
        if path.name in self._names or (suffix in SUFFIXES and path.parent in self._folders):
            self._peeked = self._peeked or path.name
            raise PeekError(_sentence(path.name))


def _sentence(name: str) -> str:
    return f"the method opened {name} of the archive by itself; it may use only what it is given."
