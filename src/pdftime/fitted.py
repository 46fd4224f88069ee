"""FittedModel: what training leaves and a model file holds; scores cases in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.config import Settings
from pdftime.data.prepare import Preparation, Prepared
from pdftime.data.series import SeriesSet
from pdftime.model.network import Output, PDFTime
from pdftime.model.prototypes import PrototypeHead

N_NEAREST = 5
BATCH_POINTS = 16_384  # time points that go through the network together: what stays in the processor's cache


class Member(NamedTuple):
    """One trained network of an ensemble."""

    network: PDFTime
    temperature: float
    """Divides the scores before the softmax; found on validation cases, 1 without any."""
    history: list[dict[str, Any]]


class Nearest(NamedTuple):
    """The training series nearest to each prototype of one level of one member."""

    position: NDArray[np.int64]
    """(n_classes, k, n) positions in `Exemplars.cases`."""
    similarity: NDArray[np.float32]
    """(n_classes, k, n) cosines, highest first."""


class Exemplars(NamedTuple):
    """The real training series that stand behind the prototypes."""

    cases: SeriesSet
    """Each series once, with the code of its class as label."""
    numbers: NDArray[np.int64]
    """Where each stood in the training data."""
    nearest: list[list[Nearest]]
    """Per member, per level."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Preparation, networks, classes, and the training series behind the prototypes."""

    settings: Settings
    classes: NDArray[Any]
    channel_names: tuple[str, ...]
    preparation: Preparation
    members: list[Member]
    exemplars: Exemplars | None = None
    """None where the head has no prototypes."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What was measured on validation cases."""

    @torch.no_grad()
    def probabilities(self, cases: SeriesSet) -> NDArray[np.float64]:
        """(n_cases, n_classes): calibrated, averaged over the members, rows sum to 1."""
        rows = []
        for _, x, mask in self.batches(cases):
            each = [
                torch.softmax(member.network(x, mask).scores[-1].double() / member.temperature, dim=1)
                for member in self.members
            ]
            rows.append(torch.stack(each).mean(dim=0))
        probabilities: NDArray[np.float64] = torch.cat(rows).numpy()
        return probabilities

    @torch.no_grad()
    def embeddings(self, cases: SeriesSet) -> NDArray[np.float32]:
        """(n_cases, n_members * d_model): what the heads compare with prototypes, members side by side."""
        rows = [
            torch.cat([member.network(x, mask).z for member in self.members], dim=1)
            for _, x, mask in self.batches(cases)
        ]
        z: NDArray[np.float32] = torch.cat(rows).numpy()
        return z

    @torch.no_grad()
    def outputs(self, cases: SeriesSet, member: int) -> Iterator[Output]:
        """One member's outputs, batch by batch."""
        for _, x, mask in self.batches(cases):
            yield self.members[member].network(x, mask)

    def batches(self, cases: SeriesSet) -> Iterator[tuple[SeriesSet, Tensor, Tensor | None]]:
        """Cases in parts, each with its network input."""
        self.preparation.check(cases)
        longest = max(cases.n_timepoints, self.preparation.n_timepoints)
        channels = min(cases.n_channels, 32)  # the network's own features outweigh those of fewer channels
        for part in cases.chunks(BATCH_POINTS * channels * cases.n_timepoints // longest):
            yield part, *as_tensors(self.preparation(part))


def as_tensors(prepared: Prepared) -> tuple[Tensor, Tensor | None]:
    """Network input from prepared series; shares their memory."""
    return torch.from_numpy(prepared.x), None if prepared.mask is None else torch.from_numpy(prepared.mask)


def find_exemplars(model: FittedModel, cases: SeriesSet, codes: NDArray[np.int64]) -> Exemplars | None:
    """For every prototype the nearest training series of its own class."""
    nearest = []
    for number, member in enumerate(model.members):
        head = member.network.head
        if not isinstance(head, PrototypeHead):
            return None
        z = torch.cat([output.z for output in model.outputs(cases, number)])
        with torch.no_grad():
            nearest.append([_nearest(cosine.numpy(), codes) for cosine in head.similarities(z)])
    index, places = np.unique(
        np.concatenate([level.position.ravel() for levels in nearest for level in levels]),
        return_inverse=True,
    )
    places = places.ravel()
    renumbered, start = [], 0
    for levels in nearest:
        own = []
        for level in levels:
            stop = start + level.position.size
            own.append(level._replace(position=places[start:stop].reshape(level.position.shape)))
            start = stop
        renumbered.append(own)
    chosen = cases.take(index)
    X = chosen.X.astype(np.float32 if np.result_type(chosen.X, np.float32) == np.float32 else np.float64)
    return Exemplars(replace(chosen, X=X, y=codes[index]), index, renumbered)


def _nearest(cosine: NDArray[np.float32], codes: NDArray[np.int64]) -> Nearest:
    """(n_cases, n_classes, k) cosines to the nearest of each class; a smaller class repeats its last one."""
    _, n_classes, k = cosine.shape
    position = np.empty((n_classes, k, N_NEAREST), np.int64)
    for code in range(n_classes):
        rows = np.flatnonzero(codes == code)
        order = np.argsort(-cosine[rows, code, :], axis=0, kind="stable")[:N_NEAREST]  # (<= n, k)
        order = order[np.minimum(np.arange(N_NEAREST), len(order) - 1)]
        position[code] = rows[order].T
    classes, prototypes = np.indices((n_classes, k))
    return Nearest(position, cosine[position, classes[..., None], prototypes[..., None]])
