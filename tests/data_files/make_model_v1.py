"""Write model_v1.pdftime and what it predicts, for the test that models of format version 1 keep loading.

Only for the time before version 1 is published; afterwards the file must stay as it is.
Run it from anywhere: python tests/data_files/make_model_v1.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pdftime import PDFTimeClassifier, load
from pdftime.container import FORMAT_VERSION

FOLDER = Path(__file__).parent


def main() -> None:
    if FORMAT_VERSION != 1:
        raise SystemExit("The format has moved on; keep model_v1.pdftime and write a script for the new version.")
    rng = np.random.default_rng(1)
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
        settings={"branch_width": 4, "n_inception_layers": 2, "kernel_sizes": (3, 5), "max_tokens": 8},
    ).fit(X, y)
    model.save(FOLDER / "model_v1.pdftime")
    fresh = (np.linspace(-1.2, 1.2, 6)[:, None, None] + rng.standard_normal((6, 2, 20))).round(6)
    model = load(FOLDER / "model_v1.pdftime")
    best = [each.best_match for each in model.explain(fresh)]
    kept = {
        "classes": model.classes_.tolist(),
        "X": fresh.tolist(),
        "probabilities": model.predict_proba(fresh).tolist(),
        "best_matches": [
            {"neighbours": [neighbour.index for neighbour in each.neighbours], "similarity": each.similarity}
            for each in best
        ],
    }
    (FOLDER / "model_v1.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
