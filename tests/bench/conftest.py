"""Small generated archives, and the contestants' folder as the working directory where a test asks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pdftime.data.files import write_series
from pdftime.data.synthetic import make_problem


def save_npz(path: Path, problem: str = "frequency", **options: object) -> None:
    """A generated problem as a benchmark file."""
    made = make_problem(problem, **options)
    train, fresh = made.train, made.fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, X_train=train.X, y_train=train.y, X_test=fresh.X, y_test=fresh.y)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of four datasets: two univariate, one with four channels, one of unequal lengths with gaps."""
    folder = tmp_path_factory.mktemp("archive")
    save_npz(folder / "ucr" / "Waves.npz", n_cases=18, n_timepoints=60, n_fresh=12)
    save_npz(folder / "ucr" / "Larger.npz", n_cases=24, n_timepoints=70, n_fresh=12, seed=1)
    save_npz(folder / "uea" / "Pair.npz", "channels", n_cases=12, n_timepoints=60, n_fresh=12)
    uneven = make_problem("lengths", n_cases=12, n_timepoints=60, n_fresh=9, missing=0.1)
    (folder / "other").mkdir()
    write_series(uneven.train, folder / "other" / "Uneven_TRAIN.ts")
    write_series(uneven.fresh, folder / "other" / "Uneven_TEST.ts")
    return folder


@pytest.fixture
def contestants(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder from which `contestants:Class` is found."""
    folder = Path(__file__).parent
    monkeypatch.chdir(folder)
    return folder
