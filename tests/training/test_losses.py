"""The objective is the paper's, term by term, and each term teaches what it should."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.config import ModelConfig, TrainConfig
from pdftime.data.batches import generator_for
from pdftime.model.network import PDFTime
from pdftime.training.losses import level_weights, total_loss

TINY: dict[str, Any] = {"d_model": 8, "branch_width": 4, "kernel_sizes": (3,), "n_inception_layers": 1, "n_heads": 2}
Y = torch.tensor([0, 1, 2, 0, 1])
ONES = torch.ones(5)


def scores(n_levels: int, seed: int = 0) -> list[Tensor]:
    return [torch.randn(5, 3, generator=generator_for(seed, level)) * 4.0 for level in range(n_levels)]


def prototypes(*k: int) -> list[Tensor]:
    return [torch.randn(3, each, 8, generator=generator_for("p", each)) for each in k]


def cross_entropy(row: list[float], label: int, smoothing: float) -> float:
    """-sum_c target_c log softmax_c, by hand."""
    total = math.log(sum(math.exp(value) for value in row))
    target = [smoothing / len(row) + (1.0 - smoothing) * (code == label) for code in range(len(row))]
    return -sum(share * (value - total) for share, value in zip(target, row, strict=True))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    diversity_weight=st.sampled_from([0.0, 0.01, 3.0]),
    w=st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 3.0)),
)
def test_the_loss_is_the_weighted_sum_of_its_terms(
    seed: int, smoothing: float, diversity_weight: float, w: tuple[float, float]
) -> None:
    config = TrainConfig(level_weights=w, label_smoothing=smoothing, diversity_weight=diversity_weight)
    weight = torch.rand(5, generator=generator_for(seed, "w")) + 0.1
    given_, P = scores(2, seed), prototypes(2, 3)
    losses = total_loss(given_, P, Y, weight, config)
    total = 0.0
    for level in range(2):
        classification = (
            sum(
                float(weight[case]) * cross_entropy(given_[level][case].tolist(), int(Y[case]), smoothing)
                for case in range(5)
            )
            / 5
        )
        k = P[level].shape[1]
        diversity = (
            sum(
                (float(P[level][code, i] @ P[level][code, j]) - (i == j)) ** 2
                for code in range(3)
                for i in range(k)
                for j in range(k)
            )
            / 3
        )
        assert losses.classification[level].item() == pytest.approx(classification, rel=1e-4)
        assert losses.diversity[level].item() == pytest.approx(diversity, rel=1e-4)
        total += w[level] * classification + diversity_weight * diversity
    assert losses.total.item() == pytest.approx(total, rel=1e-4, abs=1e-5)


def test_a_case_of_weight_two_counts_as_two_cases() -> None:
    (one,) = scores(1)
    rows = torch.tensor([0, 1, 1, 2, 3, 4])
    weighted = total_loss([one], [], Y, torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0]), TrainConfig())
    doubled = total_loss([one[rows]], [], Y[rows], torch.ones(6), TrainConfig())
    torch.testing.assert_close(weighted.total * 5, doubled.total * 6)


def test_a_weight_counts_even_where_a_batch_is_one_case() -> None:
    (one,) = scores(1)
    light, heavy = (total_loss([one[:1]], [], Y[:1], torch.tensor([w]), TrainConfig()) for w in (0.5, 2.0))
    torch.testing.assert_close(heavy.total, 4.0 * light.total)


@pytest.mark.parametrize(
    ("given_weights", "n_levels", "expected"),
    [
        ((1.0,), 1, (1.0,)),
        ((1.0,), 3, (1.0, 1.0, 1.0)),
        ((0.5, 2.0), 2, (0.5, 2.0)),
        ((0.5, 2.0), 4, (0.5, 2.0, 2.0, 2.0)),
        ((0.1, 0.2, 0.3), 2, (0.2, 0.3)),
    ],
)
def test_level_weights_repeat_the_last_and_keep_those_of_the_last_levels(
    given_weights: tuple[float, ...], n_levels: int, expected: tuple[float, ...]
) -> None:
    assert level_weights(n_levels, TrainConfig(level_weights=given_weights)) == expected


def test_every_term_has_a_name_in_the_history() -> None:
    losses = total_loss(scores(2), prototypes(2, 3), Y, ONES, TrainConfig())
    terms = losses.as_floats()
    assert list(terms) == ["loss", "classification_0", "classification_1", "diversity_0", "diversity_1"]
    assert all(type(value) is float for value in terms.values())
    assert list(total_loss(scores(1), [], Y, ONES, TrainConfig()).as_floats()) == ["loss", "classification_0"]


# What each term teaches


def gradient_norm(term: Tensor, net: PDFTime) -> float:
    gradients = torch.autograd.grad(term, list(net.parameters()), allow_unused=True, retain_graph=True)
    return math.fsum(float(each.norm()) for each in gradients if each is not None)


def terms_of(**changes: Any) -> tuple[PDFTime, Any]:
    net = PDFTime(ModelConfig(**{**TINY, **changes}), 2, 12, 3, generator_for(0))
    for level in range(getattr(net.head, "n_levels", 0)):  # away from orthogonal, where the diversity term is flat
        getattr(net.head, f"level_{level}").data.normal_(generator=generator_for("drawn", level))
    output = net(torch.randn(5, 2, 12, generator=generator_for(1)), None, generator_for(2))
    return net, total_loss(output.scores, net.head.levels, Y, ONES, TrainConfig(diversity_weight=1.0))


@pytest.mark.parametrize("update", ["ema", "gradient"])
def test_the_classification_term_of_every_level_teaches_the_network(update: str) -> None:
    net, losses = terms_of(n_prototypes=(2, 3, 2), prototype_update=update)
    assert all(gradient_norm(term, net) > 1e-3 for term in losses.classification)


def test_the_diversity_term_teaches_nothing_where_prototypes_follow_averages() -> None:
    net, losses = terms_of()
    assert all(term > 0.0 and not term.requires_grad for term in losses.diversity)
    with_term = gradient_norm(losses.total, net)
    without = gradient_norm(losses.classification[0] + losses.classification[1], net)
    assert with_term == pytest.approx(without, rel=1e-6)


def test_the_diversity_term_teaches_prototypes_that_are_trained_by_gradient_and_nothing_else() -> None:
    net, losses = terms_of(prototype_update="gradient")
    for level, term in enumerate(losses.diversity):
        own = getattr(net.head, f"level_{level}")
        gradients = torch.autograd.grad(term, list(net.parameters()), allow_unused=True, retain_graph=True)
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            if parameter is own:
                assert gradient.norm() > 1e-3
            else:
                assert gradient is None
