"""Caveats: what should be known before an explanation is believed, in plain words."""

from __future__ import annotations

import numpy as np

from pdftime.explain.explanation import Explanation

CLOSE = 0.1  # probability
FEW = 0.1  # share of values
PURE = 0.7
MOST = 0.5  # share of the margin
FAR = 2.0  # times the usual gap


def caveats_of(explanation: Explanation) -> tuple[str, ...]:
    """Sentences about the case, its match and its maps; none if there is nothing to say."""
    target, contrast = explanation.target, explanation.contrast
    found = []
    if target.label != explanation.predicted:
        found.append(f"What is explained, {target.label!r}, is not what is predicted, {explanation.predicted!r}.")
    first, second = np.sort(explanation.probabilities)[::-1][:2]
    if first - second < CLOSE:
        found.append(
            f"The decision is close: {explanation.predicted!r} has probability {first:.2f}, "
            f"{explanation.runner_up!r} has {second:.2f}."
        )
    margin = explanation.why_not
    if margin.start > max(0.0, MOST * margin.stop):
        found.append(
            f"The baseline, {margin.baseline}, is itself taken for {target.label!r} rather than {contrast.label!r}: "
            "the maps show what the series adds to that, which is little, and taking parts away changes little."
        )
    found += _about_the_match(explanation)
    share = float(explanation.missing.mean())
    if share > FEW:
        found.append(f"{share:.0%} of its values are missing; what the maps say there is about filled-in values.")
    preparation = explanation.source.model.preparation
    length, unified = explanation.series.shape[1], preparation.n_timepoints
    resampled = length > unified or preparation.config.lengths == "resample"
    if resampled and not 0.5 <= length / unified <= 2.0:
        found.append(f"It was resampled from {length} to {unified} time points; short events may be lost.")
    return tuple(found)


def _about_the_match(explanation: Explanation) -> list[str]:
    best, exemplars = explanation.best_match, explanation.source.model.exemplars
    if best is None or exemplars is None or exemplars.company is None:
        return []
    found = []
    code = explanation.source.target
    distances = [
        1.0 - max(m.similarity for m in explanation.target.deciding if m.member == member)
        for member in range(len(exemplars.company))
    ]
    if all(
        distance > levels[-1].gaps[code, 1]  # the last level decides
        for distance, levels in zip(distances, exemplars.company, strict=True)
    ):
        found.append(
            f"It is farther from the prototypes of {best.label!r} than 95% of the training series of that class; "
            "it may be unlike anything that was learned."
        )
    if best.purity is not None and best.purity < PURE:
        found.append(
            f"Of the training series nearest to the prototype that it matches best, only {best.purity:.0%} "
            f"are {best.label!r}."
        )
    if best.relative_gap is not None and best.relative_gap > FAR:
        found.append(
            f"No training series is near the prototype that it matches best: the nearest is {best.relative_gap:.1f} "
            "times as far as training series of that class usually are."
        )
    return found
