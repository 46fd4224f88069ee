"""The model as the page has it: its prototypes, the training series behind them, its mistakes, its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdftime.config import preset
from pdftime.data.label_text import text_of
from pdftime.explain.explanation import Floats
from pdftime.explain.gallery import GalleryEntry, ModelExplanation
from pdftime.explain.report.packing import PACKED_BYTES, drawing, short, shorts, step_within
from pdftime.fitted import FittedModel

MAX_MATRIX = 60  # prototypes in the drawing of their cosines
TRAINING_BYTES = 1_000_000  # for the training series
FEWEST_BINS = 80  # rather than draw fewer than these, draw fewer training series


def training_series(
    model: FittedModel, gallery: tuple[GalleryEntry, ...], drawn: list[int]
) -> dict[str, dict[str, Any]]:
    """By its place in the training data each series that the page draws beside a prototype that decides."""
    deciding = [entry for entry in gallery if entry.decides and entry.shown]
    wanted: dict[int, Floats] = {}
    step = 1
    for n_nearest in (5, 3, 1):
        near = [neighbour for entry in deciding for neighbour in entry.neighbours[:n_nearest]]
        wrong = [entry.wrong for entry in deciding if entry.wrong is not None and n_nearest > 1]
        wanted = {each.index: np.asarray(model.training_series(each.index), np.float64) for each in (*near, *wrong)}
        longest = max((series.shape[1] for series in wanted.values()), default=1)
        allowed = TRAINING_BYTES / PACKED_BYTES / len(drawn) / max(1, len(wanted))
        step = 1 if longest <= allowed else step_within(2 * longest, allowed)
        if longest / step >= min(FEWEST_BINS, longest):
            break
    return {
        str(index): {"length": series.shape[1], "step": step, **drawing(series, drawn, step)}
        for index, series in sorted(wanted.items())
    }


def entry_content(entry: GalleryEntry, codes: dict[Any, int]) -> dict[str, Any]:
    """A prototype; neighbours are [place in the training data, class, similarity]."""
    return {
        "class": codes[entry.label],
        "member": entry.member,
        "level": entry.level,
        "number": entry.number,
        "decides": entry.decides,
        "usage": short(entry.usage),
        "coverage": short(entry.coverage),
        "purity": short(entry.purity),
        "gap": short(entry.gap),
        "relative_gap": short(entry.relative_gap),
        "dead": entry.dead,
        "duplicate_of": entry.duplicate_of,
        "neighbours": [[each.index, codes[each.label], short(each.similarity)] for each in entry.neighbours],
        "wrong": None
        if entry.wrong is None
        else [entry.wrong.index, codes[entry.wrong.label], short(entry.wrong.similarity)],
    }


def cosines_of(overview: ModelExplanation) -> list[list[float | None]] | None:
    """Between the prototypes of the first member's deciding level; None where there are none, or too many."""
    first = [level for level in overview.levels if level.member == 0]
    if not first or len(first[-1].cosines) > MAX_MATRIX:
        return None
    return [shorts(np.round(row, 3)) for row in first[-1].cosines]


def levels_content(overview: ModelExplanation) -> list[dict[str, Any]]:
    """How alike the prototypes of each level are."""
    return [
        {
            "member": level.member,
            "level": level.level,
            "within": short(level.within),
            "between": short(level.between),
            "effective": None if level.effective_numbers is None else shorts(level.effective_numbers),
        }
        for level in overview.levels
    ]


def evolution_content(overview: ModelExplanation) -> list[dict[str, Any]]:
    """How far the prototypes of each level moved on average, where they were kept while training."""
    return [
        {
            "member": each.member,
            "level": each.level,
            "epochs": each.epochs.tolist(),
            "moved": shorts(each.steps.mean(axis=(1, 2))),
        }
        for each in overview.evolution
        if len(each.epochs) > 1
    ]


def overview_content(overview: ModelExplanation, codes: dict[Any, int]) -> dict[str, Any]:
    """Accuracy, confusions and calibration."""

    def listed(values: Floats | None) -> list[float | None] | None:
        return None if values is None else shorts(values)

    counts, confusion = overview.calibration_counts, overview.confusion
    return {
        "data": overview.data,
        "agreement": short(overview.agreement),
        "accuracy": short(overview.accuracy),
        "confusion": None if confusion is None else confusion.tolist(),
        "mistakes": [
            [each.index, text_of(each.label), codes[each.predicted], short(each.confidence)]
            for each in overview.mistakes
        ],
        "edges": shorts(overview.calibration_edges),
        "counts": None if counts is None else counts.tolist(),
        "confidence": listed(overview.calibration_confidence),
        "shares_right": listed(overview.calibration_accuracy),
        "error": short(overview.calibration_error),
        "warnings": list(overview.warnings),
    }


def facts_of(model: FittedModel) -> list[tuple[str, str]]:
    """What is known of the model and its training: names and values."""
    n_parameters = sum(weight.numel() for member in model.members for weight in member.network.state_dict().values())
    facts = [("Networks in the model", str(len(model.members))), ("Weights", f"{n_parameters:,}")]
    if "n_cases" in model.metrics:
        facts.append(("Cases it was trained on", str(model.metrics["n_cases"])))
    for number, measured in enumerate(model.metrics.get("members", [])):
        whose = f"{model.member_names[number].capitalize()}: " if len(model.members) > 1 else ""
        if "epochs" in measured:
            facts.append((f"{whose}Passes over the training cases", str(measured["epochs"])))
        if "n_features" in measured:
            text = f"{measured['n_features']:,}"
            taken = measured.get("places", False)  # models before these were an option do not say
            facts.append((f"{whose}Features of the bank", text + ", with values at their places" if taken else text))
        if len(model.members) > 1:
            facts.append((f"{whose}Share in the decision", f"{model.shares[number]:.2f}"))
        if "validation_accuracy" in measured:
            value = f"{measured['validation_accuracy']:.3f} on {measured['n_validation']} cases kept back"
            facts.append((f"{whose}Accuracy while training", value))
        facts.append((f"{whose}Temperature of the probabilities", f"{model.members[number].temperature:.3f}"))
    return facts


def settings_of(model: FittedModel) -> list[tuple[str, str, bool]]:
    """Every setting that changed the result: its name, its value, whether it differs from the default."""
    default = preset("default").to_json()
    return [
        (name, _setting_text(value), _setting_text(value) != _setting_text(default[part][name]))
        for part, values in model.settings.in_use().items()
        for name, value in values.items()
    ]


def _setting_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
