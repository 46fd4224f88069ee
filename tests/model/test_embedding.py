"""The embedding is what its plain form would be, only cheaper; places behind the end of a series do not exist."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.data.batches import generator_for
from pdftime.model.embedding import InceptionEmbedding, InceptionLayer, LinearEmbedding, max_of_three
from pdftime.model.norm import FeatureNorm

TINY = ModelConfig(d_model=8, branch_width=4, kernel_sizes=(3, 5, 9), n_inception_layers=3, n_heads=2)


def features(b: int, t: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(b, t, d, generator=generator_for(seed))


def same(ours: Tensor, plain: Tensor) -> None:
    torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-4)


# The cheap forms


@pytest.mark.parametrize("t", [1, 2, 3, 20])
def test_the_largest_of_three_is_max_pool_forwards_and_backwards(t: int) -> None:
    x = features(3, t, 4).requires_grad_(True)
    again = x.detach().clone().requires_grad_(True)
    y, expected = max_of_three(x), F.max_pool1d(again.transpose(1, 2), 3, 1, 1).transpose(1, 2)
    assert torch.equal(y, expected)
    for out in (y, expected):
        (out * features(3, t, 4, seed=1)).sum().backward()
    same(x.grad, again.grad)


@pytest.mark.parametrize("t", [1, 2, 3, 40])
def test_of_equal_largest_values_the_first_gets_the_gradient_as_in_max_pool(t: int) -> None:
    x = torch.randint(3, (3, t, 4), generator=generator_for(0)).float().requires_grad_(True)
    again = x.detach().clone().requires_grad_(True)
    max_of_three(x).mul(features(3, t, 4, seed=1)).sum().backward()
    pooled = F.max_pool1d(again.transpose(1, 2), 3, 1, 1).transpose(1, 2)
    pooled.mul(features(3, t, 4, seed=1)).sum().backward()
    same(x.grad, again.grad)


def test_the_largest_of_three_does_not_see_what_lies_behind_the_end() -> None:
    x = features(2, 6, 3) - 10.0
    inside = (torch.arange(6) < torch.tensor([4, 6])[:, None])[:, :, None]
    garbage = torch.where(inside, x, 1e9).requires_grad_(True)
    y = max_of_three(garbage, inside)
    assert torch.equal(y[0, :4], max_of_three(x[:1, :4])[0])
    assert torch.equal(y[1], max_of_three(x[1:])[0])
    assert (y[0, 4:] == 0.0).all()
    y.sum().backward()
    assert (garbage.grad[0, 4:] == 0.0).all()


# The Inception layer


class PlainLayer(nn.Module):
    """The same layer of Conv1d, MaxPool1d and BatchNorm1d, in the usual (b, d, t) layout, with the same weights."""

    def __init__(self, layer: InceptionLayer) -> None:
        super().__init__()
        d_in = layer.after_pool.in_features
        self.bottleneck = self._one(layer.bottleneck)
        self.branches = nn.ModuleList()
        for each in layer.convolutions:
            branch = nn.Conv1d(each.in_channels, each.out_channels, each.kernel_size[1], padding="same", bias=False)
            branch.weight.data.copy_(each.weight.data[:, :, 0])
            self.branches.append(branch)
        self.pool = nn.Sequential(nn.MaxPool1d(3, 1, 1), self._one(layer.after_pool))
        self.norm = plain_norm(layer.norm)
        self.projection = self._one(layer.projection)
        self.shortcut = self._one(layer.shortcut)
        assert self.projection.in_channels == self.norm.num_features
        assert d_in > 1 or isinstance(self.bottleneck, nn.Identity)

    @staticmethod
    def _one(layer: nn.Module) -> nn.Module:
        if isinstance(layer, nn.Identity):
            return nn.Identity()
        plain = nn.Conv1d(layer.in_features, layer.out_features, 1, bias=layer.bias is not None)
        plain.weight.data.copy_(layer.weight.data[:, :, None])
        if layer.bias is not None:
            plain.bias.data.copy_(layer.bias.data)
        return plain

    def forward(self, e: Tensor) -> Tensor:
        narrow = self.bottleneck(e)
        joined = torch.cat([*(branch(narrow) for branch in self.branches), self.pool(e)], dim=1)
        return self.projection(F.relu(self.norm(joined))) + self.shortcut(e)


class PlainEmbedding(nn.Module):
    def __init__(self, embedding: InceptionEmbedding) -> None:
        super().__init__()
        plain = [PlainLayer(layer) for layer in embedding.layers]
        for place in range(embedding.stride.bit_length() - 1, 0, -1):
            plain.insert(place, nn.AvgPool1d(2, ceil_mode=True))
        self.layers = nn.Sequential(*plain)
        self.norm = plain_norm(embedding.norm)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.layers(x)))


def plain_norm(norm: FeatureNorm) -> nn.BatchNorm1d:
    plain = nn.BatchNorm1d(len(norm.weight), momentum=0.1)
    plain.weight.data.copy_(norm.weight.data)
    plain.bias.data.copy_(norm.bias.data)
    plain.running_mean.copy_(norm.mean)
    plain.running_var.copy_(norm.variance)
    return plain


def drawn_norms_(module: nn.Module) -> None:
    """Gains, offsets and averages that are not those of a start, so that a mix-up shows."""
    generator = generator_for("norms")
    for norm in module.modules():
        if isinstance(norm, FeatureNorm):
            for tensor in (norm.weight.data, norm.bias.data, norm.mean):
                tensor.normal_(generator=generator)
            norm.variance.uniform_(0.5, 2.0, generator=generator)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("d_in", [1, 3, 8, 12])
def test_a_layer_is_its_plain_form(d_in: int, training: bool) -> None:
    layer = InceptionLayer(d_in, TINY, generator_for("layer"))
    drawn_norms_(layer)
    plain = PlainLayer(layer).train(training)
    e = features(4, 11, d_in).requires_grad_(True)
    again = e.detach().clone().requires_grad_(True)
    y, _ = layer(e, None, training)
    expected = plain(again.transpose(1, 2)).transpose(1, 2)
    same(y, expected)
    for out in (y, expected):
        (out * features(4, 11, 8, seed=1)).sum().backward()
    torch.testing.assert_close(e.grad, again.grad, atol=1e-4, rtol=1e-3)
    for one, other in zip(layer.convolutions, plain.branches, strict=True):
        torch.testing.assert_close(one.weight.grad[:, :, 0], other.weight.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("least", [None, 3])
def test_the_whole_embedding_and_its_averages_are_those_of_its_plain_form_after_several_updates(
    least: int | None,
) -> None:
    embedding = InceptionEmbedding(3, 9, replace(TINY, least_timepoints=least), generator_for("embedding"))
    assert embedding.stride == (1 if least is None else 2)
    drawn_norms_(embedding)
    plain = PlainEmbedding(embedding)
    for step in range(4):
        x = features(5, 9, 3, step)
        y, mask, moments = embedding(x, None, True)
        assert mask is None
        same(y, plain(x.transpose(1, 2)).transpose(1, 2))
        embedding.update_(moments, 0.1)
    ours = [module for module in embedding.modules() if isinstance(module, FeatureNorm)]
    theirs = [module for module in plain.modules() if isinstance(module, nn.BatchNorm1d)]
    for one, other in zip(ours, theirs, strict=True):
        same(one.mean, other.running_mean)
        same(one.variance, other.running_var)
    x = features(2, 9, 3, 99)
    y, _, moments = embedding(x, None, False)
    assert moments == []
    same(y, plain.eval()(x.transpose(1, 2)).transpose(1, 2))


@pytest.mark.parametrize(
    ("n_timepoints", "n_layers", "least", "stride"),
    [
        (1, 3, 1, 1),
        (2, 3, 1, 2),
        (127, 3, 64, 1),
        (128, 3, 64, 2),
        (256, 3, 64, 4),
        (9999, 3, 64, 4),
        (9999, 1, 64, 1),
    ],
)
def test_time_points_are_halved_between_layers_while_enough_are_left(
    n_timepoints: int, n_layers: int, least: int, stride: int
) -> None:
    config = replace(TINY, n_inception_layers=n_layers, least_timepoints=least)
    embedding = InceptionEmbedding(1, n_timepoints, config, generator_for("embedding"))
    assert embedding.stride == stride
    assert embedding(features(2, n_timepoints, 1), None, False).tokens.shape[1] == -(-n_timepoints // stride)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("least", [None, 1])
@pytest.mark.parametrize("kind", [InceptionEmbedding, LinearEmbedding])
def test_a_padded_batch_is_embedded_as_an_unpadded_one(kind: type, least: int | None, training: bool) -> None:
    embedding = kind(3, 12, replace(TINY, least_timepoints=least), generator_for("embedding"))
    drawn_norms_(embedding)
    x = features(4, 7, 3)
    padded = F.pad(x, (0, 0, 0, 5))
    mask = (torch.arange(12) < 7).expand(4, 12)
    y, _, moments = embedding(x, None, training)
    again, padded_mask, padded_moments = embedding(padded, mask, training)
    n = y.shape[1]
    same(again[:, :n], y)
    assert (again[:, n:] == 0.0).all()
    assert torch.equal(padded_mask, (torch.arange(again.shape[1]) < n).expand(4, -1))
    for one, other in zip(padded_moments, moments, strict=True):
        assert one.n == other.n
        torch.testing.assert_close(one.sums, other.sums, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("least", [None, 1])
def test_each_series_of_a_batch_of_lengths_is_embedded_as_it_is_alone(least: int | None) -> None:
    embedding = InceptionEmbedding(2, 12, replace(TINY, least_timepoints=least), generator_for("embedding"))
    drawn_norms_(embedding)
    lengths = [12, 1, 5]
    x = features(3, 12, 2)
    mask = torch.arange(12) < torch.tensor(lengths)[:, None]
    y = embedding(x * mask[:, :, None], mask, False).tokens
    for row, length in enumerate(lengths):
        alone = embedding(x[row : row + 1, :length], None, False).tokens[0]
        same(y[row, : len(alone)], alone)
