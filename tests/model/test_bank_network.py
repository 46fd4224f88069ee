"""A bank's network is linear in scaled features, and its evidence adds up to what they say."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.config import BankConfig
from pdftime.data.batches import generator_for
from pdftime.model import bank_network as module
from pdftime.model.bank import ConvolutionBank, Features
from pdftime.model.bank_network import (
    BankNetwork,
    Scaling,
    fit_scaling,
    lifted,
    make_bank,
    scaled,
    scaled_features,
)
from pdftime.model.places import place_values
from pdftime.model.prototypes import FixedPrototypes

N_TARGETS = 3


def series(*shape: int, seed: int | str = 0) -> Tensor:
    return torch.randn(*shape, generator=generator_for("series", seed))


def mask_of(lengths: list[int], n_timepoints: int) -> Tensor:
    return torch.arange(n_timepoints) < torch.tensor(lengths)[:, None]


def network(x: Tensor, mask: Tensor | None = None, seed: int = 0, n_places: int = 0) -> BankNetwork:
    """With biases and scaling of these cases, and a random projection."""
    bank = ConvolutionBank(x.shape[1], x.shape[2], n_groups=2, n_biases=1, seed=seed)
    bank.fit_biases_(x, mask, generator_for("biases"))
    scaling = fit_scaling(bank(x, mask))
    if n_places:
        centre = place_values(x, mask, n_places).mean(dim=0)
        scaling = Scaling(
            torch.cat([scaling.centre, centre]), torch.cat([scaling.inverse, torch.full_like(centre, 3.0)])
        )
    projection = torch.randn(len(scaling.centre), N_TARGETS, generator=generator_for("projection", seed)) / 30.0
    offset = torch.randn(N_TARGETS, generator=generator_for("offset", seed))
    prototypes = F.normalize(torch.randn(2, 2, N_TARGETS + 1, generator=generator_for("p", seed)), dim=-1)
    head = FixedPrototypes(prototypes, torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor(0.3))
    return BankNetwork(bank, seed, scaling, projection, offset, head)


def features(counts: list[list[float]], pooled: list[list[float]]) -> Features:
    return Features(torch.tensor(counts), torch.tensor(pooled))


# The network


def test_z_is_linear_in_scaled_features_with_a_one_behind_it() -> None:
    x, mask = series(4, 2, 20), mask_of([20, 3, 11, 1], 20)
    net = network(x, mask, n_places=5)
    output = net(x, mask)
    bank_scaling = Scaling(net.centre[: net.bank.n_features], net.inverse[: net.bank.n_features])
    at_places = (place_values(x, mask, 5) - net.centre[-10:]) * 3.0
    values = torch.cat([scaled(net.bank(x, mask), bank_scaling), at_places], dim=1).double()
    for case in range(4):
        expected = [float(values[case] @ net.projection[:, d].double() + net.offset[d]) for d in range(N_TARGETS)]
        torch.testing.assert_close(output.z[case], torch.tensor([*expected, 1.0]), atol=1e-5, rtol=1e-5)
    assert output.z.shape[1] == net.d_model
    assert torch.equal(output.tokens[:, 0], output.z)
    torch.testing.assert_close(output.scores[0], net.head(output.z)[0])


def test_nothing_has_a_gradient_and_the_buffers_and_seed_are_all_there_is() -> None:
    x = series(4, 3, 20)
    net = network(x, seed=1)
    assert list(net.parameters()) == []
    other = network(series(4, 3, 20, seed="other"), seed=1)
    assert not torch.allclose(net(x).z, other(x).z)
    other.load_state_dict(net.state_dict())
    assert torch.equal(net(x).z, other(x).z)
    assert int(other.seed) == 1


def test_lifting_puts_a_one_behind_every_row() -> None:
    assert lifted(torch.tensor([[2.0, 3.0], [0.0, 0.0]])).tolist() == [[2.0, 3.0, 1.0], [0.0, 0.0, 1.0]]


# Evidence


def assert_sums(net: BankNetwork, x: Tensor, mask: Tensor | None) -> None:
    direction = torch.randn(2, len(x), net.d_model, generator=generator_for("direction"))
    evidence, frequencies = net.evidence(x, mask, direction)
    assert evidence.shape == (2, *x.shape)
    total = (direction * (net(x, mask).z - net.start)).double().sum(dim=2)
    weights = (direction[..., :-1] @ net.projection.T).double()
    size = (weights * scaled_features(net.bank, x, mask, Scaling(net.centre, net.inverse))).abs().sum(dim=2)
    spread = (weights * net.inverse * net.centre).abs().sum(dim=2)  # what is taken off evenly is a term as well
    assert ((evidence.sum(dim=(2, 3)) - total).abs() <= 1e-5 * (size + spread)).all()
    assert ((frequencies.sum(dim=(2, 3)) - total).abs() <= 1e-5 * (size + spread)).all()


@pytest.mark.parametrize("t", [1, 2, 7, 9, 24, 40])
@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("n_places", [0, 4])
def test_evidence_sums_to_the_direction_times_what_z_is_from_its_start(
    t: int, n_channels: int, n_places: int
) -> None:
    x = series(5, n_channels, t)
    assert_sums(network(x, n_places=n_places), x, None)


@settings(max_examples=15, deadline=None)
@given(c=st.integers(1, 4), t=st.integers(1, 40), n_places=st.sampled_from([0, 1, 5]), data=st.data())
def test_evidence_of_masked_series_sums_too_and_is_nothing_behind_their_ends(
    c: int, t: int, n_places: int, data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(1, t), min_size=2, max_size=5))
    mask = mask_of(lengths, t)
    x = series(len(lengths), c, t) * mask[:, None, :]
    net = network(x, mask, n_places=n_places)
    assert_sums(net, x, mask)
    evidence = net.evidence(x, mask, torch.ones(1, len(x), net.d_model)).values
    assert (evidence * ~mask[:, None, :] == 0.0).all()


def test_evidence_of_values_at_their_places_lies_where_the_values_are() -> None:
    x = series(4, 2, 24)
    net = network(x, n_places=6)
    net.projection[: net.bank.n_features] = 0.0
    only = net.bank.n_features + 6 + 2  # of the second channel the third place: time points 8 to 11
    net.projection[net.bank.n_features :] *= (torch.arange(12) == only - net.bank.n_features)[:, None]
    direction = torch.randn(1, 4, net.d_model, generator=generator_for("direction"))
    weight = (direction[0, :, :-1] @ net.projection[only]).double() * net.inverse[only]
    expected = torch.zeros(4, 2, 24, dtype=torch.float64)
    expected[:, 1, 8:12] = weight[:, None] * (x[:, 1, 8:12] - net.centre[only]) / 4.0
    torch.testing.assert_close(net.evidence(x, None, direction).values[0], expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("lengths", [None, [20, 3, 11, 1]])
def test_what_a_changed_value_does_to_values_at_their_places_is_in_the_changes(lengths: list[int] | None) -> None:
    mask = None if lengths is None else mask_of(lengths, 20)
    inside = torch.ones(4, 20, dtype=torch.bool) if mask is None else mask
    x, change = (series(4, 2, 20, seed=seed) * inside[:, None, :] for seed in ("x", "change"))
    net = network(x, mask, n_places=6)
    net.projection[: net.bank.n_features] = 0.0
    found = net.changes(x, mask, change)
    for channel in range(2):
        for time in range(20):
            other = x.clone()
            other[:, channel, time] += change[:, channel, time]
            expected = net(other, mask).z - net(x, mask).z
            torch.testing.assert_close(found[:, channel, time], expected, atol=1e-5, rtol=1e-4)


def test_fresh_series_and_flat_ones_have_evidence_that_sums() -> None:
    net = network(series(6, 1, 30))
    fresh = torch.cat([series(2, 1, 30, seed="fresh"), torch.zeros(1, 1, 30), torch.full((1, 1, 30), 1.5)])
    assert_sums(net, fresh, None)


def test_evidence_does_not_depend_on_how_many_series_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    x, mask = series(5, 2, 20), mask_of([20, 3, 11, 1, 8], 20)
    net = network(x, mask)
    direction = torch.randn(2, 5, net.d_model, generator=generator_for("direction"))
    together = net.evidence(x, mask, direction).values
    monkeypatch.setattr(module, "EVIDENCE_POINTS", 40)
    torch.testing.assert_close(net.evidence(x, mask, direction).values, together, atol=1e-5, rtol=1e-4)


def test_a_case_with_average_features_starts_where_start_says() -> None:
    net = network(series(6, 1, 20))
    n = net.bank.n_counts
    average = Features(net.centre[None, :n].square(), net.centre[None, n:])
    z = lifted(scaled(average, Scaling(net.centre, net.inverse)) @ net.projection + net.offset)[0]
    torch.testing.assert_close(z, net.start, atol=1e-4, rtol=1e-4)


# Scaling


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(2, 9))
def test_scaling_is_centre_and_spread_of_roots_of_counts_and_of_pooled_features(seed: int, n: int) -> None:
    generator = generator_for(seed)
    counts = torch.rand(n, 4, generator=generator) * (torch.rand(n, 4, generator=generator) < 0.6)
    pooled = torch.randn(n, 3, generator=generator)
    given_features = Features(counts, pooled)
    found = fit_scaling(given_features)
    made = scaled(given_features, found)
    for column in range(7):
        is_count = column < 4
        raw = counts[:, column].tolist() if is_count else pooled[:, column - 4].tolist()
        values = [math.sqrt(value) for value in raw] if is_count else raw
        centre = sum(values) / n
        spread = math.sqrt(sum((value - centre) ** 2 for value in values) / n)
        if max(values) == min(values):
            assert (made[:, column] == 0.0).all()
            continue
        damped = spread + (sum(value == 0.0 for value in values) / n) ** 4 if is_count else spread
        assert found.centre[column].item() == pytest.approx(centre, rel=1e-4, abs=1e-6)
        assert found.inverse[column].item() == pytest.approx(1.0 / damped, rel=1e-3)
        for case, value in enumerate(values):
            expected = 0.0 if is_count and value == 0.0 else (value - centre) / damped
            assert made[case, column].item() == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 1e3])
def test_a_feature_that_is_the_same_for_all_cases_is_off_for_every_later_one(value: float) -> None:
    found = fit_scaling(
        features([[value, 1.0], [value, 2.0], [value, 3.0]], [[value, 1.0], [value, 2.0], [value, 5.0]])
    )
    later = scaled(features([[7.0, 2.0]], [[7.0, 2.0]]), found)
    assert found.inverse[[0, 2]].tolist() == [0.0, 0.0]
    assert later[0, [0, 2]].tolist() == [0.0, 0.0]
    assert (later[0, [1, 3]] != 0.0).all()


def test_a_count_that_is_mostly_zero_stays_small() -> None:
    rare = [[1e-4] if case == 0 else [0.0] for case in range(100)]
    often = [[1e-4] if case % 2 else [0.0] for case in range(100)]
    nothing = [[0.0]] * 100
    of_rare, of_often = (features(counts, nothing) for counts in (rare, often))
    assert scaled(of_rare, fit_scaling(of_rare)).max() < 0.02  # its spread alone would make it 10
    assert scaled(of_often, fit_scaling(of_often)).max() == pytest.approx(0.005 / (0.005 + 0.5**4), rel=1e-3)


# The size of a bank


@pytest.mark.parametrize(("t", "n_dilations"), [(1, 1), (9, 1), (17, 2), (100, 4), (500, 6), (2000, 8)])
def test_short_series_get_more_biases_and_large_sets_fewer_features(t: int, n_dilations: int) -> None:
    config = BankConfig(n_groups=32, n_biases=2)
    whole, half = (make_bank(config, 1, t, 0, large=large) for large in (False, True))
    assert len(whole.parts) == len(half.parts) == 2 * n_dilations
    n_biases = max(2, math.ceil(12 / n_dilations))
    assert whole.biases.shape[1] == n_biases
    assert half.biases.shape[1] == n_biases // 2
    assert half.n_counts == whole.n_counts // 2
    assert torch.equal(make_bank(config, 1, t, 0, large=False).parts[0].rivals, whole.parts[0].rivals)


def test_the_smallest_bank_stays_a_bank_where_cases_are_many() -> None:
    small = make_bank(BankConfig(n_groups=1, n_biases=1), 2, 2000, 0, large=True)
    assert small.biases.shape[1] == 1
    assert small.n_counts > 0
