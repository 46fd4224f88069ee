"""FeatureNorm is batch normalisation, except that its averages move only when told to."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from pdftime.data.batches import generator_for
from pdftime.model.norm import FeatureNorm, Moments


def features(b: int, t: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(b, t, d, generator=generator_for(seed)) * 3.0 + torch.arange(float(d))


def pair(d: int) -> tuple[FeatureNorm, nn.BatchNorm1d]:
    """Ours and torch's, with the same drawn gains and offsets."""
    ours, theirs = FeatureNorm(d), nn.BatchNorm1d(d, momentum=0.1)
    for mine, yours in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
        nn.init.normal_(mine, generator=generator_for("norm", d))
        yours.data.copy_(mine.data)
    return ours, theirs


def by_theirs(theirs: nn.BatchNorm1d, x: Tensor) -> Tensor:
    return theirs(x.transpose(1, 2)).transpose(1, 2)


def test_outputs_gradients_and_averages_are_those_of_batch_norm() -> None:
    ours, theirs = pair(5)
    for step in range(6):
        x = features(4, 7, 5, step).requires_grad_(True)
        again = x.detach().clone().requires_grad_(True)
        y, moments = ours(x, None, True)
        expected = by_theirs(theirs, again)
        torch.testing.assert_close(y, expected, atol=1e-5, rtol=1e-5)
        (y.square() * y.detach()).sum().backward()
        (expected.square() * expected.detach()).sum().backward()
        torch.testing.assert_close(x.grad, again.grad, atol=1e-3, rtol=1e-3)
        ours.update_(moments, 0.1)
        torch.testing.assert_close(ours.mean, theirs.running_mean)
        torch.testing.assert_close(ours.variance, theirs.running_var)
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad, atol=1e-3, rtol=1e-4)
    theirs.eval()
    x = features(3, 7, 5, 9)
    y, moments = ours(x, None, False)
    assert moments is None
    torch.testing.assert_close(y, by_theirs(theirs, x))


def test_a_pass_changes_nothing_until_update() -> None:
    ours, _ = pair(3)
    before = [tensor.clone() for tensor in ours.state_dict().values()]
    ours(features(2, 4, 3), None, True)
    assert all(torch.equal(a, b) for a, b in zip(before, ours.state_dict().values(), strict=True))


def test_places_outside_take_no_part_and_come_out_as_zeros() -> None:
    x = features(3, 6, 4)
    inside = (torch.arange(6) < torch.tensor([6, 2, 4])[:, None])[:, :, None]
    flat = torch.cat([x[0], x[1, :2], x[2, :4]])
    for training in (True, False):
        ours, theirs = pair(4)
        theirs.train(training)
        y, moments = ours(torch.where(inside, x, torch.nan), inside, training)
        torch.testing.assert_close(y[inside[:, :, 0]], theirs(flat), atol=1e-5, rtol=1e-5)
        assert (y[~inside[:, :, 0]] == 0.0).all()
        if training:
            ours.update_(moments, 0.1)
            torch.testing.assert_close(ours.mean, theirs.running_mean)
            torch.testing.assert_close(ours.variance, theirs.running_var)


def test_sums_of_shards_are_those_of_the_whole() -> None:
    ours, _ = pair(4)
    x = features(6, 5, 4)
    whole = ours(x, None, True)[1]
    shards = [ours(part, None, True)[1] for part in (x[:1], x[1:3], x[3:])]
    added = Moments(
        sum(each.sums for each in shards), sum(each.squares for each in shards), sum(each.n for each in shards)
    )
    assert added.n == whole.n == 30
    torch.testing.assert_close(added.sums, whole.sums, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(added.squares, whole.squares, rtol=1e-5, atol=1e-5)
    flat = x.double().flatten(0, 1)
    torch.testing.assert_close(whole.sums, flat.sum(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(whole.squares, flat.square().sum(0), rtol=1e-5, atol=1e-5)


def test_one_time_point_alone_has_no_spread_and_is_normed_by_the_averages() -> None:
    ours, theirs = pair(3)
    x = features(1, 1, 3)
    y, moments = ours(x, None, True)
    assert moments is None
    torch.testing.assert_close(y, by_theirs(theirs.eval(), x))


@pytest.mark.parametrize("value", [0.0, 1.0, 1e4])
def test_a_constant_feature_gives_no_negative_variance(value: float) -> None:
    ours = FeatureNorm(2)
    for _ in range(200):
        y, moments = ours(torch.full((4, 8, 2), value), None, True)
        assert torch.isfinite(y).all()
        ours.update_(moments, 0.1)
    assert (ours.variance >= 0.0).all()
    torch.testing.assert_close(ours.mean, torch.full((2,), value))
    assert torch.isfinite(ours(torch.full((4, 8, 2), value), None, False)[0]).all()
