"""Labels: any hashable scalars in, whole-number codes for the model, the same scalars out."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import DataError

MAX_CLASS_BYTES = 256 << 20  # a stored dtype may claim any width


class Encoded(NamedTuple):
    """Labels as codes into the sorted classes."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]


def check_labels(y: Any, n_cases: int) -> NDArray[Any]:
    """Labels as a 1-D array that keeps their kind; missing, continuous or nested ones are refused."""
    if isinstance(y, np.ma.MaskedArray):
        raise DataError("y is a masked array; every case needs a label. Pass y.data, or leave out masked cases.")
    labels = _from_list(y) if isinstance(y, (list, tuple)) else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as y.ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}; expected one label per case, shape ({n_cases},).")
    if len(labels) != n_cases:
        raise DataError(f"y has {len(labels)} labels and X has {n_cases} cases; they must be as many.")
    if labels.dtype.kind not in "biufUSO":
        raise DataError(f"Unknown label type: y has dtype {labels.dtype}; expected text, whole numbers or booleans.")
    if labels.dtype == object:
        labels = _narrow(labels)
    if labels.dtype.kind == "f":
        _check_floats(labels)
    return labels


def encode(y: NDArray[Any]) -> Encoded:
    """Sorted classes and the code of each label; numbers sort before text, text before bytes."""
    if y.dtype != object:
        classes, codes = np.unique(y, return_inverse=True)
        return Encoded(classes, codes.reshape(-1).astype(np.int64))
    ordered = sorted(dict.fromkeys(y.tolist()), key=lambda label: (_rank(label), label))
    position = {label: code for code, label in enumerate(ordered)}
    return Encoded(
        np.fromiter(ordered, object, len(ordered)),
        np.array([position[label] for label in y.tolist()], np.int64),
    )


def codes_of(y: NDArray[Any], classes: NDArray[Any], what: str) -> NDArray[np.int64]:
    """The codes of labels in known classes; an unknown label is refused by name."""
    position = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in position]
    if unknown:
        raise DataError(f"{what} holds labels {unknown[:5]} that are not among the classes {classes.tolist()[:10]}.")
    return np.array([position[label] for label in y.tolist()], np.int64)


def classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Classes as plain data that keeps their dtype."""
    return {"dtype": classes.dtype.str, "values": [_to_json(label) for label in classes.tolist()]}


def classes_from_json(state: dict[str, Any]) -> NDArray[Any]:
    """The inverse of `classes_to_json`."""
    dtype = np.dtype(state["dtype"])
    if dtype.kind not in "biufUSO":
        raise DataError(f"Classes have dtype {dtype}; expected text, numbers or booleans.")
    values = [_from_json(value) for value in state["values"]]
    if dtype.itemsize * len(values) > MAX_CLASS_BYTES:
        raise DataError(f"{len(values)} classes of dtype {dtype} are too large to keep.")
    return np.fromiter(values, dtype, len(values))


def _to_json(label: Any) -> Any:
    """A label as JSON has it; bytes, which JSON has not, go into an object."""
    return {"latin-1": label.decode("latin-1")} if isinstance(label, bytes) else _plain(label)


def _from_json(value: Any) -> Any:
    return value["latin-1"].encode("latin-1") if isinstance(value, dict) else value


def _plain(label: Any) -> Any:
    """A numpy scalar as Python has it: numpy compares badly with whole numbers beyond 64 bits."""
    if isinstance(label, np.longdouble):
        return float(label)
    return label.item() if isinstance(label, np.generic) else label


def _rank(label: Any) -> int:
    """The place of a label's kind: kinds cannot be compared with one another."""
    return 1 if isinstance(label, str) else 2 if isinstance(label, bytes) else 0


def _from_list(y: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    """A list as an array; numpy would turn [1, "a"] into text, so mixed kinds stay objects."""
    if len({type(label) for label in y}) == 1:
        try:
            labels = np.asarray(y)
        except ValueError as error:
            raise DataError("y holds labels of unequal shape; expected one label per case.") from error
        if labels.dtype.kind != "f" or not isinstance(y[0], int):  # numpy rounds beyond 64 bits
            return labels
    return np.fromiter(y, object, len(y))


def _narrow(labels: NDArray[Any]) -> NDArray[Any]:
    """An object array checked cell by cell; numbers of one type get their numeric dtype."""
    for index, label in enumerate(labels):
        if label is None or (isinstance(label, (float, np.floating)) and np.isnan(label)):
            raise DataError(f"The label of case {index} is missing ({label!r}); every case needs a label.")
        if not isinstance(label, (str, bytes, bool, int, float, np.integer, np.floating, np.bool_)):
            raise DataError(
                f"Unknown label type: the label of case {index} is {label!r} ({type(label).__name__}); "
                "expected text, a whole number or a boolean."
            )
        if isinstance(label, (float, np.floating)):
            _check_floats(np.asarray([label]))
    if len({type(label) for label in labels}) == 1:
        narrow = _from_list(labels.tolist())
        if narrow.dtype.kind in "biuf":
            return narrow
    return np.fromiter(map(_plain, labels), object, len(labels))


def _check_floats(labels: NDArray[Any]) -> None:
    if np.isnan(labels).any():
        raise DataError(f"The label of case {int(np.argmax(np.isnan(labels)))} is missing (NaN).")
    if not np.isfinite(labels).all() or (labels != np.round(labels)).any():
        raise DataError(
            "Unknown label type: continuous. y holds numbers with fractions; this is a classifier. "
            "Labels must be text, whole numbers or booleans."
        )
