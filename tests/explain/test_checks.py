"""Checks measure what they say, the same every time, and fail where an explanation is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from small_models import LENGTHS, VIEWS, bumps, fitted, span_of

from pdftime.explain.caveats import caveats_of
from pdftime.explain.checks import N_ORDERS, check, check_together, correlation, rank_correlation
from pdftime.explain.deletion import SHARES, without
from pdftime.explain.evidence import explain
from pdftime.explain.explanation import Explanation
from pdftime.explain.untrained import untrained
from pdftime.fitted import FittedModel

NAMES = [
    "additivity error",
    "completeness gap",
    "completeness gap of the margin",
    "comprehensiveness at 10%",
    "comprehensiveness at 20%",
    "sufficiency at 10%",
    "sufficiency at 20%",
    "AOPC",
    "likeness to an untrained network",
    "stability",
]


@pytest.mark.parametrize("kind", [*LENGTHS, "linear head", "class token", "each scaled", "padded token", *VIEWS])
def test_every_explanation_can_be_checked(every: dict[str, FittedModel], kind: str) -> None:
    for each in explain(every[kind], bumps(3, span_of(kind), seed=1)[0]):
        checks = each.check()
        assert [one.name for one in checks.checks] == NAMES
        assert all(np.isfinite([one.value, one.bar]).all() for one in checks.checks)
        assert checks["additivity error"].passed
        assert checks.passed == all(one.passed for one in checks.checks)
        assert each.check() is checks
        failed = [one for one in checks.checks if not one.passed]
        assert len(checks.warnings) == len(failed) + len(each.warnings)
        assert all(one.name in warning for one, warning in zip(failed, checks.warnings, strict=False))


@pytest.mark.parametrize("kind", ["equal", "padded", *VIEWS])
def test_checks_found_together_are_those_of_each_explanation(every: dict[str, FittedModel], kind: str) -> None:
    explanations = explain(every[kind], bumps(6, span_of(kind), seed=1)[0])
    together = check_together(explanations)
    for each, found in zip(explanations, together, strict=True):
        alone = each.check()
        assert [one.name for one in found.checks] == [one.name for one in alone.checks]
        for one, other in zip(found.checks, alone.checks, strict=True):
            assert one.value == pytest.approx(other.value, abs=1e-4)
            assert one.bar == pytest.approx(other.bar, abs=1e-6)
        np.testing.assert_allclose(found.deletion.by_map, alone.deletion.by_map, atol=1e-6)
    explanations[0].keep_checks_(together[0])
    assert explanations[0].check() is together[0]


@pytest.mark.parametrize("kind", ["equal", "padded"])
def test_curves_are_probabilities_of_what_is_left(models: dict[str, FittedModel], kind: str) -> None:
    """Comprehensiveness and sufficiency by hand: the highest cells replaced by zeros, or all others."""
    model, (cases, _) = models[kind], bumps(4, (20, 29) if kind == "padded" else (24, 24), seed=1)
    member = model.members[0]
    for row, each in enumerate(explain(model, cases)):
        checks = each.check()
        ((_, x, mask),) = model.batches(cases.take([row]))
        length = int(cases.lengths[row])
        order = np.argsort(-each.input_map.ravel(), kind="stable")

        def probability(series: torch.Tensor, mask: Any = mask, each: Explanation = each) -> float:
            with torch.no_grad():
                scores = member.network(series, mask).scores[-1].double() / member.temperature
            return float(torch.softmax(scores, dim=1)[0, each.source.target])

        for place, share in enumerate(SHARES):
            taken = np.zeros(2 * length, bool)
            taken[order[: round(share * 2 * length)]] = True
            cells = torch.zeros(x.shape, dtype=torch.bool)
            cells[0, :, :length] = torch.from_numpy(taken.reshape(2, length))
            left = probability(torch.where(cells, 0.0, x))
            assert checks.deletion.by_map[place] == pytest.approx(left, abs=1e-5)
            given_back = probability(torch.where(cells, x, 0.0))
            assert checks.insertion.by_map[place] == pytest.approx(given_back, abs=1e-5)
        whole = float(each.target.probability)
        for place, share in ((1, "10%"), (2, "20%")):
            lost = whole - checks.deletion.by_map[place]
            assert checks[f"comprehensiveness at {share}"].value == pytest.approx(lost, abs=1e-5)
            kept = whole - checks.insertion.by_map[place]
            assert checks[f"sufficiency at {share}"].value == pytest.approx(kept, abs=1e-5)
            chance = whole - checks.deletion.by_chance[:, place].mean()
            assert checks[f"comprehensiveness at {share}"].bar == pytest.approx(chance, abs=1e-5)
        assert checks["AOPC"].value == pytest.approx(whole - checks.deletion.by_map[1:-1].mean(), abs=1e-5)
        for curve in (checks.deletion, checks.insertion):
            assert curve.by_chance.shape == (N_ORDERS, len(SHARES))
            assert curve.by_map[0] == pytest.approx(curve.by_chance[0, 0])
            assert curve.by_map[-1] == pytest.approx(curve.by_chance[0, -1])


@settings(max_examples=30, deadline=None)
@given(
    values=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(2, 30)), elements=st.floats(-5, 5)),
    end=st.integers(1, 30),
)
def test_what_is_left_shrinks_by_a_tenth_at_a_time_and_padding_stays(values: NDArray[np.float64], end: int) -> None:
    inside = np.broadcast_to(np.arange(values.shape[1]) < end, values.shape)
    left = without(values, inside)
    n = int(inside.sum())
    for keep, share in zip(left, SHARES[1:-1], strict=True):
        assert keep[~inside].all()
        assert abs((~keep).sum() - share * n) <= 1
        if 0 < (~keep).sum() < n:
            assert values[~keep].min() >= values[keep & inside].max()
    assert (left[:-1] | ~left[1:]).all()


@pytest.mark.parametrize("kind", list(LENGTHS))
def test_right_maps_pass_and_maps_turned_round_fail(models: dict[str, FittedModel], kind: str) -> None:
    cases, _ = bumps(8, (24, 24) if kind == "equal" else (20, 29), seed=1)
    right, wrong = [], []
    for each in explain(models[kind], cases):
        if each.where.total > 2.0:  # where the baseline is of another class
            right.append(each.check()["AOPC"].passed)
            turned = replace(each, where=replace(each.where, values=-each.input_map))
            wrong.append(check(turned)["AOPC"].passed)
    assert len(right) >= 2
    assert np.mean(right) >= 0.75
    assert not any(wrong)


def test_the_map_of_an_untrained_network_is_noticed(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["equal"], bumps(3, (24, 24), seed=1)
    impostor = untrained(model)
    for each in explain(impostor, cases):
        found = each.check()["likeness to an untrained network"]
        assert found.value > 0.8
        assert not found.passed
    networks: list[Any] = [untrained(model, seed).members[0].network for seed in (0, 0, 1)]
    torch.testing.assert_close(networks[0].norm.weight, networks[1].norm.weight)
    states = (network.embedding.state_dict() for network in networks)
    first, again, other = (torch.cat([tensor.flatten().double() for tensor in each.values()]) for each in states)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_correlations_are_those_of_the_textbook() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 40)).round(1)
    assert correlation(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)
    assert rank_correlation(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert correlation(np.ones(3), one[:3]) == 0.0
    assert rank_correlation(one, -one) == pytest.approx(-1.0)


# Caveats


@pytest.fixture(scope="module")
def calm(models: dict[str, FittedModel]) -> Explanation:
    """An explanation that needs no caveat."""
    for each in explain(models["equal"], bumps(12, (24, 24), seed=1)[0]):
        if not each.warnings:
            return each
    raise AssertionError("every explanation has a caveat")


def test_caveats_are_said_where_they_apply_and_nowhere_else(calm: Explanation) -> None:
    best = calm.best_match
    assert best is not None

    def with_best(**changes: Any) -> Explanation:
        matches = tuple(replace(match, **changes) if match == best else match for match in calm.target.matches)
        return replace(calm, target=replace(calm.target, matches=matches))

    far = tuple(replace(match, similarity=-0.9) for match in calm.target.matches)
    missing = np.zeros(calm.missing.shape, bool)
    missing[0] = True
    altered = {
        "The decision is close": replace(calm, probabilities=np.array([0.52, 0.48])),
        "is itself taken for": replace(calm, why_not=replace(calm.why_not, start=3.0, stop=4.0)),
        "50% of its values are missing": replace(calm, missing=missing),
        "only 40% are": with_best(purity=0.4),
        "4.0 times as far": with_best(relative_gap=4.0),
        "unlike anything that was learned": replace(calm, target=replace(calm.target, matches=far)),
        "is not what is predicted": replace(calm, predicted="other"),
    }
    for words, each in altered.items():
        found = caveats_of(each)
        assert len(found) == 1, (words, found)
        assert words in found[0]
        assert found[0].endswith(".")


def test_a_series_much_shorter_than_the_training_series_is_said_to_be_resampled(
    models: dict[str, FittedModel],
) -> None:
    (short,) = explain(models["resampled"], bumps(1, (8, 8), seed=1)[0])
    unified = models["resampled"].preparation.n_timepoints
    assert any(f"It was resampled from 8 to {unified} time points" in each for each in short.warnings)
    (padded,) = explain(models["padded"], bumps(1, (8, 8), seed=1)[0])
    assert not any("resampled" in each for each in padded.warnings)


def test_a_model_of_format_1_has_fewer_caveats(models: dict[str, FittedModel], calm: Explanation) -> None:
    model = models["equal"]
    assert model.exemplars is not None
    old = replace(model, exemplars=model.exemplars._replace(company=None), review=None)
    (each,) = explain(old, calm.source.case)
    assert each.warnings == ()
    assert each.best_match is not None
    assert each.best_match.usage is each.best_match.purity is each.best_match.wrong is None
    assert each.check().checks[0].passed


# Locality


def test_evidence_is_local_only_where_tokens_see_little() -> None:
    narrow = {"kernel_sizes": (3,), "n_inception_layers": 1, "max_tokens": None, "frequency_mask": False}
    cases, _ = bumps(4, (48, 48), seed=1)
    near = explain(fitted((48, 48), max_epochs=2, encoder="none", **narrow), cases)
    far = explain(fitted((48, 48), max_epochs=8, encoder="attention", n_layers=2, **narrow), cases)
    assert min(each.tokens.locality for each in near) > 0.9
    assert all(each.tokens.drawable for each in near)
    assert np.mean([each.tokens.locality for each in far]) < 0.8
