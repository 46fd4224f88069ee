"""Every feature of the bank is what a slow loop finds, and its evidence lies where its kernels look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.model import bank as module
from pdftime.model.bank import SMALLEST, ConvolutionBank, Features, Part, two_valued_kernels

Floats = NDArray[np.float64]
LENGTHS = [1, 2, 3, 5, 8, 9, 17, 33, 40]  # the first dilations are 1; from 17 also 2, from 33 also 4


def bank(n_channels: int = 1, n_timepoints: int = 40, **changes: Any) -> ConvolutionBank:
    return ConvolutionBank(n_channels, n_timepoints, **{"n_groups": 2, "n_biases": 2, "seed": 0, **changes})


def series(*shape: int, seed: int | str = 0) -> Tensor:
    return torch.randn(*shape, generator=generator_for("series", seed))


def fitted(x: Tensor, mask: Tensor | None = None, **changes: Any) -> ConvolutionBank:
    made = bank(x.shape[1], x.shape[2], **changes)
    made.fit_biases_(x, mask, generator_for("biases"))
    return made


def mask_of(lengths: list[int], n_timepoints: int) -> Tensor:
    return torch.arange(n_timepoints) < torch.tensor(lengths)[:, None]


def ragged(n_channels: int, padding: float = 0.0) -> tuple[Tensor, Tensor, list[int]]:
    """Series of many lengths, whatever behind their ends."""
    lengths = [40, 1, 2, 13, 26]
    x, mask = series(len(lengths), n_channels, 40), mask_of(lengths, 40)
    return torch.where(mask[:, None, :], x, padding * x), mask, lengths


# A slow bank


class Term(NamedTuple):
    """What one feature of one series is a sum of."""

    part: Part
    view: int
    values: Floats
    """(t,)"""


def responses(part: Part, view: int, x: Floats) -> tuple[Floats, Floats]:
    """Of the rivals (8 * g, t) and of the pooled kernels (k, t), to one series (c, t)."""
    n = x.shape[1]
    if part.difference:
        x = np.stack([np.zeros(len(x)) if i == 0 else x[:, i] - x[:, i - 1] for i in range(n)], axis=1)
    mixed = sum(float(part.mixture[view, c]) * x[c] for c in range(len(x)))
    found = []
    for kernels in (part.rivals[view].double().numpy(), part.pooled[view].double().numpy()):
        response = np.zeros((len(kernels), n))
        for i in range(n):
            for tap in range(9):
                place = i + (tap - 4) * part.dilation
                if 0 <= place < n:
                    response[:, i] += kernels[:, tap] * mixed[place]
        found.append(response)
    return found[0], found[1]


def count_terms(rivals: Floats, *, highest: bool) -> Floats:
    """(8 * g, t): the highest response of a group at its kernel, or 1 at the kernel of the lowest."""
    n_groups, n = len(rivals) // 8, rivals.shape[1]
    terms = np.zeros_like(rivals)
    for group in range(n_groups):
        for i in range(n):
            rows = [rival * n_groups + group for rival in range(8)]
            if highest:
                winner = max(rows, key=lambda row: rivals[row, i])
                terms[winner, i] = rivals[winner, i] / n if rivals[winner, i] > 1e-5 else 0.0
            else:
                winner = min(rows, key=lambda row: rivals[row, i])
                terms[winner, i] = 1.0 / n if rivals[winner, i] < -1e-5 else 0.0
    return terms


def longest_stretch(above: list[int]) -> list[int]:
    """The latest of the longest stretches of neighbours."""
    best: list[int] = []
    for first in above:
        stretch = [first]
        while stretch[-1] + 1 in above:
            stretch.append(stretch[-1] + 1)
        if len(stretch) >= len(best):
            best = stretch
    return best


def pooled_terms(response: Floats, bias: float) -> list[Floats]:
    """Of proportion, mean, place and longest stretch of one kernel's responses above its bias."""
    n = len(response)
    proportion, mean, place, stretch = (np.zeros(n) for _ in range(4))
    above = [i for i in range(n) if response[i] > bias]
    for i in above:
        proportion[i] = 1 / n
        mean[i] = (response[i] - bias) / len(above)
        place[i] = ((i + 0.5) / n - 0.5) / len(above)
    for i in longest_stretch(above):
        stretch[i] = 1 / n
    return [proportion, mean, place, stretch]


def slow_terms(of: ConvolutionBank, x: Floats) -> tuple[list[Term], list[Term]]:
    """Terms of the counts and of the pooled features of one series (c, t), in the bank's order."""
    counts, pooled = [], []
    for part, biases in zip(of.parts, of.biases.double().numpy(), strict=True):
        found = [responses(part, view, x) for view in range(of.n_views)]
        for highest in (True, False):
            for view, (rivals, _) in enumerate(found):
                counts += [Term(part, view, row) for row in count_terms(rivals, highest=highest)]
        for bias in biases:
            of_kernels = [
                (view, pooled_terms(row, float(bias[view, k])))
                for view, (_, response) in enumerate(found)
                for k, row in enumerate(response)
            ]
            for statistic in range(4):
                pooled += [Term(part, view, terms[statistic]) for view, terms in of_kernels]
    return counts, pooled


def slow_features(of: ConvolutionBank, x: Tensor) -> tuple[Tensor, Tensor]:
    """(n_counts,) and (n_pooled,) of one series (c, t)."""
    counts, pooled = slow_terms(of, x.double().numpy())
    return tuple(torch.tensor([term.values.sum() for term in each]).float() for each in (counts, pooled))  # type: ignore[return-value]


def slow_evidence(term: Term, x: Floats) -> Floats:
    """(c, t): every term on the values under the taps of its kernel, in shares as large as they are.

    A difference lies half on the value before it.
    """
    n_channels, n = x.shape
    seen = np.diff(x, axis=1, prepend=x[:, :1]) if term.part.difference else x
    size = (np.abs(seen) + SMALLEST) * term.part.mixture[term.view].double().numpy()[:, None]
    found = np.zeros((n_channels, n))
    for i in range(n):
        places = [i + (tap - 4) * term.part.dilation for tap in range(9)]
        places = [place for place in places if 0 <= place < n]
        whole = size[:, places].sum()
        for place in places:
            share = term.values[i] * size[:, place] / whole
            if term.part.difference and place > 0:
                found[:, place] += share / 2
                found[:, place - 1] += share / 2
            else:
                found[:, place] += share
    return found


# Features


@pytest.mark.parametrize("t", LENGTHS)
@pytest.mark.parametrize("n_channels", [1, 3])
def test_every_feature_is_that_of_a_slow_loop(t: int, n_channels: int) -> None:
    x = series(2, n_channels, t)
    model = fitted(x)
    features = model(x)
    for case in range(2):
        counts, pooled = slow_features(model, x[case])
        torch.testing.assert_close(features.counts[case], counts, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(features.pooled[case], pooled, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("n_channels", [1, 4])
@pytest.mark.parametrize("padding", [0.0, 1e6])
def test_padding_and_its_content_never_change_a_feature(n_channels: int, padding: float) -> None:
    x, mask, lengths = ragged(n_channels, padding)
    model = fitted(x, mask)
    features = model(x, mask)
    for case, length in enumerate(lengths):
        alone = model(x[case : case + 1, :, :length])
        torch.testing.assert_close(features.counts[case], alone.counts[0], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(features.pooled[case], alone.pooled[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_features_do_not_depend_on_the_rest_of_the_batch(
    n_channels: int, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = series(7, n_channels, 30)
    mask = mask_of([30, 4, 1, 17, 30, 9, 22], 30) if masked else None
    model = fitted(x, mask)
    whole = model(x, mask)
    order = torch.tensor([5, 0, 6, 2, 4, 1, 3])
    shuffled = model(x[order], None if mask is None else mask[order])
    monkeypatch.setattr(module, "BATCH_POINTS", 60)
    in_pairs = model(x, mask)
    for one, other, third in zip(whole, shuffled, in_pairs, strict=True):
        torch.testing.assert_close(other, one[order], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(third, one, atol=1e-6, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    b=st.integers(1, 4),
    c=st.integers(1, 12),
    t=st.integers(1, 70),
    n_groups=st.integers(1, 40),
    n_biases=st.integers(1, 3),
    data=st.data(),
)
def test_features_of_any_shape_are_as_many_as_promised_and_in_their_ranges(
    b: int, c: int, t: int, n_groups: int, n_biases: int, data: st.DataObject
) -> None:
    lengths = data.draw(st.none() | st.lists(st.integers(1, t), min_size=b, max_size=b))
    mask = None if lengths is None else mask_of(lengths, t)
    x = series(b, c, t)
    model = fitted(x, mask, n_groups=n_groups, n_biases=n_biases)
    counts, pooled = model(x, mask)
    assert counts.shape == (b, model.n_counts)
    assert pooled.shape == (b, model.n_pooled)
    assert counts.dtype == pooled.dtype == torch.float32
    assert counts.isfinite().all()
    assert (counts >= 0.0).all()
    shape = (b, len(model.parts) * n_biases, 4, -1)
    proportion, mean, place, stretch = pooled.view(shape).unbind(dim=2)
    assert ((proportion >= 0.0) & (proportion <= 1.0)).all()
    assert (mean >= 0.0).all()
    assert (place.abs() <= 0.5).all()
    assert ((stretch >= 0.0) & (stretch <= proportion + 1e-6)).all()


@pytest.mark.parametrize("n_channels", [1, 3])
def test_where_nothing_happens_nobody_wins(n_channels: int) -> None:
    features = bank(n_channels)(torch.zeros(2, n_channels, 40))
    assert (features.counts == 0.0).all()


@pytest.mark.parametrize("level", [0.3, 1.37, -2.9])
def test_rounding_wins_nothing_on_a_plateau(level: float) -> None:
    model = bank(n_groups=8)
    short, long = (model(torch.full((1, 1, n), level)).counts[0] * n for n in (100, 200))
    torch.testing.assert_close(short, long)  # all of it comes from the ends, where zeros follow
    assert (short[short > 0.0] > 1e-5).all()


# Kernels


def test_the_same_seed_gives_the_same_kernels_and_another_seed_others() -> None:
    for n_channels in (1, 5):
        one, same, other = (bank(n_channels, seed=seed) for seed in (1, 1, 2))
        for part, again, different in zip(one.parts, same.parts, other.parts, strict=True):
            assert torch.equal(part.rivals, again.rivals)
            assert torch.equal(part.pooled, again.pooled)
            assert torch.equal(part.mixture, again.mixture)
            assert not torch.equal(part.rivals, different.rivals)
            if n_channels > 1:
                assert not torch.equal(part.mixture, different.mixture)


def test_the_global_generator_is_neither_used_nor_moved() -> None:
    before = torch.random.get_rng_state()
    x = series(3, 2, 20)
    model = fitted(x)
    features = model(x)
    model.evidence(x, None, Features(*(each[None] for each in features)))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_pooled_kernels_are_all_that_have_three_weights_of_two_and_six_of_minus_one() -> None:
    kernels = two_valued_kernels()
    assert len({tuple(row) for row in kernels.tolist()}) == len(kernels) == 84
    assert all(sorted(row) == [-1.0] * 6 + [2.0] * 3 for row in kernels.tolist())


@pytest.mark.parametrize("n_channels", [1, 3])
def test_rivals_answer_a_level_with_nothing_and_all_have_the_same_size(n_channels: int) -> None:
    for part in bank(n_channels).parts:
        torch.testing.assert_close(part.rivals.sum(dim=2), torch.zeros(part.rivals.shape[:2]), atol=1e-6, rtol=0)
        torch.testing.assert_close(part.rivals.abs().sum(dim=2), torch.ones(part.rivals.shape[:2]))


@settings(max_examples=25, deadline=None)
@given(t=st.integers(1, 3000))
def test_dilations_double_while_a_kernel_fits(t: int) -> None:
    parts = bank(n_timepoints=t, n_groups=1, n_biases=1).parts
    half = len(parts) // 2
    dilations = [part.dilation for part in parts[:half]]
    assert [part.dilation for part in parts[half:]] == dilations
    assert [part.difference for part in parts] == [False] * half + [True] * half
    assert dilations == [2**i for i in range(half)]
    assert dilations[-1] == 1 or 8 * dilations[-1] + 1 <= t < 16 * dilations[-1] + 1


@settings(max_examples=15, deadline=None)
@given(c=st.integers(2, 40), seed=st.integers(0, 1000))
def test_a_mixture_has_one_to_nine_channels_of_equal_weight_and_unit_power(c: int, seed: int) -> None:
    for part in bank(c, 9, seed=seed).parts:
        for row in part.mixture:
            chosen = row[row != 0.0]
            assert 1 <= len(chosen) <= min(9, c)
            torch.testing.assert_close(chosen, torch.full_like(chosen, len(chosen) ** -0.5))


# Biases


def sorted_responses(
    model: ConvolutionBank, x: Tensor, lengths: list[int]
) -> Iterator[tuple[int, int, list[Floats]]]:
    """Of each part and view the sorted responses (k, n) of every series."""
    for number, part in enumerate(model.parts):
        for view in range(model.n_views):
            cut = [x[case, :, :length].double().numpy() for case, length in enumerate(lengths)]
            yield number, view, [np.sort(responses(part, view, each)[1], axis=1) for each in cut]


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("padding", [0.0, 1e6])
def test_a_bias_lies_between_neighbouring_responses_inside_one_of_the_series(n_channels: int, padding: float) -> None:
    x, mask, lengths = ragged(n_channels, padding)
    model = fitted(x, mask)
    for number, view, of_cases in sorted_responses(model, x, lengths):
        for bias in model.biases[number, :, view].double().numpy():  # (k,)
            for k, value in enumerate(bias):
                between = []
                for found in of_cases:
                    row = found[k]
                    between += [*((row[1:] + row[:-1]) / 2), row[-1]]
                assert np.abs(np.array(between) + 1e-5 - value).min() < 1e-5


def test_biases_of_padded_series_are_those_of_the_series() -> None:
    x = series(4, 2, 25)
    padded = torch.cat([x, torch.full((4, 2, 15), 7.0)], dim=2)
    one, other = bank(2), bank(2)
    one.fit_biases_(x, None, generator_for(0))
    other.fit_biases_(padded, mask_of([25] * 4, 40), generator_for(0))
    torch.testing.assert_close(one.biases, other.biases)


def test_biases_belong_to_their_generator_and_leave_the_kernels_alone() -> None:
    x = series(4, 1, 25)
    one, same, other = bank(), bank(), bank()
    for model, seed in ((one, 1), (same, 1), (other, 2)):
        model.fit_biases_(x, None, generator_for(seed))
    assert torch.equal(one.biases, same.biases)
    assert not torch.equal(one.biases, other.biases)
    assert all(torch.equal(a.rivals, b.rivals) for a, b in zip(one.parts, other.parts, strict=True))


def test_biases_are_spread_evenly_over_the_quantiles() -> None:
    x = series(1, 1, 200)
    model = bank(n_timepoints=200)
    model.fit_biases_(x, None, generator_for(0))
    proportion = model(x).pooled.view(len(model.parts), 2, 4, -1)[:, :, 0].flatten(1)
    for of_part in proportion:
        quantiles = of_part.sort().values
        even = (torch.arange(len(quantiles)) + 0.5) / len(quantiles)
        assert (quantiles - even).abs().max() < 0.03


# Evidence


def random_weights(model: ConvolutionBank, n_quantities: int, b: int) -> Features:
    generator = generator_for("weights")
    return Features(*(torch.randn(n_quantities, b, n, generator=generator) for n in (model.n_counts, model.n_pooled)))


def assert_sums(model: ConvolutionBank, x: Tensor, mask: Tensor | None) -> None:
    weights = random_weights(model, 3, len(x))
    evidence = model.evidence(x, mask, weights).sum(dim=0)
    assert evidence.shape == (3, *x.shape)
    terms = torch.cat([w * f for w, f in zip(weights, model(x, mask), strict=True)], dim=2).double()
    gap = (evidence.double().sum(dim=(2, 3)) - terms.sum(dim=2)).abs()
    assert (gap <= 1e-5 * terms.abs().sum(dim=2)).all()


@pytest.mark.parametrize("t", LENGTHS)
@pytest.mark.parametrize("n_channels", [1, 3])
def test_evidence_sums_to_weights_times_features(t: int, n_channels: int) -> None:
    x = series(3, n_channels, t)
    assert_sums(fitted(x), x, None)


@settings(max_examples=20, deadline=None)
@given(c=st.integers(1, 5), t=st.integers(1, 60), data=st.data())
def test_evidence_of_masked_series_sums_too_and_is_nothing_behind_their_ends(
    c: int, t: int, data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(1, t), min_size=1, max_size=4))
    x, mask = series(len(lengths), c, t), mask_of(lengths, t)
    model = fitted(x, mask)
    assert_sums(model, x, mask)
    evidence = model.evidence(x, mask, random_weights(model, 2, len(x)))
    assert (evidence * ~mask[:, None, :] == 0.0).all()


@pytest.mark.parametrize("n_channels", [1, 3])
def test_evidence_of_padded_series_is_that_of_each_alone(n_channels: int) -> None:
    x, mask, lengths = ragged(n_channels, 1e6)
    model = fitted(x, mask)
    weights = random_weights(model, 2, len(x))
    evidence = model.evidence(x, mask, weights)
    for case, length in enumerate(lengths):
        alone = Features(*(each[:, case : case + 1] for each in weights))
        expected = model.evidence(x[case : case + 1, :, :length], None, alone)
        torch.testing.assert_close(evidence[:, :, case : case + 1, :, :length], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("t", [1, 2, 6, 24, 40])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_the_evidence_of_a_feature_lies_on_the_taps_of_its_kernel(t: int, n_channels: int) -> None:
    x = series(1, n_channels, t)
    model = fitted(x)
    terms = slow_terms(model, x[0].double().numpy())
    for family in range(2):
        chosen = torch.arange(0, len(terms[family]), 37)
        weights = [torch.zeros(len(chosen), 1, n) for n in (model.n_counts, model.n_pooled)]
        weights[family][torch.arange(len(chosen)), 0, chosen] = 1.0
        evidence = model.evidence(x, None, Features(*weights)).sum(dim=0)[:, 0]
        expected = np.stack([slow_evidence(terms[family][i], x[0].double().numpy()) for i in chosen.tolist()])
        torch.testing.assert_close(evidence, torch.from_numpy(expected), atol=1e-6, rtol=1e-4)


def test_a_change_out_of_every_kernels_reach_leaves_the_evidence_of_counts() -> None:
    x = series(1, 2, 120)
    model = bank(2, 17)  # dilations 1 and 2: a kernel sees 8 points to each side, and a response as many again
    weights = random_weights(model, 1, 1)._replace(pooled=torch.zeros(1, 1, model.n_pooled))
    changed = x.clone()
    changed[:, :, 60] += 5.0
    before, after = (model.evidence(each, None, weights).sum(dim=0)[0, 0] for each in (x, changed))
    near = (torch.arange(120) - 60).abs() <= 2 * 8 + 2
    torch.testing.assert_close(before[:, ~near], after[:, ~near], atol=1e-6, rtol=1e-5)
    assert (before[:, near] - after[:, near]).abs().max() > 1e-3


def test_spectral_shares_are_the_power_that_an_average_kernel_lets_through() -> None:
    x = series(2, 2, 24)
    model = bank(2, 24)
    shares = model.spectral_shares(x, None).double()
    for part, found in zip(model.parts, shares, strict=True):
        kernels = torch.cat([part.rivals.flatten(0, 1), part.pooled.flatten(0, 1)]).double().numpy()
        gain = np.zeros(13)
        for kernel in kernels:
            spread = np.zeros(24)
            for tap, weight in enumerate(kernel):  # around the circle, as a Fourier transform sees it
                spread[tap * part.dilation % 24] += weight
            gain += np.abs(np.fft.rfft(spread)) ** 2
        if part.difference:
            gain *= np.abs(np.fft.rfft([1.0, -1.0], 24)) ** 2
        power = np.abs(np.fft.rfft(x.double().numpy())) ** 2 * gain
        expected = power / power.sum(axis=-1, keepdims=True)
        torch.testing.assert_close(found, torch.from_numpy(expected), atol=1e-5, rtol=1e-4)


def test_a_series_without_power_is_all_constant() -> None:
    shares = bank(1, 24).spectral_shares(torch.zeros(1, 1, 24), None)
    assert (shares[..., 0] == 1.0).all()


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 40, 500, 40_000])
def test_ones_among_bits_are_counted_placed_and_their_longest_run_found(n: int) -> None:
    bits = np.random.default_rng(n).random((5, n)) < np.array([[0.0], [0.2], [0.5], [0.95], [1.0]])
    packed = np.zeros((5, module._n_words(n) * module.WORD // 8), np.uint8)
    packed[:, : -(-n // 8)] = np.packbits(bits, axis=1, bitorder="little")
    count, place, longest = module._ones(packed)
    np.testing.assert_array_equal(count, bits.sum(axis=1))
    np.testing.assert_allclose(place, bits @ np.arange(n), rtol=1e-6)
    for row, found in zip(bits, longest, strict=True):
        assert found == max(len(run) for run in "".join("01"[each] for each in row.astype(int)).split("0"))


def test_winners_are_the_highest_and_the_lowest_of_their_group() -> None:
    response = series(2, 3, 8, 4, 10)
    response[..., 5] *= 1e-7  # flat but for rounding
    inside = mask_of([10, 9, 3, 1], 10).float()
    highest, lowest = module.rival_winners(response.clone(), inside)
    high, low = response.amax(dim=2), response.amin(dim=2)
    assert torch.equal(highest.number, response.argmax(dim=2))
    assert torch.equal(highest.worth, torch.where(high > module.ROUNDING, high, 0.0) * inside)
    assert torch.equal(lowest.number, response.argmin(dim=2))
    assert torch.equal(lowest.worth, (low < -module.ROUNDING) * inside)
