"""The encoder is the textbook's, and a token is influenced by exactly the tokens that it may look at."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from pdftime.config import ModelConfig
from pdftime.data.batches import generator_for
from pdftime.model.encoder import Encoder, EncoderLayer, sinusoidal_positions
from pdftime.model.layers import dropout

TINY = ModelConfig(d_model=8, n_heads=2, n_layers=2, feed_forward=3, dropout=0.2)


def tokens(b: int, t: int, d: int = 8, seed: int = 0) -> Tensor:
    return torch.randn(b, t, d, generator=generator_for(seed))


def encoder(**changes: object) -> Encoder:
    config = ModelConfig(**{**TINY.to_json(), **changes})  # type: ignore[arg-type]
    return Encoder(config, generator_for("encoder"))


@pytest.mark.parametrize("d_model", [2, 7, 8])
def test_positions_are_sines_and_cosines_of_the_formula(d_model: int) -> None:
    positions = sinusoidal_positions(30, d_model)
    for place in range(30):
        for i in range(d_model):
            angle = place / 10000 ** (2 * (i // 2) / d_model)
            expected = math.sin(angle) if i % 2 == 0 else math.cos(angle)
            assert positions[place, i].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("t", [1, 2, 13])
@pytest.mark.parametrize("padded", [False, True])
def test_a_layer_is_pre_norm_attention_and_feed_forward(t: int, padded: bool) -> None:
    layer = EncoderLayer(TINY, generator_for("layer"))
    for parameter in layer.parameters():
        if parameter.ndim == 1:  # offsets and gains that are not those of a start
            nn.init.normal_(parameter, generator=generator_for("offsets"))
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    attention.in_proj_weight.data.copy_(layer.query_key_value.weight.data)
    attention.in_proj_bias.data.copy_(layer.query_key_value.bias.data)
    attention.out_proj.load_state_dict(layer.output.state_dict())
    x = tokens(3, t)
    inside = torch.arange(t) < torch.tensor([t, 1, max(1, t - 2)])[:, None]
    allowed = inside[:, None, None, :] if padded else None
    normed = layer.norm_attention(x)
    seen, _ = attention(normed, normed, normed, key_padding_mask=~inside if padded else None, need_weights=False)
    middle = seen + x
    expected = layer.narrow(nn.functional.gelu(layer.widen(layer.norm_feed_forward(middle)))) + middle
    torch.testing.assert_close(layer(x, allowed, None), expected, atol=1e-5, rtol=1e-5)


def test_the_encoder_adds_positions_and_applies_its_layers_in_turn() -> None:
    whole, x = encoder(), tokens(2, 5)
    expected = x + sinusoidal_positions(5, 8)
    for layer in whole.layers:
        expected = layer(expected, None, None)
    torch.testing.assert_close(whole(x, None, None), expected)
    swapped = whole(x[:, [1, 0, 2, 3, 4]], None, None)[:, [1, 0, 2, 3, 4]]
    assert not torch.allclose(swapped, expected, atol=1e-3)  # order matters


def influence(whole: Encoder, x: Tensor, inside: Tensor | None) -> Tensor:
    """(t, t): whether output token i changes with input token j."""
    t = x.shape[1]
    found = torch.zeros(t, t, dtype=torch.bool)
    for place in range(t):
        again = x.clone().requires_grad_(True)
        whole(again, inside, None)[0, place].square().sum().backward()
        assert again.grad is not None
        found[place] = (again.grad[0] != 0.0).any(dim=-1)
    return found


@pytest.mark.parametrize(("window", "n_layers"), [(1, 1), (3, 1), (2, 2)])
def test_a_token_beyond_the_window_has_no_influence_at_all(window: int, n_layers: int) -> None:
    place = torch.arange(11)
    reach = (place[:, None] - place).abs() <= window * n_layers
    found = influence(encoder(encoder="window", window=window, n_layers=n_layers), tokens(1, 11), None)
    assert torch.equal(found, reach)


def test_without_a_window_every_token_reaches_every_other() -> None:
    assert influence(encoder(n_layers=1), tokens(1, 11), None).all()


@pytest.mark.parametrize("kind", ["attention", "window"])
def test_padded_tokens_have_no_influence_on_those_inside(kind: str) -> None:
    whole = encoder(encoder=kind, window=3)
    x, inside = tokens(2, 9), torch.arange(9) < torch.tensor([5, 1])[:, None]
    y = whole(x, inside, None)
    assert torch.isfinite(y).all()
    other = whole(torch.where(inside[:, :, None], x, 1e4), inside, None)
    assert torch.equal(other[inside], y[inside])
    for row, length in enumerate([5, 1]):
        alone = whole(x[row : row + 1, :length], None, None)[0]
        torch.testing.assert_close(y[row, :length], alone, atol=1e-5, rtol=1e-5)


# Dropout


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(rate: float) -> None:
    x = torch.ones(200, 501)
    y = dropout(x, rate, generator_for("dropout"))
    kept = y != 0.0
    assert kept.double().mean().item() == pytest.approx(1.0 - rate, abs=0.01)
    assert y.mean().item() == pytest.approx(1.0, abs=0.03)
    assert y[kept].unique().numel() == 1
    assert y.shape == x.shape


def test_dropout_treats_neighbouring_cells_apart() -> None:
    kept = (dropout(torch.ones(300, 400), 0.3, generator_for("dropout")) != 0.0).double()
    for shift in range(1, 10):
        both = (kept.flatten()[shift:] * kept.flatten()[:-shift]).mean().item()
        assert both == pytest.approx(0.49, abs=0.01)


def test_dropout_needs_a_generator_and_is_its_function() -> None:
    x = tokens(4, 5)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, generator_for(1)) is x
    assert torch.equal(dropout(x, 0.5, generator_for(1)), dropout(x, 0.5, generator_for(1)))
    assert not torch.equal(dropout(x, 0.5, generator_for(1)), dropout(x, 0.5, generator_for(2)))


def test_a_training_pass_drops_and_a_prediction_does_not() -> None:
    whole, x = encoder(), tokens(2, 6)
    assert torch.equal(whole(x, None, None), whole(x, None, None))
    assert not torch.allclose(whole(x, None, generator_for(1)), whole(x, None, None), atol=1e-3)
