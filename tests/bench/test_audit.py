"""The audit: planted cheats are caught, honest methods pass, duplicates are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench_settings import TINY

from pdftime.bench.archives import find_datasets
from pdftime.bench.audit import audit_method
from pdftime.bench.duplicates import find_duplicates
from pdftime.bench.methods import method_of


@pytest.mark.parametrize(
    ("cheat", "words"),
    [
        ("Reader", r"opened Waves\.npz"),
        ("Thief", r"opened Waves\.npz"),
        ("Smuggler", "100% of the changed labels right"),
        ("SmuggledSeries", "it learns from the test part"),
        ("Transductive", "the others take part"),
        ("FirstAsked", "predicting changes the method"),
    ],
)
def test_a_cheat_is_caught(archive: Path, contestants: Path, cheat: str, words: str) -> None:
    (dataset,) = find_datasets([str(archive)], ["Waves"])
    verdict = audit_method(method_of(f"contestants:{cheat}"), dataset)
    assert verdict.status == "caught"
    assert words.replace("\\", "") in " ".join(verdict.findings)


@pytest.mark.parametrize(
    "method", ["contestants:Honest", "contestants:OnlyLabels", pytest.param(TINY, marks=pytest.mark.slow)]
)
def test_an_honest_method_passes(archive: Path, contestants: Path, method: str) -> None:
    (dataset,) = find_datasets([str(archive)], ["Uneven"])
    verdict = audit_method(method_of(method), dataset)
    assert verdict.findings == ()
    assert verdict.status == "honest"


def test_what_does_not_repeat_or_does_not_run_is_not_accused(archive: Path, contestants: Path) -> None:
    (dataset,) = find_datasets([str(archive)], ["Waves"])
    unsure = audit_method(method_of("contestants:Unseeded"), dataset)
    assert unsure.status == "unsure"
    failed = audit_method(method_of("contestants:Broken"), dataset)
    assert (failed.status, failed.findings) == ("failed", ("ZeroDivisionError: nothing works here",))
    slow = audit_method(method_of('contestants:Honest{"seconds": 60}'), dataset, limit=1.0)
    assert (slow.status, slow.findings) == ("failed", ("time limit: ended after 1 s",))


def save(path: Path, train: np.ndarray, test: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        X_train=train,
        y_train=np.arange(len(train)) % 2,
        X_test=test,
        y_test=np.arange(len(test)) % 2,
    )


def test_duplicates_are_counted_exact_and_near(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(30, 2, 50)), rng.normal(size=(20, 2, 50))
    test[3], test[7] = train[11], train[0]
    test[5] = train[4] + 1e-3 * rng.normal(size=(2, 50))
    test[6] = train[4] + 0.3 * rng.normal(size=(2, 50))
    save(tmp_path / "Doubles.npz", train, test)
    (dataset,) = find_datasets([str(tmp_path)])
    found = find_duplicates(dataset)
    assert (found.n_exact, found.n_near, found.n_train, found.n_test) == (2, 1, 30, 20)
    assert [pair[:2] for pair in found.pairs] == [(3, 11), (7, 0), (5, 4)]
    assert found.nearest == 0.0
    assert find_duplicates(dataset, near=1e-4).n_near == 0
    assert find_duplicates(dataset, near=0.5).n_near == 2


def test_the_normalised_distance_is_what_its_sentence_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    train, test = rng.normal(size=(8, 1, 30)) * 5 + 100, rng.normal(size=(6, 1, 30)) * 5 + 100
    save(tmp_path / "Plain.npz", train, test)
    unit = np.sqrt(((train - train.mean(axis=0)) ** 2).mean())
    expected = min(np.sqrt(((a - b) ** 2).mean()) / min(unit, b.std()) for a in train[:, 0] for b in test[:, 0])
    assert find_duplicates(find_datasets([str(tmp_path)])[0]).nearest == pytest.approx(expected, rel=1e-4)


def test_a_fresh_split_has_no_duplicates_whatever_lengths_and_gaps(archive: Path) -> None:
    for dataset in find_datasets([str(archive)]):
        found = find_duplicates(dataset)
        assert (found.n_exact, found.n_near, found.pairs) == (0, 0, ())
        assert found.nearest > 0.1


def test_quiet_cases_are_not_alike_for_being_quiet(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    loud = np.where(np.arange(20) % 2, 1.0, 1e-4)[:, None, None]
    save(tmp_path / "Quiet.npz", rng.normal(size=(20, 1, 40)) * loud, rng.normal(size=(20, 1, 40)) * loud)
    found = find_duplicates(find_datasets([str(tmp_path)])[0])
    assert (found.n_exact, found.n_near) == (0, 0)


def test_series_of_unequal_length_that_agree_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    train, test = rng.normal(size=(10, 1, 40)), rng.normal(size=(5, 1, 40))
    train[2, :, 25:] = np.nan
    train[3, :, 7] = np.nan
    test[1], test[2] = train[2], train[3]
    save(tmp_path / "Ends.npz", train, test)
    assert find_duplicates(find_datasets([str(tmp_path)])[0]).n_exact == 2
