"""Shapley values of a bank are those that all orders of a small series give, and always add up."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.explain import shapley as module
from pdftime.explain.maps import score_and_margin, score_of
from pdftime.explain.shapley import complete, shapley_values
from pdftime.model.bank import N_STATISTICS, ConvolutionBank
from pdftime.model.bank_changes import Sample
from pdftime.model.bank_network import BankNetwork, Scaling, fit_scaling, side_by_side
from pdftime.model.prototypes import FixedPrototypes

TARGET, CONTRAST = torch.tensor([0, 1, 0]), torch.tensor([1, 0, 1])


def series(*shape: int, seed: int | str = 0) -> Tensor:
    return torch.randn(*shape, generator=generator_for("series", seed))


def network(x: Tensor, mask: Tensor | None = None, *, n_groups: int = 4, stretches: bool = False) -> BankNetwork:
    """With a random projection; of longest stretches, whose changes are not followed, only where asked for."""
    bank = ConvolutionBank(x.shape[1], x.shape[2], n_groups=n_groups, n_biases=1, seed=0)
    bank.fit_biases_(x, mask, generator_for("biases"))
    scaling = fit_scaling(bank(x, mask))
    projection = torch.randn(len(scaling.centre), 3, generator=generator_for("projection")) / 30.0
    if not stretches:
        n_kernels = bank.biases.shape[2:].numel()
        projection[bank.n_counts :].view(-1, N_STATISTICS, n_kernels, 3)[:, -1] = 0.0
    prototypes = F.normalize(torch.randn(2, 2, 4, generator=generator_for("p")), dim=-1)
    head = FixedPrototypes(prototypes, torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor(0.3))
    return BankNetwork(bank, 0, scaling, projection, torch.zeros(3), head)


def score(net: BankNetwork, x: Tensor, target: int, mask: Tensor | None = None) -> float:
    return float(net(x, mask).scores[-1][0, target].double())


def by_all_orders(net: BankNetwork, x: Tensor, baseline: Tensor, target: int) -> Tensor:
    """(c, t) what each value adds when it comes, on average over all orders in which values can come."""
    places = [(channel, time) for channel in range(x.shape[1]) for time in range(x.shape[2])]
    total, orders = torch.zeros(x.shape[1:], dtype=torch.float64), list(permutations(places))
    for order in orders:
        point = baseline.clone()
        before = score(net, point, target)
        for place in order:
            point[0][place] = x[0][place]
            after = score(net, point, target)
            total[place] += after - before
            before = after
    return total / len(orders)


@pytest.mark.parametrize(("n_channels", "n"), [(1, 1), (1, 3), (1, 5), (2, 2)])
def test_many_contexts_come_to_the_mean_over_all_orders(
    n_channels: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SAMPLES", "VIEW_SAMPLES"):  # every feature in every context
        monkeypatch.setattr(module, name, 1)
    x = series(3, n_channels, n)
    net, baseline = network(x), torch.full_like(x, 0.1)
    found = shapley_values(net, x, None, baseline, score_of(TARGET), n_contexts=1500)
    for case, target in enumerate(TARGET.tolist()):
        rows = slice(case, case + 1)
        expected = by_all_orders(net, x[rows], baseline[rows], target)
        size = float(expected.abs().max())
        torch.testing.assert_close(found.values[0, case], expected, atol=0.1 * size, rtol=0.1)
        assert float(found.factor[0, case]) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("padded", [False, True])
def test_what_values_do_in_a_context_is_what_taking_them_out_and_in_does(
    padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SAMPLES", "VIEW_SAMPLES"):  # every feature in every context
        monkeypatch.setattr(module, name, 1)
    mask = torch.arange(12) < torch.tensor([12, 5, 1])[:, None] if padded else None
    x = series(3, 2, 12) if mask is None else series(3, 2, 12) * mask[:, None, :]
    net, baseline = network(x, mask), torch.zeros_like(x)
    there = torch.rand(3, 2, 12, generator=generator_for("there")) < 0.6
    found = module._mean_effects(net, x, mask, baseline, there, score_and_margin(TARGET, CONTRAST))
    for case, target in enumerate(TARGET.tolist()):
        rows = slice(case, case + 1)
        own = None if mask is None else mask[rows]
        for channel in range(2):
            for time in range(12):
                gains = []
                for context in there:
                    point = torch.where(context, x[rows], baseline[rows])
                    scores = []
                    for value in (x, baseline):
                        point[0, channel, time] = value[case, channel, time]
                        scores.append(net(point, own).scores[-1][0].double())
                    gain = scores[0] - scores[1]
                    gains.append([float(gain[target]), float(gain[target] - gain[1 - target])])
                expected = torch.tensor(gains, dtype=torch.float64).mean(dim=0)
                torch.testing.assert_close(found[:, case, channel, time], expected, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("n_contexts", [1, 3, 16])
def test_values_add_up_to_what_the_series_adds_to_the_baseline(n: int, n_channels: int, n_contexts: int) -> None:
    x = series(3, n_channels, n)
    net, baseline = network(x, stretches=True), series(3, n_channels, n, seed="baseline")
    found = shapley_values(net, x, None, baseline, score_and_margin(TARGET, CONTRAST), n_contexts=n_contexts)
    assert found.values.shape == (2, 3, n_channels, n)
    torch.testing.assert_close(found.values.sum(dim=(2, 3)), found.stop - found.start, atol=1e-9, rtol=1e-9)
    for case, target in enumerate(TARGET.tolist()):
        rows = slice(case, case + 1)
        assert float(found.stop[0, case]) == pytest.approx(score(net, x[rows], target), abs=1e-5)
        assert float(found.start[0, case]) == pytest.approx(score(net, baseline[rows], target), abs=1e-5)


def test_a_value_that_is_the_baselines_adds_nothing_and_behind_the_end_there_is_nothing() -> None:
    mask = torch.arange(20) < torch.tensor([20, 8, 13])[:, None]
    x = series(3, 2, 20) * mask[:, None, :]
    x[:, 1, 4] = 0.0
    values = shapley_values(network(x, mask), x, mask, torch.zeros_like(x), score_of(TARGET)).values[0]
    assert (values[:, 1, 4].abs() <= 1e-6).all()
    assert (values[~mask[:, None, :].expand_as(values)] == 0.0).all()
    assert (values[0].abs() > 0.0).sum() > 30


def test_a_case_has_the_same_values_in_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    x = series(3, 2, 30)
    net, baseline = network(x, stretches=True), torch.zeros_like(x)
    together = shapley_values(net, x, None, baseline, score_and_margin(TARGET, CONTRAST))
    monkeypatch.setattr(module, "EVIDENCE_POINTS", 30)
    apart = shapley_values(net, x, None, baseline, score_and_margin(TARGET, CONTRAST))
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-3)
    again = shapley_values(net, x, None, baseline, score_and_margin(TARGET, CONTRAST))
    assert all(torch.equal(one, other) for one, other in zip(apart, again, strict=True))


@pytest.mark.parametrize(("n_channels", "step"), [(1, module.SAMPLES), (3, module.VIEW_SAMPLES)])
@pytest.mark.parametrize("n_contexts", [3, 16])
def test_a_context_sees_its_part_of_the_features_however_few_contexts_there_are(
    n_channels: int, step: int, n_contexts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = series(2, n_channels, 30)
    net, seen = network(x), []
    changes = BankNetwork.changes

    def recorded(self: BankNetwork, x: Tensor, mask: Tensor | None, change: Tensor, sample: Sample) -> Tensor:
        seen.append((len(x), sample))
        return changes(self, x, mask, change, sample)

    monkeypatch.setattr(BankNetwork, "changes", recorded)
    shapley_values(net, x, None, torch.zeros_like(x), score_of(TARGET[:2]), n_contexts=n_contexts)
    assert [sample for _, sample in seen] == [Sample(first, step) for first in range(min(step, n_contexts))]
    assert sum(n for n, _ in seen) == n_contexts * len(x)


@pytest.mark.parametrize("lengths", [None, [30, 12, 20]])
def test_networks_of_one_bank_have_the_same_values_side_by_side_as_alone(lengths: list[int] | None) -> None:
    x = series(3, 2, 30)
    mask = None if lengths is None else torch.arange(30) < torch.tensor(lengths)[:, None]
    one = network(x, mask)
    scaling = Scaling(one.centre, one.inverse)
    other = BankNetwork(one.bank, 0, scaling, one.projection.flip(0), one.offset + 0.1, one.head)
    both = side_by_side([one, other])
    torch.testing.assert_close(
        both(x, mask).scores[-1], torch.cat([net(x, mask).scores[-1] for net in (one, other)], 1)
    )
    together = shapley_values(both, x, mask, torch.zeros_like(x), score_of(TARGET, 2))
    for place, net in enumerate((one, other)):
        alone = shapley_values(net, x, mask, torch.zeros_like(x), score_of(TARGET), z=net(x, mask).z)
        for found, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(found[place], expected[0], atol=1e-6, rtol=1e-4)


# Made to add up


@settings(deadline=None)
@given(
    values=st.lists(st.floats(-10.0, 10.0, width=32), min_size=1, max_size=12),
    total=st.floats(-100.0, 100.0, width=32),
)
def test_completed_values_have_the_total_and_keep_their_order(values: list[float], total: float) -> None:
    before = torch.tensor(values, dtype=torch.float64).view(1, 1, 1, -1)
    inside = torch.ones(1, 1, len(values), dtype=torch.bool)
    after, factor = complete(before, torch.tensor([[total]], dtype=torch.float64), inside)
    assert float(after.sum()) == pytest.approx(total, abs=1e-6)
    order = before[0, 0, 0].argsort(stable=True)
    assert (after[0, 0, 0][order].diff() >= -1e-9).all()
    if float(factor) != 1.0:
        assert torch.equal(after.sign(), before.sign())


def test_positive_ones_are_multiplied_and_negative_ones_divided() -> None:
    before = torch.tensor([4.0, -3.0, 0.0, 2.0], dtype=torch.float64).view(1, 1, 1, 4)
    after, factor = complete(
        before, torch.tensor([[10.5]], dtype=torch.float64), torch.ones(1, 1, 4, dtype=torch.bool)
    )
    assert float(factor) == pytest.approx(2.0)
    torch.testing.assert_close(after[0, 0, 0], torch.tensor([8.0, -1.5, 0.0, 4.0], dtype=torch.float64))


def test_where_a_sign_is_wanting_what_is_missing_is_spread_inside() -> None:
    before = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64).view(1, 1, 1, 3)
    inside = torch.tensor([True, True, False]).view(1, 1, 3)
    after, factor = complete(before, torch.tensor([[-1.0]], dtype=torch.float64), inside)
    assert float(factor) == 1.0
    torch.testing.assert_close(after[0, 0, 0], torch.tensor([-1.0, 0.0, 0.0], dtype=torch.float64))
