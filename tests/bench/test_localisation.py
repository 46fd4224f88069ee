"""Measures of a map against known moments are those of the textbook."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdftime.bench.localisation import localisation


@settings(max_examples=50, deadline=None)
@given(n=st.integers(4, 60), share=st.floats(0.05, 0.9), seed=st.integers(0, 1000))
def test_measures_by_hand(n: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.permutation(n).astype(float)  # no two alike
    truth = rng.random(n) < share
    truth[0] = True
    found = localisation(values.reshape(1, n), truth.reshape(1, n))
    order = np.argsort(-values)
    hits = truth[order]
    precision = hits.cumsum() / np.arange(1, n + 1)
    assert found.auprc == pytest.approx(precision[hits].mean())
    k = int(truth.sum())
    gain = sum(1 / math.log2(place + 2) for place in range(k) if hits[place])
    assert found.ndcg == pytest.approx(gain / sum(1 / math.log2(place + 2) for place in range(k)))
    top = set(order[: max(1, round(0.1 * n))].tolist())
    true = set(np.flatnonzero(truth).tolist())
    assert found.iou == pytest.approx(len(top & true) / len(top | true))


def test_a_map_without_an_opinion_is_no_better_than_chance() -> None:
    truth = np.zeros((1, 200), bool)
    truth[0, :20] = True
    flat = localisation(np.zeros((1, 200)), truth)
    assert flat.auprc == pytest.approx(0.1)
    assert flat.ndcg < 0.4
    assert flat.iou < 0.3
    best = localisation(truth.astype(float), truth)
    assert (best.auprc, best.ndcg, best.iou) == (1.0, 1.0, 1.0)
    assert localisation(-truth.astype(float), truth).auprc == pytest.approx(0.1, abs=0.05)
