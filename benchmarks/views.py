"""What bank and network are worth together: preset `strong` on sets made by `inner_splits.py`, at every share.

    python benchmarks/views.py INNER [--names ECG200 Ham ...] [--seed 0] [--out results/views.csv]

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
import torch
from numpy.typing import NDArray

from pdftime import PDFTimeClassifier, read_series
from pdftime.data.labels import codes_of

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def measure(path: Path, seed: int, keep: Path | None) -> dict[str, object]:
    """Fit both views on the training part; judge mixtures of them by the other part."""
    train, judge = read_series(path, part="train"), read_series(path, part="test")
    started = time.perf_counter()
    model = PDFTimeClassifier(preset="strong", random_state=seed, n_threads=1).fit(train, train.y)
    seconds = time.perf_counter() - started
    fitted = model.model_
    batches = [fitted.member_probabilities(x, mask) for _, x, mask in fitted.batches(judge)]
    bank, network = (torch.cat(each).detach().numpy() for each in zip(*batches, strict=True))
    assert judge.y is not None
    codes = codes_of(judge.y, model.classes_, "the labels to judge by")
    if keep is not None:
        np.savez(keep / path.name, bank=bank, network=network, codes=codes)
    share = fitted.weights[0]
    row: dict[str, object] = {
        "dataset": path.stem,
        "group": path.parent.parent.name,
        "seed": seed,
        "n_train": len(train),
        "n_judge": len(judge),
        "n_validation": fitted.metrics["members"][1]["n_validation"],
        "seconds": round(seconds, 1),
        "share": round(share, 3),
    }
    for name, each in (("chosen", share), *((f"{each:g}", each) for each in SHARES)):
        accuracy, log_loss = _worth(each * bank + (1.0 - each) * network, codes)
        row |= {f"accuracy_{name}": round(accuracy, 5), f"log_loss_{name}": round(log_loss, 5)}
    return row


def _worth(probabilities: NDArray[np.float64], codes: NDArray[np.int64]) -> tuple[float, float]:
    own = probabilities[np.arange(len(codes)), codes]
    return float(np.mean(probabilities.argmax(axis=1) == codes)), float(-np.log(own.clip(1e-12)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inner", type=Path)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the probabilities of both views")
    options = parser.parse_args()
    paths = sorted(options.inner.rglob("*.npz"), key=lambda path: path.stat().st_size)
    measured: list[dict[str, object]] = []
    if options.out is not None and options.out.exists():
        with options.out.open() as handle:
            measured = [dict(row) for row in csv.DictReader(handle)]
    done = {(row["dataset"], int(str(row["seed"]))) for row in measured}
    for path in paths:
        if (not options.names or path.stem in options.names) and (path.stem, options.seed) not in done:
            measured.append(measure(path, options.seed, options.keep))
            rows.show(measured[-1])
            rows.write(options.out, measured)


if __name__ == "__main__":
    main()
