"""What becomes of features when one value changes is what the bank makes of the changed series."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.model.bank import N_STATISTICS, ConvolutionBank
from pdftime.model.bank_changes import Sample, feature_changes


def series(*shape: int, seed: int | str = 0) -> Tensor:
    return torch.randn(*shape, generator=generator_for("series", seed))


def fitted(x: Tensor, mask: Tensor | None = None, n_groups: int = 2, n_biases: int = 2) -> ConvolutionBank:
    made = ConvolutionBank(x.shape[1], x.shape[2], n_groups=n_groups, n_biases=n_biases, seed=0)
    made.fit_biases_(x, mask, generator_for("biases"))
    return made


def mask_of(lengths: list[int], n_timepoints: int) -> Tensor:
    return torch.arange(n_timepoints) < torch.tensor(lengths)[:, None]


def features_of(bank: ConvolutionBank, x: Tensor, mask: Tensor | None) -> Tensor:
    return torch.cat(bank(x, mask), dim=1)


def stretches(bank: ConvolutionBank) -> Tensor:
    """(n_features,) true for longest stretches, which are left out."""
    n_parts, n_biases, n_views, n_kernels = bank.biases.shape
    found = torch.zeros(n_parts, n_biases, N_STATISTICS, n_views * n_kernels, dtype=torch.bool)
    found[:, :, -1] = True
    return torch.cat([torch.zeros(bank.n_counts, dtype=torch.bool), found.flatten()])


def changed(bank: ConvolutionBank, x: Tensor, mask: Tensor | None, change: Tensor) -> Tensor:
    """(c, b, t, n_features) after the change of each value, put together."""
    found = features_of(bank, x, mask)[None, :, None, :].repeat(x.shape[1], 1, x.shape[2], 1)
    for channels, features, before, after, times in feature_changes(bank, x, mask, change, Sample()):
        assert times == 1.0
        torch.testing.assert_close(
            before, features_of(bank, x, mask).T[features], atol=1e-6, rtol=1e-5, msg="features as they are"
        )
        for row, channel in enumerate(channels.tolist()):
            found[channel, :, :, features[row]] = after[row].permute(1, 2, 0)
    return found


def check(x: Tensor, mask: Tensor | None, change: Tensor) -> None:
    bank = fitted(x, mask)
    found, kept = changed(bank, x, mask, change), ~stretches(bank)
    for case in range(len(x)):
        end = x.shape[2] if mask is None else int(mask[case].sum())
        for channel in range(x.shape[1]):
            for time in range(x.shape[2]):
                other = x[case : case + 1].clone()
                if time < end:
                    other[0, channel, time] += change[case, channel, time]
                own = features_of(bank, other, None if mask is None else mask[case : case + 1])[0]
                torch.testing.assert_close(found[channel, case, time][kept], own[kept], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 9, 17, 33])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_every_feature_is_that_of_the_changed_series(n: int, n_channels: int) -> None:
    x = series(2, n_channels, n)
    check(x, None, series(2, n_channels, n, seed="change"))


@pytest.mark.parametrize("n_channels", [1, 2])
def test_behind_the_end_of_a_series_nothing_changes(n_channels: int) -> None:
    mask = mask_of([20, 1, 2, 13], 20)
    x, change = (series(4, n_channels, 20, seed=seed) * mask[:, None, :] for seed in ("x", "change"))
    check(x, mask, change)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 36), lengths=st.lists(st.integers(1, 36), min_size=1, max_size=3))
def test_whatever_the_series_and_its_length(seed: int, n: int, lengths: list[int]) -> None:
    mask = mask_of([min(length, n) for length in lengths], n)
    x, change = (series(len(lengths), 1, n, seed=f"{seed}{name}") * mask[:, None, :] for name in "xc")
    check(x, mask, change)


def test_no_change_changes_nothing() -> None:
    x = series(3, 2, 30)
    bank = fitted(x)
    for _, _, before, after, _ in feature_changes(bank, x, None, torch.zeros_like(x), Sample()):
        torch.testing.assert_close(after, before[..., None].expand_as(after), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 16, 32])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_samples_together_are_all_features_and_each_counts_for_its_likes(
    n_channels: int, n_groups: int, step: int
) -> None:
    x = series(2, n_channels, 20)
    bank = fitted(x, n_groups=n_groups)
    change = series(2, n_channels, 20, seed="change")
    seen = torch.zeros(bank.n_counts + bank.n_pooled)
    counted = torch.zeros_like(seen)
    for first in range(step):
        for channels, features, _, _, times in feature_changes(bank, x, None, change, Sample(first, step)):
            once = features[:, 0].unique(return_inverse=True)[1]  # a view comes once for each of its channels
            for view in range(int(once.max()) + 1):
                row = features[(once == view).nonzero()[0, 0]]
                seen[row] += 1.0
                counted[row] += times / step
            assert len(channels) == len(features)
    kept = ~stretches(bank)
    assert (seen[kept] >= 1.0).all()
    assert float(counted[kept].mean()) == pytest.approx(1.0, abs=0.02)


def test_a_sample_of_few_is_at_least_one() -> None:
    assert Sample(3, 4).of(torch.arange(2)).tolist() == [1]
    assert Sample(1, 4).of(torch.arange(6)).tolist() == [1, 5]
    assert Sample().of(torch.arange(3)).tolist() == [0, 1, 2]
