"""Integrated gradients: the known answer where there is one, captum's everywhere, and complete."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from small_models import bumps, fitted, span_of
from torch import Tensor

from pdftime.config import preset
from pdftime.explain import gradients
from pdftime.explain.gradients import (
    COMPLETE,
    PROBES,
    STEPS,
    completeness_gap,
    even_rule,
    integrate,
    mean_gradient,
    steep_rule,
)
from pdftime.explain.maps import baseline_of, make_maps, score_and_margin, score_of
from pdftime.fitted import FittedModel

KINDS = [
    "equal",
    "padded",
    "resampled",
    "linear head",
    "class token",
    "no encoder",
    "unscaled",
    "padded token",
]

SIZES = ("d_model", "branch_width", "kernel_sizes", "n_inception_layers", "n_heads", "max_tokens")


def cubic(x: Tensor, mask: Tensor | None) -> Any:
    return SimpleNamespace(x=x)


def cubes(network: Any, output: Any, rows: Tensor) -> Tensor:
    """Two quantities: the sum of cubes, and of squares."""
    return torch.stack([(output.x**3).sum(dim=(1, 2)), (output.x**2).sum(dim=(1, 2))], dim=1)


@pytest.mark.parametrize("n_steps", [PROBES, 20, 45])
def test_a_sum_of_powers_is_shared_out_power_by_power(n_steps: int) -> None:
    x = torch.randn(3, 2, 5, generator=torch.Generator().manual_seed(0))
    baseline = torch.zeros_like(x)
    network: Any = cubic
    found = integrate(network, x, None, baseline, cubes, n_steps=n_steps)
    values = found.gradient * x
    torch.testing.assert_close(values[1], x.double() ** 2, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(values[0], x.double() ** 3, atol=2e-2, rtol=2e-2)  # midpoints in even parts
    torch.testing.assert_close(found.stop[0], (x**3).sum(dim=(1, 2)).double(), atol=1e-5, rtol=1e-5)
    assert not found.start.any()
    exact = mean_gradient(network, x, None, baseline, cubes, even_rule(4, 3)) * x
    torch.testing.assert_close(exact[0], x.double() ** 3, atol=1e-5, rtol=1e-4)


def test_a_path_from_a_baseline_begins_there() -> None:
    x, baseline = torch.full((1, 1, 4), 3.0), torch.ones(1, 1, 4)
    network: Any = cubic
    gradient = mean_gradient(network, x, None, baseline, cubes, even_rule(5, 1))
    torch.testing.assert_close(gradient[0] * 2.0, torch.full((1, 1, 4), 26.0, dtype=torch.float64), atol=1e-4, rtol=0)


@settings(max_examples=50, deadline=None)
@given(
    probes=hnp.arrays(np.float64, (PROBES + 1, 2, 3), elements=st.floats(-50, 50)),
    n_steps=st.integers(PROBES, 60),
)
def test_points_are_as_many_as_asked_for_and_weigh_one_together(probes: NDArray[np.float64], n_steps: int) -> None:
    rule = steep_rule(probes, n_steps)
    assert rule.nodes.shape == rule.weights.shape == (n_steps, 3)
    np.testing.assert_allclose(rule.weights.sum(axis=0), 1.0)
    assert (rule.weights > 0.0).all()
    assert (np.diff(rule.nodes, axis=0) > 0.0).all()
    assert rule.nodes.min() > 0.0
    assert rule.nodes.max() < 1.0
    np.testing.assert_allclose((rule.weights * rule.nodes).sum(axis=0), 0.5, atol=1e-12)


def test_most_points_lie_where_the_quantities_change() -> None:
    probes = np.zeros((PROBES + 1, 1, 1))
    probes[9:] = 5.0  # a jump between the places 8/16 and 9/16
    nodes = steep_rule(probes, 45).nodes[:, 0]
    assert ((nodes > 8 / 16) & (nodes < 9 / 16)).sum() >= 20
    flat = steep_rule(np.zeros((PROBES + 1, 1, 1)), 48).nodes[:, 0]
    assert np.bincount((flat * PROBES).astype(int)).tolist() == [3] * PROBES


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_is_captums(every: dict[str, FittedModel], kind: str) -> None:
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    model, (cases, _) = every[kind], bumps(4, span_of(kind), seed=1)
    network = model.members[0].network
    ((_, x, mask),) = model.batches(cases)
    baseline, _ = baseline_of(model, x, mask)
    target = torch.tensor([0, 1, 1, 0])
    ours = mean_gradient(network, x, mask, baseline, score_of(target), even_rule(20, 4))[0] * (x - baseline)

    def score(points: Tensor, inside: Tensor | None) -> Tensor:
        scores: Tensor = network(points, inside).scores[-1]
        return scores

    for row in range(4):
        theirs = attr.IntegratedGradients(score).attribute(
            x[row : row + 1],
            baseline[row : row + 1],
            target=int(target[row]),
            additional_forward_args=(None if mask is None else mask[row : row + 1],),
            n_steps=20,
            method="gausslegendre",
        )
        torch.testing.assert_close(ours[row], theirs[0].double(), atol=1e-5, rtol=1e-3)
    assert float(ours.abs().max()) > 1e-3


@pytest.mark.parametrize("kind", ["equal", "padded", "no encoder"])
def test_few_points_in_steep_places_come_near_to_captum_with_many(every: dict[str, FittedModel], kind: str) -> None:
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    model, (cases, _) = every[kind], bumps(3, span_of(kind), seed=2)
    network = model.members[0].network
    ((_, x, mask),) = model.batches(cases)
    baseline, _ = baseline_of(model, x, mask)
    target = torch.tensor([0, 1, 1])
    ours = integrate(network, x, mask, baseline, score_of(target)).gradient[0] * (x - baseline)
    theirs = attr.IntegratedGradients(lambda points, inside: network(points, inside).scores[-1]).attribute(
        x, baseline, target=target, additional_forward_args=(mask,), n_steps=400, internal_batch_size=300
    )
    assert float((ours - theirs).abs().max()) <= 0.02 * float(theirs.abs().sum(dim=(1, 2)).max())


@pytest.mark.parametrize(("slope", "n_points"), [(500.0, 3 * STEPS), (800.0, 7 * STEPS), (5000.0, 7 * STEPS)])
def test_only_cases_that_do_not_add_up_are_done_again_with_more_points(
    monkeypatch: pytest.MonkeyPatch, slope: float, n_points: int
) -> None:
    """The second case jumps within a small part of the path; the first and the third rise evenly."""
    slopes = torch.tensor([1.0, slope, 2.0])
    seen = torch.zeros(3, dtype=torch.long)

    def jump(network: Any, output: Any, rows: Tensor) -> Tensor:
        seen.index_add_(0, rows, torch.ones_like(rows))
        return torch.tanh(slopes[rows, None] * (output.x[:, 0] - 0.47)).mean(dim=1, keepdim=True)

    x, network = torch.ones(3, 1, 4), cubic
    baseline = torch.zeros_like(x)
    found = integrate(network, x, None, baseline, jump)  # type: ignore[arg-type]
    assert seen.tolist() == [PROBES + 1 + STEPS, PROBES + 1 + n_points, PROBES + 1 + STEPS]
    monkeypatch.setattr(gradients, "DOUBLINGS", 0)
    once = integrate(network, x, None, baseline, jump)  # type: ignore[arg-type]
    totals = ((each.gradient * (x - baseline)).sum(dim=(2, 3)) for each in (once, found))
    before, after = (completeness_gap(total, found.start, found.stop)[0] for total in totals)
    assert before[1] > COMPLETE
    torch.testing.assert_close(found.gradient[:, [0, 2]], once.gradient[:, [0, 2]], atol=0, rtol=0)
    if slope < 1000.0:
        assert after.max() <= COMPLETE
        expected = (found.stop - found.start)[0, 1] / 4
        torch.testing.assert_close(found.gradient[0, 1], expected.expand(1, 4), atol=0.02, rtol=0)


def test_padded_cases_are_done_again_behind_their_own_mask(every: dict[str, FittedModel]) -> None:
    model, (cases, _) = every["padded linear"], bumps(12, (10, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    assert mask is not None
    network, target = model.members[0].network, torch.arange(12) % 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "COMPLETE", 0.0)
        fine = integrate(network, x, mask, torch.zeros_like(x), score_of(target))
    expected = integrate(network, x, mask, torch.zeros_like(x), score_of(target), n_steps=4 * STEPS)
    torch.testing.assert_close(fine.gradient, expected.gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_maps_say_how_complete_they_are(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(12, span_of(kind), seed=1)
    ((_, x, mask),) = model.batches(cases)
    baseline, _ = baseline_of(model, x, mask)
    target = torch.arange(12) % 2
    networks = [member.network for member in model.members]
    maps, _ = make_maps(networks, x, mask, baseline, score_and_margin(target, 1 - target))
    with torch.no_grad():
        here = torch.stack([network(x, mask).scores[-1].double() for network in networks]).mean(dim=0)
        base = torch.stack([network(baseline, mask).scores[-1].double() for network in networks]).mean(dim=0)
    rows = torch.arange(12)
    for number, at in enumerate((here, base)):
        expected = at[rows, target], at[rows, target] - at[rows, 1 - target]
        found = maps.stop if number == 0 else maps.start
        np.testing.assert_allclose(found, torch.stack(expected).numpy(), atol=1e-5)
    assert maps.gap.max() <= 0.06  # networks of so few units have few and large kinks
    rise = maps.stop - maps.start
    size = np.max([np.abs(maps.stop), np.abs(maps.start), np.abs(rise), np.ones_like(rise)], axis=0)
    np.testing.assert_allclose(np.abs(maps.values.sum(axis=(2, 3)) - rise) / size, maps.gap, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"encoder": "none"}, {"lengths": "pad"}], ids=str)
def test_maps_of_networks_of_ordinary_size_are_complete_to_one_percent(changes: dict[str, Any]) -> None:
    span = (30, 40) if "lengths" in changes else (40, 40)
    model = fitted(span, **({name: getattr(preset("network").model, name) for name in SIZES} | changes), max_epochs=6)
    for _, x, mask in model.batches(bumps(16, span, seed=1)[0]):
        with torch.no_grad():
            scores = model.members[0].network(x, mask).scores[-1]
        target = scores.argmax(dim=1)
        maps, _ = make_maps(
            [model.members[0].network], x, mask, torch.zeros_like(x), score_and_margin(target, 1 - target)
        )
        assert maps.gap.max() <= 0.01
        assert np.abs(maps.stop[0] - maps.start[0]).max() > 0.5


def test_in_small_batches_it_is_the_same(models: dict[str, FittedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    model, (cases, _) = models["padded"], bumps(4, (12, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    network, quantity = model.members[0].network, score_of(torch.tensor([0, 1, 0, 1]))
    at_once = integrate(network, x, mask, torch.zeros_like(x), quantity).gradient
    monkeypatch.setattr("pdftime.fitted.BATCH_POINTS", 100)
    torch.testing.assert_close(
        integrate(network, x, mask, torch.zeros_like(x), quantity).gradient, at_once, atol=1e-4, rtol=1e-3
    )
