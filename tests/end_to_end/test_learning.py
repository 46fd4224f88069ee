"""Presets learn what can be learned, and nothing where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pdftime import PDFTimeClassifier
from pdftime.data.synthetic import PROBLEMS, make_problem

SIGNAL = [name for name in PROBLEMS if name != "noise"]


NEEDLES = ("ramps", "decoy")
"""Where one short moment decides among many alike, a bank that counts over the whole series is less sure."""
PRESETS = pytest.mark.parametrize("preset", ["default", "network"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "name"),
    [("network", name) for name in SIGNAL] + [("default", name) for name in SIGNAL if name not in NEEDLES],
)
def test_presets_reach_095_where_there_is_signal(preset: str, name: str) -> None:
    problem = make_problem(name)
    model = PDFTimeClassifier(preset=preset, n_threads=1).fit(problem.train, problem.train.y)
    assert np.mean(model.predict(problem.fresh) == problem.fresh.y) >= 0.95


@pytest.mark.slow
@PRESETS
def test_accuracy_stays_at_chance_where_there_is_none(preset: str) -> None:
    problem = make_problem("noise")
    model = PDFTimeClassifier(preset=preset, n_threads=1).fit(problem.train, problem.train.y)
    accuracy = np.mean(model.predict(problem.fresh) == problem.fresh.y)
    chance = 1.0 / len(model.classes_)
    sampling_error = np.sqrt(chance * (1.0 - chance) / len(problem.fresh))
    assert abs(accuracy - chance) < 3.0 * sampling_error


@pytest.mark.slow
@PRESETS
def test_named_moments_are_the_planted_ones(preset: str) -> None:
    problem = make_problem("motifs")
    model = PDFTimeClassifier(preset=preset, n_threads=1).fit(problem.train, problem.train.y)
    cases = problem.fresh.take(slice(0, 40))
    hits = []
    for explanation, moments in zip(model.explain(cases), problem.fresh_moments, strict=False):
        strongest = explanation.where.segments[0]
        hits.append(moments[strongest.channel, strongest.start : strongest.end + 1].mean())
    assert np.mean(hits) > 0.5  # share of the strongest segment that was planted; a random place has 0.25
