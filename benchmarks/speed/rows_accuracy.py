"""Row about accuracy: the same equations written both ways learn equally well."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pdftime.config import PrepareConfig
from pdftime.data.batches import generator_for
from pdftime.data.prepare import Preparation
from pdftime.data.series import check_series
from pdftime.model.network import PDFTime
from pdftime.training.loop import Examples, start, train

from .plain import PlainNetwork, PlainTraining
from .rows_fit import DATASETS, equal_length
from .subjects import settings_for
from .timing import Record, spread_of

N_STEPS = 300


def accuracy_of_both(quick: bool, repetitions: int) -> list[Record]:
    """(j) Accuracy of plain less that of ours, in points, same start and number of steps; one value per seed."""
    names = ["ItalyPowerDemand"] if quick else list(DATASETS)
    differences = {name: [_difference(name, seed, 20 if quick else N_STEPS) for seed in range(3)] for name in names}
    ours = {name: [each[0] for each in pairs] for name, pairs in differences.items()}
    theirs = {name: [each[1] for each in pairs] for name, pairs in differences.items()}
    ours["mean"], theirs["mean"] = (np.mean(list(each.values()), axis=0).tolist() for each in (ours, theirs))
    return [
        Record(
            "j",
            f"test accuracy on {name} after {N_STEPS} steps" if name != "mean" else "the same, mean of the sets",
            "plain less ours",
            spread_of(100 * (np.array(theirs[name]) - np.array(ours[name]))),
            "points",
            {"dataset": name, "ours": ours[name], "plain": theirs[name]},
        )
        for name in ours
    ]


def _difference(name: str, seed: int, n_steps: int) -> tuple[float, float]:
    """Accuracy of ours and of plain on fresh cases."""
    settings = settings_for("network", batch_size=16)
    cases, fresh = (check_series(equal_length(DATASETS[name], split)[0]) for split in ("train", "test"))
    classes, codes = np.unique(equal_length(DATASETS[name], "train")[1], return_inverse=True)
    preparation = Preparation.fit(cases, PrepareConfig())
    x, x_fresh = (torch.from_numpy(preparation(each).x) for each in (cases, fresh))
    y, y_fresh = torch.from_numpy(codes), np.searchsorted(classes, equal_length(DATASETS[name], "test")[1])
    network = PDFTime(settings.model, *x.shape[1:], len(classes), generator_for(seed, "weights"))
    plain = PlainNetwork.like(network, settings.model, x.shape[2])
    n_epochs = -(-n_steps * 16 // len(y))
    run = start(network, len(y), settings.but(max_epochs=n_epochs).training, seed)
    train(run, Examples(x, None, y, torch.ones(len(y))))
    torch.manual_seed(seed)
    training = PlainTraining(plain, settings)
    for _ in range(n_epochs):
        training.epoch(x, y)
    with torch.no_grad():
        ours, theirs = network.eval()(x_fresh).scores[-1], plain.eval()(x_fresh)[0][-1]
    return _share(ours, y_fresh), _share(theirs, y_fresh)


def _share(scores: torch.Tensor, y: NDArray[np.int64]) -> float:
    return float(np.mean(scores.argmax(dim=1).numpy() == y))
