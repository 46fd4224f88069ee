"""Values at their places join the features where the class lies in them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pdftime.config import BankConfig
from pdftime.data.batches import generator_for
from pdftime.model.places import n_places
from pdftime.training import closed_form, place_choice
from pdftime.training.closed_form import fit_bank
from pdftime.training.loop import Examples
from pdftime.training.place_choice import places_factor

SMALL = BankConfig(n_groups=4, n_biases=1)


def bumps(n: int, t: int = 120, seed: int = 0) -> Examples:
    """Slow waves that are high or low at fixed times by class, in slow and strong waves at any time."""
    generator = generator_for("bumps", seed)
    y = torch.arange(n) % 3
    time = torch.arange(t) / t
    centre = 0.2 + 0.6 * torch.arange(4) / 3
    size = torch.tensor([[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]])[y]
    waves = torch.exp(-(((time - centre[:, None]) / 0.06) ** 2))
    x = 0.8 * size @ waves
    for _ in range(6):
        where = torch.rand(n, 1, generator=generator)
        x = x + torch.randn(n, 1, generator=generator) * torch.exp(-(((time - where) / 0.06) ** 2))
    return Examples(x[:, None], None, y, torch.ones(n))


def factor(features: Tensor, values: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
    return places_factor(features, values, y.numpy(), torch.ones(len(y)) if weight is None else weight, 0)


def test_values_join_where_they_alone_tell_the_classes_apart() -> None:
    y = torch.arange(80) % 2
    noise = torch.randn(80, 30, generator=generator_for("noise"))
    telling = torch.randn(80, 5, generator=generator_for("telling")) + 2.0 * y[:, None]
    assert factor(noise, telling, y) > 0.0
    assert factor(noise, noise[:, :5], y) == 0.0
    assert factor(telling, noise, y) == 0.0
    assert factor(noise, torch.ones(80, 5), y) == 0.0  # nothing varies


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_factor_follows_the_scale_of_features_and_values(scale: float) -> None:
    y = torch.arange(80) % 2
    noise = torch.randn(80, 30, generator=generator_for("noise"))
    telling = torch.randn(80, 5, generator=generator_for("telling")) + 2.0 * y[:, None]
    once = factor(noise, telling, y)
    assert factor(noise, telling * scale, y) == pytest.approx(once / scale, rel=1e-4)
    assert factor(noise * scale, telling, y) == pytest.approx(once * scale, rel=1e-4)


def test_cases_of_no_weight_to_speak_of_do_not_decide() -> None:
    y = torch.arange(80) % 2
    noise = torch.randn(80, 30, generator=generator_for("noise"))
    telling = torch.randn(80, 5, generator=generator_for("telling"))
    telling[40:] += 2.0 * y[40:, None]
    heavy = torch.where(torch.arange(80) < 40, 1.0, 1e-6)
    assert factor(noise, telling, y, heavy) == 0.0
    assert factor(noise, telling, y, heavy.flip(0)) > 0.0


def test_one_class_among_those_that_decide_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_choice, "MOST_CASES", 1)
    y = torch.arange(10) % 2
    assert factor(torch.randn(10, 4), torch.randn(10, 2), y) == 0.0


def test_a_bank_learns_what_happens_at_fixed_times_by_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, fresh = bumps(90), bumps(300, seed=1)
    fit = fit_bank(cases, 3, SMALL, 0)
    assert fit.metrics["places"]
    assert fit.network.n_places == n_places(1, 120) == 64
    monkeypatch.setattr(closed_form, "places_factor", lambda *_: 0.0)
    without = fit_bank(cases, 3, SMALL, 0)
    assert without.network.n_places == 0
    right, right_without = (
        float((each.network(fresh.x).scores[-1].argmax(dim=1) == fresh.y).float().mean()) for each in (fit, without)
    )
    assert right > 0.9
    assert right > right_without + 0.1


def test_of_many_cases_places_are_streamed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_form, "EXACT_CASES", 100)
    cases, fresh = bumps(240), bumps(200, seed=1)
    fit = fit_bank(cases, 3, SMALL, 0)
    assert fit.metrics["places"]
    assert float((fit.network(fresh.x).scores[-1].argmax(dim=1) == fresh.y).float().mean()) > 0.9


def test_what_happens_at_any_time_needs_no_places() -> None:
    generator = generator_for("any time")
    y = torch.arange(60) % 2
    phase = torch.rand(60, 1, generator=generator) * 6.3
    x = torch.sin((1.0 + y[:, None]) * torch.arange(80) / 3.0 + phase)
    x = x + 0.5 * torch.randn(60, 80, generator=generator)
    fit = fit_bank(Examples(x[:, None], None, y, torch.ones(60)), 2, SMALL, 0)
    assert not fit.metrics["places"]
    assert len(fit.network.projection) == fit.network.bank.n_features
    assert np.isfinite(fit.network.projection.numpy()).all()
