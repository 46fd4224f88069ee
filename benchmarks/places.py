"""How much of a set lies in the values at fixed places, which a bank that pools over time does not see.

    python benchmarks/places.py FOLDER NAME...

Five folds of the training cases of FOLDER/**/NAME.npz, fitted by the bank and by a ridge regression on every tenth
value of each channel as it is. No test part is read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import rows
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pdftime import PDFTimeClassifier, read_series

EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    for name in options.names:
        cases = read_series(next(options.folder.rglob(f"{name}.npz")), part="train")
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        raw = cases.X[:, :, ::EVERY].reshape(len(cases), -1)
        ridge = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 5, 17)))
        rows.show(
            {
                "dataset": name,
                "bank": round(float(cross_val_score(PDFTimeClassifier(), cases.X, cases.y, cv=folds).mean()), 3),
                "values at their places": round(float(cross_val_score(ridge, raw, cases.y, cv=folds).mean()), 3),
            }
        )


if __name__ == "__main__":
    main()
