"""What the page shows, as plain data: every number it prints in full, everything it draws packed small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pdftime.data.label_text import different_texts
from pdftime.explain.gallery import ModelExplanation
from pdftime.explain.report.case_content import Frame, Shown, case_content, key_of
from pdftime.explain.report.model_content import (
    cosines_of,
    entry_content,
    evolution_content,
    facts_of,
    levels_content,
    overview_content,
    settings_of,
    training_series,
)
from pdftime.fitted import FittedModel
from pdftime.version import __version__

MAX_CHANNELS = 64  # drawn; what the others add is given as one sum


class Names(NamedTuple):
    """What the page calls the things it is about."""

    model: str = "the model"
    data: str = "the data"


class About(NamedTuple):
    """What the page is about."""

    names: Names
    n_cases: int
    """How many cases the data hold, of which some are shown."""
    chosen: bool
    """Whether those shown were chosen by hand."""


def page_content(
    model: FittedModel, overview: ModelExplanation, shown: Sequence[Shown], about: About
) -> dict[str, Any]:
    """Everything on the page."""
    texts = different_texts(overview.classes)
    drawn = _drawn_channels(shown)
    frame = Frame(
        codes={label: code for code, label in enumerate(overview.classes)},
        prototypes={key_of(entry): place for place, entry in enumerate(overview.gallery)},
        drawn=drawn,
        n_shown=len(shown),
    )
    facts = [
        ("Model", about.names.model),
        ("Data", about.names.data),
        ("Cases in the data", str(about.n_cases)),
        ("Cases on this page", str(len(shown))),
        ("Time points of the cases shown", _span([each.explanation.series.shape[1] for each in shown])),
        ("Channels", str(len(model.channel_names))),
        ("Classes", ", ".join(texts)),
        *facts_of(model),
        ("Written by", f"pdftime {__version__}"),
    ]
    return {
        "names": about.names._asdict(),
        "classes": texts,
        "channels": [shown[0].explanation.channel_names[channel] for channel in drawn],
        "n_channels": len(model.channel_names),
        "n_cases": about.n_cases,
        "chosen": about.chosen,
        "members": model.member_names,
        "scaling": model.settings.prepare.scaling,
        "lengths": model.settings.prepare.lengths,
        "labelled": all(each.label is not None for each in shown),
        "cases": [case_content(each, frame) for each in shown],
        "series": training_series(model, overview.gallery, drawn),
        "gallery": [entry_content(entry, frame.codes) for entry in overview.gallery],
        "levels": levels_content(overview),
        "cosines": cosines_of(overview),
        "evolution": evolution_content(overview),
        "overview": overview_content(overview, frame.codes),
        "facts": facts,
        "settings": settings_of(model),
    }


def _drawn_channels(shown: Sequence[Shown]) -> list[int]:
    """The channels with the most evidence over all cases shown, in their own order."""
    maps = [(each.explanation.input_map, each.explanation.margin_map) for each in shown]
    evidence = np.sum([np.abs(each).sum(axis=1) for pair in maps for each in pair], axis=0)
    most = np.argsort(-evidence, kind="stable")[:MAX_CHANNELS]
    return sorted(int(channel) for channel in most)


def _span(lengths: list[int]) -> str:
    return str(lengths[0]) if len(set(lengths)) == 1 else f"{min(lengths)} to {max(lengths)}"
