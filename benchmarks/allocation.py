"""Prototypes as many as the allocation gives, against one per class: preset `fast` on sets made by `inner_splits.py`.

    python benchmarks/allocation.py INNER [--out results/allocation.csv]

INNER holds NAME.npz files at any depth whose two parts both come from training splits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import rows

from pdftime import PDFTimeClassifier, read_series
from pdftime.data.labels import codes_of
from pdftime.scores import score

MAX_JUDGE, LONGEST = 400, 520


def measure(path: Path) -> dict[str, object] | None:
    train, judge = read_series(path, part="train"), read_series(path, part="test")
    if train.n_timepoints > LONGEST:
        return None
    judge = judge.take(slice(MAX_JUDGE))
    row: dict[str, object] = {"group": path.parent.parent.name, "dataset": path.stem, "n_train": len(train)}
    for name, settings in (("allocated", {}), ("single", {"max_prototypes": 1})):
        model = PDFTimeClassifier(preset="fast", settings=settings, n_threads=1).fit(train, train.y)
        measured = model.metrics_["members"][0]
        assert judge.y is not None
        codes = codes_of(judge.y, model.classes_, "the labels to judge by")
        worth = score(model.predict_proba(judge), codes)
        row |= {
            f"{name}_prototypes": sum(measured["n_prototypes"]),
            f"{name}_accuracy": round(worth.accuracy, 5),
            f"{name}_log_loss": round(worth.log_loss, 5),
            f"{name}_left_out_log_loss": round(measured["validation_log_loss"], 5),
        }
    return row


def main() -> None:
    measured, out = rows.of_inner_sets(__doc__, measure)
    for what in ("accuracy", "log_loss"):
        pairs = np.array(
            [[float(str(row[f"{kind}_{what}"])) for kind in ("allocated", "single")] for row in measured]
        )
        difference = pairs[:, 0] - pairs[:, 1]
        print(
            f"{what}: {pairs[:, 0].mean():.4f} allocated, {pairs[:, 1].mean():.4f} one per class, difference "
            f"{difference.mean():+.4f} +- {difference.std(ddof=1) / len(difference) ** 0.5:.4f}; "
            f"higher on {(difference > 0).sum()}, lower on {(difference < 0).sum()} of {len(difference)}"
        )
    rows.write(out, measured)


if __name__ == "__main__":
    main()
