"""How many prototypes each class gets: as many as it has groups that left-out cases bear out."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pdftime.model.bank_network import lifted
from pdftime.training.ridge import FEW_CASES, CaseRidge, products

N_COMPONENTS = 10  # directions of a class in which its cases are grouped
LEAST = 5  # cases behind a prototype
MARGIN = 0.5  # standard errors by which more prototypes must be better, or may be worse where groups stand apart
APART = 0.2  # silhouette of groups that stand apart; of a class without groups it is about 0.1
ROUNDS = 3
TEMPERATURES = torch.logspace(-2.0, 0.5, 31, dtype=torch.float64)


class Grouping(NamedTuple):
    """The cases of a class in groups of similar ones."""

    code: int
    rows: NDArray[np.int64]
    """Places of the class's cases."""
    group: NDArray[np.int64]
    """(n,) group of each."""
    directions: Tensor
    """(n_features, r) and `centres` (n_groups, r) tell the group of other cases."""
    centres: Tensor
    origin: Tensor
    """(n_features,) the class's mean of normed features."""
    silhouette: float
    """How far the groups stand apart: near 0 where k-means has cut through one cloud, 1 at most."""


class Fit(NamedTuple):
    """What left-out predictions are worth."""

    temperature: float
    losses: Tensor
    """(n,) of each case."""


def prototypes_for(counts: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
    """(n, d + 1) unit vectors, one for each of the n = d targets, and (n,) the class each belongs to."""
    n = int(counts.sum())
    return F.normalize(lifted(torch.eye(n)), dim=1), np.repeat(np.arange(len(counts)), counts)


def target_matrix(codes: NDArray[np.int64], groups: NDArray[np.int64], counts: NDArray[np.int64]) -> Tensor:
    """(n_cases, n_prototypes) 1 for the prototype that a case belongs to, double."""
    first = counts.cumsum() - counts
    return F.one_hot(torch.from_numpy(first[codes] + groups), int(counts.sum())).double()


def masses(targets: Tensor, owner: NDArray[np.int64], weight: Tensor) -> Tensor:
    """(n_prototypes,) shares of the class's weight."""
    own = weight.double() @ targets
    of_class = torch.zeros(int(owner.max()) + 1).double().index_add_(0, torch.from_numpy(owner), own)
    return own / of_class[owner]


def class_scores(cosines: Tensor, owner: NDArray[np.int64], mass: Tensor, temperature: float) -> Tensor:
    """(n, n_classes) log sum over a class's prototypes of m exp(cos / T)."""
    terms = cosines / temperature + mass.log()
    return torch.stack([terms[:, owner == code].logsumexp(dim=1) for code in range(owner.max() + 1)], dim=1)


def fit_left_out(
    z: Tensor, counts: NDArray[np.int64], mass: Tensor, codes: Tensor, weight: Tensor, *, smoothing: float = 0.0
) -> Fit:
    """The temperature that makes left-out cases with embeddings z (n, d) most likely, and their losses under it."""
    prototypes, owner = prototypes_for(counts)
    cosines = F.normalize(lifted(z.double()), dim=1) @ prototypes.double().T
    best: tuple[float, Fit] | None = None
    for temperature in TEMPERATURES.tolist():
        scores = class_scores(cosines, owner, mass, temperature)
        losses = F.cross_entropy(scores, codes, reduction="none", label_smoothing=smoothing)
        mean = float((weight * losses).sum() / weight.sum())
        if best is None or mean < best[0]:
            best = mean, Fit(temperature, losses)
    assert best is not None
    return best[1]


def allocate(
    ridge: CaseRidge,
    counts_features: Tensor,
    codes: NDArray[np.int64],
    weight: Tensor,
    max_prototypes: int,
    seed: int,
) -> tuple[NDArray[np.int64], list[Grouping]]:
    """(n_cases,) the group of each case within its class, and the groupings that were taken.

    A class is divided into groups of similar cases where targets for each group make left-out cases clearly more
    likely, or not clearly less if the groups stand apart; one class after the other, until nothing changes. Of
    divisions that left-out cases do not tell from the likeliest, that is taken whose groups stand farthest apart.
    """
    n_classes = int(codes.max()) + 1
    options = [_groupings(counts_features, codes, code, max_prototypes, seed) for code in range(n_classes)]
    groups = np.zeros(len(codes), np.int64)
    taken: dict[int, Grouping] = {}
    labels = torch.from_numpy(codes)
    share = weight / weight.mean()

    def losses_of(groups: NDArray[np.int64]) -> Tensor:
        counts = np.array([groups[codes == code].max() + 1 for code in range(n_classes)])
        targets = target_matrix(codes, groups, counts)
        mass = masses(targets, prototypes_for(counts)[1], weight)
        return fit_left_out(ridge.left_out(targets), counts, mass, labels, weight).losses

    current = losses_of(groups) if any(options) else torch.zeros(0)
    for _ in range(ROUNDS):
        changed = False
        for code, choices in enumerate(options):
            trials = []
            for grouping in choices:
                trial = groups.copy()
                trial[grouping.rows] = grouping.group
                losses = current if taken.get(code) is grouping else losses_of(trial)
                here = taken[code].silhouette if code in taken else 0.0
                apart = grouping.silhouette > max(APART, here)
                if taken.get(code) is grouping or gain((current - losses) * share) > (-MARGIN if apart else MARGIN):
                    trials.append((trial, losses, grouping))
            if trials:
                likeliest = min(trials, key=lambda trial: float((trial[1] * share).mean()))
                alike = [trial for trial in trials if gain((likeliest[1] - trial[1]) * share) > -MARGIN]
                groups, current, best = max(alike, key=lambda trial: trial[2].silhouette)
                changed |= taken.get(code) is not best
                taken[code] = best
        if not changed:
            break
    return groups, list(taken.values())


def gain(differences: Tensor) -> float:
    """The mean of (n,) differences in standard errors; 0 where nothing differs."""
    error = float(differences.std()) / len(differences) ** 0.5
    return float(differences.mean()) / error if error > 0.0 else 0.0


def _groupings(
    features: Tensor, codes: NDArray[np.int64], code: int, max_prototypes: int, seed: int
) -> list[Grouping]:
    """The class in two groups, three, and so on, by k-means in the directions in which its cases differ most."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import silhouette_score

    rows = np.flatnonzero(codes == code)
    most = min(max_prototypes, len(rows) // LEAST)
    if most < 2:
        return []
    normed = F.normalize(features[rows], dim=1)
    origin = normed.mean(dim=0)
    centred = normed - origin
    r = min(N_COMPONENTS, len(rows) - 1)
    directions = (_directions if len(codes) <= FEW_CASES else _near_directions)(centred, r)
    points = (centred @ directions).numpy()
    found = []
    for k in range(2, most + 1):
        with warnings.catch_warnings():  # fewer different cases than groups: refused below
            warnings.simplefilter("ignore", ConvergenceWarning)
            means = KMeans(k, n_init=10, random_state=seed % 2**32).fit(points)
        if np.bincount(means.labels_, minlength=k).min() >= LEAST:
            centres = torch.from_numpy(means.cluster_centers_).float()
            apart = float(silhouette_score(points, means.labels_))
            found.append(Grouping(code, rows, means.labels_.astype(np.int64), directions, centres, origin, apart))
    return found


def _directions(centred: Tensor, r: int) -> Tensor:
    """(n_features, r) orthogonal directions in which centred cases (n, n_features) differ most."""
    values, vectors = torch.linalg.eigh(products(centred))
    size = values[-r:].clamp_min(1e-12).sqrt()
    directions: Tensor = (centred.T @ (vectors[:, -r:] / size).float()).float()
    return directions


def _near_directions(centred: Tensor, r: int) -> Tensor:
    """The same but for little, of thousands of cases in a fraction of the time."""
    from sklearn.utils.extmath import randomized_svd

    return torch.from_numpy(randomized_svd(centred.numpy(), r, random_state=0)[2].T.copy())


def groups_of(features: Tensor, codes: NDArray[np.int64], groupings: list[Grouping]) -> NDArray[np.int64]:
    """(n_cases,) the group of each case within its class, for cases that were not among those grouped."""
    groups = np.zeros(len(codes), np.int64)
    for grouping in groupings:
        rows = np.flatnonzero(codes == grouping.code)
        points = (F.normalize(features[rows], dim=1) - grouping.origin) @ grouping.directions
        groups[rows] = torch.cdist(points, grouping.centres).argmin(dim=1).numpy()
    return groups
