"""Datasets of benchmark archives with their splits, found in folders or among those that aeon knows.

A dataset is NAME.npz (X_train, y_train, X_test, y_test), or two files NAME_TRAIN and NAME_TEST of one of the
kinds .ts, .tsv, .arff, .txt. Only what is asked for is read, and when it is asked for.
"""

from __future__ import annotations

import fnmatch
import math
import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.batches import seed_for
from pdftime.data.files import read_series
from pdftime.data.series import SeriesSet
from pdftime.errors import ConfigError, DataError, SeriesFileError

ARCHIVES = ("ucr", "uea")
KINDS = (".ts", ".tsv", ".arff", ".txt")
"""Kinds of a pair of files, the one to prefer first."""
AEON = "aeon:"


@dataclass(frozen=True)
class Dataset:
    """A dataset on disk; nothing is read before a part is asked for."""

    name: str
    archive: str
    """'ucr' or 'uea'; empty where only the number of channels can say."""
    train_file: str
    test_file: str
    """The same file for .npz."""

    def train(self) -> SeriesSet:
        """The training part, labels along."""
        cases = self._read("train")
        if cases.y is None:
            raise SeriesFileError(f"{self.train_file} has no labels for its training part.")
        return cases

    def test(self) -> SeriesSet:
        """The series of the test part, without labels."""
        return replace(self._read("test"), y=None)

    def test_labels(self) -> NDArray[Any]:
        """The labels of the test part; for whoever scores predictions that are already made."""
        labels = self._read("test").y
        if labels is None:
            raise SeriesFileError(f"{self.test_file} has no labels for its test part.")
        return labels

    def cost(self) -> int:
        """About how many values the training part has, from the file's directory or size alone."""
        path = Path(self.train_file)
        try:
            if path.suffix == ".npz":
                form: Any = np.lib.format  # numpy has no types for it
                with zipfile.ZipFile(path) as archive, archive.open("X_train.npy") as file:
                    form.read_magic(file)
                    return math.prod(form.read_array_header_1_0(file)[0])
            return path.stat().st_size // 8
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise SeriesFileError(f"{path} is no benchmark file, or cannot be read: {error}.") from error

    def _read(self, part: str) -> SeriesSet:
        path = Path(self.train_file if part == "train" else self.test_file)
        if path.suffix == ".npz":
            return read_series(path, part="train" if part == "train" else "test")
        return read_series(path)


@dataclass(frozen=True)
class Split:
    """One division of a dataset into a training and a test part: 0 is the original, others are drawn.

    A drawn one pools both parts and takes for every class as many training cases as the original has, at
    random from a generator seeded by its number. They are not, case by case, the resamples of other packages.
    """

    dataset: Dataset
    resample: int = 0

    def train(self) -> SeriesSet:
        """The training part, labels along."""
        if self.resample == 0:
            return self.dataset.train()
        pool, rows, _ = self._drawn()
        return pool.take(rows).cut()

    def test(self) -> SeriesSet:
        """The series of the test part, without labels."""
        if self.resample == 0:
            return self.dataset.test()
        pool, _, rows = self._drawn()
        return replace(pool.take(rows).cut(), y=None)

    def test_labels(self) -> NDArray[Any]:
        """The labels of the test part; for whoever scores predictions that are already made."""
        if self.resample == 0:
            return self.dataset.test_labels()
        pool, _, rows = self._drawn()
        labels: NDArray[Any] = pool.take(rows).y  # type: ignore[assignment]
        return labels

    def _drawn(self) -> tuple[SeriesSet, NDArray[np.int64], NDArray[np.int64]]:
        """Both parts in one set, and the rows of the drawn training and test part."""
        train = self.dataset.train()
        test = replace(self.dataset.test(), y=self.dataset.test_labels())
        pool = _pooled(train, test)
        rows, rest = resample_rows(train.y, test.y, self.resample)  # type: ignore[arg-type]
        return pool, rows, rest


def resample_rows(
    y_train: NDArray[Any], y_test: NDArray[Any], resample: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted rows of a drawn training part and of the rest, in the pool of training and test cases."""
    rng = np.random.default_rng(seed_for(resample, "resample"))
    labels = np.array([*y_train.tolist(), *y_test.tolist()], object)
    wanted: dict[Any, int] = {}
    for label in y_train.tolist():
        wanted[label] = wanted.get(label, 0) + 1
    chosen = [
        rng.choice(np.flatnonzero(labels == label), n, replace=False)
        for label, n in sorted(wanted.items(), key=lambda item: str(item[0]))
    ]
    rows = np.sort(np.concatenate(chosen))
    return rows, np.setdiff1d(np.arange(len(labels)), rows, assume_unique=True)


def find_datasets(sources: Sequence[str], names: Sequence[str] = ()) -> list[Dataset]:
    """The datasets of folders and of `aeon:NAME`s, by name; `names` may hold patterns such as `Freezer*`."""
    found: dict[str, Dataset] = {}
    for source in sources:
        for dataset in [_from_aeon(source.removeprefix(AEON))] if source.startswith(AEON) else _in_folder(source):
            if dataset.name in found and found[dataset.name] != dataset:
                raise DataError(
                    f"{dataset.name} is there twice: {found[dataset.name].train_file} and {dataset.train_file}. "
                    "Give folders that hold it once."
                )
            found[dataset.name] = dataset
    chosen = [name for name in sorted(found, key=str.casefold) if not names or _matches(name, names)]
    strange = [name for name in names if not any(fnmatch.fnmatchcase(each, name) for each in found)]
    if strange:
        raise DataError(
            f"There is no dataset {', '.join(strange)} in {', '.join(sources)}; "
            f"found {len(found)}: {', '.join(sorted(found)[:10])}{', ...' if len(found) > 10 else ''}."
        )
    return [found[name] for name in chosen]


def archive_of(dataset: Dataset, n_channels: int) -> str:
    """The archive that a dataset counts with: its folder's name, or by its channels."""
    return dataset.archive or ("ucr" if n_channels == 1 else "uea")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _in_folder(source: str) -> list[Dataset]:
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(
            f"{source} is no folder. Give a folder with NAME.npz or NAME_TRAIN.ts and NAME_TEST.ts, "
            f"or {AEON}NAME for a dataset that aeon knows."
        )
    found: dict[str, Dataset] = {}
    paths = sorted(Path(root) / file for root, _, files in os.walk(folder, followlinks=True) for file in files)
    pairs = [path for kind in KINDS for path in paths if path.suffix.lower() == kind]
    for path in [path for path in paths if path.suffix.lower() == ".npz"] + pairs:
        dataset = _dataset_at(path)
        if dataset is not None:
            known = found.setdefault(dataset.name, dataset)
            if Path(known.train_file).parent != path.parent:
                raise DataError(
                    f"{dataset.name} is there twice: {known.train_file} and {path}. Give a folder that holds it once."
                )
    if not found:
        raise DataError(
            f"{source} holds no dataset. Expected NAME.npz with X_train, y_train, X_test and y_test, "
            "or NAME_TRAIN and NAME_TEST with one of the suffixes " + ", ".join(KINDS) + "."
        )
    return list(found.values())


def _dataset_at(path: Path) -> Dataset | None:
    """The dataset that a file begins: an .npz with two parts, or a training file whose test file is beside it."""
    archive = next((part.name.lower() for part in path.parents if part.name.lower() in ARCHIVES), "")
    if path.suffix.lower() == ".npz":
        try:
            with zipfile.ZipFile(path) as packed:
                parts = set(packed.namelist())
        except (OSError, zipfile.BadZipFile) as error:
            raise SeriesFileError(f"{path} is no .npz file (a zip of arrays), or it is cut off.") from error
        wanted = {"X_train.npy", "y_train.npy", "X_test.npy", "y_test.npy"}
        return Dataset(path.stem, archive, str(path), str(path)) if wanted <= parts else None
    if not path.stem.upper().endswith("_TRAIN"):
        return None
    name = path.stem[: -len("_TRAIN")]
    ending = path.stem[len(name) :]
    other = "_TEST" if ending.isupper() else "_Test" if ending.istitle() else "_test"
    test = path.with_name(name + other + path.suffix)
    return Dataset(name, archive, str(path), str(test)) if test.is_file() else None


def _from_aeon(name: str) -> Dataset:
    """A dataset that aeon ships, or one that its downloader fetches once into the user's cache."""
    try:
        import aeon.datasets
    except ImportError as error:
        raise ConfigError(f"{AEON}{name} needs aeon; install pdftime[bench].") from error
    shipped = Path(aeon.datasets.__file__).parent / "data" / name
    for folder in (shipped, _cache() / name):
        dataset = _dataset_at(folder / f"{name}_TRAIN.ts")
        if dataset is not None:
            return dataset
    try:
        _cache().mkdir(parents=True, exist_ok=True)
        aeon.datasets.load_classification(name, extract_path=str(_cache()))
    except Exception as error:
        raise DataError(
            f"{name} is not among the datasets that come with aeon and could not be downloaded "
            f"({type(error).__name__}: {error}). Check the name and the connection, or give a folder that holds it."
        ) from error
    dataset = _dataset_at(_cache() / name / f"{name}_TRAIN.ts")
    if dataset is None:
        raise DataError(f"aeon downloaded {name} to {_cache()}, but there is no {name}_TRAIN.ts and {name}_TEST.ts.")
    return dataset


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pdftime" / "archives"


def _pooled(train: SeriesSet, test: SeriesSet) -> SeriesSet:
    """Training cases, then test cases."""
    if train.n_channels != test.n_channels:
        raise DataError(f"{train.name} has {train.n_channels} channels to train and {test.n_channels} to test on.")
    longest = max(train.n_timepoints, test.n_timepoints)
    parts = []
    for part in (train, test):
        X = part.X if part.X.dtype.kind == "f" else part.X.astype(np.float64)
        parts.append(np.pad(X, ((0, 0), (0, 0), (0, longest - part.n_timepoints)), constant_values=np.nan))
    labels = [*train.y.tolist(), *test.y.tolist()]  # type: ignore[union-attr]
    y = np.array(labels) if len({type(label) for label in labels}) == 1 else np.array(labels, object)
    lengths = np.concatenate([train.lengths, test.lengths])
    return replace(train, X=np.concatenate(parts), lengths=lengths, y=y, times=None)
