"""Very wide and very long series train, and fits side by side do not fight for the processor."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score

from pdftime import PDFTimeClassifier

SMALL = {"branch_width": 4, "d_model": 16, "n_heads": 2, "n_inception_layers": 2}


def levels(n_cases: int, n_channels: int, n_timepoints: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise whose level tells the class."""
    y = np.arange(n_cases) % 2
    noise = np.random.default_rng(0).standard_normal((n_cases, n_channels, n_timepoints), dtype=np.float32)
    return noise + 2.0 * y[:, None, None].astype(np.float32), y


@pytest.mark.parametrize(("n_channels", "n_timepoints"), [(1000, 24), (963, 144), (1, 16384), (3, 5000)])
def test_wide_and_long_series_are_learned(n_channels: int, n_timepoints: int) -> None:
    X, y = levels(8, n_channels, n_timepoints)
    model = PDFTimeClassifier(
        preset="network", settings=SMALL, max_epochs=12, batch_size=4, random_state=0, n_threads=1
    ).fit(X, y)
    fresh, expected = levels(6, n_channels, n_timepoints)
    assert (model.predict(fresh) == expected).all()
    assert model.model_.members[0].network(torch.from_numpy(fresh)).tokens.shape[1] <= 64


class CountsThreads(PDFTimeClassifier):
    """Keeps the number of threads that torch had while it was fitted."""

    def score(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        return torch.get_num_threads()


def test_fits_side_by_side_have_one_thread_each() -> None:
    X, y = levels(12, 1, 8)
    n_jobs = torch.get_num_threads() if torch.get_num_threads() > 1 else 2
    threads = cross_val_score(
        CountsThreads(preset="network", settings=SMALL, max_epochs=1), X, y, cv=2, n_jobs=n_jobs
    )
    assert (threads == 1).all()
