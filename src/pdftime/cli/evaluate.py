"""pdftime evaluate: how well a model does on labelled series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pdftime.cli.labels import UNKNOWN, codes_by_text, names_of, plain
from pdftime.cli.options import (
    CaseColumn,
    DataFile,
    FormOption,
    Json,
    LabelColumn,
    ModelFile,
    PartOption,
    Threads,
    TimeColumn,
    labels_of,
    read,
)
from pdftime.cli.screen import SHOWN_CLASSES, count, say, show, table_of, write_json
from pdftime.data.label_text import text_of
from pdftime.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLES = (
    "pdftime evaluate model.pdftime fresh.csv",
    "pdftime evaluate model.pdftime archive.npz --part test --json",
)
SHOWN_CONFUSIONS = 10


def run(
    model: ModelFile,
    data: DataFile,
    threads: Threads = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Score a model on labelled series: accuracy, log loss, calibration, confusions.

    Labels are compared by their text, so 1 in a .csv and '1' in a .ts are the same class. A case whose label is
    no class of the model counts as wrong; the log loss, which cannot be given for it, leaves it out.
    """
    cases = read(data, label_column, case_column, time_column, form, part)
    y = labels_of(cases, data)

    from pdftime.estimator import load

    classifier = load(model)
    classifier.n_threads = threads
    codes = codes_by_text(y, classifier.classes_)
    if (codes == UNKNOWN).all():
        raise DataError(
            f"{data} holds the labels {_some(y)}, none of which is a class of {model}: "
            f"{_some(classifier.classes_)}. Is --label-column the right one?"
        )
    facts = {
        "model": str(model),
        "data": str(data),
        **measure(classifier.predict_proba(cases), codes, y, classifier.classes_),
    }
    if as_json:
        write_json(facts)
    else:
        _report(facts)


def measure(
    probabilities: NDArray[np.float64], codes: NDArray[np.int64], y: NDArray[Any], classes: NDArray[Any]
) -> dict[str, Any]:
    """The scores of probabilities (n_cases, n_classes) against class codes, where UNKNOWN is never right."""
    import numpy as np

    from pdftime.scores import score

    predicted = probabilities.argmax(axis=1)
    known = codes != UNKNOWN
    strangers = list(dict.fromkeys(y[~known].tolist()))
    place = {label: row for row, label in enumerate(strangers, len(classes))}
    rows = codes.copy()
    rows[~known] = [place[label] for label in y[~known].tolist()]
    confusion = np.zeros((len(classes) + len(strangers), len(classes)), np.int64)
    np.add.at(confusion, (rows, predicted), 1)
    return {
        "n_cases": len(codes),
        **score(probabilities, rows)._asdict(),
        "n_unknown": int((~known).sum()),
        "unknown_labels": [plain(label) for label in strangers],
        "confusion": {
            "true": [*names_of(classes), *(text_of(label) for label in strangers)],
            "predicted": names_of(classes),
            "n_cases": confusion.tolist(),
        },
    }


def _report(facts: dict[str, Any]) -> None:
    say(f"{facts['model']} on {count(facts['n_cases'], 'case')} of {facts['data']}:")
    table = table_of(["score", "value"])
    for name in ("accuracy", "balanced_accuracy", "log_loss", "calibration_error"):
        table.add_row(name.replace("_", " "), f"{facts[name]:.4f}")
    show(table)
    if facts["n_unknown"]:
        labels = ", ".join(text_of(label) for label in facts["unknown_labels"][:SHOWN_CLASSES])
        say(
            f"{count(facts['n_unknown'], 'case')} with labels that the model does not know ({labels}): "
            "counted as wrong, left out of the log loss."
        )
    true, predicted, numbers = facts["confusion"].values()
    if len(predicted) <= SHOWN_CLASSES:
        table = table_of(["true \\ predicted", *predicted])
        for label, row in zip(true, numbers, strict=True):
            table.add_row(label, *(str(n) if n else "." for n in row))
        show(table)
        return
    wrong = [
        (n, label, other)
        for label, row in zip(true, numbers, strict=True)
        for other, n in zip(predicted, row, strict=True)
        if n and label != other
    ]
    table = table_of(["true", "predicted", "cases"], right_from=2)
    for n, label, other in sorted(wrong, key=lambda each: -each[0])[:SHOWN_CONFUSIONS]:
        table.add_row(label, other, str(n))
    say(f"The most frequent confusions among {len(predicted)} classes:")
    show(table)


def _some(labels: NDArray[Any]) -> str:
    """The first few different labels."""
    different = list(dict.fromkeys(text_of(label) for label in labels.tolist()))
    return ", ".join(different[:5]) + (", ..." if len(different) > 5 else "")
