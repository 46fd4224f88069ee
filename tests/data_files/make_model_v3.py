"""Write model_v3_bank.pdftime and model_v3_both.pdftime and what they predict.

They are for the test that models of format version 3 keep loading. Only for the time before version 3 is published;
afterwards the files must stay as they are. Run it from anywhere: python tests/data_files/make_model_v3.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pdftime import PDFTimeClassifier, load
from pdftime.container import FORMAT_VERSION
from pdftime.training import closed_form

FOLDER = Path(__file__).parent
TINY = {
    "branch_width": 2,
    "n_inception_layers": 1,
    "kernel_sizes": (3, 5),
    "max_tokens": 8,
    "n_groups": 2,
    "n_biases": 1,
}


def main() -> None:
    if FORMAT_VERSION != 3:
        raise SystemExit("The format has moved on; keep model_v3_*.pdftime and write a script for the new version.")
    closed_form.EXACT_CASES = 60  # as of a large set, of which a bank has half as many features: small files
    rng = np.random.default_rng(3)
    y = np.array(["low", "high"] * 60)
    ends = rng.integers(12, 17, len(y))
    rate = np.where(rng.random(len(y)) < 0.5, 0.4, 1.5)  # two kinds in each class
    X = [
        level + np.sin(np.arange(end) * each + rng.uniform(0, 6)) + 0.3 * rng.standard_normal((1, end))
        for level, end, each in zip(np.where(y == "high", 0.7, -0.7), ends, rate, strict=True)
    ]
    fresh = (np.linspace(-1.2, 1.2, 6)[:, None, None] + rng.standard_normal((6, 1, 14))).round(6)
    common: dict[str, Any] = {"lengths": "pad", "n_threads": 1}
    bank = PDFTimeClassifier(preset="fast", settings=TINY, **common)
    both = PDFTimeClassifier(
        preset="strong",
        d_model=8,
        max_epochs=6,
        learning_rate=0.01,
        keep_prototypes=3,
        settings={**TINY, "max_prototypes": 1},
        **common,
    )
    for name, model in (("bank", bank), ("both", both)):
        path = FOLDER / f"model_v3_{name}.pdftime"
        model.fit(X, y).save(path)
        path.with_suffix(".json").write_text(json.dumps(told(load(path), fresh), indent=1) + "\n")


def told(model: PDFTimeClassifier, fresh: Any) -> dict[str, Any]:
    """What the model says of fresh series and of itself."""
    view = model.explain_model()
    matches = [explanation.best_match for explanation in model.explain(fresh)]
    return {
        "classes": model.classes_.tolist(),
        "X": fresh.tolist(),
        "probabilities": model.predict_proba(fresh).tolist(),
        "weights": model.model_.weights,
        "best_matches": [
            {
                "neighbours": [neighbour.index for neighbour in each.neighbours],
                "similarity": each.similarity,
                "usage": each.usage,
                "purity": each.purity,
                "wrong": each.wrong.index,
            }
            for each in matches
            if each is not None and each.wrong is not None
        ],
        "agreement": view.agreement,
        "confusion": None if view.confusion is None else view.confusion.tolist(),
        "epochs": [each.epochs.tolist() for each in view.evolution],
    }


if __name__ == "__main__":
    main()
