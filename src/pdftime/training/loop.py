"""train(): the one loop. It sees only the cases it is given, and stops on those kept for validation."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from pdftime.config import TrainConfig
from pdftime.data.batches import batch_indices, generator_for
from pdftime.errors import TrainingError
from pdftime.model.network import PDFTime
from pdftime.model.prototypes import PrototypeHead
from pdftime.training.losses import total_loss
from pdftime.training.schedules import learning_rate, prototype_momentum

NORM_RATE = 0.1  # share of a batch's statistics in the running averages
EVALUATION_POINTS = 16_384  # time points that go through the network together outside training


class Examples(NamedTuple):
    """Prepared series with what the loop needs to know of each."""

    x: Tensor
    """(n_cases, n_channels, n_timepoints) float32."""
    mask: Tensor | None
    """(n_cases, n_timepoints), false behind the end of a series."""
    y: Tensor
    """(n_cases,) class codes."""
    weight: Tensor
    """(n_cases,) positive."""

    def take(self, indices: NDArray[Any] | slice) -> Examples:
        rows = indices if isinstance(indices, slice) else torch.from_numpy(indices)
        mask = None if self.mask is None else self.mask[rows]
        return Examples(self.x[rows], mask, self.y[rows], self.weight[rows])


class Best(NamedTuple):
    """The best weights so far by validation loss."""

    epoch: int
    loss: float
    weights: dict[str, Tensor]


class Kept(NamedTuple):
    """The prototypes as they were after an epoch."""

    epoch: int
    levels: list[Tensor]


@dataclass
class Run:
    """A training run between two epochs: its weights, its optimiser and how far it has come."""

    network: PDFTime
    optimizer: torch.optim.AdamW
    config: TrainConfig
    seed: int
    n_epochs: int
    """Epochs that are planned."""
    epoch: int = 0
    """Epochs that are done."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """A record per epoch: every loss term, validation, momentum, learning rate, seconds."""
    best: Best | None = None
    seconds: float = 0.0
    kept: list[Kept] = field(default_factory=list)
    """What `keep_prototypes_` has kept."""

    @property
    def finished(self) -> bool:
        waited = self.best is not None and self.epoch - self.best.epoch >= self.config.patience
        return waited or self.epoch >= self.n_epochs


class Callback(Protocol):
    """Is told of every finished epoch; may look at anything, and stops the run by returning True."""

    def __call__(self, run: Run) -> bool | None: ...


def keep_prototypes_(run: Run, every: int) -> Callback:
    """Keep the prototypes as they are now, if nothing is done yet, and after every so many epochs."""

    def keep(run: Run) -> None:
        levels = [level.detach().clone() for level in run.network.head.levels]
        if levels and run.epoch % every == 0:
            run.kept.append(Kept(run.epoch, levels))

    if not run.epoch:
        keep(run)
    return keep


def start(network: PDFTime, n_cases: int, config: TrainConfig, seed: int) -> Run:
    """A run that has not begun; its weights are the network's."""
    return Run(network, _optimizer(network, config), config, seed, planned_epochs(n_cases, config))


def train(
    run: Run,
    examples: Examples,
    validation: Examples | None = None,
    *,
    max_time_s: float | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Go on with a run to its end, and leave the best weights (or, without validation, the last) in its network.

    The result depends on the run, the examples and the number of threads, and on nothing else; a run restored
    from a checkpoint ends as if it had never stopped.
    """
    with _flushed_denormals():
        while not run.finished:
            began = time.perf_counter()
            deadline = math.inf if max_time_s is None else began + max_time_s - run.seconds
            record = _epoch(run, examples, deadline)
            record |= _validate(run, validation)
            run.epoch += 1
            run.seconds += time.perf_counter() - began
            run.history.append({"epoch": run.epoch, **record, "seconds": run.seconds})
            stops = [callback(run) for callback in callbacks]
            if any(stops) or time.perf_counter() >= deadline:
                break
    if run.best is not None:
        run.network.load_state_dict(run.best.weights)
    return run


def planned_epochs(n_cases: int, config: TrainConfig) -> int:
    """`max_epochs`, or as many as make `n_steps` steps, within sense."""
    if config.max_epochs is not None:
        return config.max_epochs
    steps = len(batch_indices(n_cases, config.batch_size, seed=0, epoch=0))
    return min(max(-(-config.n_steps // steps), 20), 300)


@torch.no_grad()
def scores_of(network: nn.Module, x: Tensor, mask: Tensor | None) -> Tensor:
    """The deciding level's class scores, (n_cases, n_classes), in batches of bounded memory."""
    return torch.cat(
        [
            network(x[rows], None if mask is None else mask[rows]).scores[-1]
            for rows in _slices(len(x), max(1, EVALUATION_POINTS // x.shape[2]))
        ]
    )


def _epoch(run: Run, examples: Examples, deadline: float) -> dict[str, float]:
    """One pass over the examples; returns the mean of every loss term, and what was used."""
    config, network, head = run.config, run.network, run.network.head
    network.train()
    momentum = prototype_momentum(run.epoch, config)
    generator = generator_for(run.seed, "dropout", run.epoch)
    batches = batch_indices(len(examples.y), config.batch_size, seed=run.seed, epoch=run.epoch)
    parameters = list(network.parameters())
    sums: dict[str, float] = {}
    rate, seen = 0.0, 0
    for step, indices in enumerate(batches):
        rate = learning_rate((run.epoch + (step + 1) / len(batches)) / run.n_epochs, config)
        for group in run.optimizer.param_groups:
            group["lr"] = rate
        batch = examples.take(indices)
        output = network(batch.x, batch.mask, generator)
        losses = total_loss(output.scores, head.levels, batch.y, batch.weight, config)
        run.optimizer.zero_grad()
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(parameters, config.clip_norm, foreach=True)
        terms = losses.as_floats()
        _guard({**terms, "gradient": float(norm)}, f"epoch {run.epoch + 1}, step {step + 1}", rate)
        run.optimizer.step()
        network.update_norms_(output.moments, NORM_RATE)
        if isinstance(head, PrototypeHead):
            statistics = head.statistics(output.z.detach(), batch.y, batch.weight)
            head.update_(statistics, momentum, config.diversity_step)
        for name, value in terms.items():
            sums[name] = sums.get(name, 0.0) + value * len(indices)
        seen += len(indices)
        if time.perf_counter() >= deadline:
            break
    means = {name: value / seen for name, value in sums.items()}
    return {**means, "momentum": momentum, "learning_rate": rate}


def _validate(run: Run, validation: Examples | None) -> dict[str, float]:
    """Validation loss and accuracy, and the best weights kept."""
    run.network.eval()
    if validation is None:
        return {}
    scores = scores_of(run.network, validation.x, validation.mask)
    each = F.cross_entropy(scores, validation.y, reduction="none")
    loss = float((each * validation.weight).sum() / validation.weight.sum())
    _guard({"validation_loss": loss}, f"epoch {run.epoch + 1}, validation", run.optimizer.param_groups[0]["lr"])
    accuracy = float((scores.argmax(dim=1) == validation.y).float().mean())
    if run.best is None or loss < run.best.loss:
        weights = {name: tensor.clone() for name, tensor in run.network.state_dict().items()}
        run.best = Best(run.epoch + 1, loss, weights)
    return {"validation_loss": loss, "validation_accuracy": accuracy}


def _guard(terms: dict[str, float], where: str, rate: float) -> None:
    """Stop before a step that would fill the weights with NaN."""
    for name, value in terms.items():
        if not math.isfinite(value):
            raise TrainingError(
                f"Training stopped at {where}: {name} became {value} at learning rate {rate:.2g}. "
                "Lower learning_rate, or look for extreme values in the series."
            )


def _optimizer(network: PDFTime, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW; decay is for matrices and kernels, not for gains, offsets and prototypes."""
    decayed: list[Tensor] = []
    free: list[Tensor] = []
    for name, parameter in network.named_parameters():
        matrix = parameter.ndim > 1 and not name.startswith(("spectrum.", "head.level"))
        (decayed if matrix else free).append(parameter)
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def _slices(n: int, step: int) -> Iterator[slice]:
    return (slice(begin, begin + step) for begin in range(0, n, step))


@contextmanager
def _flushed_denormals() -> Iterator[None]:
    """Numbers near zero count as zero meanwhile: arithmetic on them is many times slower."""
    before = bool(torch.tensor(1e-39) * 1.0 == 0.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
