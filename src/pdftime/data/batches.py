"""Order and content of batches as a pure function of (seed, epoch, rank, world_size)."""

from __future__ import annotations

import hashlib
import json
import operator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


def seed_for(*keys: int | str) -> int:
    """A 63-bit seed that belongs to these keys alone, so that every random choice has its own stream."""
    # Not SeedSequence(keys): it pads with zeros, so (1,) and (1, 0) would share a stream.
    text = json.dumps([key if isinstance(key, str) else operator.index(key) for key in keys])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator_for(*keys: int | str) -> torch.Generator:
    """A CPU generator in the stream of these keys."""
    import torch

    return torch.Generator().manual_seed(seed_for(*keys))


def batch_indices(
    n_cases: int, batch_size: int, *, seed: int, epoch: int, rank: int = 0, world_size: int = 1
) -> list[NDArray[np.int64]]:
    """This rank's share of every batch of one epoch; over all ranks each case comes exactly once.

    Sizes of whole batches differ by at most one. Only one case in all, or a `batch_size` of one, makes a
    batch of one: an odd number of cases in pairs has one batch of three. The ranks' shares of a batch are
    together the batch of a single process; a share is empty where there are fewer cases than ranks.
    """
    n_batches = -(-n_cases // batch_size)
    if batch_size > 1:
        n_batches = max(1, min(n_batches, n_cases // 2))
    order = np.random.default_rng(seed_for(seed, "batches", epoch)).permutation(n_cases)
    return [batch[rank::world_size] for batch in np.array_split(order, n_batches)]


def stratified_split(
    codes: NDArray[np.int64], fraction: float, *, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted indices of a training and a validation part, `fraction` of every class in the latter.

    Every class keeps at least two training cases and gives at least one; where a class has fewer than three
    cases, or `fraction` is zero, the validation part is empty.
    """
    _, code, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if fraction == 0 or counts.min() < 3:
        return np.arange(len(codes)), np.arange(0)
    shuffled = np.random.default_rng(seed_for(seed, "validation")).permutation(len(codes))
    by_class = np.split(shuffled[np.argsort(code[shuffled], kind="stable")], np.cumsum(counts)[:-1])
    given = [cases[:size] for cases, size in zip(by_class, _validation_sizes(counts, fraction), strict=True)]
    validation = np.sort(np.concatenate(given))
    return np.setdiff1d(np.arange(len(codes)), validation, assume_unique=True), validation


def stratified_folds(codes: NDArray[np.int64], n_folds: int, *, seed: int) -> NDArray[np.int64]:
    """(n_cases,) the fold of each case, the cases of a class spread evenly; -1 for one that is alone in its class.

    Folds differ by at most one case, and without any one fold every class is still there.
    """
    random = np.random.default_rng(seed_for(seed, "folds"))
    fold = np.full(len(codes), -1, np.int64)
    dealt = 0
    for code in np.unique(codes):
        rows = random.permutation(np.flatnonzero(codes == code))
        if len(rows) > 1:
            fold[rows] = (dealt + np.arange(len(rows))) % n_folds
            dealt += len(rows)
    return fold


def _validation_sizes(counts: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """Cases that each class gives: rounded down, then up by largest remainder until the total is right."""
    quotas = fraction * counts
    sizes = np.clip(quotas.astype(np.int64), 1, counts - 2)
    missing = round(fraction * int(counts.sum())) - int(sizes.sum())
    growing = np.argsort(sizes - quotas, kind="stable")
    growing = growing[sizes[growing] < np.minimum(quotas, counts - 2)[growing]]
    sizes[growing[: max(missing, 0)]] += 1
    return sizes
