"""Checkpoint: a training run on disk, from which it goes on as if it had never stopped."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pdftime.container import read_container, write_container
from pdftime.errors import ModelFileError
from pdftime.training.loop import Best, Callback, Kept, Run
from pdftime.training.tensors import from_arrays, to_arrays, with_prefix, without_prefix

EVERY_S = 2.0  # seconds between two writes at least: a lost epoch costs less than writing each one


class Snapshot(NamedTuple):
    """One member's run as plain data."""

    state: dict[str, Any]
    arrays: dict[str, Any]


class Checkpoint:
    """One file for all members of a model, written after epochs, beside the old one and then renamed."""

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any], *, resume: bool) -> None:
        """`identity` says what is trained on what; resuming from a file of another identity is refused."""
        self.path = Path(path)
        self.identity = identity
        self.snapshots: list[Snapshot] = []
        if resume and self.path.exists():
            self.snapshots = self._read()

    def restore_(self, run: Run, member: int) -> None:
        """Put a run where its snapshot was, if the file holds one."""
        if member < len(self.snapshots):
            _restore_(run, self.snapshots[member])

    def callback(self, member: int) -> Callback:
        """Writes the file after an epoch, not too often, and always after the last."""
        last = time.monotonic()

        def write(run: Run) -> None:
            nonlocal last
            if run.finished or time.monotonic() - last >= EVERY_S:
                self.write(run, member)
                last = time.monotonic()

        return write

    def write(self, run: Run, member: int) -> None:
        """Replace the file by one that holds this run beside the other members'."""
        self.snapshots[member : member + 1] = [_snapshot(run)]
        arrays: dict[str, Any] = {}
        for index, snapshot in enumerate(self.snapshots):
            arrays |= with_prefix(f"run.{index}.", snapshot.arrays)
        header = {"identity": self.identity, "runs": [snapshot.state for snapshot in self.snapshots]}
        write_container(self.path, arrays, header, kind="checkpoint")

    def _read(self) -> list[Snapshot]:
        arrays, header = read_container(self.path, kind="checkpoint")
        theirs = header.get("identity")
        if theirs != self.identity:
            different = [key for key in self.identity if not theirs or theirs.get(key) != self.identity[key]]
            raise ModelFileError(
                f"{self.path} is the checkpoint of another run: {', '.join(different)} differ. "
                "Resume with the same series, labels and settings, or choose another checkpoint file."
            )
        return [
            Snapshot(state, without_prefix(f"run.{index}.", arrays)) for index, state in enumerate(header["runs"])
        ]


def _snapshot(run: Run) -> Snapshot:
    """A finished run needs its weights only; one that goes on, its optimiser too."""
    state: dict[str, Any] = {"epoch": run.epoch, "seconds": run.seconds, "history": list(run.history)}
    state["kept"] = [kept.epoch for kept in run.kept]
    arrays = with_prefix("network.", to_arrays(run.network.state_dict()))
    if run.best is not None:
        state |= {"best_epoch": run.best.epoch, "best_loss": run.best.loss}
        arrays |= with_prefix("best.", to_arrays(run.best.weights))
    for kept in run.kept:
        levels = {str(level): tensor for level, tensor in enumerate(kept.levels)}
        arrays |= with_prefix(f"kept.{kept.epoch}.", to_arrays(levels))
    if not run.finished:
        for index, moments in run.optimizer.state_dict()["state"].items():
            arrays |= with_prefix(f"optimizer.{index}.", to_arrays(moments))
    return Snapshot(state, arrays)


def _restore_(run: Run, snapshot: Snapshot) -> None:
    state, arrays = snapshot
    try:
        run.network.load_state_dict(from_arrays(without_prefix("network.", arrays)))
        moments: dict[int, dict[str, torch.Tensor]] = {}
        parameters = [each for group in run.optimizer.param_groups for each in group["params"]]
        for name, tensor in from_arrays(without_prefix("optimizer.", arrays)).items():
            index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = _laid_out_like(parameters[int(index)], tensor)
        optimizer = {**run.optimizer.state_dict(), "state": moments}
        run.optimizer.load_state_dict(optimizer)
        if "best_epoch" in state:
            weights = from_arrays(without_prefix("best.", arrays))
            run.best = Best(int(state["best_epoch"]), float(state["best_loss"]), weights)
        for epoch in state["kept"]:
            levels = from_arrays(without_prefix(f"kept.{epoch}.", arrays))
            run.kept.append(Kept(int(epoch), [levels[str(level)] for level in range(len(levels))]))
        run.epoch, run.seconds, run.history = (
            int(state["epoch"]),
            float(state["seconds"]),
            list(state["history"]),
        )
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"The checkpoint does not fit the run: {error}") from error


def _laid_out_like(parameter: torch.Tensor, moment: torch.Tensor) -> torch.Tensor:
    """The fused optimiser walks through memory, so a moment must lie as its parameter does; a step count may not."""
    return moment if moment.ndim == 0 else torch.empty_like(parameter, requires_grad=False).copy_(moment)
