"""Values at their places beside a bank's features, against the bank alone, on sets made by `inner_splits.py`.

    python benchmarks/places.py INNER [--out results/places.csv]

INNER holds NAME.npz files at any depth whose two parts both come from training splits. Where a fit leaves values at
their places out, it is the fit without them; only the other sets are fitted twice.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import rows

from pdftime import PDFTimeClassifier, read_series
from pdftime.data.labels import codes_of
from pdftime.data.series import SeriesSet
from pdftime.scores import score

LONGEST = 520  # time points
WITHOUT = mock.patch("pdftime.training.closed_form.places_factor", return_value=0.0)


def measure(path: Path) -> dict[str, object] | None:
    train, judge = read_series(path, part="train"), read_series(path, part="test")
    if train.n_timepoints > LONGEST:
        return None
    model = PDFTimeClassifier(n_threads=1).fit(train, train.y)
    taken = model.metrics_["members"][0]["places"]
    row: dict[str, object] = {"group": path.parent.parent.name, "dataset": path.stem, "n_train": len(train)}
    row |= {"taken": int(taken)} | worth(model, judge, "")
    if taken:
        with WITHOUT:
            model = PDFTimeClassifier(n_threads=1).fit(train, train.y)
        row |= worth(model, judge, "without_")
    else:
        row |= {f"without_{name}": row[name] for name in ("accuracy", "log_loss")}
    return row


def worth(model: PDFTimeClassifier, judge: SeriesSet, prefix: str) -> dict[str, object]:
    assert judge.y is not None
    found = score(model.predict_proba(judge), codes_of(judge.y, model.classes_, "the labels to judge by"))
    return {f"{prefix}accuracy": round(found.accuracy, 5), f"{prefix}log_loss": round(found.log_loss, 5)}


def main() -> None:
    measured, out = rows.of_inner_sets(__doc__, measure)
    print(f"taken on {sum(int(str(row['taken'])) for row in measured)} of {len(measured)} sets")
    for what in ("accuracy", "log_loss"):
        difference = np.array([float(str(row[what])) - float(str(row[f"without_{what}"])) for row in measured])
        error = difference.std(ddof=1) / len(difference) ** 0.5
        print(f"{what}: {difference.mean():+.4f}, standard error {error:.4f}")
    rows.write(out, measured)


if __name__ == "__main__":
    main()
