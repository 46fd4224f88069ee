"""The network takes any shape, is a pure function of each series, and wastes no weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdftime.config import ModelConfig, TrainConfig
from pdftime.data.batches import generator_for
from pdftime.model.layers import pool_tokens
from pdftime.model.network import Output, PDFTime, mean_over_tokens
from pdftime.training.losses import total_loss

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 9),
    "n_inception_layers": 2,
    "n_heads": 2,
    "max_tokens": 8,
}
ABLATIONS: dict[str, dict[str, Any]] = {
    "whole": {},
    "no frequency mask": {"frequency_mask": False},
    "linear embedding": {"embedding": "linear"},
    "linear head": {"head": "linear"},
    "one level": {"n_prototypes": (3,)},
    "one prototype": {"n_prototypes": (1,)},
    "prototypes by gradient": {"prototype_update": "gradient"},
    "window": {"encoder": "window", "window": 2},
    "no encoder": {"encoder": "none"},
    "no encoder, linear embedding": {"encoder": "none", "embedding": "linear"},
    "class token": {"pooling": "token"},
    "a token per time point": {"max_tokens": None},
    "three tokens": {"max_tokens": 3},
    "one token": {"max_tokens": 1},
    "one layer": {"n_inception_layers": 1, "kernel_sizes": (1,)},
    "two encoder layers": {"n_layers": 2},
}
EACH_ABLATION = pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)


def network(c: int = 3, t: int = 20, n_classes: int = 3, *, seed: int = 0, **changes: Any) -> PDFTime:
    return PDFTime(ModelConfig(**{**TINY, **changes}), c, t, n_classes, generator_for(seed))


def series(b: int, c: int = 3, t: int = 20, seed: int = 0) -> Tensor:
    return torch.randn(b, c, t, generator=generator_for("series", seed))


def loss_of(net: PDFTime, output: Output, y: Tensor, config: TrainConfig | None = None) -> Tensor:
    return total_loss(output.scores, net.head.levels, y, torch.ones(len(y)), config or TrainConfig()).total


def warmed(net: PDFTime) -> PDFTime:
    """With averages of norms that have seen data."""
    for step in range(5):
        net.update_norms_(net(series(6, seed=step), None, generator_for(step)).moments, 0.5)
    return net


# Shapes


@pytest.mark.parametrize("t", [1, 2, 3, 17, 200])
@pytest.mark.parametrize("c", [1, 5, 70])
def test_any_length_and_number_of_channels_works(t: int, c: int) -> None:
    net, x, y = network(c, t), series(4, c, t), torch.tensor([0, 1, 2, 0])
    output = net(x, None, generator_for(1))
    loss_of(net, output, y).backward()
    assert [tuple(scores.shape) for scores in output.scores] == [(4, 3), (4, 3)]
    assert output.z.shape == (4, 8)
    assert output.tokens.shape == (4, min(t, -(-t // -(-t // 8))), 8)
    assert output.inside is None
    for tensor in (*output.scores, output.z, output.tokens, *(p.grad for p in net.parameters())):
        assert tensor.dtype == torch.float32
        assert torch.isfinite(tensor).all()


@pytest.mark.parametrize("n_classes", [2, 3, 7, 12])
@pytest.mark.parametrize("n_prototypes", [(1,), (2, 3), (5, 3, 2), (1, 2, 3, 40)])
def test_any_number_of_classes_and_levels_works(n_classes: int, n_prototypes: tuple[int, ...]) -> None:
    net = network(n_classes=n_classes, n_prototypes=n_prototypes)
    output = net(series(2))
    assert [tuple(scores.shape) for scores in output.scores] == [(2, n_classes)] * len(n_prototypes)
    assert [tuple(level.shape) for level in net.head.levels] == [(n_classes, k, 8) for k in n_prototypes]


def test_a_single_case_trains_and_predicts() -> None:
    for t in (1, 20):
        net = network(t=t)
        output = net(series(1, t=t), None, generator_for(1))
        loss_of(net, output, torch.tensor([1])).backward()
        assert torch.isfinite(net(series(1, t=t)).scores[-1]).all()
        net.update_norms_(output.moments, 0.1)


# Every part teaches


@EACH_ABLATION
@pytest.mark.parametrize("padded", [False, True])
def test_every_trainable_parameter_gets_a_gradient(changes: dict[str, Any], padded: bool) -> None:
    net, x, y = network(5, 17, 4, **changes), series(8, 5, 17), torch.arange(8) % 4
    mask = torch.arange(17) < torch.tensor([17, 9, 5, 17, 1, 12, 16, 3])[:, None] if padded else None
    loss_of(net, net(x, mask, generator_for(1)), y).backward()
    norms = {name: float(parameter.grad.norm()) for name, parameter in net.named_parameters()}
    assert min(norms.values()) > 1e-4 * max(norms.values()), min(norms, key=norms.__getitem__)
    assert all(parameter.requires_grad for parameter in net.parameters())


@EACH_ABLATION
def test_every_ablation_learns_a_batch_by_heart(changes: dict[str, Any]) -> None:
    net, x, y = network(**{"dropout": 0.0, **changes}), series(6), torch.tensor([0, 1, 2, 0, 1, 2])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for step in range(30):
        output = net(x, None, generator_for(step))
        loss = loss_of(net, output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


def test_a_setting_switches_its_part_off() -> None:
    assert network(frequency_mask=False).spectrum is None
    assert network(encoder="none").encoder is None
    assert network().class_token is None
    assert network(pooling="token").class_token is not None
    assert network(head="linear").head.levels == ()


# Padding


LENGTHS = torch.tensor([20, 13, 1, 6])
MASK = torch.arange(20) < LENGTHS[:, None]


@EACH_ABLATION
@pytest.mark.parametrize("garbage", [1e4, float("nan"), float("inf")])
def test_garbage_behind_the_end_changes_no_bit(changes: dict[str, Any], garbage: float) -> None:
    net, x = warmed(network(**changes)), series(4)
    if changes.get("frequency_mask", True):
        nn.init.normal_(net.spectrum.gain, 1.0, 0.3, generator=generator_for("gain"))  # type: ignore[union-attr]
    clean = torch.where(MASK[:, None, :], x, 0.0)
    dirty = torch.where(MASK[:, None, :], x, garbage)
    for generators in ((None, None), (generator_for(1), generator_for(1))):
        one, other = net(clean, MASK, generators[0]), net(dirty, MASK, generators[1])
        assert torch.isfinite(one.scores[-1]).all()
        for a, b in zip((*one.scores, one.z), (*other.scores, other.z), strict=True):
            assert torch.equal(a, b)


@EACH_ABLATION
def test_a_padded_series_is_predicted_as_it_is_unpadded(changes: dict[str, Any]) -> None:
    changes = {name: value for name, value in changes.items() if name != "frequency_mask"}
    plain = warmed(network(**changes, frequency_mask=False))
    identity = network(**changes)  # its mask is the identity at the start
    identity.load_state_dict({**plain.state_dict(), "spectrum.gain": identity.spectrum.gain})  # type: ignore[union-attr]
    x = series(4)
    for net in (plain, identity):
        together = net(x, MASK)
        for row, length in enumerate(LENGTHS.tolist()):
            alone = plain(x[row : row + 1, :, :length])
            torch.testing.assert_close(together.z[row], alone.z[0], atol=1e-5, rtol=1e-5)
            for padded, unpadded in zip(together.scores, alone.scores, strict=True):
                torch.testing.assert_close(padded[row], unpadded[0], atol=1e-4, rtol=1e-5)


def test_what_the_filter_makes_ring_past_the_end_is_cut_off() -> None:
    net, plain = network(), network(frequency_mask=False)
    nn.init.normal_(net.spectrum.gain, generator=generator_for("gain"))  # type: ignore[union-attr]
    x = series(4) * MASK[:, None, :]
    filtered = net.spectrum(x)  # type: ignore[misc]
    assert (filtered * ~MASK[:, None, :]).abs().max() > 0.1
    for row, length in enumerate(LENGTHS.tolist()):
        alone = plain(filtered[row : row + 1, :, :length])
        torch.testing.assert_close(net(x, MASK).z[row], alone.z[0], atol=1e-5, rtol=1e-5)


def test_a_mask_that_is_all_true_is_as_none() -> None:
    net, x = warmed(network()), series(4)
    with_mask = net(x, torch.ones(4, 20, dtype=torch.bool))
    torch.testing.assert_close(with_mask.scores[-1], net(x).scores[-1], atol=1e-4, rtol=1e-5)


# Purity


@EACH_ABLATION
@pytest.mark.parametrize("training", [False, True])
def test_forward_is_pure(changes: dict[str, Any], training: bool) -> None:
    net, x = network(**changes), series(4)
    net.train(training)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    first, again = (net(x, MASK, generator_for(1) if training else None) for _ in range(2))
    for a, b in zip((*first.scores, first.z), (*again.scores, again.z), strict=True):
        assert torch.equal(a, b)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert bool(first.moments) == (training and "linear" not in changes.get("embedding", ""))


@EACH_ABLATION
def test_modes_of_the_module_mean_nothing_only_the_generator_does(changes: dict[str, Any]) -> None:
    net, x = warmed(network(**changes)), series(4)
    predicted = [net.train(mode)(x).scores[-1] for mode in (True, False)]
    assert torch.equal(*predicted)
    drawn = [net.train(mode)(x, None, generator_for(1)).scores[-1] for mode in (True, False)]
    assert torch.equal(*drawn)


@EACH_ABLATION
def test_a_prediction_does_not_depend_on_the_rest_of_the_batch(changes: dict[str, Any]) -> None:
    net, x = warmed(network(**changes)), series(5)
    together = net(x)
    for row in range(5):
        alone = net(x[row : row + 1])
        torch.testing.assert_close(together.z[row], alone.z[0], atol=1e-5, rtol=1e-5)
    shuffled = net(x[[3, 1, 4, 0, 2]])
    torch.testing.assert_close(shuffled.scores[-1][3], together.scores[-1][0], atol=1e-4, rtol=1e-5)


def test_a_training_pass_depends_on_its_generator() -> None:
    net, x = network(), series(4)
    one, same, other = (net(x, None, generator_for(seed)).z for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@EACH_ABLATION
def test_the_global_generators_are_never_touched(changes: dict[str, Any]) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()
    net = network(**changes)
    output = net(series(4), None, generator_for(1))
    loss_of(net, output, torch.tensor([0, 1, 2, 0])).backward()
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, np.random.get_state(), strict=True))


def test_weights_belong_to_their_generator() -> None:
    one, same, other = (network(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    drawn = [name for name in one if one[name].ndim > 1 and "gain" not in name]
    assert drawn
    assert not any(torch.equal(one[name], other[name]) for name in drawn)


# A custom backbone


class Doubler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0))

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.tanh(tokens * self.gain)


def test_a_backbone_of_ones_own_takes_the_encoders_place() -> None:
    config = ModelConfig(**TINY)
    net = PDFTime(config, 3, 20, 3, generator_for(0), backbone=Doubler())
    assert net.encoder is None
    output = net(series(4), None, generator_for(1))
    loss_of(net, output, torch.tensor([0, 1, 2, 0])).backward()
    assert net.backbone.gain.grad != 0.0  # type: ignore[union-attr]
    bare = network(encoder="none")
    embedded = bare.embedding(series(4).transpose(1, 2), None, False).tokens
    tokens, _ = pool_tokens(embedded, None, bare.pool_stride)
    torch.testing.assert_close(net(series(4)).tokens, net.norm(torch.tanh(2.0 * tokens)), atol=1e-4, rtol=1e-4)


# Tokens


@pytest.mark.parametrize(("t", "stride"), [(1, 1), (6, 2), (7, 3), (5, 8)])
def test_pooled_tokens_are_means_of_neighbours_inside(t: int, stride: int) -> None:
    tokens = torch.randn(3, t, 2, generator=generator_for(0))
    lengths = [t, 1, max(1, t - 2)]
    mask = torch.arange(t) < torch.tensor(lengths)[:, None]
    for with_mask in (False, True):
        pooled, pooled_mask = pool_tokens(tokens, mask if with_mask else None, stride)
        assert pooled.shape == (3, -(-t // stride), 2)
        for case in range(3):
            end = lengths[case] if with_mask else t
            for place in range(pooled.shape[1]):
                first, last = place * stride, min((place + 1) * stride, end)
                if first < last:
                    torch.testing.assert_close(pooled[case, place], tokens[case, first:last].mean(dim=0))
                if with_mask:
                    assert bool(pooled_mask[case, place]) == (first < last)


@pytest.mark.parametrize(("t", "max_tokens"), [(200, 8), (8, 8), (9, 8), (64, 1), (17, 100)])
def test_the_encoder_never_sees_more_tokens_than_allowed(t: int, max_tokens: int) -> None:
    tokens = network(1, t, max_tokens=max_tokens)(series(2, 1, t)).tokens
    assert tokens.shape[1] <= max_tokens
    assert network(1, t, max_tokens=None)(series(2, 1, t)).tokens.shape[1] == t


def test_with_mean_pooling_z_is_the_mean_of_the_tokens_inside() -> None:
    output = network()(series(4), MASK)
    for case in range(4):
        torch.testing.assert_close(output.z[case], output.tokens[case][output.inside[case]].mean(dim=0))
    torch.testing.assert_close(mean_over_tokens(output.tokens, None), output.tokens.mean(dim=1))


def test_with_a_class_token_z_is_that_token() -> None:
    output = network(pooling="token")(series(4), MASK)
    assert torch.equal(output.z, output.tokens[:, 0])
    assert output.inside[:, 0].all()
    assert output.inside.shape == output.tokens.shape[:2]


def test_the_linear_head_is_a_linear_map_of_z() -> None:
    net = network(head="linear")
    output = net(series(4))
    (scores,) = output.scores
    torch.testing.assert_close(scores, F.linear(output.z, net.head.projection.weight, net.head.projection.bias))
