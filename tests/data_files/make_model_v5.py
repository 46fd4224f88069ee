"""Write model_v5.pdftime, a bank and a network whose scores are averaged, and what it predicts.

It is for the test that models of format version 5 keep loading. Only for the time before version 5 is published;
afterwards the file must stay as it is. Run it from anywhere: python tests/data_files/make_model_v5.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from make_model_v3 import TINY, told

from pdftime import PDFTimeClassifier, load
from pdftime.container import FORMAT_VERSION
from pdftime.training import closed_form

PATH = Path(__file__).parent / "model_v5.pdftime"


def main() -> None:
    if FORMAT_VERSION != 5:
        raise SystemExit("The format has moved on; keep model_v5.pdftime and write a script for the new version.")
    closed_form.EXACT_CASES = 60  # as of a large set, of which a bank has half as many features: a small file
    rng = np.random.default_rng(5)
    y = np.array(["low", "high"] * 60)
    level = np.where(y == "high", 0.7, -0.7)[:, None, None]
    X = level + np.sin(np.arange(12) + rng.uniform(0, 6, (120, 1, 1))) + 0.3 * rng.standard_normal((120, 1, 12))
    fresh = (np.linspace(-1.2, 1.2, 6)[:, None, None] + rng.standard_normal((6, 1, 12))).round(6)
    few = {"n_inception_layers": 2, "least_timepoints": 6, "max_prototypes": 1, "n_prototypes": (1,)}
    model = PDFTimeClassifier(
        preset="strong",
        d_model=4,
        max_epochs=6,
        learning_rate=0.01,
        n_threads=1,
        settings={**TINY, **few, "n_heads": 2},
    )
    model.fit(X.astype(np.float32), y).save(PATH)
    PATH.with_suffix(".json").write_text(json.dumps(told(load(PATH), fresh), indent=1) + "\n")


if __name__ == "__main__":
    main()
