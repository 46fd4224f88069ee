"""Write model_v2.pdftime and what it predicts, for the test that models of format version 2 keep loading.

Only for the time before version 2 is published; afterwards the file must stay as it is.
Run it from anywhere: python tests/data_files/make_model_v2.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pdftime import PDFTimeClassifier, load
from pdftime.container import FORMAT_VERSION

FOLDER = Path(__file__).parent


def main() -> None:
    if FORMAT_VERSION != 2:
        raise SystemExit("The format has moved on; keep model_v2.pdftime and write a script for the new version.")
    rng = np.random.default_rng(2)
    y = np.array(["low", "high"] * 60)
    ends = rng.integers(14, 25, len(y))
    X = [
        level + np.sin(np.arange(end) / 2.0) * [[1.0], [0.5]] + 0.3 * rng.standard_normal((2, end))
        for level, end in zip(np.where(y == "high", 0.7, -0.7), ends, strict=True)
    ]
    model = PDFTimeClassifier(
        preset="network",
        d_model=8,
        n_members=2,
        max_epochs=6,
        learning_rate=0.01,
        lengths="pad",
        n_threads=1,
        keep_prototypes=3,
        settings={"branch_width": 4, "n_inception_layers": 2, "kernel_sizes": (3, 5), "max_tokens": 8},
    ).fit(X, y)
    model.save(FOLDER / "model_v2.pdftime")
    fresh = (np.linspace(-1.2, 1.2, 6)[:, None, None] + rng.standard_normal((6, 2, 20))).round(6)
    model = load(FOLDER / "model_v2.pdftime")
    view = model.explain_model()
    kept = {
        "classes": model.classes_.tolist(),
        "X": fresh.tolist(),
        "probabilities": model.predict_proba(fresh).tolist(),
        "best_matches": [
            {
                "neighbours": [neighbour.index for neighbour in each.neighbours],
                "similarity": each.similarity,
                "usage": each.usage,
                "purity": each.purity,
                "wrong": each.wrong.index,
            }
            for each in (explanation.best_match for explanation in model.explain(fresh))
        ],
        "agreement": view.agreement,
        "confusion": view.confusion.tolist(),
        "epochs": [each.epochs.tolist() for each in view.evolution],
    }
    (FOLDER / "model_v2.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
