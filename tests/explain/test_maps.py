"""Maps: on the axis of their own series, with marginals that sum to the whole, and segments that hold most of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from small_models import CLASSES, LENGTHS, VIEWS, bumps, fitted, span_of

from pdftime.data.series import SeriesSet
from pdftime.explain.evidence import explain
from pdftime.explain.maps import (
    HELD,
    averaged,
    baseline_of,
    by_frequency,
    make_maps,
    on_own_axis,
    score_and_margin,
    segments_of,
    width_of,
)
from pdftime.fitted import FittedModel

EACH_KIND = pytest.mark.parametrize("kind", list(LENGTHS))
SOME = st.floats(-10, 10).map(lambda value: round(value, 3))


# Marginals


@pytest.mark.parametrize("kind", [*LENGTHS, "linear head", "class token", "each scaled", "padded token", *VIEWS])
def test_marginals_sum_to_the_total(every: dict[str, FittedModel], kind: str) -> None:
    for each in explain(every[kind], bumps(5, span_of(kind), seed=1)[0]):
        for found in (each.where, each.why_not):
            scale = max(1.0, np.abs(found.values).sum())
            for marginal in (found.by_time, found.by_channel, found.by_frequency):
                assert abs(marginal.sum() - found.total) <= 1e-6 * scale
            np.testing.assert_allclose(found.frequency_values.sum(axis=1), found.by_channel, atol=1e-6 * scale)
            assert found.total == pytest.approx(found.stop - found.start, abs=0.06 * max(1.0, abs(found.stop)))
            assert found.by_time.shape == (each.series.shape[1],)
            assert found.by_channel.shape == (2,)
            assert found.frequencies.shape == found.by_frequency.shape


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 17), seed=st.integers(0, 50))
def test_a_frequencys_part_is_that_of_the_series_at_this_frequency_alone(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gradient, x = rng.normal(size=(2, 3, n))
    found = by_frequency(torch.from_numpy(gradient), torch.from_numpy(x)).numpy()
    for place in range(n // 2 + 1):
        spectrum = np.fft.rfft(x)
        spectrum[:, np.arange(n // 2 + 1) != place] = 0.0
        expected = (gradient * np.fft.irfft(spectrum, n)).sum(axis=1)
        np.testing.assert_allclose(found[:, place], expected, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), (gradient * x).sum(axis=1), atol=1e-9)


def test_frequencies_are_in_cycles_per_time_point_of_the_series_itself(models: dict[str, FittedModel]) -> None:
    cases, _ = bumps(4, (15, 29), seed=1)
    for each in explain(models["resampled"], cases):
        assert each.where.frequencies[1] == pytest.approx(1 / each.series.shape[1])
    for each in explain(models["padded"], cases):
        assert each.where.frequencies[1] == pytest.approx(1 / models["padded"].preparation.n_timepoints)


# Averages over neighbours


@settings(max_examples=50, deadline=None)
@given(
    values=hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 3), st.integers(1, 140)), elements=SOME),
    end=st.integers(1, 140),
)
def test_averaging_keeps_the_sum_of_every_channel_and_stays_inside(values: NDArray[np.float64], end: int) -> None:
    n = values.shape[2]
    inside = np.arange(n) < np.array([[n], [min(end, n)]])
    values = values * inside[:, None, :]
    found = averaged(values, inside)
    np.testing.assert_allclose(found.sum(axis=2), values.sum(axis=2), atol=1e-9)
    assert not found[~np.broadcast_to(inside[:, None, :], found.shape)].any()
    width = width_of(n)
    assert width % 2 == 1
    assert width <= 7
    if n < 40:
        np.testing.assert_array_equal(found, values)
    half, place = width // 2, n // 2
    if n > 2 * width:
        window = values[0, :, place - half : place + half + 1]
        np.testing.assert_allclose(found[0, :, place], window.mean(axis=1), atol=1e-9)


# The axis


@settings(max_examples=30, deadline=None)
@given(
    prepared=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=SOME),
    length=st.integers(1, 60),
)
def test_a_resampled_map_keeps_its_sum_and_comes_on_the_original_length(
    prepared: NDArray[np.float64], length: int
) -> None:
    own = on_own_axis(prepared, length, padded=False)
    assert own.shape == (len(prepared), length)
    np.testing.assert_allclose(own.sum(axis=1), prepared.sum(axis=1), atol=1e-9)


def test_a_resampled_map_keeps_its_places() -> None:
    narrow = np.zeros((1, 10))
    narrow[0, 7] = 1.0
    wide = on_own_axis(narrow, 20, padded=False)
    np.testing.assert_allclose(wide[0, 14:16], 0.5)
    assert np.delete(wide[0], [14, 15]).tolist() == [0.0] * 18
    np.testing.assert_allclose(on_own_axis(wide, 10, padded=False), narrow, atol=1e-12)


@EACH_KIND
def test_a_map_comes_on_the_axis_of_its_own_series(models: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = models[kind], bumps(8, LENGTHS[kind], seed=1)
    explanations = explain(model, cases)
    ((_, x, mask),) = model.batches(cases)
    target = torch.tensor([each.source.target for each in explanations])
    networks = [member.network for member in model.members]
    maps, _ = make_maps(networks, x, mask, baseline_of(model, x, mask)[0], score_and_margin(target, 1 - target))
    for row, each in enumerate(explanations):
        for number, found in enumerate((each.input_map, each.margin_map)):
            assert found.shape == (2, cases.lengths[row])
            np.testing.assert_allclose(found.sum(axis=1), maps.values[number, row].sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("kind", ["padded", "padded bank", "padded both"])
def test_steps_behind_the_end_get_exactly_nothing(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(8, (8, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    assert mask is not None
    target = torch.zeros(8, dtype=torch.long)
    networks = [member.network for member in model.members]
    maps, _ = make_maps(networks, x, mask, torch.zeros_like(x), score_and_margin(target, 1 - target))
    outside = ~mask[:, None, :].expand(x.shape).numpy()
    assert outside.any()
    for values in maps.values:
        assert (values[outside] == 0.0).all()
        assert (values[~outside] != 0.0).all()


def test_the_map_of_an_ensemble_is_the_mean_of_its_members(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["resampled"], bumps(4, (12, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    target = torch.zeros(4, dtype=torch.long)
    quantity, baseline = score_and_margin(target, 1 - target), torch.zeros_like(x)
    networks = [member.network for member in model.members]
    each = [make_maps([network], x, mask, baseline, quantity)[0] for network in networks]
    both, _ = make_maps(networks, x, mask, baseline, quantity)
    for name in ("values", "frequency_values", "start", "stop"):
        mean = (getattr(each[0], name) + getattr(each[1], name)) / 2
        np.testing.assert_allclose(getattr(both, name), mean, atol=1e-9)


# What is compared with


def test_the_baseline_is_the_training_mean_and_says_so(every: dict[str, FittedModel]) -> None:
    for kind in ("equal", "padded", "unscaled"):
        model, (cases, _) = every[kind], bumps(3, span_of(kind), seed=1)
        mean = np.repeat(model.preparation.mean[:, None], cases.n_timepoints, axis=1)
        ((_, expected, _),) = model.batches(SeriesSet(np.stack([mean] * 3), cases.lengths))
        ((_, x, mask),) = model.batches(cases)
        found, name = baseline_of(model, x, mask)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
        assert name == "the mean of the training series, per channel"
        assert explain(model, cases)[0].where.baseline == name
    model, (cases, _) = every["each scaled"], bumps(3, (24, 24), seed=1)
    ((_, x, mask),) = model.batches(cases)
    found, name = baseline_of(model, x, mask)
    assert not found.any()
    assert name == "the mean of the series itself, per channel"


# Prototypes


@EACH_KIND
def test_a_prototypes_map_adds_up_to_the_similarity_that_the_series_adds(
    models: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, _) = models[kind], bumps(2, LENGTHS[kind], seed=1)
    for each in explain(model, cases):
        for match in (each.target.matches[0], each.contrast.matches[-1]):
            found = each.prototype_map(match)
            assert found.values.shape == each.series.shape
            assert found.stop == pytest.approx(match.similarity, abs=1e-5)
            assert abs(found.total - (found.stop - found.start)) <= found.completeness_gap + 1e-6
            assert found.completeness_gap <= 0.03
            assert found.quantity == f"similarity to prototype {match.number + 1} of {match.label!r}"


# Segments


@settings(max_examples=80, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 80)), elements=SOME))
def test_segments_are_apart_and_hold_four_fifths_of_the_positive_mass(values: NDArray[np.float64]) -> None:
    found = segments_of(values, ("a", "b", "c"))
    positive = values.clip(0.0)
    if not positive.any():
        assert found == ()
        return
    seen = np.zeros(values.shape, bool)
    for each in found:
        here = np.s_[each.channel, each.start : each.end + 1]
        assert 0 <= each.start <= each.end < values.shape[1]
        assert not seen[here].any()
        seen[here] = True
        assert each.share == pytest.approx(positive[here].sum() / positive.sum())
        assert each.channel_name == "abc"[each.channel]
    shares = [each.share for each in found]
    assert sum(shares) >= HELD - 1e-9
    assert shares == sorted(shares, reverse=True)


def test_a_segment_covers_what_stands_out() -> None:
    values = np.full((2, 100), -0.1)
    values[1, 40:60] = 1.0
    (only,) = segments_of(values, ("a", "b"))
    assert only.channel_name == "b"
    assert abs(only.start - 40) <= 3
    assert abs(only.end - 59) <= 3


@EACH_KIND
def test_where_a_series_scores_more_than_the_training_mean_the_map_finds_the_bump(
    models: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, codes) = models[kind], bumps(12, (24, 30) if kind != "equal" else (24, 24), seed=1)
    found = []
    for index, each in enumerate(explain(model, cases)):
        assert each.predicted == CLASSES[codes[index]]
        if each.where.total > 2.0:  # the mean may be of the same class, and then there is nothing to find
            bump = np.flatnonzero(np.abs(cases.series(index)[1]) > 1.8)
            first = each.where.segments[0]
            found.append(first.channel_name == "busy" and first.start <= bump.max() and first.end >= bump.min())
    assert len(found) >= 4
    assert np.mean(found) >= 0.8


def test_a_frequency_that_the_mask_stops_adds_nothing() -> None:
    model = fitted(max_epochs=1)
    network = model.members[0].network
    assert network.spectrum is not None
    with torch.no_grad():
        network.spectrum.gain[:, 5] = 0.0
    for each in explain(model, bumps(3, (24, 24), seed=1)[0]):
        np.testing.assert_allclose(each.where.frequency_values[:, 5], 0.0, atol=1e-6)
        assert np.abs(each.where.frequency_values[:, 4]).max() > 1e-5
