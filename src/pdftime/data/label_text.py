"""Labels as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def text_of(label: Any) -> str:
    """A label as a text file would have it.

    >>> text_of(1.0), text_of(True), text_of("walk")
    ('1', 'true', 'walk')
    """
    if isinstance(label, bytes):
        return label.decode("latin-1")
    if isinstance(label, bool) or label in ("True", "False"):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) else str(label)


def different_texts(labels: Sequence[Any]) -> list[str]:
    """A different text for every label: its own, or its Python form where two labels share one.

    >>> different_texts(["walk", 1, "1"])
    ['walk', '1', "'1'"]
    """
    times = Counter(text_of(label) for label in labels)
    return [text_of(label) if times[text_of(label)] == 1 else repr(label) for label in labels]
