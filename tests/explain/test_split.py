"""Scores split exactly: over prototypes, and over tokens."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import bumps

from pdftime.config import preset
from pdftime.explain.split import parts_of_score, split_over_tokens, token_edges
from pdftime.fitted import FittedModel
from pdftime.model.network import PDFTime

SMALL: dict[str, Any] = {"d_model": 8, "branch_width": 2, "kernel_sizes": (3,), "n_inception_layers": 1, "n_heads": 2}


@settings(max_examples=60, deadline=None)
@given(
    pooling=st.sampled_from(["mean", "token"]),
    head=st.sampled_from(["prototypes", "linear"]),
    n_timepoints=st.integers(3, 40),
    max_tokens=st.sampled_from([None, 1, 5, 8]),
    shortest=st.integers(1, 40),
    padded=st.booleans(),
    seed=st.integers(0, 100),
)
def test_the_split_adds_up_to_the_score_for_every_pooling_mask_and_length(
    pooling: str, head: str, n_timepoints: int, max_tokens: int | None, shortest: int, padded: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    config = preset("network").but(**SMALL, pooling=pooling, head=head, max_tokens=max_tokens).model
    network = PDFTime(config, 2, n_timepoints, 3, generator).eval()
    x = torch.randn(4, 2, n_timepoints, generator=generator)
    mask = None
    if padded:
        ends = torch.tensor([n_timepoints, min(shortest, n_timepoints), n_timepoints, 1])
        mask = torch.arange(n_timepoints) < ends[:, None]
    with torch.no_grad():
        output = network(x, mask)
        for code in range(3):
            target = torch.full((4,), code)
            split = split_over_tokens(network, x, mask, output, target)
            total = split.tokens.sum(dim=1) + split.class_token + split.entropy + split.offset
            error = (total - output.scores[-1][:, code]).abs()
            assert float(error.max()) <= 1e-5
            n_tokens = output.tokens.shape[1] - (pooling == "token")
            assert split.tokens.shape == (4, n_tokens)
            assert len(token_edges(network, n_tokens, n_timepoints)) == n_tokens + 1
            if pooling == "token":
                assert not split.tokens.any()
            else:
                assert not split.class_token.any()
                if output.inside is not None:
                    assert not split.tokens[~output.inside].any()


def test_token_evidence_is_each_tokens_share_of_each_cosine(models: dict[str, FittedModel]) -> None:
    """e[t, k] = token_t . p_k / (n |z| |p_k|), weighted by r_k = softmax_k(cos / T), over T; token by token."""
    model, (cases, _) = models["padded"], bumps(5, (12, 30), seed=1)
    network = model.members[0].network
    head: Any = network.head
    ((_, x, mask),) = model.batches(cases)
    with torch.no_grad():
        output = network(x, mask)
        split = split_over_tokens(network, x, mask, output, torch.ones(5, dtype=torch.long))
    assert output.inside is not None
    assert not output.inside.all()
    for case in range(5):
        z = output.z[case].double()
        prototypes = head.levels[-1][1].double()
        cosines = [float(z @ p / (z.norm() * p.norm())) for p in prototypes]
        shares = [math.exp(cosine / head.temperature) for cosine in cosines]
        r = [share / sum(shares) for share in shares]
        assert float(split.entropy[case]) == pytest.approx(-sum(each * math.log(each) for each in r), abs=1e-6)
        inside = output.inside[case]
        for place in range(len(inside)):
            expected = 0.0
            if inside[place]:
                token = output.tokens[case, place].double()
                for k, p in enumerate(prototypes):
                    expected += r[k] * float(token @ p / (inside.sum() * z.norm() * p.norm())) / head.temperature
            assert float(split.tokens[case, place]) == pytest.approx(expected, abs=1e-6)


def test_contributions_and_entropy_add_up_to_the_score_of_every_level(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["equal"], bumps(5, (24, 24), seed=1)
    network = model.members[0].network
    head: Any = network.head
    ((_, x, mask),) = model.batches(cases)
    with torch.no_grad():
        output = network(x, mask)
        for level, scores in enumerate(output.scores):
            for code in range(2):
                parts = parts_of_score(head, output.z, torch.full((5,), code), level)
                torch.testing.assert_close(parts.responsibility.sum(dim=1), torch.ones(5, dtype=torch.float64))
                total = parts.contribution.sum(dim=1) + parts.entropy
                torch.testing.assert_close(total, scores[:, code].double(), atol=1e-5, rtol=0)
                assert (parts.entropy >= 0.0).all()
                assert (parts.entropy <= math.log(parts.similarity.shape[1]) + 1e-9).all()
    assert len(output.scores) == 2


def test_a_linear_head_splits_into_its_weights_and_its_bias(every: dict[str, FittedModel]) -> None:
    model, (cases, _) = every["linear head"], bumps(3, (24, 24), seed=1)
    network = model.members[0].network
    projection: Any = network.head.projection
    ((_, x, mask),) = model.batches(cases)
    with torch.no_grad():
        output = network(x, mask)
        split = split_over_tokens(network, x, mask, output, torch.tensor([0, 1, 0]))
    expected = output.tokens[1].double() @ projection.weight[1].double() / output.tokens.shape[1]
    torch.testing.assert_close(split.tokens[1], expected, atol=1e-9, rtol=0)
    assert float(split.offset[1]) == pytest.approx(float(projection.bias[1].detach()))


def test_tokens_lie_side_by_side_where_the_network_averages() -> None:
    config = preset("network").but(**SMALL, max_tokens=8).model
    network = PDFTime(config, 1, 20, 2)
    assert network.stride == 3
    assert token_edges(network, 7, 20).tolist() == [0, 3, 6, 9, 12, 15, 18, 20]
    assert token_edges(network, 4, 20).tolist() == [0, 5, 10, 15, 20]  # a backbone that made four of them
