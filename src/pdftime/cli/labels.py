"""One rule for labels from files of different kinds: a label is the class that equals it, or has its text.

A .csv gives the number 1 where a .ts gives the text '1'. Both are the same class, unless the model knows two
classes of that text.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pdftime.data.label_text import different_texts, text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNKNOWN = -1


def plain(label: Any) -> Any:
    """A label as JSON and tables have it."""
    return text_of(label) if isinstance(label, bytes) else label


def names_of(classes: NDArray[Any]) -> list[str]:
    """A different text for every class: its own, or its Python form where two classes share one."""
    return different_texts(classes.tolist())


def codes_by_text(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """(n_cases,) the place of each label among the classes, or UNKNOWN."""
    import numpy as np

    labels = classes.tolist()
    times = Counter(text_of(label) for label in labels)
    by_text = {text_of(label): code for code, label in enumerate(labels) if times[text_of(label)] == 1}
    exact = {label: code for code, label in enumerate(labels)}
    return np.array(
        [exact.get(label, by_text.get(text_of(label), UNKNOWN)) for label in y.tolist()],
        np.int64,
    )


def as_classes(y: NDArray[Any], classes: NDArray[Any]) -> list[Any]:
    """Labels in the kind of the classes; an unknown one stays as it is."""
    known = classes.tolist()
    codes = codes_by_text(y, classes).tolist()
    return [label if code == UNKNOWN else known[code] for label, code in zip(y.tolist(), codes, strict=True)]
