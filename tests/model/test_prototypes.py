"""Prototypes are unit vectors that follow their cases by averages, stay apart, and never see a gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.config import ModelConfig
from pdftime.data.batches import generator_for
from pdftime.model.prototypes import (
    PrototypeHead,
    Statistics,
    diversity_gradient,
    diversity_loss,
    orthogonal_start,
)


def head(n_classes: int = 3, **changes: Any) -> PrototypeHead:
    options = {"d_model": 6, "n_heads": 1, "n_prototypes": (2, 3), "temperature": 0.2, **changes}
    return PrototypeHead(n_classes, ModelConfig(**options), generator_for("head"))


def embeddings(n: int, d: int = 6, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=generator_for(seed)) * 3.0


def stored(of: PrototypeHead) -> list[Tensor]:
    return [getattr(of, f"level_{level}").detach().clone() for level in range(of.n_levels)]


Y = torch.tensor([0, 2, 0, 0, 2, 2, 0, 2])  # class 1 is absent


# The start


@pytest.mark.parametrize(("k", "d"), [(1, 2), (3, 8), (8, 8)])
def test_prototypes_of_a_class_start_orthonormal(k: int, d: int) -> None:
    start = orthogonal_start(4, k, d, generator_for(0))
    assert start.shape == (4, k, d)
    torch.testing.assert_close(start @ start.transpose(1, 2), torch.eye(k).expand(4, k, k), atol=1e-5, rtol=0)
    assert not torch.allclose(start[0], start[1], atol=0.1)


def test_more_prototypes_than_dimensions_start_orthonormal_in_groups() -> None:
    start = orthogonal_start(2, 7, 3, generator_for(0))
    assert start.shape == (2, 7, 3)
    for first in (0, 3, 6):
        group = start[:, first : first + 3]
        eye = torch.eye(group.shape[1]).expand(2, -1, -1)
        torch.testing.assert_close(group @ group.transpose(1, 2), eye, atol=1e-5, rtol=0)


def test_the_start_belongs_to_its_generator() -> None:
    one, same, other = (orthogonal_start(2, 3, 5, generator_for(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


# Scores


def test_the_score_is_the_log_of_summed_exponentials_of_cosines_over_temperature() -> None:
    model, z = head(), embeddings(5)
    for level, scores in enumerate(model(z)):
        prototypes = stored(model)[level]
        for case in range(5):
            for code in range(3):
                total = 0.0
                for p in prototypes[code]:
                    cosine = float(z[case] @ p) / (float(z[case].norm()) * float(p.norm()))
                    total += math.exp(cosine / 0.2)
                assert scores[case, code].item() == pytest.approx(math.log(total), abs=1e-4)


def test_the_length_of_an_embedding_does_not_matter_and_a_zero_one_is_no_error() -> None:
    model, z = head(), embeddings(4)
    for one, other in zip(model(z), model(z * 100.0), strict=True):
        torch.testing.assert_close(one, other)
    nothing = torch.zeros(2, 6, requires_grad=True)
    scores = model(nothing)
    sum(each.sum() for each in scores).backward()  # type: ignore[union-attr]
    assert all(torch.isfinite(each).all() for each in scores)
    assert torch.isfinite(nothing.grad).all()  # type: ignore[arg-type]


# Statistics


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 12), weighted=st.booleans(), tau=st.floats(0.05, 1.0))
def test_statistics_are_sums_over_the_cases_of_each_class(seed: int, n: int, weighted: bool, tau: float) -> None:
    model, z = head(assignment_temperature=tau), embeddings(n, seed=seed)
    y = torch.randint(3, (n,), generator=generator_for(seed, "y"))
    weight = torch.rand(n, generator=generator_for(seed, "w")) * 5.0 if weighted else None
    for prototypes, (sums, mass) in zip(model.levels, model.statistics(z, y, weight), strict=True):
        expected_sums, expected_mass = torch.zeros_like(prototypes), torch.zeros(prototypes.shape[:2])
        for case in range(n):
            code, unit = int(y[case]), z[case] / z[case].norm()
            cosines = prototypes[code] @ unit
            q = torch.exp(cosines / tau) / torch.exp(cosines / tau).sum()
            if weight is not None:
                q = q * weight[case]
            for k in range(len(q)):
                expected_sums[code, k] += q[k] * unit
                expected_mass[code, k] += q[k]
        torch.testing.assert_close(sums, expected_sums, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(mass, expected_mass, atol=1e-4, rtol=1e-4)


def test_a_case_of_weight_three_counts_as_three_cases() -> None:
    model, z = head(), embeddings(4)
    y = torch.tensor([0, 1, 1, 2])
    once = model.statistics(z, y, torch.tensor([1.0, 3.0, 1.0, 1.0]))
    thrice = model.statistics(z[[0, 1, 1, 1, 2, 3]], y[[0, 1, 1, 1, 2, 3]])
    for one, other in zip(once, thrice, strict=True):
        torch.testing.assert_close(one.sums, other.sums)
        torch.testing.assert_close(one.mass, other.mass)


def test_statistics_of_shards_add_up_to_those_of_the_whole() -> None:
    model, z = head(), embeddings(8)
    whole = model.statistics(z, Y)
    parts = [model.statistics(z[rows], Y[rows]) for rows in (slice(0, 1), slice(1, 6), slice(6, 8))]
    for level, (sums, mass) in enumerate(whole):
        torch.testing.assert_close(sum(part[level].sums for part in parts), sums)
        torch.testing.assert_close(sum(part[level].mass for part in parts), mass)


# Updates


def test_an_update_is_the_papers_equation_on_the_unit_sphere() -> None:
    model, z = head(), embeddings(8)
    before, statistics = stored(model), model.statistics(z, Y)
    model.update_(statistics, 0.7)
    for old, new, (sums, mass) in zip(before, stored(model), statistics, strict=True):
        for code in (0, 2):
            for k in range(old.shape[1]):
                moved = 0.7 * old[code, k] + 0.3 * sums[code, k] / mass[code, k]
                torch.testing.assert_close(new[code, k], moved / moved.norm())


def test_the_diversity_step_is_added_to_the_equation() -> None:
    model, z = head(), embeddings(8)
    for _ in range(5):
        model.update_(model.statistics(z, Y), 0.5)  # away from the orthogonal start
    before, statistics = stored(model), model.statistics(z, Y)
    model.update_(statistics, 0.7, 0.05)
    for old, new, (sums, mass) in zip(before, stored(model), statistics, strict=True):
        target = sums / mass.clamp_min(1e-8)[..., None] - 0.05 * diversity_gradient(old)
        expected = F.normalize(0.7 * old + 0.3 * target, dim=-1)
        torch.testing.assert_close(new[[0, 2]], expected[[0, 2]])


@pytest.mark.parametrize("diversity_step", [0.0, 0.1])
def test_an_absent_class_stays_bit_for_bit(diversity_step: float) -> None:
    model, z = head(), embeddings(8)
    before = stored(model)
    for _ in range(20):
        model.update_(model.statistics(z, Y), 0.9, diversity_step)
    for old, new in zip(before, stored(model), strict=True):
        assert torch.equal(new[1], old[1])
        assert not torch.allclose(new[[0, 2]], old[[0, 2]], atol=1e-3)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    momentum=st.floats(0.0, 1.0),
    step=st.floats(0.0, 1.0),
    tau=st.sampled_from([1e-3, 0.1, 1]),
)
def test_prototypes_are_unit_vectors_after_any_update(seed: int, momentum: float, step: float, tau: float) -> None:
    model = head(assignment_temperature=tau)
    for turn in range(3):
        model.update_(model.statistics(embeddings(8, seed=seed + turn), Y), momentum, step)
    for level in stored(model):
        torch.testing.assert_close(level.norm(dim=-1), torch.ones(level.shape[:2]))


def test_a_prototype_that_nothing_is_assigned_to_stays_where_it_is() -> None:
    model = head(n_classes=1, n_prototypes=(2,), assignment_temperature=1e-3)
    near = stored(model)[0][0, 0]
    statistics = model.statistics(near.expand(4, 6), torch.zeros(4, dtype=torch.long))
    assert statistics[0].mass[0, 1] == 0.0
    before = stored(model)[0]
    model.update_(statistics, 0.0)
    torch.testing.assert_close(stored(model)[0], before)


@pytest.mark.parametrize("diversity_step", [0.0, 0.1])
def test_a_momentum_of_one_changes_nothing(diversity_step: float) -> None:
    model = head()
    before = stored(model)
    model.update_(model.statistics(embeddings(8), Y), 1.0, diversity_step)
    assert all(torch.equal(old, new) for old, new in zip(before, stored(model), strict=True))


def test_a_momentum_of_zero_jumps_to_the_mean_of_the_members() -> None:
    model, z = head(n_prototypes=(1,)), embeddings(8)
    model.update_(model.statistics(z, Y), 0.0)
    for code in (0, 2):
        mean = F.normalize(z, dim=-1)[code == Y].mean(dim=0)
        torch.testing.assert_close(stored(model)[0][code, 0], mean / mean.norm())


def test_more_prototypes_than_cases_of_a_class_work() -> None:
    model = head(n_classes=2, n_prototypes=(9,))
    z, y = embeddings(2), torch.tensor([0, 1])
    for _ in range(50):
        model.update_(model.statistics(z, y), 0.9, 0.02)
    assert all(torch.isfinite(level).all() for level in stored(model))
    assert model(z)[0].argmax(dim=1).tolist() == [0, 1]


# Staying apart


def test_the_diversity_loss_is_the_mean_squared_distance_from_orthogonal() -> None:
    P = F.normalize(torch.randn(3, 4, 5, generator=generator_for(0)), dim=-1)
    total = 0.0
    for code in range(3):
        for i in range(4):
            for j in range(4):
                total += (float(P[code, i] @ P[code, j]) - (i == j)) ** 2
    assert diversity_loss(P).item() == pytest.approx(total / 3, rel=1e-5)
    assert diversity_loss(orthogonal_start(3, 4, 5, generator_for(0))).item() == pytest.approx(0.0, abs=1e-8)


def test_the_diversity_gradient_is_what_autograd_finds() -> None:
    P = torch.randn(3, 4, 5, generator=generator_for(0), dtype=torch.float64, requires_grad=True)
    (3 * diversity_loss(P)).backward()  # the gradient is each class's own, the loss their mean
    assert P.grad is not None
    torch.testing.assert_close(diversity_gradient(P.detach()), P.grad)


def test_the_diversity_step_lowers_the_diversity_loss() -> None:
    z, y = embeddings(4), torch.zeros(4, dtype=torch.long)
    z = z + 5.0  # all cases alike: averages pull prototypes together
    ends = []
    for step in (0.0, 0.02, 0.2):
        model = head(n_classes=1, n_prototypes=(3,), assignment_temperature=1.0)
        for _ in range(100):
            model.update_(model.statistics(z, y), 0.9, step)
        ends.append(diversity_loss(model.levels[0]).item())
    assert ends[0] > ends[1] > ends[2]
    model = head(n_classes=1, n_prototypes=(3,))
    model.level_0.copy_(F.normalize(torch.rand(1, 3, 6, generator=generator_for(1)), dim=-1))
    frozen = [Statistics(model.levels[0], torch.ones(1, 3))]  # members that stand where the prototypes are
    before = diversity_loss(model.levels[0])
    model.update_(frozen, 0.5, 0.02)
    assert diversity_loss(model.levels[0]) < before


def two_clusters(tau: float, diversity_step: float = 0.0) -> tuple[Tensor, Tensor]:
    """Prototypes (2, d) of a class with two clusters after 300 updates, and the clusters' centres."""
    centres = F.normalize(torch.randn(2, 6, generator=generator_for("centres")), dim=-1)
    model = head(n_classes=1, n_prototypes=(2,), assignment_temperature=tau)
    for step in range(300):
        which = torch.arange(16) % 2
        z = centres[which] + 0.1 * embeddings(16, seed=step) / 3.0
        model.update_(model.statistics(z, torch.zeros(16, dtype=torch.long)), 0.9, diversity_step)
    return stored(model)[0][0], centres


def test_a_sharp_assignment_keeps_prototypes_apart_and_each_finds_its_cluster() -> None:
    prototypes, centres = two_clusters(tau=0.1)
    cosines = prototypes @ centres.T
    assert sorted(cosines.argmax(dim=1).tolist()) == [0, 1]
    assert cosines.max(dim=1).values.min() > 0.98
    assert prototypes[0] @ prototypes[1] == pytest.approx(float(centres[0] @ centres[1]), abs=0.1)


def test_with_the_papers_assignment_prototypes_drift_together() -> None:
    prototypes, centres = two_clusters(tau=1.0)
    assert prototypes[0] @ prototypes[1] > 0.999
    between = F.normalize(centres.sum(dim=0), dim=0)
    assert (prototypes @ between).min() > 0.98
    assert centres[0] @ centres[1] < 0.5


# Gradients


def test_prototypes_get_no_gradient() -> None:
    model = head()
    assert list(model.parameters()) == []
    assert sorted(name for name, _ in model.named_buffers()) == ["level_0", "level_1"]
    z = embeddings(4).requires_grad_(True)
    sum(each.logsumexp(dim=1).sum() for each in model(z)).backward()  # type: ignore[union-attr]
    assert z.grad is not None
    assert (z.grad != 0.0).any()
    assert not any(level.requires_grad for level in model.levels)


def test_prototypes_by_gradient_are_weights_and_no_average_moves_them() -> None:
    model = head(prototype_update="gradient")
    assert sorted(name for name, _ in model.named_parameters()) == ["level_0", "level_1"]
    sum(F.cross_entropy(each, Y) for each in model(embeddings(8))).backward()  # type: ignore[union-attr]
    assert all((parameter.grad != 0.0).any() for parameter in model.parameters())
    before = stored(model)
    model.update_(model.statistics(embeddings(8), Y), 0.1, 0.1)
    assert all(torch.equal(old, new) for old, new in zip(before, stored(model), strict=True))


def test_statistics_and_scores_change_no_prototype() -> None:
    model = head()
    before = stored(model)
    model(embeddings(8))
    model.statistics(embeddings(8), Y)
    assert all(torch.equal(old, new) for old, new in zip(before, stored(model), strict=True))
