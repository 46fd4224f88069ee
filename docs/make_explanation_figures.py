"""Draws the examples of docs/explanations-figures.md: `python docs/make_explanation_figures.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdftime import PDFTimeClassifier
from pdftime.data.synthetic import make_problem
from pdftime.explain.figures import save_figure
from pdftime.explain.figures.album import Material, album

FOLDER = Path(__file__).parent
CASE = 0
SHOWN = {
    "case-0-series": "explanation-series.svg",
    "case-0-matches": "explanation-matches.svg",
    "case-0-scores": "explanation-scores.svg",
    "space-tsne": "explanation-space.svg",
}


def main() -> None:
    problem = make_problem("channels")
    train, fresh = problem.train, problem.fresh
    prototypes, linear = (
        PDFTimeClassifier(preset="network", max_epochs=40, n_threads=1, settings={"head": head})
        .fit(train, train.y)
        .model_
        for head in ("prototypes", "linear")
    )
    codes = np.searchsorted(prototypes.classes, fresh.y)
    material = Material(prototypes, fresh, codes, [linear])
    for picture in album(material, ["series", "matches", "scores", "space"], [CASE]):
        if picture.name in SHOWN and picture.figure is not None:
            save_figure(picture.figure, FOLDER / SHOWN[picture.name])


if __name__ == "__main__":
    main()
