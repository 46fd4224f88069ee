"""Archives: what is found where, what is read when, and how splits are drawn."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdftime.bench import archives
from pdftime.bench.archives import Dataset, Split, archive_of, find_datasets, resample_rows
from pdftime.data.files import write_series
from pdftime.data.synthetic import make_problem
from pdftime.errors import ConfigError, DataError


def test_datasets_are_found_at_any_depth_with_their_archive(archive: Path) -> None:
    found = find_datasets([str(archive)])
    assert [dataset.name for dataset in found] == ["Larger", "Pair", "Uneven", "Waves"]
    assert [dataset.archive for dataset in found] == ["ucr", "uea", "", "ucr"]
    uneven = found[2]
    assert archive_of(uneven, uneven.train().n_channels) == "ucr"
    assert archive_of(uneven, 3) == "uea"
    assert archive_of(found[1], 1) == "uea"


@pytest.mark.parametrize("suffix", [".ts", ".tsv", ".arff", ".txt"])
def test_every_kind_of_a_pair_of_files_is_read(tmp_path: Path, suffix: str) -> None:
    problem = make_problem("frequency", n_cases=6, n_timepoints=60, n_fresh=3)
    labels = {"medium": "1", "quick": "2", "slow": "3"}  # what every kind can hold
    for part, cases in (("TRAIN", problem.train), ("TEST", problem.fresh)):
        y = np.array([labels[label] for label in cases.y.tolist()])  # type: ignore[union-attr]
        write_series(archives.replace(cases, y=y), tmp_path / f"Waves_{part}{suffix}")
    (dataset,) = find_datasets([str(tmp_path)])
    assert dataset.name == "Waves"
    assert np.allclose(dataset.train().X, problem.train.X, atol=1e-4)
    assert dataset.test().y is None
    assert Counter(dataset.test_labels().tolist()) == {"1": 1, "2": 1, "3": 1}


def test_names_and_patterns_choose(archive: Path) -> None:
    names = [dataset.name for dataset in find_datasets([str(archive)], ["Wav*", "Pair"])]
    assert names == ["Pair", "Waves"]
    with pytest.raises(DataError, match="no dataset Nothing"):
        find_datasets([str(archive)], ["Waves", "Nothing"])


def test_what_holds_no_dataset_is_refused(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(DataError, match="is no folder"):
        find_datasets([str(tmp_path / "absent")])
    np.savez(tmp_path / "own.npz", X=np.ones((2, 1, 3)))
    (tmp_path / "alone_TRAIN.ts").touch()
    with pytest.raises(DataError, match="holds no dataset"):
        find_datasets([str(tmp_path)])
    shutil.copy(archive / "ucr" / "Waves.npz", tmp_path / "Waves.npz")
    with pytest.raises(DataError, match="there twice"):
        find_datasets([str(archive), str(tmp_path)])
    (tmp_path / "broken.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"broken\.npz is no \.npz file"):
        find_datasets([str(tmp_path)])


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.npz")
    split = Split(Dataset("absent", "ucr", absent, absent), 0)
    with pytest.raises(DataError, match="cannot be read"):
        split.train()


def test_the_cost_is_the_number_of_training_values(archive: Path) -> None:
    costs = {dataset.name: dataset.cost() for dataset in find_datasets([str(archive)])}
    assert (costs["Waves"], costs["Larger"], costs["Pair"]) == (18 * 60, 24 * 70, 12 * 4 * 60)
    assert costs["Uneven"] > 0


@pytest.mark.parametrize("name", ["Waves", "Uneven"])
def test_a_resample_keeps_the_class_counts_and_loses_no_case(archive: Path, name: str) -> None:
    (dataset,) = find_datasets([str(archive)], [name])
    original = Split(dataset, 0)
    before = _sorted_series(original)
    counts = Counter(original.train().y.tolist())  # type: ignore[union-attr]
    first = None
    for resample in (1, 2):
        split = Split(dataset, resample)
        train, test = split.train(), split.test()
        assert Counter(train.y.tolist()) == counts  # type: ignore[union-attr]
        assert len(split.test_labels()) == len(test)
        assert test.y is None
        assert train.n_timepoints == train.lengths.max()
        assert _sorted_series(split) == before
        again = Split(dataset, resample).train()
        assert np.array_equal(again.X, train.X, equal_nan=True)
        assert first is None or not np.array_equal(first, train.X, equal_nan=True)
        first = train.X


def _sorted_series(split: Split) -> list[tuple[str, bytes]]:
    """Every case of both parts, with its label, in an order of its own."""
    train, test, labels = split.train(), split.test(), split.test_labels()
    cases = [(str(train.y[i]), train.series(i).tobytes()) for i in range(len(train))]  # type: ignore[index]
    return sorted(cases + [(str(labels[i]), test.series(i).tobytes()) for i in range(len(test))])


@settings(max_examples=50, deadline=None)
@given(
    y_train=st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
    y_test=st.lists(st.sampled_from("abcd"), min_size=1, max_size=30),
    resample=st.integers(1, 1000),
)
def test_rows_of_a_resample_divide_the_pool(y_train: list[str], y_test: list[str], resample: int) -> None:
    rows, rest = resample_rows(np.array(y_train), np.array(y_test), resample)
    labels = np.array(y_train + y_test)
    assert sorted([*rows, *rest]) == list(range(len(labels)))
    assert Counter(labels[rows].tolist()) == Counter(y_train)


def test_a_dataset_that_comes_with_aeon_needs_no_connection() -> None:
    pytest.importorskip("aeon", reason="aeon is an extra")
    (dataset,) = find_datasets(["aeon:GunPoint"])
    assert dataset.name == "GunPoint"
    assert len(dataset.train()) == 50


def test_a_download_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    datasets = pytest.importorskip("aeon.datasets", reason="aeon is an extra")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def offline(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(datasets, "load_classification", offline)
    with pytest.raises(DataError, match=r"could not be downloaded \(OSError: no route to host\)"):
        find_datasets(["aeon:Nowhere"])


def test_without_aeon_its_datasets_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "aeon.datasets", None)
    monkeypatch.setitem(sys.modules, "aeon", None)
    with pytest.raises(ConfigError, match=r"install pdftime\[bench\]"):
        find_datasets(["aeon:GunPoint"])
