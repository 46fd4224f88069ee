"""Models that the tests of explanations share."""

from __future__ import annotations

import pytest
from small_models import OTHERS, fitted, span_of

from pdftime.fitted import FittedModel


@pytest.fixture(scope="session")
def models() -> dict[str, FittedModel]:
    """Three trained models: series of one length, padded ones, and two members on resampled ones."""
    return {
        "equal": fitted(),
        "padded": fitted((12, 30), lengths="pad"),
        "resampled": fitted((12, 30), lengths="resample", n_members=2),
    }


@pytest.fixture(scope="session")
def every(models: dict[str, FittedModel]) -> dict[str, FittedModel]:
    """A model of every kind."""
    others = {name: fitted(span_of(name), max_epochs=2, **changes) for name, changes in OTHERS.items()}
    return models | others
