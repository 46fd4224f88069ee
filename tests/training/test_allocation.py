"""A class gets the prototypes that make left-out cases more likely, and no more."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from pdftime.config import BankConfig, PrepareConfig
from pdftime.data.batches import generator_for
from pdftime.data.prepare import Preparation
from pdftime.data.synthetic import motifs
from pdftime.training import allocation as module
from pdftime.training.allocation import (
    LEAST,
    TEMPERATURES,
    Grouping,
    allocate,
    class_scores,
    fit_left_out,
    groups_of,
    masses,
    prototypes_for,
    target_matrix,
)
from pdftime.training.closed_form import fit_bank
from pdftime.training.loop import Examples
from pdftime.training.ridge import DualRidge

Codes = NDArray[np.int64]
CENTRES = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]])


def crossed(sizes: tuple[int, ...] = (15, 15, 15, 15), seed: int = 0) -> tuple[Tensor, Codes, Codes]:
    """Two clusters of class 0 across two of class 1, which no line divides: features, codes and clusters."""
    cluster = np.repeat(np.arange(4), sizes)
    noise = torch.randn(len(cluster), 4, generator=generator_for("crossed", seed)) * 0.4
    noise[:, :2] += CENTRES[cluster]
    return noise, cluster // 2, cluster


def allocated(
    features: Tensor, codes: Codes, weight: Tensor | None = None, max_prototypes: int = 5
) -> tuple[Codes, list[Grouping]]:
    weight = torch.ones(len(codes)) if weight is None else weight
    ridge = DualRidge(features, weight)
    ridge.shrink_(0.01)
    return allocate(ridge, features, codes, weight, max_prototypes, 0)


def numbers(groups: Codes, codes: Codes) -> list[int]:
    return [int(groups[codes == code].max()) + 1 for code in range(codes.max() + 1)]


def same_partition(one: Codes, other: Codes) -> bool:
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


# Targets, prototypes and masses


@settings(max_examples=15, deadline=None)
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=5), seed=st.integers(0, 1000), n=st.integers(1, 10))
def test_a_case_aims_at_the_prototype_of_its_group(counts: list[int], seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(len(counts), size=n)
    groups = np.array([rng.integers(counts[code]) for code in codes])
    targets = target_matrix(codes, groups, np.array(counts))
    _, owner = prototypes_for(np.array(counts))
    assert targets.dtype == torch.float64
    for case in range(n):
        place = sum(counts[: codes[case]]) + groups[case]
        assert targets[case].tolist() == [float(i == place) for i in range(sum(counts))]
        assert owner[place] == codes[case]


def test_prototypes_are_unit_vectors_towards_their_targets() -> None:
    prototypes, owner = prototypes_for(np.array([2, 1, 3]))
    assert owner.tolist() == [0, 0, 1, 2, 2, 2]
    root = math.sqrt(0.5)
    for number, row in enumerate(prototypes):
        expected = [root * (place == number) for place in range(6)]
        torch.testing.assert_close(row, torch.tensor([*expected, root]))


@settings(max_examples=15, deadline=None)
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_masses_are_shares_of_weight_and_sum_to_one_in_every_class(counts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    member = np.concatenate([np.arange(len(owner)), rng.integers(len(owner), size=9)])  # every prototype has one
    codes = owner[member]
    weight = torch.from_numpy(rng.random(len(member)) + 0.1)
    mass = masses(target_matrix(codes, member - first[codes], np.array(counts)), owner, weight)
    for number in range(len(owner)):
        own = float(weight[member == number].sum())
        assert mass[number].item() == pytest.approx(own / float(weight[codes == owner[number]].sum()))
    for code in range(len(counts)):
        assert mass[owner == code].sum().item() == pytest.approx(1.0)


# Scores and temperature


def slow_scores(z: Tensor, counts: list[int], mass: Tensor, temperature: float) -> Tensor:
    """(n, n_classes) log sum m exp(cos / T), where z and each prototype's target have a 1 behind them."""
    scores = torch.zeros(len(z), len(counts)).double()
    for case in range(len(z)):
        length = math.sqrt(sum(float(value) ** 2 for value in z[case]) + 1.0)
        number = 0
        for code, count in enumerate(counts):
            total = 0.0
            for _ in range(count):
                cosine = (float(z[case, number]) + 1.0) / (length * math.sqrt(2.0))
                total += float(mass[number]) * math.exp(cosine / temperature)
                number += 1
            scores[case, code] = math.log(total)
    return scores


def left_out_problem(seed: int) -> tuple[Tensor, list[int], Tensor, Tensor, Tensor]:
    """Noisy embeddings of 12 cases of two classes with 2 and 1 prototypes."""
    generator = generator_for("left out", seed)
    member = torch.arange(12) % 3
    z = torch.eye(3)[member] + torch.randn(12, 3, generator=generator) * 0.5
    weight = torch.rand(12, generator=generator) + 0.1
    return z.double(), [2, 1], torch.tensor([0.3, 0.7, 1.0]).double(), member // 2, weight


@pytest.mark.parametrize("temperature", [0.02, 0.3, 3.0])
def test_class_scores_are_logs_of_summed_exponentials_with_masses(temperature: float) -> None:
    z, counts, mass, _, _ = left_out_problem(0)
    prototypes, owner = prototypes_for(np.array(counts))
    unit = torch.nn.functional.normalize(torch.cat([z, torch.ones(12, 1)], dim=1), dim=1)
    found = class_scores(unit @ prototypes.double().T, owner, mass, temperature)
    torch.testing.assert_close(found, slow_scores(z, counts, mass, temperature), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_temperature_is_that_of_the_least_weighted_loss(seed: int, smoothing: float) -> None:
    z, counts, mass, codes, weight = left_out_problem(seed)
    fit = fit_left_out(z, np.array(counts), mass, codes, weight, smoothing=smoothing)
    tried = {}
    for temperature in TEMPERATURES.tolist():
        log_p = slow_scores(z, counts, mass, temperature).log_softmax(dim=1)
        own = log_p[torch.arange(12), codes]
        tried[temperature] = -(1.0 - smoothing) * own - smoothing * log_p.mean(dim=1)
    best = min(tried, key=lambda temperature: float(weight.double() @ tried[temperature]))
    assert fit.temperature == best
    torch.testing.assert_close(fit.losses, tried[best], atol=1e-5, rtol=1e-5)


# Groups


def test_clusters_that_no_line_divides_get_their_own_prototypes() -> None:
    features, codes, cluster = crossed()
    groups, groupings = allocated(features, codes)
    assert numbers(groups, codes) == [2, 2]
    assert same_partition(2 * codes + groups, cluster)
    assert sorted(grouping.code for grouping in groupings) == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_stand_apart_get_their_own_prototypes_where_the_class_is_told_without_them(seed: int) -> None:
    """Two clusters of class 0 on one side of class 1: one prototype would do, but there are two kinds of series."""
    cluster = np.repeat(np.arange(3), (20, 20, 40))
    features = torch.randn(80, 4, generator=generator_for("apart", seed)) * 0.3
    features[:, :2] += torch.tensor([[4.0, 2.0], [-4.0, 2.0], [0.0, -4.0]])[cluster]
    codes = cluster // 2
    groups, _ = allocated(features, codes)
    assert numbers(groups, codes) == [2, 1]
    assert same_partition(codes * 2 + groups, cluster)


def test_how_far_groups_stand_apart_is_the_silhouette() -> None:
    features, codes, _ = crossed()
    for grouping in allocated(features, codes)[1]:
        points = (F.normalize(features[grouping.rows], dim=1) - grouping.origin) @ grouping.directions
        distance = torch.cdist(points, points)
        each = []
        for case, own in enumerate(grouping.group):
            means = [
                float(distance[case, grouping.group == group].sum())
                / (np.sum(grouping.group == group) - (group == own))
                for group in range(len(grouping.centres))
            ]
            nearest = min(mean for group, mean in enumerate(means) if group != own)
            each.append((nearest - means[own]) / max(nearest, means[own]))
        assert grouping.silhouette == pytest.approx(np.mean(each), abs=1e-3)


def test_one_cluster_per_class_gets_one_prototype() -> None:
    features, codes, _ = crossed((20, 0, 20, 0))
    groups, groupings = allocated(features, codes)
    assert numbers(groups, codes) == [1, 1]
    assert groupings == []


def test_no_class_gets_more_prototypes_than_allowed() -> None:
    features, codes, _ = crossed()
    groups, groupings = allocated(features, codes, max_prototypes=1)
    assert not groups.any()
    assert groupings == []


def test_a_class_of_too_few_cases_gets_one_prototype_and_one_case_more_makes_two() -> None:
    features, codes, cluster = crossed((LEAST, LEAST - 1, 15, 15))
    assert numbers(allocated(features, codes)[0], codes)[0] == 1
    features, codes, cluster = crossed((LEAST, LEAST, 15, 15))
    groups, _ = allocated(features, codes)
    assert numbers(groups, codes)[0] == 2
    assert same_partition(groups[codes == 0], cluster[codes == 0])


def test_every_prototype_stands_for_enough_cases() -> None:
    for seed in range(3):
        features, codes, _ = crossed((LEAST - 1, 20, 12, 12), seed)
        groups, _ = allocated(features, codes)
        members = np.unique(2 * codes + groups, return_counts=True)[1]
        assert members.min() >= LEAST


def test_grouped_cases_belong_to_their_own_group_and_fresh_ones_to_the_nearest() -> None:
    features, codes, cluster = crossed()
    groups, groupings = allocated(features, codes)
    assert np.array_equal(groups_of(features, codes, groupings), groups)
    fresh, fresh_codes, fresh_cluster = crossed((7, 3, 9, 1), seed=1)
    name = dict(zip(cluster.tolist(), groups.tolist(), strict=True))
    expected = [name[each] for each in fresh_cluster.tolist()]
    assert groups_of(fresh, fresh_codes, groupings).tolist() == expected


def test_without_groupings_every_case_is_in_the_first_group() -> None:
    features, codes, _ = crossed()
    assert not groups_of(features, codes, []).any()


def test_the_groups_are_those_of_the_groupings_taken_one_for_a_class() -> None:
    """Two classes of four clusters each, around a circle."""
    taken = 0
    for seed in range(4):
        cluster = np.repeat(np.arange(8), 10)
        angle = torch.from_numpy(cluster) * (math.pi / 4)
        features = torch.randn(80, 6, generator=generator_for("circle", seed)) * 0.3
        features[:, 0] += 3.0 * angle.cos()
        features[:, 1] += 3.0 * angle.sin()
        groups, groupings = allocated(features, cluster % 2)
        assert len({grouping.code for grouping in groupings}) == len(groupings)
        for grouping in groupings:
            assert np.array_equal(groups[grouping.rows], grouping.group)
        taken += len(groupings)
    assert taken > 0


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_cases_are_grouped_as_few_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features, codes, _ = crossed(seed=seed)
    features = torch.cat([features, 0.1 * torch.randn(60, 50, generator=generator_for("rest", seed))], dim=1)
    groups, groupings = allocated(features, codes)
    monkeypatch.setattr(module, "FEW_CASES", 20)
    other_groups, others = allocated(features, codes)
    assert len(groupings) == 2
    assert same_partition(2 * codes + groups, 2 * codes + other_groups)
    for one, other in zip(groupings, others, strict=True):
        assert one.silhouette == pytest.approx(other.silhouette, abs=1e-3)


@pytest.mark.parametrize("few_cases", [4000, 10])
def test_cases_that_are_all_alike_are_one_group(few_cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_CASES", few_cases)
    codes = np.repeat([0, 1], 12)
    features = torch.eye(2)[codes]
    groups, groupings = allocated(features, codes)
    assert not groups.any()
    assert groupings == []


@cache
def found_numbers(motifs_per_class: int) -> list[int]:
    """Prototypes of the three classes, of seeds 0 to 4."""
    found = []
    for seed in range(5):
        problem = motifs(240, seed=seed, motifs_per_class=motifs_per_class)
        x = torch.from_numpy(Preparation.fit(problem.train, PrepareConfig())(problem.train).x)
        y = torch.from_numpy(np.unique(problem.train.y, return_inverse=True)[1])
        fit = fit_bank(Examples(x, None, y, torch.ones(len(y))), 3, BankConfig(), seed)
        found += fit.metrics["n_prototypes"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("motifs_per_class", "least"), [(1, 14), (2, 11), (4, 8)])
def test_most_classes_get_as_many_prototypes_as_they_have_motifs(motifs_per_class: int, least: int) -> None:
    """Measured: 15 of 15 classes with one motif, 12 of 15 with two, 9 of 15 with four (the others 3 or 5)."""
    assert found_numbers(motifs_per_class).count(motifs_per_class) >= least
