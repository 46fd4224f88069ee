"""Who comes when is decided by the seed and the epoch, and by nothing else."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdftime.data.batches import batch_indices, generator_for, seed_for, stratified_folds, stratified_split

N_CASES = st.integers(1, 200)
BATCH_SIZES = st.integers(1, 70)
SEEDS = st.integers(0, 2**32 - 1)
KEYS = st.lists(st.integers() | st.text(), max_size=4).map(tuple)


# Seeds


def test_a_seed_is_the_same_on_every_machine() -> None:
    assert seed_for(0, "batches", 3) == 2189586126455593432


@given(one=KEYS, other=KEYS)
def test_only_equal_keys_share_a_seed(one: tuple[int | str, ...], other: tuple[int | str, ...]) -> None:
    assert 0 <= seed_for(*one) < 2**63
    assert (seed_for(*one) == seed_for(*other)) == (one == other)


def test_zeros_and_neighbouring_keys_make_seeds_of_their_own() -> None:
    keys = [
        (),
        (0,),
        (0, 0),
        (1,),
        (1, 0),
        (0, 1),
        (2**32,),
        (-1,),
        ("",),
        ("0",),
        ("1",),
        (1, "0"),
        ("1", 0),
    ]
    assert len({seed_for(*key) for key in keys}) == len(keys)


def test_numpy_integers_are_integers() -> None:
    assert seed_for(np.int64(5)) == seed_for(5)  # type: ignore[arg-type]


def test_a_fraction_is_no_key() -> None:
    with pytest.raises(TypeError):
        seed_for(0.5)  # type: ignore[arg-type]


def test_a_generator_draws_the_stream_of_its_keys() -> None:
    before = torch.get_rng_state()
    first, again = (torch.rand(5, generator=generator_for(0, "dropout", 1)) for _ in range(2))
    other = torch.rand(5, generator=generator_for(0, "dropout", 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_do_not_import_torch() -> None:
    code = "import sys, pdftime.data.batches; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Batches


@given(n_cases=N_CASES, batch_size=BATCH_SIZES, seed=SEEDS, epoch=st.integers(0, 1000))
def test_each_case_comes_exactly_once_per_epoch(n_cases: int, batch_size: int, seed: int, epoch: int) -> None:
    batches = batch_indices(n_cases, batch_size, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(n_cases))


@given(n_cases=N_CASES, batch_size=BATCH_SIZES)
def test_batches_are_even_and_never_of_one_case(n_cases: int, batch_size: int) -> None:
    sizes = [len(batch) for batch in batch_indices(n_cases, batch_size, seed=0, epoch=0)]
    odd_pairs = batch_size == 2 and n_cases % 2 == 1 and n_cases > 1
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= batch_size + odd_pairs
    assert len(sizes) == -(-n_cases // batch_size) - odd_pairs
    if n_cases > 1 and batch_size > 1:
        assert min(sizes) > 1


@given(n_cases=N_CASES, batch_size=BATCH_SIZES, seed=SEEDS, world_size=st.integers(1, 5))
def test_the_ranks_together_hold_the_batches_of_one_process(
    n_cases: int, batch_size: int, seed: int, world_size: int
) -> None:
    alone = batch_indices(n_cases, batch_size, seed=seed, epoch=2)
    shares = [
        batch_indices(n_cases, batch_size, seed=seed, epoch=2, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    assert {len(share) for share in shares} == {len(alone)}
    for whole, *parts in zip(alone, *shares, strict=True):
        assert sorted(np.concatenate(parts).tolist()) == sorted(whole.tolist())
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def order(seed: int, epoch: int) -> list[int]:
    return np.concatenate(batch_indices(100, 10, seed=seed, epoch=epoch)).tolist()  # type: ignore[no-any-return]


@given(seed=SEEDS, epoch=st.integers(0, 1000))
def test_the_same_seed_and_epoch_give_the_same_order(seed: int, epoch: int) -> None:
    assert order(seed, epoch) == order(seed, epoch)


def test_every_seed_and_epoch_has_its_own_order_and_zero_is_a_seed() -> None:
    orders = {tuple(order(seed, epoch)) for seed, epoch in itertools.product(range(20), range(20))}
    assert len(orders) == 400


def test_the_global_generator_is_neither_used_nor_moved() -> None:
    state = np.random.get_state()
    codes = np.repeat([0, 1], 20)
    first = order(0, 0), stratified_split(codes, 0.3, seed=0)[1].tolist()
    assert repr(np.random.get_state()) == repr(state)
    np.random.seed(1)
    assert (order(0, 0), stratified_split(codes, 0.3, seed=0)[1].tolist()) == first
    np.random.set_state(state)


# The validation part

CODES = st.lists(st.integers(1, 40), min_size=1, max_size=8).flatmap(
    lambda counts: st.permutations(np.repeat(np.arange(len(counts)), counts).tolist()).map(np.array)
)
FRACTIONS = st.floats(0.01, 0.95)


@given(codes=CODES, fraction=FRACTIONS, seed=SEEDS)
def test_the_parts_are_sorted_and_together_the_whole(codes: np.ndarray, fraction: float, seed: int) -> None:
    train, validation = stratified_split(codes, fraction, seed=seed)
    assert sorted([*train.tolist(), *validation.tolist()]) == list(range(len(codes)))
    assert train.tolist() == sorted(train.tolist())
    assert validation.tolist() == sorted(validation.tolist())


@given(codes=CODES, fraction=FRACTIONS, seed=SEEDS)
def test_every_class_keeps_two_and_gives_one_or_nothing_is_given(
    codes: np.ndarray, fraction: float, seed: int
) -> None:
    train, validation = stratified_split(codes, fraction, seed=seed)
    counts = np.bincount(codes)
    if counts.min() < 3:
        assert len(validation) == 0
        return
    kept = np.bincount(codes[train], minlength=len(counts))
    given_up = np.bincount(codes[validation], minlength=len(counts))
    assert kept.min() >= 2
    assert given_up.min() >= 1
    quotas = np.clip(fraction * counts, 1, counts - 2)
    assert np.all(np.abs(given_up - quotas) < 1)


@given(counts=st.lists(st.integers(20, 60), min_size=1, max_size=8), fraction=st.floats(0.06, 0.85), seed=SEEDS)
def test_the_total_is_the_fraction_rounded(counts: list[int], fraction: float, seed: int) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    _, validation = stratified_split(codes, fraction, seed=seed)
    assert len(validation) == round(fraction * len(codes))


def test_the_largest_remainder_gives_the_extra_case() -> None:
    codes = np.repeat([0, 1, 2], [11, 14, 18])  # a fifth: 2.2, 2.8, 3.6 and 9 (8.6) in all
    _, validation = stratified_split(codes, 0.2, seed=0)
    assert np.bincount(codes[validation]).tolist() == [2, 3, 4]


def test_a_fraction_of_zero_gives_no_validation_part() -> None:
    train, validation = stratified_split(np.repeat([0, 1], 5), 0.0, seed=0)
    assert train.tolist() == list(range(10))
    assert validation.dtype == train.dtype
    assert len(validation) == 0


def test_class_codes_need_not_be_consecutive() -> None:
    train, validation = stratified_split(np.array([7, 7, 7, -2, -2, -2]), 0.3, seed=0)
    assert len(train) == 4
    assert len(validation) == 2


def test_every_seed_splits_in_its_own_way_and_the_same_way_again() -> None:
    codes = np.repeat([0, 1, 2], 30)
    splits = [tuple(stratified_split(codes, 0.2, seed=seed)[1].tolist()) for seed in [*range(50), *range(50)]]
    assert splits[:50] == splits[50:]
    assert len(set(splits)) == 50


def test_every_case_is_in_some_validation_part() -> None:
    codes = np.repeat([0, 1], 10)
    seen = [stratified_split(codes, 0.2, seed=seed)[1] for seed in range(100)]
    assert set(np.concatenate(seen).tolist()) == set(range(20))


# Folds


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=6), n_folds=st.integers(2, 7), seed=SEEDS)
def test_folds_are_even_and_leave_every_class_to_learn_from(counts: list[int], n_folds: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    fold = stratified_folds(codes, n_folds, seed=seed)
    assert np.array_equal(fold, stratified_folds(codes, n_folds, seed=seed))
    sizes = np.bincount(fold[fold >= 0], minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    for code, count in enumerate(counts):
        of_class = fold[codes == code]
        assert (of_class >= 0).all() == (count > 1)
        own = np.bincount(of_class[of_class >= 0], minlength=n_folds)
        assert own.max() - own.min() <= 1
        assert all((of_class != each).any() for each in range(n_folds))


def test_every_seed_makes_its_own_folds() -> None:
    codes = np.repeat([0, 1, 2], 30)
    assert len({tuple(stratified_folds(codes, 3, seed=seed)) for seed in range(50)}) == 50
