"""Preparation knows the training cases and nothing else, and treats every later case as it treated them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdftime.config import PrepareConfig
from pdftime.data import prepare
from pdftime.data.prepare import LIMIT, Preparation, resample
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import ConfigError, DataError

NAN = np.nan
PLAIN = PrepareConfig(scaling="none")


def noise(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def unequal(*lengths: int, n_channels: int = 2, seed: int = 0) -> SeriesSet:
    return check_series([noise(n_channels, length, seed=seed + length) for length in lengths])


def prepared(X: Any, config: PrepareConfig = PLAIN) -> np.ndarray[Any, Any]:
    cases = check_series(X)
    return Preparation.fit(cases, config)(cases).x


# Missing values


def test_a_gap_is_filled_by_a_straight_line_and_the_ends_by_the_nearest_value() -> None:
    x = prepared([[[NAN, 2.0, NAN, NAN, 5.0, 1.0, NAN], [0.0] * 7]])
    np.testing.assert_allclose(x[0, 0], [2, 2, 3, 4, 5, 1, 1], rtol=1e-6)


def test_one_value_alone_fills_its_whole_channel() -> None:
    x = prepared([[[NAN, NAN, 7.0, NAN], [1.0, 2.0, 3.0, 4.0]]])
    np.testing.assert_array_equal(x[0, 0], [7, 7, 7, 7])


def test_a_lost_channel_is_filled_by_the_training_mean() -> None:
    X = noise(5, 2, 6) + 10.0
    X[2, 1] = NAN
    cases = check_series(X)
    mean = np.nanmean(X[:, 1])
    np.testing.assert_allclose(Preparation.fit(cases, PLAIN)(cases).x[2, 1], mean, rtol=1e-6)
    for scaling in ("train", "series"):
        filled = Preparation.fit(cases, PrepareConfig(scaling=scaling))(cases).x[2, 1]
        np.testing.assert_allclose(filled, 0.0, atol=1e-12)


def test_a_channel_that_no_training_case_has_is_zero_and_later_values_pass_unscaled() -> None:
    X = noise(4, 2, 6)
    X[:, 1] = NAN
    preparation = Preparation.fit(check_series(X), PrepareConfig())
    assert (preparation(check_series(X)).x[:, 1] == 0.0).all()
    later = noise(1, 2, 6, seed=1)
    np.testing.assert_allclose(preparation(check_series(later)).x[0, 1], later[0, 1], rtol=1e-6)


def test_values_missing_at_the_end_of_one_channel_are_missing_not_behind_the_end() -> None:
    short = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, NAN, NAN]])
    cases = check_series([short, noise(2, 6)])
    preparation = Preparation.fit(cases, PrepareConfig(scaling="none", lengths="pad"))
    x, mask = preparation(cases)
    np.testing.assert_array_equal(x[0], [[1, 2, 3, 4, 0, 0], [5, 6, 6, 6, 0, 0]])
    assert mask is not None
    np.testing.assert_array_equal(mask[0], [True] * 4 + [False] * 2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0.0, 0.9))
def test_gaps_are_filled_as_numpy_would_fill_them(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 2, 9))
    X[rng.random(X.shape) < share] = NAN
    X[:, 0, 0] = X[:, 0, -1] = 0.5  # every case keeps its length
    x = prepared(X)
    for case, channel in np.ndindex(3, 2):
        row, there = X[case, channel], ~np.isnan(X[case, channel])
        if there.any():
            expected = np.interp(np.arange(9), np.flatnonzero(there), row[there])
        else:
            expected = np.full(9, 0.0 if np.isnan(X[:, channel]).all() else np.nanmean(X[:, channel]))
        np.testing.assert_allclose(x[case, channel], expected, rtol=1e-5, atol=1e-6)


# Scale


def test_train_scaling_is_the_z_score_of_the_training_cases() -> None:
    X, later = noise(6, 3, 8) * [[1.0], [5.0], [0.01]] + 3.0, noise(2, 3, 8, seed=1)
    preparation = Preparation.fit(check_series(X), PrepareConfig(scaling="train"))
    mean, std = X.mean(axis=(0, 2))[:, None], X.std(axis=(0, 2))[:, None]
    for given_ in (X, later):
        np.testing.assert_allclose(preparation(check_series(given_)).x, (given_ - mean) / std, rtol=1e-5)


def test_train_scaling_counts_only_values_that_are_there() -> None:
    X = noise(4, 1, 6) + 2.0
    X[1, 0, 2] = NAN
    cases = check_series([X[0], X[1], X[2][:, :3], X[3][:, :5]])
    preparation = Preparation.fit(cases, PrepareConfig())
    there = np.concatenate([X[0, 0], X[1, 0][[0, 1, 3, 4, 5]], X[2, 0, :3], X[3, 0, :5]])
    np.testing.assert_allclose(preparation.mean, there.mean())
    np.testing.assert_allclose(preparation.scale, there.std())


@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_series_scaling_is_the_z_score_of_each_series_by_itself(lengths: str) -> None:
    cases = unequal(7, 4, 9)
    x = Preparation.fit(cases, PrepareConfig(scaling="series", lengths=lengths))(cases).x
    for index, length in enumerate([7, 4, 9]):
        own = cases.series(index)
        scaled = (own - own.mean(axis=1, keepdims=True)) / own.std(axis=1, keepdims=True)
        if lengths == "pad":
            np.testing.assert_allclose(x[index, :, :length], scaled, rtol=1e-5, atol=1e-6)
            assert (x[index, :, length:] == 0.0).all()
        else:
            np.testing.assert_allclose(x[index], resample(scaled, 9), rtol=1e-5, atol=1e-6)


def test_no_scaling_passes_values_as_they_are() -> None:
    X = noise(3, 2, 5) * 100.0
    np.testing.assert_array_equal(prepared(X), X.astype(np.float32))


@pytest.mark.parametrize("scaling", ["train", "series"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 + 0.3, -1e-200, 1.7e18, 1e140])
def test_a_constant_channel_becomes_zero(scaling: str, value: float) -> None:
    X = noise(4, 2, 7)
    X[:, 1] = value
    x = prepared(X, PrepareConfig(scaling=scaling))
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x[:, 1], 0.0, atol=1e-6)


@pytest.mark.parametrize("scaling", ["train", "series"])
def test_small_noise_on_a_huge_offset_keeps_its_shape(scaling: str) -> None:
    shape = noise(5, 1, 30)
    config = PrepareConfig(scaling=scaling)
    np.testing.assert_allclose(prepared(1e8 + shape, config), prepared(shape, config), atol=1e-6)


def test_float64_input_keeps_its_precision_until_it_is_scaled() -> None:
    shape = noise(5, 1, 30)
    exact = prepared(shape)
    for dtype, close in ((np.float64, True), (np.float32, False)):
        got = prepared((1e8 + shape).astype(dtype), PrepareConfig(scaling="train")) * shape.std() + shape.mean()
        assert np.allclose(got, exact, atol=1e-5) == close


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, np.int64, np.bool_])
def test_any_kind_of_number_is_prepared_as_its_float64_form(dtype: Any) -> None:
    X = (noise(4, 2, 6) * 20.0).clip(0, None).astype(dtype)
    config = PrepareConfig()
    result = prepared(X, config)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, prepared(X.astype(np.float64), config))


@pytest.mark.parametrize("scaling", ["train", "series", "none"])
@pytest.mark.parametrize("absurd", [1e7, 1e30, -1e200, 1.7e308])
def test_one_absurd_reading_is_cut_and_makes_nothing_infinite(scaling: str, absurd: float) -> None:
    training = check_series([*noise(5, 1, 9), noise(1, 7)])
    preparation = Preparation.fit(training, PrepareConfig(scaling=scaling))
    series = noise(1, 1, 7, seed=3)
    series[0, 0, 3] = absurd
    x = preparation(check_series(series)).x
    there_and_back = np.array([[[1.0, absurd, -absurd, NAN, absurd, 0.0, 2.0]]])
    for each in (x, preparation(check_series(there_and_back)).x):
        assert np.isfinite(each).all()
        assert np.abs(each).max() <= LIMIT
    if scaling != "series":
        assert x[0, 0, 4] == np.sign(absurd) * LIMIT  # place 3 of 7 is place 4 of 9


def test_training_values_too_large_to_average_are_refused() -> None:
    for X in (np.full((3, 1, 4), 1.7e308), noise(3, 1, 4) * 1e200):
        with pytest.raises(DataError, match=r"X holds values up to .*e\+\d+, too large to average\. Divide"):
            Preparation.fit(check_series(X), PrepareConfig())


# Length


@settings(max_examples=40, deadline=None)
@given(old=st.integers(1, 40), new=st.integers(1, 40))
def test_resampling_is_linear_interpolation(old: int, new: int) -> None:
    X = noise(2, old)
    places = np.linspace(0.0, old - 1.0, new)
    expected = [np.interp(places, np.arange(old), row) for row in X]
    np.testing.assert_allclose(resample(X, new), expected, atol=1e-12)


def test_unequal_series_are_resampled_to_the_longest_training_series() -> None:
    cases = unequal(5, 1, 12, 8)
    x, mask = Preparation.fit(cases, PLAIN)(cases)
    assert mask is None
    assert x.shape == (4, 2, 12)
    for index in range(4):
        np.testing.assert_allclose(x[index], resample(cases.series(index), 12), rtol=1e-6)


def test_unequal_series_are_padded_with_zeros_and_a_mask() -> None:
    cases = unequal(5, 1, 12, 8)
    x, mask = Preparation.fit(cases, PrepareConfig(scaling="none", lengths="pad"))(cases)
    assert mask is not None
    for index, length in enumerate([5, 1, 12, 8]):
        np.testing.assert_array_equal(x[index, :, :length], cases.series(index).astype(np.float32))
        assert (x[index, :, length:] == 0.0).all()
        np.testing.assert_array_equal(mask[index], np.arange(12) < length)


@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_a_series_longer_than_any_of_training_is_resampled(lengths: str) -> None:
    preparation = Preparation.fit(unequal(5, 9), PrepareConfig(scaling="none", lengths=lengths))
    later = unequal(20, 4)
    x, mask = preparation(later)
    assert x.shape == (2, 2, 9)
    np.testing.assert_allclose(x[0], resample(later.series(0), 9), rtol=1e-5)
    if lengths == "pad":
        assert mask is not None
        assert mask.sum(axis=1).tolist() == [9, 4]


@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_series_all_shorter_than_those_of_training_are_brought_to_length(lengths: str) -> None:
    preparation = Preparation.fit(unequal(5, 9), PrepareConfig(scaling="none", lengths=lengths))
    x, mask = preparation(check_series(noise(3, 2, 6)))
    assert x.shape == (3, 2, 9)
    assert (mask is None) if lengths == "resample" else (mask.sum(axis=1).tolist() == [6, 6, 6])  # type: ignore[union-attr]


def test_series_of_one_time_point_work() -> None:
    for scaling in ("train", "series", "none"):
        x = prepared(noise(4, 2, 1), PrepareConfig(scaling=scaling))
        assert x.shape == (4, 2, 1)
        assert np.isfinite(x).all()


@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_another_length_is_refused_where_all_training_series_had_one(lengths: str) -> None:
    preparation = Preparation.fit(check_series(noise(3, 2, 8)), PrepareConfig(lengths=lengths))
    assert preparation(check_series(noise(1, 2, 8))).mask is None
    for later in (noise(1, 2, 7), [noise(2, 8), noise(2, 7)]):
        with pytest.raises(DataError, match=r"a series of 7 time points; every training series had 8\. Cut or res"):
            preparation(check_series(later))


def test_other_channels_are_refused() -> None:
    preparation = Preparation.fit(check_series(noise(3, 2, 8)), PrepareConfig())
    with pytest.raises(DataError, match=re.escape("X has 3 channels; the model was trained on 2. Pass the same")):
        preparation(check_series(noise(1, 3, 8)))


# What it depends on, and what it leaves alone


@pytest.mark.parametrize("scaling", ["train", "series", "none"])
@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_a_case_is_prepared_the_same_whatever_stands_beside_it(scaling: str, lengths: str) -> None:
    preparation = Preparation.fit(unequal(6, 9, 4, seed=50), PrepareConfig(scaling=scaling, lengths=lengths))
    case = noise(2, 5)
    alone = preparation(check_series([case])).x[0]
    among = preparation(check_series([noise(2, 30, seed=7) * 1e5, case, noise(2, 2, seed=8)])).x[1]
    np.testing.assert_array_equal(alone, among)


def test_preparing_other_cases_changes_nothing_that_was_fitted() -> None:
    training = unequal(6, 9, 4)
    preparation = Preparation.fit(training, PrepareConfig())
    before, state = preparation(training).x, json.dumps(preparation.to_json())
    preparation(check_series(noise(5, 2, 30, seed=9) * 1e4))
    assert json.dumps(preparation.to_json()) == state
    np.testing.assert_array_equal(preparation(training).x, before)


@pytest.mark.parametrize("scaling", ["train", "series"])
def test_the_callers_arrays_stay_as_they_were_even_read_only_ones(scaling: str) -> None:
    X = noise(4, 2, 6)
    X[0, 1, 2] = NAN
    before = X.copy()
    X.flags.writeable = False
    x = prepared(X, PrepareConfig(scaling=scaling))
    np.testing.assert_array_equal(X, before)
    assert x.flags.writeable
    assert not np.shares_memory(x, X)
    wanted = X.astype(np.float32)
    wanted.flags.writeable = False
    assert not np.shares_memory(prepared(wanted), wanted)


@pytest.mark.parametrize("scaling", ["train", "series", "none"])
@pytest.mark.parametrize("lengths", ["resample", "pad"])
def test_in_parts_it_is_as_at_once(scaling: str, lengths: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = unequal(*range(3, 13))
    config = PrepareConfig(scaling=scaling, lengths=lengths)
    whole = Preparation.fit(cases, config)
    x, mask = whole(cases)
    parts = [whole(part) for part in cases.chunks(50)]
    assert len(parts) > 3
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), x)
    if mask is not None:
        np.testing.assert_array_equal(np.concatenate([part.mask for part in parts]), mask)  # type: ignore[misc]
    once = SeriesSet.chunks
    monkeypatch.setattr(prepare.SeriesSet, "chunks", lambda self: once(self, 50))
    again = Preparation.fit(cases, config)
    np.testing.assert_allclose([again.mean, again.scale], [whole.mean, whole.scale], rtol=1e-12)


# Storing


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), offset=st.floats(-1e9, 1e9), scaling=st.sampled_from(["train", "series", "none"]))
def test_it_comes_back_from_json_exactly(seed: int, offset: float, scaling: str) -> None:
    cases = check_series([noise(2, 4, seed=seed) + offset, noise(2, 7, seed=seed)])
    before = Preparation.fit(cases, PrepareConfig(scaling=scaling, lengths="pad"))
    after = Preparation.from_json(json.loads(json.dumps(before.to_json())))
    assert (after.config, after.n_timepoints, after.equal_length) == (before.config, 7, False)
    np.testing.assert_array_equal([after.mean, after.scale], [before.mean, before.scale])
    np.testing.assert_array_equal(after(cases).x, before(cases).x)


@pytest.mark.parametrize(
    "change",
    [
        {"mean": []},
        {"mean": [0.0]},
        {"mean": [0.0, NAN]},
        {"scale": [1.0, 0.0]},
        {"scale": [1.0, -1.0]},
        {"scale": [1.0, np.inf]},
        {"n_timepoints": 0},
        {"mean": [[0.0, 0.0]], "scale": [[1.0, 1.0]]},
    ],
)
def test_a_stored_preparation_out_of_range_is_refused(change: dict[str, Any]) -> None:
    state = Preparation.fit(check_series(noise(3, 2, 8)), PrepareConfig()).to_json()
    with pytest.raises(DataError, match="not consistent"):
        Preparation.from_json({**state, **change})
    with pytest.raises(ConfigError, match="scaling is 'z'"):
        Preparation.from_json({**state, "config": {"scaling": "z", "lengths": "pad"}})
