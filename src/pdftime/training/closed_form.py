"""fit_bank(): a bank's projection and prototypes in closed form, judged by leaving each case out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.config import BankConfig
from pdftime.data.batches import generator_for, seed_for, stratified_split
from pdftime.model.bank import ConvolutionBank
from pdftime.model.bank_network import BankNetwork, Scaling, fit_scaling, lifted, make_bank, scaled, scaled_features
from pdftime.model.places import n_places, place_values
from pdftime.model.prototypes import FixedPrototypes
from pdftime.training.allocation import (
    Grouping,
    allocate,
    fit_left_out,
    groups_of,
    masses,
    prototypes_for,
    target_matrix,
)
from pdftime.training.loop import Examples
from pdftime.training.place_choice import places_factor
from pdftime.training.ridge import PrimalRidge, by_cases

EXACT_CASES = 10_000  # up to here everything is found from products of cases; beyond, from sums over features
SAMPLE_CASES = 2000  # of many cases, those that groups, strength and temperature are found from
N_BIAS_CASES = 64
STREAM_CASES = 2048


class BankFit(NamedTuple):
    """A bank's network and what it is worth on cases that it has not seen."""

    network: BankNetwork
    rows: NDArray[np.int64]
    """Training cases that were left out, each in its turn: all of them, or a sample of many."""
    z: Tensor
    """(n, d) their embeddings by projections that were found without them, double."""
    metrics: dict[str, Any]


@torch.no_grad()
def fit_bank(examples: Examples, n_classes: int, config: BankConfig, seed: int) -> BankFit:
    """The bank, its projection and its prototypes for these cases; the same seed gives the same."""
    codes = examples.y.numpy()
    large = len(codes) > EXACT_CASES
    rows = np.arange(len(codes))
    if large:
        rows = _sample(codes, seed)
    sample = examples.take(rows)
    bank_seed = seed_for(seed, "bank")
    bank = make_bank(config, examples.x.shape[1], examples.x.shape[2], bank_seed, large=large)
    some = sample.take(np.random.default_rng(seed_for(seed, "bias cases")).permutation(len(rows))[:N_BIAS_CASES])
    bank.fit_biases_(some.x, some.mask, generator_for(seed, "biases"))
    raw = bank(sample.x, sample.mask)
    scaling = fit_scaling(raw)
    features = scaled(raw, scaling)
    del raw
    values = place_values(sample.x, sample.mask, n_places(*examples.x.shape[1:]))
    factor = places_factor(features, values, codes[rows], sample.weight, seed)
    if factor > 0.0:
        centre = values.mean(dim=0)
        features = torch.cat([features, (values - centre) * factor], dim=1)
        scaling = Scaling(
            torch.cat([scaling.centre, centre]), torch.cat([scaling.inverse, torch.full_like(centre, factor)])
        )
    ridge = by_cases(features, sample.weight)
    strength = ridge.choose_(target_matrix(codes[rows], np.zeros_like(codes[rows]), np.ones(n_classes, np.int64)))
    groups, groupings = allocate(
        ridge, features[:, : bank.n_counts], codes[rows], sample.weight, config.max_prototypes, seed
    )
    counts = np.ones(n_classes, np.int64)
    for grouping in groupings:
        counts[grouping.code] = len(grouping.centres)
    targets = target_matrix(codes[rows], groups, counts)
    if large:
        del ridge
        sums = _streamed(examples, rows, features, targets, bank, scaling, groupings, counts)
        solution, left_out = sums.choose_(features, targets, sample.weight, start=strength)
    else:
        solution, left_out = ridge.solve(targets), ridge.left_out(targets)
    owner = prototypes_for(counts)[1]
    mass = masses(targets, owner, sample.weight)
    smoothing = min(1.0, n_classes / ((n_classes - 1) * (len(rows) + 2)))  # as in Platt scaling
    fit = fit_left_out(left_out, counts, mass, sample.y, sample.weight, smoothing=smoothing)
    head = _head(counts, mass, fit.temperature)
    network = BankNetwork(bank, bank_seed, scaling, solution.projection, solution.offset, head).eval()
    z = lifted(left_out)
    metrics = {
        "strength": strength,
        "n_features": features.shape[1],
        "places": factor > 0.0,
        "n_prototypes": counts.tolist(),
    }
    return BankFit(network, rows, z, metrics)


def _sample(codes: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Sorted places of about SAMPLE_CASES cases, of every class its share; a class of one or two is kept whole."""
    rare = np.bincount(codes)[codes] < 3  # `stratified_split` divides nothing where a class has so few
    if rare.all():
        return np.arange(len(codes))
    common = np.flatnonzero(~rare)
    size = min(SAMPLE_CASES, EXACT_CASES)
    kept, _ = stratified_split(codes[common], 1.0 - size / len(codes), seed=seed_for(seed, "sample"))
    return np.sort(np.concatenate([np.flatnonzero(rare), common[kept]]))


def _streamed(
    examples: Examples,
    rows: NDArray[np.int64],
    features: Tensor,
    targets: Tensor,
    bank: ConvolutionBank,
    scaling: Scaling,
    groupings: list[Grouping],
    counts: NDArray[np.int64],
) -> PrimalRidge:
    """The regression of all cases: those of the sample, whose features are there, then the others batch by batch."""
    total = float(examples.weight.double().sum())
    ridge = PrimalRidge(features.shape[1], int(counts.sum()), total, features.mean(dim=0))
    ridge.add_(features, targets, examples.weight[rows])
    others = np.delete(np.arange(len(examples.y)), rows)
    for start in range(0, len(others), STREAM_CASES):
        batch = examples.take(others[start : start + STREAM_CASES])
        made = scaled_features(bank, batch.x, batch.mask, scaling)
        codes = batch.y.numpy()
        groups = groups_of(made[:, : bank.n_counts], codes, groupings)
        ridge.add_(made, target_matrix(codes, groups, counts), batch.weight)
    return ridge


def _head(counts: NDArray[np.int64], mass: Tensor, temperature: float) -> FixedPrototypes:
    """The prototypes of each class side by side; a class with fewer than the most repeats its first without mass."""
    units, owner = prototypes_for(counts)
    first = counts.cumsum() - counts
    place = np.arange(len(owner)) - first[owner]
    prototypes = units[first][:, None, :].repeat(1, int(counts.max()), 1)
    shares = torch.zeros(len(counts), int(counts.max()))
    prototypes[owner, place] = units
    shares[owner, place] = mass.float()
    return FixedPrototypes(prototypes, shares, torch.tensor(temperature))
