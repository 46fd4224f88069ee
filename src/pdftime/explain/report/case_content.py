"""One case as the page has it: its decision, parts of scores, maps and checks."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from pdftime.data.label_text import text_of
from pdftime.data.times import time_axis_of
from pdftime.explain.explanation import (
    AttributionMap,
    Curve,
    Explanation,
    Floats,
    PrototypeMatch,
    ScoreSheet,
    TokenEvidence,
)
from pdftime.explain.gallery import GalleryEntry
from pdftime.explain.report.packing import PACKED_BYTES, drawing, pack, short, shorts, step_within, summed

MAX_FREQUENCIES = 128
MAX_SEGMENTS = 12
MAX_TIMES = 500  # time stamps of a case; of a longer one those of every few time points
CASES_BYTES = 3_000_000  # for the drawings of all cases
CASE_BYTES = 60_000  # for those of one case, where there are more than 50

Key = tuple[int, int, Any, int]
"""Member, level, class and number of a prototype."""


class Shown(NamedTuple):
    """A case on the page."""

    number: int
    """Its place in the data."""
    label: Any
    """What it is said to be; None where that is not known."""
    explanation: Explanation


class Frame(NamedTuple):
    """What all cases of a page share."""

    codes: dict[Any, int]
    """Places of the classes."""
    prototypes: dict[Key, int]
    """Places of the prototypes in the gallery."""
    drawn: list[int]
    """Channels that are drawn."""
    n_shown: int


def key_of(prototype: PrototypeMatch | GalleryEntry) -> Key:
    """What tells a prototype from all others."""
    return prototype.member, prototype.level, prototype.label, prototype.number


def case_content(each: Shown, frame: Frame) -> dict[str, Any]:
    """Everything about one case; its checks are made here if they were not before."""
    explanation = each.explanation
    checks = explanation.check()
    length = explanation.series.shape[1]
    times = _times(explanation)
    left = max(CASES_BYTES / frame.n_shown, CASE_BYTES) - (0 if times is None else len(json.dumps(times)))
    allowed = left / PACKED_BYTES / len(frame.drawn)
    step = 1 if 3 * length <= allowed else step_within(4 * length, allowed)  # thinned series keep two values a step
    tokens = explanation.tokens
    return {
        "number": each.number,
        "label": None if each.label is None else text_of(each.label),
        "right": None if each.label is None else frame.codes.get(each.label) == frame.codes[explanation.predicted],
        "predicted": frame.codes[explanation.predicted],
        "runner_up": frame.codes[explanation.runner_up],
        "probabilities": shorts(explanation.probabilities),
        "target": _sheet(explanation.target, frame),
        "contrast": _sheet(explanation.contrast, frame),
        "summary": explanation.summary(),
        "opinions": [
            [short(opinion.weight), shorts(opinion.probabilities), frame.codes[opinion.predicted]]
            for opinion in explanation.opinions
        ],
        "length": length,
        "step": step,
        "times": times,
        "series": drawing(explanation.series, frame.drawn, step),
        "n_missing": int(explanation.missing.sum()),
        "where": _map(explanation, explanation.where, frame.drawn, step),
        "why_not": _map(explanation, explanation.why_not, frame.drawn, step),
        "tokens": {
            "additivity_error": short(tokens.additivity_error),
            "locality": short(tokens.locality),
            "drawable": tokens.drawable,
            "values": _token_drawing(tokens, length, step) if tokens.drawable else None,
        },
        "checks": [
            {
                "name": check.name,
                "value": short(check.value),
                "bar": short(check.bar),
                "at_least": check.at_least,
                "passed": check.passed,
                "meaning": check.meaning,
            }
            for check in checks.checks
        ],
        "deletion": _curve(checks.deletion),
        "insertion": _curve(checks.insertion),
        "warnings": list(dict.fromkeys((*explanation.warnings, *checks.warnings))),
    }


def _sheet(sheet: ScoreSheet, frame: Frame) -> dict[str, Any]:
    """A score and its parts: [place in the gallery, similarity, responsibility, what it adds to the score]."""
    return {
        "class": frame.codes[sheet.label],
        "score": short(sheet.score),
        "probability": short(sheet.probability),
        "entropy": short(sheet.entropy),
        "offset": short(sheet.offset),
        "matches": [
            [
                frame.prototypes[key_of(match)],
                short(match.similarity),
                short(match.responsibility),
                short(match.contribution * match.weight),
            ]
            for match in sorted(sheet.matches, key=lambda match: -match.contribution)
        ],
    }


def _token_drawing(tokens: TokenEvidence, length: int, step: int) -> dict[str, Any]:
    return pack(summed(tokens.on_input_axis(length)[None], step), signed=True)


def _times(explanation: Explanation) -> dict[str, Any] | None:
    """The name of the time axis and the stamps of every few time points."""
    if explanation.times is None:
        return None
    every = step_within(len(explanation.times), MAX_TIMES)
    axis = time_axis_of(explanation.times[::every])
    return {"name": axis.name, "every": every, "texts": axis.texts}


def _map(explanation: Explanation, attribution: AttributionMap, drawn: list[int], step: int) -> dict[str, Any]:
    by_channel = attribution.by_channel
    merged = step_within(len(attribution.frequencies), MAX_FREQUENCIES)
    segments = attribution.segments
    position = {channel: place for place, channel in enumerate(drawn)}
    return {
        "method": attribution.method,
        "baseline": attribution.baseline,
        "start": short(attribution.start),
        "stop": short(attribution.stop),
        "total": short(attribution.total),
        "gap": short(attribution.completeness_gap),
        "values": pack(summed(attribution.values[drawn], step), signed=True),
        "by_channel": shorts(by_channel[drawn]),
        "others": short(float(by_channel.sum() - by_channel[drawn].sum())),
        "frequencies": shorts(_middles(attribution.frequencies, merged)),
        "by_frequency": shorts(summed(attribution.by_frequency[None], merged)[0]),
        "segments": [
            [
                segment.channel_name,
                position.get(segment.channel),
                segment.start,
                segment.end,
                short(segment.share),
                explanation.span_of(segment),
            ]
            for segment in segments[:MAX_SEGMENTS]
        ],
        "more_segments": [len(segments[MAX_SEGMENTS:]), short(sum(each.share for each in segments[MAX_SEGMENTS:]))],
    }


def _middles(frequencies: Floats, merged: int) -> Floats:
    """The middle of every `merged` frequencies."""
    firsts = frequencies[::merged]
    lasts = frequencies[np.minimum(np.arange(len(firsts)) * merged + merged - 1, len(frequencies) - 1)]
    middles: Floats = (firsts + lasts) / 2
    return middles


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "shares": shorts(curve.shares),
        "by_map": shorts(curve.by_map),
        "chance_mean": shorts(curve.by_chance.mean(axis=0)),
        "chance_low": shorts(curve.by_chance.min(axis=0)),
        "chance_high": shorts(curve.by_chance.max(axis=0)),
        "n_orders": len(curve.by_chance),
    }
