"""What bank and network are worth together: preset `strong` on sets made by `inner_splits.py`, at every share.

    python benchmarks/views.py INNER [--names ECG200 ...] [--seed 0] [--set n_folds=1 ...] [--out results/views.csv]

INNER holds NAME.npz files at any depth whose two parts both come from training splits. Each row has the share that
the fit gave to the bank, and accuracy and log loss of the mixture at that share and at 0 (the network alone) to 1
(the bank alone). Sets that stand in the file already are skipped.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import rows
from numpy.typing import NDArray
from scipy.special import softmax

from pdftime import PDFTimeClassifier, read_series
from pdftime.config import value_of
from pdftime.data.labels import codes_of
from pdftime.scores import score

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def mixed(bank: NDArray[np.float64], network: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Their logarithms averaged by the bank's share, as their scores are in a model."""
    logs: list[NDArray[np.float64]] = [np.log(np.maximum(each, 1e-12)) for each in (bank, network)]
    together: NDArray[np.float64] = softmax(share * logs[0] + (1.0 - share) * logs[1], axis=1)
    return together


def measure(path: Path, seed: int, settings: dict[str, object]) -> dict[str, object]:
    """Fit both views on the training part; judge mixtures of them by the other part."""
    train, judge = read_series(path, part="train"), read_series(path, part="test")
    started = time.perf_counter()
    model = PDFTimeClassifier(preset="strong", random_state=seed, n_threads=1, settings=settings)
    model.fit(train, train.y)
    seconds = time.perf_counter() - started
    fitted = model.model_
    bank, network = (fitted.of_view(view).probabilities(judge) for view in ("bank", "network"))
    assert judge.y is not None
    codes = codes_of(judge.y, model.classes_, "the labels to judge by")
    share = fitted.shares[0]
    row: dict[str, object] = {
        "dataset": path.stem,
        "group": path.parent.parent.name,
        "seed": seed,
        "n_train": len(train),
        "n_judge": len(judge),
        "n_validation": sum(each["n_validation"] for each in fitted.metrics["members"][1:]),
        "seconds": round(seconds, 1),
        "share": round(share, 3),
    }
    for name, each in (("chosen", share), *((f"{each:g}", each) for each in SHARES)):
        worth = score(mixed(bank, network, each), codes)
        row |= {f"accuracy_{name}": round(worth.accuracy, 5), f"log_loss_{name}": round(worth.log_loss, 5)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inner", type=Path)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings that differ from strong's"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings = {name: value_of(value) for name, _, value in (each.partition("=") for each in options.set)}
    paths = sorted(options.inner.rglob("*.npz"), key=lambda path: path.stat().st_size)
    measured: list[dict[str, object]] = []
    if options.out is not None and options.out.exists():
        with options.out.open() as handle:
            measured = [dict(row) for row in csv.DictReader(handle)]
    done = {(row["dataset"], row["group"], int(str(row["seed"]))) for row in measured}
    for path in paths:
        own = path.stem, path.parent.parent.name, options.seed
        if (not options.names or path.stem in options.names) and own not in done:
            measured.append(measure(path, options.seed, settings))
            rows.show(measured[-1])
            rows.write(options.out, measured)


if __name__ == "__main__":
    main()
