"""Statistics agree with examples worked out by hand and with other implementations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pdftime.bench.statistics import Scores, cliques, holm, pairs, ranks, signed_rank_p, standings, wins_ties_losses
from pdftime.errors import DataError

BY_HAND = Scores.of(
    {
        "ours": {"A": 0.9, "B": 0.8, "C": 0.7, "D": 0.5},
        "one": {"A": 0.9, "B": 0.7, "C": 0.8, "D": 0.5},
        "two": {"A": 0.6, "B": 0.9, "C": 0.6},
    }
)


def test_only_common_datasets_enter() -> None:
    assert BY_HAND.datasets == ("A", "B", "C", "D")
    assert BY_HAND.common().datasets == ("A", "B", "C")


def test_standings_by_hand() -> None:
    ours, one, two = standings(BY_HAND)
    # A: ours and one share ranks 1 and 2, two has 3. B: two 1, ours 2, one 3. C: one 1, ours 2, two 3.
    assert [each.mean for each in (ours, one, two)] == pytest.approx([0.8, 0.8, 0.7])
    assert [each.mean_rank for each in (ours, one, two)] == pytest.approx([5.5 / 3, 5.5 / 3, 7 / 3])
    assert [each.n_best for each in (ours, one, two)] == [1, 2, 1]  # A counts for both
    assert (one.wins, one.ties, one.losses) == (1, 1, 1)
    assert (two.wins, two.ties, two.losses) == (1, 0, 2)


def test_mean_ranks_always_add_up() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (30, 5)) / 4
    assert ranks(values).sum(axis=1) == pytest.approx(np.full(30, 15.0))
    assert ranks(values) == pytest.approx(stats.rankdata(-values, axis=1))


def test_no_common_dataset_is_an_error() -> None:
    with pytest.raises(DataError, match="one, two"):
        Scores.of({"one": {"A": 0.5}, "two": {"B": 0.5}}).common()


def test_pairs_by_hand() -> None:
    first, second, third = pairs(BY_HAND)
    assert [(each.first, each.second) for each in (first, second, third)] == [
        ("ours", "one"),
        ("ours", "two"),
        ("one", "two"),
    ]
    assert first.mean_difference == pytest.approx(0.0)
    assert (second.wins, second.ties, second.losses) == (2, 0, 1)
    # ours - two: 0.3, -0.1, 0.1 have the ranks 3, 1.5, 1.5, positive 4.5 of 6; as far from 3 or further: 0, 1.5,
    # 1.5, 4.5, 4.5 and 6 of the eight sums 0, 1.5, 1.5, 3, 3, 4.5, 4.5, 6.
    assert second.p == pytest.approx(6 / 8)
    assert second.p_holm == 1.0


def test_signed_rank_of_five_wins_is_one_in_sixteen() -> None:
    assert signed_rank_p(np.array([0.5, 0.6, 0.7, 0.8, 0.95]), np.array([0.4, 0.4, 0.4, 0.4, 0.4])) == 2 / 2**5


def test_signed_rank_of_equal_scores_is_one() -> None:
    same = np.array([0.5, 0.6])
    assert signed_rank_p(same, same) == 1.0


@given(st.integers(3, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_signed_rank_equals_scipy_where_there_are_no_ties(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(n) + 1.0
    first = np.where(rng.random(n) < 0.5, sizes, -sizes) / 1000
    zero = np.zeros(n)
    assert signed_rank_p(first, zero) == pytest.approx(stats.wilcoxon(first, method="exact").pvalue)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
@settings(max_examples=50, deadline=None)
def test_signed_rank_equals_counting_all_signs(differences: list[int]) -> None:
    numbers = np.array(differences, float)
    ranked = stats.rankdata(np.abs(numbers))[numbers != 0]
    middle, found = ranked.sum() / 2, stats.rankdata(np.abs(numbers))[numbers > 0].sum()
    sums = [np.dot(ranked, signs) for signs in itertools.product((0, 1), repeat=len(ranked))]
    expected = np.mean([abs(each - middle) >= abs(found - middle) for each in sums])
    assert signed_rank_p(numbers / 100, np.zeros(len(numbers))) == pytest.approx(expected)


def test_signed_rank_over_many_datasets_is_near_the_normal_approximation() -> None:
    rng = np.random.default_rng(1)
    first = rng.random(120).round(2)
    second = (first + rng.normal(0.01, 0.04, 120)).round(3)
    approximate = stats.wilcoxon((first - second).round(4), zero_method="pratt").pvalue
    assert signed_rank_p(first, second) == pytest.approx(approximate, abs=0.005)


def test_accuracies_from_different_sources_tie_to_four_decimals() -> None:
    assert wins_ties_losses(np.array([2 / 3, 0.98667]), np.array([0.666667, 0.986667])) == (0, 2, 0)
    assert signed_rank_p(np.array([2 / 3]), np.array([0.666667])) == 1.0


def test_holm_by_hand() -> None:
    # In order 0.01 * 4, 0.02 * 3, 0.03 * 2 (raised to the one before), 0.9.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_cliques_join_neighbours_that_do_not_differ() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 0.9, 40)
    noise = {name: rng.normal(0, 0.002, 40) for name in "abcd"}
    scores = Scores(
        tuple(f"set{number}" for number in range(40)),
        ("d", "b", "c", "a"),
        np.stack([base - 0.2 + noise["d"], base + noise["b"], base - 0.1 + noise["c"], base + noise["a"]], axis=1),
    )
    assert [set(group) for group in cliques(scores)] == [{"a", "b"}]


def test_cliques_may_overlap_and_are_as_long_as_can_be() -> None:
    # Ten datasets: a and b differ by chance, b and c too, but a beats c every time.
    a = np.linspace(0.80, 0.89, 10)
    b = a + np.tile([-0.011, 0.012], 5)
    c = a - 0.01 - np.linspace(0, 0.009, 10)
    b[1::2] = c[1::2] - 0.001
    b[0::2] = a[0::2] + 0.002
    scores = Scores(tuple("ABCDEFGHIJ"), ("a", "b", "c"), np.stack([a, b, c], axis=1))
    differ = {frozenset((pair.first, pair.second)) for pair in pairs(scores) if pair.p_holm <= 0.05}
    assert differ == {frozenset("ac")}
    assert [set(group) for group in cliques(scores)] == [{"a", "b"}, {"b", "c"}]


def test_methods_that_all_agree_are_one_clique() -> None:
    values = np.tile([[0.5], [0.6], [0.7]], (1, 4))
    scores = Scores(("A", "B", "C"), ("a", "b", "c", "d"), values)
    assert [set(group) for group in cliques(scores)] == [set("abcd")]
    assert {each.mean_rank for each in standings(scores)} == {2.5}
