"""The peers that have a name here: which class of which package, with which arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Peer:
    """A classifier of another package, as its authors mean it to be run."""

    class_path: str
    """module:Class"""
    extra: str
    """The extra of pdftime that brings the package."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Where the package's defaults are not those of the published method."""
    time_keyword: str | None = None
    """The argument that takes a time limit, in minutes; None where the class knows no limit."""
    warm_up: bool = True
    """Whether a tiny problem is learnt before the clock starts, so that compiling is not counted."""


_CONVOLUTION = "aeon.classification.convolution_based"
_NETWORKS = "sktime.classification.deep_learning"

PEERS = {
    "rocket": Peer(f"{_CONVOLUTION}:RocketClassifier", "bench"),
    "minirocket": Peer(f"{_CONVOLUTION}:MiniRocketClassifier", "bench"),
    "multirocket": Peer(f"{_CONVOLUTION}:MultiRocketClassifier", "bench"),
    "hydra": Peer(f"{_CONVOLUTION}:HydraClassifier", "bench"),
    "multirocket-hydra": Peer(f"{_CONVOLUTION}:MultiRocketHydraClassifier", "bench"),
    "quant": Peer("aeon.classification.interval_based:QUANTClassifier", "bench"),
    "rdst": Peer("aeon.classification.shapelet_based:RDSTClassifier", "bench"),
    # Its four parts each learn the tiny problem at full size: minutes, against hours that are counted.
    "hivecote2": Peer(
        "aeon.classification.hybrid:HIVECOTEV2", "bench", time_keyword="time_limit_in_minutes", warm_up=False
    ),
    "1nn-dtw": Peer("aeon.classification.distance_based:KNeighborsTimeSeriesClassifier", "bench"),
    # One network; the published InceptionTime is the mean of five.
    "inceptiontime": Peer(f"{_NETWORKS}.inceptiontime:InceptionTimeClassifierTorch", "bench", warm_up=False),
    # Epochs, batches and optimiser of the published baselines; sktime's own are 100 epochs, one case a step.
    "resnet": Peer(
        f"{_NETWORKS}.resnet:ResNetClassifierTorch",
        "bench",
        {"num_epochs": 1500, "batch_size": 16, "optimizer": "Adam"},
        warm_up=False,
    ),
    "fcn": Peer(
        f"{_NETWORKS}.fcn:FCNClassifierTorch",
        "bench",
        {"num_epochs": 2000, "batch_size": 16, "lr": 0.001},
        warm_up=False,
    ),
    "patchtst": Peer("pdftime.bench.pots:PatchTSTClassifier", "pypots", warm_up=False),
    "timesnet": Peer("pdftime.bench.pots:TimesNetClassifier", "pypots", warm_up=False),
}
"""Each peer by its name on the command line."""
