"""A bank fits in closed form: the same every time, on the smallest sets too, judged by cases it has not seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pdftime.config import BankConfig
from pdftime.data.batches import generator_for
from pdftime.model.prototypes import FixedPrototypes
from pdftime.training import allocation, ridge
from pdftime.training import closed_form as module
from pdftime.training.closed_form import BankFit, fit_bank
from pdftime.training.loop import Examples

SMALL = BankConfig(n_groups=2, n_biases=1)


def waves(
    n: int, n_classes: int = 2, n_channels: int = 1, t: int = 30, seed: int = 0, noise: float = 0.7
) -> Examples:
    """Classes of their own frequencies at random phases, in noise."""
    generator = generator_for("waves", seed)
    y = torch.arange(n) % n_classes
    phase = torch.rand(n, n_channels, 1, generator=generator) * 2 * math.pi
    x = torch.sin((1.0 + y[:, None, None]) * torch.arange(t) / 2.5 + phase)
    x = x + noise * torch.randn(n, n_channels, t, generator=generator)
    return Examples(x, None, y, torch.ones(n))


def random_cases(*shape: int, n_classes: int = 2) -> Examples:
    """Noise with labels that have nothing to do with it."""
    x = torch.randn(*shape, generator=generator_for("noise"))
    return Examples(x, None, torch.arange(shape[0]) % n_classes, torch.ones(shape[0]))


def joined(*parts: Examples) -> Examples:
    return Examples(
        torch.cat([part.x for part in parts]),
        None,
        torch.cat([part.y for part in parts]),
        torch.cat([part.weight for part in parts]),
    )


def scores(fit: BankFit, cases: Examples) -> Tensor:
    return fit.network(cases.x, cases.mask).scores[-1]


def accuracy(fit: BankFit, cases: Examples) -> float:
    return float((scores(fit, cases).argmax(dim=1) == cases.y).float().mean())


def left_out_accuracy(fit: BankFit, cases: Examples) -> float:
    found = fit.network.head(fit.z.float())[-1].argmax(dim=1)
    return float((found == cases.y[torch.from_numpy(fit.rows)]).float().mean())


# The same every time


@pytest.mark.parametrize("exact_cases", [10_000, 30])
def test_the_same_seed_gives_the_same_fit_and_another_seed_another(
    exact_cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXACT_CASES", exact_cases)
    cases = waves(50)
    before, before_numpy = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    one, same, other = (fit_bank(cases, 2, SMALL, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # type: ignore[index]
    for name, value in one.network.state_dict().items():
        assert torch.equal(value, same.network.state_dict()[name])
    assert torch.equal(one.z, same.z)
    assert one.metrics == same.metrics
    assert np.array_equal(one.rows, same.rows)
    assert not torch.equal(scores(one, cases), scores(other, cases))


# The smallest sets


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(random_cases(4, 1, 20), id="two cases per class"),
        pytest.param(random_cases(6, 3, 20, n_classes=3), id="two cases of three channels in three classes"),
        pytest.param(random_cases(8, 1, 1), id="length 1"),
        pytest.param(random_cases(8, 3, 1), id="length 1 of three channels"),
        pytest.param(random_cases(4, 1, 2), id="length 2"),
        pytest.param(random_cases(8, 1, 20)._replace(x=torch.zeros(8, 1, 20)), id="zeros"),
        pytest.param(random_cases(8, 1, 20)._replace(x=torch.full((8, 1, 20), 0.7)), id="constant and all the same"),
        pytest.param(random_cases(8, 1, 1)._replace(x=torch.ones(8, 1, 1)), id="constant and of length 1"),
        pytest.param(random_cases(24, 1, 20)._replace(x=torch.zeros(24, 1, 20)), id="many zeros"),
        pytest.param(
            random_cases(8, 1, 20)._replace(x=torch.arange(8.0)[:, None, None].expand(8, 1, 20)), id="constant levels"
        ),
        pytest.param(
            random_cases(5, 2, 20)._replace(mask=torch.arange(20) < torch.tensor([1, 20, 2, 7, 13])[:, None]),
            id="unequal lengths",
        ),
        pytest.param(random_cases(6, 1, 20)._replace(y=torch.tensor([0, 1, 1, 1, 1, 1])), id="a class of one case"),
    ],
)
def test_the_smallest_sets_give_finite_scores(cases: Examples) -> None:
    n_classes = int(cases.y.max()) + 1
    fit = fit_bank(cases, n_classes, SMALL, 0)
    found = scores(fit, cases)
    assert found.shape == (len(cases.y), n_classes)
    assert found.isfinite().all()
    assert fit.z.isfinite().all()
    assert all(value.isfinite().all() for value in fit.network.state_dict().values())


def test_where_nothing_varies_probabilities_are_even() -> None:
    cases = random_cases(20, 1, 10)._replace(x=torch.full((20, 1, 10), 0.3))
    probabilities = torch.softmax(scores(fit_bank(cases, 2, SMALL, 0), cases), dim=1)
    torch.testing.assert_close(probabilities, torch.full((20, 2), 0.5), atol=1e-4, rtol=0)


# What is learned, and what is said of it


@pytest.mark.parametrize(("n_classes", "n_channels"), [(2, 1), (3, 1), (3, 4)])
def test_frequencies_are_told_apart(n_classes: int, n_channels: int) -> None:
    cases, fresh = (waves(20 * n_classes, n_classes, n_channels, seed=seed) for seed in (0, 1))
    fit = fit_bank(cases, n_classes, SMALL, 0)
    assert accuracy(fit, fresh) > 0.95
    assert left_out_accuracy(fit, cases) > 0.95


def test_left_out_embeddings_know_nothing_of_their_own_labels() -> None:
    cases = random_cases(60, 1, 30)
    fit = fit_bank(cases, 2, BankConfig(max_prototypes=1), 0)
    assert left_out_accuracy(fit, cases) < 0.65
    probabilities = torch.softmax(scores(fit, random_cases(60, 1, 30)), dim=1)
    assert probabilities.max(dim=1).values.mean() < 0.75


def test_every_case_is_left_out_once_and_z_has_one_entry_more_than_there_are_prototypes() -> None:
    cases = waves(30, 3)
    fit = fit_bank(cases, 3, SMALL, 0)
    assert fit.rows.tolist() == list(range(30))
    assert fit.z.shape == (30, sum(fit.metrics["n_prototypes"]) + 1)
    assert fit.z.shape[1] == fit.network.d_model
    assert fit.metrics["n_features"] == len(fit.network.centre)


def test_masses_of_every_class_sum_to_one_and_prototypes_have_length_one() -> None:
    cases = waves(60)
    cases = cases._replace(y=(torch.arange(60) % 4) // 2, x=waves(60, 4).x)  # each class has two frequencies
    head = fit_bank(cases, 2, BankConfig(n_groups=8), 0).network.head
    torch.testing.assert_close(head.mass.sum(dim=1), torch.ones(2))
    torch.testing.assert_close(head.level_0.norm(dim=-1), torch.ones(head.mass.shape))


# Weights


def test_cases_of_hardly_any_weight_are_nearly_as_if_they_were_not_there() -> None:
    """Nearly: scaling, biases and groups are found from all cases alike."""
    cases, fresh = (waves(60, seed=seed) for seed in (0, 1))
    wrong = waves(40, seed=2)
    wrong = wrong._replace(y=1 - wrong.y, weight=torch.full((40,), 1e-6))
    without, light = (fit_bank(each, 2, SMALL, 0) for each in (cases, joined(cases, wrong)))
    agree = (scores(light, fresh).argmax(dim=1) == scores(without, fresh).argmax(dim=1)).float().mean()
    assert agree >= 0.98  # measured 1.0; 0.967 if a light case counts as much as another in `allocate`


def test_weight_on_a_class_moves_decisions_to_it() -> None:
    cases, fresh = (waves(60, seed=seed, noise=3.0) for seed in (0, 1))
    shares = []
    for weight in (0.05, 1.0, 20.0):
        weighted = cases._replace(weight=torch.where(cases.y == 1, weight, 1.0))
        shares.append(float((scores(fit_bank(weighted, 2, SMALL, 0), fresh).argmax(dim=1) == 1).float().mean()))
    assert shares[0] < shares[1] - 0.1 < shares[2] - 0.2


def test_only_the_ratio_of_weights_matters() -> None:
    cases = waves(30)
    one, other = (fit_bank(cases._replace(weight=torch.full((30,), weight)), 2, SMALL, 0) for weight in (1.0, 64.0))
    torch.testing.assert_close(scores(one, cases), scores(other, cases), atol=1e-4, rtol=1e-4)


# Many cases


@pytest.mark.parametrize("n_classes", [2, 4])
def test_thousands_of_cases_are_fitted_as_few_are(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = waves(120, 4, noise=1.2)
    cases = cases._replace(y=cases.y % n_classes, weight=torch.linspace(0.5, 2.0, 120))  # of two, each has two kinds
    few = fit_bank(cases, n_classes, BankConfig(n_groups=8), 0)
    for where in (ridge, allocation):
        monkeypatch.setattr(where, "FEW_CASES", 50)
    monkeypatch.setattr(ridge, "START_CASES", 30)
    many = fit_bank(cases, n_classes, BankConfig(n_groups=8), 0)
    assert many.metrics == few.metrics
    assert np.array_equal(many.rows, few.rows)
    torch.testing.assert_close(scores(many, cases), scores(few, cases), atol=1e-3, rtol=1e-3)
    left_out = [fit.network.head(fit.z.float())[-1] for fit in (many, few)]
    torch.testing.assert_close(*left_out, atol=1e-3, rtol=1e-3)


def test_many_cases_are_classified_as_well_as_by_the_exact_way(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, fresh = waves(240, 3, noise=1.2), waves(150, 3, seed=1, noise=1.2)
    exact = fit_bank(cases, 3, SMALL, 0)
    monkeypatch.setattr(module, "EXACT_CASES", 90)
    monkeypatch.setattr(module, "STREAM_CASES", 50)
    streamed = fit_bank(cases, 3, SMALL, 0)
    assert accuracy(streamed, fresh) == pytest.approx(accuracy(exact, fresh), abs=0.05)
    assert left_out_accuracy(streamed, cases) == pytest.approx(left_out_accuracy(exact, cases), abs=0.08)
    assert len(streamed.rows) == len(streamed.z) == 90
    assert np.bincount(cases.y.numpy()[streamed.rows]).tolist() == [30, 30, 30]


def test_the_size_of_streamed_batches_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = waves(100)
    monkeypatch.setattr(module, "EXACT_CASES", 40)
    found = []
    for size in (7, 512):
        monkeypatch.setattr(module, "STREAM_CASES", size)
        found.append(scores(fit_bank(cases, 2, SMALL, 0), cases))
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=1e-3)


def test_the_sample_of_many_cases_is_small_even_where_a_class_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = waves(100)
    y = cases.y.clone()
    y[[3, 50]] = 2
    monkeypatch.setattr(module, "EXACT_CASES", 40)
    fit = fit_bank(cases._replace(y=y), 3, SMALL, 0)
    assert {3, 50} <= set(fit.rows.tolist())
    assert len(fit.rows) <= 42
    assert scores(fit, cases).shape == (100, 3)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(random_cases(8, 1, 12)._replace(x=torch.zeros(8, 1, 12)), id="zeros"),
        pytest.param(random_cases(6, 1, 12, n_classes=3), id="every class is rare"),
    ],
)
def test_many_cases_that_say_little_give_finite_scores(cases: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT_CASES", 4)
    fit = fit_bank(cases, int(cases.y.max()) + 1, SMALL, 0)
    assert scores(fit, cases).isfinite().all()
    assert fit.z.isfinite().all()


# The head


def test_the_score_is_the_log_of_exponentials_summed_with_masses() -> None:
    prototypes = F.normalize(torch.randn(3, 2, 4, generator=generator_for("p")), dim=-1)
    mass = torch.tensor([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    head = FixedPrototypes(prototypes, mass, torch.tensor(0.3))
    z = torch.randn(5, 4, generator=generator_for("z")) * 3.0
    (found,) = head(z)
    for case in range(5):
        for code in range(3):
            total = 0.0
            for k in range(2):
                cosine = float(z[case] @ prototypes[code, k]) / float(z[case].norm())
                total += float(mass[code, k]) * math.exp(cosine / 0.3)
            assert found[case, code].item() == pytest.approx(math.log(total), abs=1e-4)
    assert torch.equal(head.masses[0], mass)
    assert torch.equal(head.levels[0], prototypes)
    assert list(head.parameters()) == []


def test_a_prototype_without_mass_counts_for_nothing() -> None:
    prototypes = F.normalize(torch.randn(2, 2, 4, generator=generator_for("p")), dim=-1)
    z = torch.randn(5, 4, generator=generator_for("z"))
    temperature = torch.tensor(0.2)
    both = FixedPrototypes(prototypes, torch.tensor([[1.0, 0.0], [1.0, 0.0]]), temperature)
    first = FixedPrototypes(prototypes[:, :1], torch.ones(2, 1), temperature)
    torch.testing.assert_close(both(z)[0], first(z)[0])
