"""Values at their places are means of equal intervals, of every length, and their spectrum that of the series."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.model.places import interval_shares, n_places, place_spectrum, place_values


def series(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator_for("places", *shape))


def mean_between(values: Tensor, start: float, stop: float) -> float:
    """The mean of a staircase of values, one step each, by adding up thin slices."""
    n = 2000
    at = start + (torch.arange(n, dtype=torch.float64) + 0.5) * (stop - start) / n
    return float(values.double()[at.long()].mean())


@pytest.mark.parametrize(
    ("n_channels", "n_timepoints", "expected"),
    [(1, 1, 1), (1, 40, 40), (1, 500, 64), (10, 400, 64), (100, 300, 40), (5000, 300, 1)],
)
def test_a_series_has_at_most_64_places_and_no_more_than_time_points(
    n_channels: int, n_timepoints: int, expected: int
) -> None:
    assert n_places(n_channels, n_timepoints) == expected


@pytest.mark.parametrize(("t", "n"), [(1, 1), (8, 8), (12, 4), (10, 4), (7, 3), (100, 64)])
def test_a_value_is_the_mean_of_its_interval(t: int, n: int) -> None:
    x = series(2, 3, t)
    found = place_values(x, None, n).view(2, 3, n)
    for case in range(2):
        for channel in range(3):
            for place in range(n):
                expected = mean_between(x[case, channel], t * place / n, t * (place + 1) / n)
                assert float(found[case, channel, place]) == pytest.approx(expected, abs=0.01)
    if t == n:
        torch.testing.assert_close(found, x)


@settings(max_examples=30, deadline=None)
@given(c=st.integers(1, 4), t=st.integers(1, 40), n=st.integers(1, 70), data=st.data())
def test_a_masked_series_has_the_values_that_it_has_alone(c: int, t: int, n: int, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, t), min_size=1, max_size=4))
    mask = torch.arange(t) < torch.tensor(lengths)[:, None]
    x = series(len(lengths), c, t) * mask[:, None, :]
    shares = interval_shares(x, mask, n)
    torch.testing.assert_close(shares.sum(dim=2), torch.ones(len(lengths), n), atol=1e-4, rtol=0.0)
    assert (shares * ~mask[:, None, :]).abs().max() <= 1e-4
    for case, length in enumerate(lengths):
        alone = place_values(x[case : case + 1, :, :length], None, n)
        torch.testing.assert_close(place_values(x, mask, n)[case], alone[0], atol=1e-4, rtol=1e-4)


def test_means_let_slow_waves_through_and_fast_ones_hardly() -> None:
    time = torch.arange(64) / 64.0
    x = torch.stack([torch.sin(2 * torch.pi * 2 * time) + torch.sin(2 * torch.pi * 30 * time)])[:, None]
    shares = place_spectrum(x, None, 16)
    assert float(shares.sum()) == pytest.approx(1.0)
    assert shares[0, 0, 2] > 0.95
    assert place_spectrum(torch.zeros(1, 2, 9), None, 3)[..., 0].tolist() == [[1.0, 1.0]]
