"""Deletion by scattered and by connected random orders: how much of a loss of the bank is an artefact of replacing.

    python benchmarks/deletion_spans.py FOLDER NAME...

FOLDER holds NAME.npz files at any depth; 70% of the training cases are fitted and up to 12 of the others explained.
No test part is read. Random orders are noise, as it is and averaged over 31 time points.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import rows
from scipy.ndimage import uniform_filter1d

from pdftime import PDFTimeClassifier, read_series
from pdftime.bench.explain import all_maps, mean_loss

SPAN, N_ORDERS = 31, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    for name in options.names:
        cases = read_series(next(options.folder.rglob(f"{name}.npz")), part="train")
        rng = np.random.default_rng(0)
        order = rng.permutation(len(cases))
        cut = int(0.7 * len(order))
        train, kept = cases.take(order[:cut]), cases.take(order[cut:][:12])
        row: dict[str, object] = {"dataset": name}
        for preset in ("fast", "network"):
            model = PDFTimeClassifier(preset=preset, n_threads=1).fit(train, train.y).model_
            maps, _ = all_maps(model, kept, 0)
            shape = maps.x.shape
            spans = [
                uniform_filter1d(rng.random(shape), min(SPAN, shape[2] // 2), axis=2, mode="reflect")
                for _ in range(N_ORDERS)
            ]
            row |= {
                f"{preset}_map": round(mean_loss(model, maps, maps.values["score map"]), 3),
                f"{preset}_scattered": round(mean_loss(model, maps, maps.values["random"]), 3),
                f"{preset}_connected": round(float(np.mean([mean_loss(model, maps, each) for each in spans])), 3),
            }
            if "evidence map" in maps.values:
                row[f"{preset}_evidence"] = round(mean_loss(model, maps, maps.values["evidence map"]), 3)
        rows.show(row)


if __name__ == "__main__":
    main()
