"""The prototypes of a model: a gallery, how alike they are, and each beside the series that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import DataError
from pdftime.explain.explanation import Floats
from pdftime.explain.figures.style import (
    COLUMN,
    GREY,
    INK,
    PAGE,
    PALE,
    SMALL,
    headline,
    legend_below,
    look_of,
    name_of,
    new_figure,
    room_for,
    short,
    signed_colours,
    styled,
)
from pdftime.explain.figures.traces import draw_cell, draw_line, limits_of, telling_channels, time_axis, value_axis
from pdftime.explain.gallery import GalleryEntry, LevelView, ModelExplanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES_PER_PAGE = 10
SHOWN_MEMBERS = 60


@styled
def draw_gallery(
    view: ModelExplanation,
    training: Mapping[int, NDArray[Any]],
    *,
    member: int = 0,
    page: int = 0,
    channel: int | None = None,
    width: float = PAGE,
) -> Figure:
    """The deciding prototypes, a row per class and ten classes a page: the nearest training series of each.

    The nearest one is in colour, the next ones pale behind it. `training` holds series by index; a model keeps
    those it needs. Dead and duplicate prototypes are only counted.
    """
    labels = view.classes[page * CLASSES_PER_PAGE : (page + 1) * CLASSES_PER_PAGE]
    if not labels:
        raise DataError(f"page is {page}; expected 0 to {n_pages(view) - 1} for {len(view.classes)} classes.")
    n_columns = 5 if width >= 5 else 3
    rows = [shown_entries(view, label, member) for label in labels]
    columns = max(1, min(n_columns, max(map(len, rows))))
    figure = new_figure(width, 0.6 + 0.88 * len(labels))
    panels = figure.subplots(len(labels), columns, squeeze=False)
    shown = [_series_of(each, training) for entries in rows for each in entries[:columns]]
    length = max((each.shape[1] for series in shown for each in series), default=1)
    first = page * CLASSES_PER_PAGE
    for row, (label, entries) in enumerate(zip(labels, rows, strict=True)):
        count = sum(each.label == label for each in deciding_entries(view, member))
        panels[row, 0].set_ylabel(f"{short(label, 14)}\n{_hidden(count, min(len(entries), columns))}".rstrip())
        for column in range(columns):
            axes = panels[row, column]
            if column < len(entries):
                _draw_entry(axes, entries[column], training, look_of(first + row).colour, length, channel)
            else:
                _draw_nothing(axes, "")
    for column in panels.T:
        drawn = [axes for axes in column if axes.lines or axes.images]
        for axes in drawn[-1:]:
            axes.tick_params(labelbottom=True)
    figure.supxlabel("time point")
    headline(figure, _gallery_words(view, labels, channel))
    return figure


def n_pages(view: ModelExplanation) -> int:
    """How many pages a gallery takes."""
    return -(-len(view.classes) // CLASSES_PER_PAGE)


def deciding_entries(view: ModelExplanation, member: int = 0) -> list[GalleryEntry]:
    """The prototypes of one member's deciding level."""
    return [each for each in view.gallery if each.decides and each.member == member]


def shown_entries(view: ModelExplanation, label: Any, member: int = 0) -> list[GalleryEntry]:
    """A class's deciding prototypes that say something of their own, the most used first."""
    own = [each for each in deciding_entries(view, member) if each.label == label and each.shown]
    return sorted(own, key=lambda each: -(each.usage or 0.0))


@styled
def draw_cosines(level: LevelView, classes: Sequence[Any], *, width: float = COLUMN) -> Figure:
    """The cosine of every prototype with every other, classes side by side; the means within and between them."""
    n_classes, k, _ = level.prototypes.shape
    width = min(width, max(COLUMN, 1.0 + 0.12 * n_classes * k))
    figure = new_figure(width, width * 0.92, square=True)
    axes = figure.subplots()
    image = axes.imshow(level.cosines, cmap=signed_colours(), vmin=-1.0, vmax=1.0, interpolation="nearest")
    for edge in np.arange(1, n_classes) * k - 0.5:
        axes.axhline(edge, color=INK, linewidth=0.5)
        axes.axvline(edge, color=INK, linewidth=0.5)
    if n_classes * k <= 12:
        for row, column in np.ndindex(level.cosines.shape):
            value = float(level.cosines[row, column])
            axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=SMALL - 0.5)
    step = int(np.ceil(n_classes * 0.12 / (0.7 * width)))
    places = range(0, n_classes, step)
    names = [short(classes[place], 12) for place in places]
    centres = [place * k + (k - 1) / 2 for place in places]
    axes.set_yticks(centres, names)
    crowded = n_classes / step * max(map(len, names)) > room_for(0.65 * width, SMALL)
    axes.set_xticks(centres, names, rotation=90 if crowded else 0)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, location="right", fraction=0.05, aspect=30, pad=0.02).set_label("cosine")
    within = "one prototype a class" if np.isnan(level.within) else f"{level.within:.2f} within a class"
    between = "" if n_classes < 2 else f", {level.between:.2f} between classes"
    headline(figure, f"Prototypes of level {level.level + 1}; mean cosine: {within}{between}.")
    return figure


def assign_members(embeddings: NDArray[Any], codes: NDArray[np.int64], prototypes: Floats) -> NDArray[np.int64]:
    """(n_cases,) which prototype of its own class each case is nearest to by cosine; -1 where the class is not known.

    `embeddings` is (n_cases, d), `codes` (n_cases,), `prototypes` (n_classes, k, d).
    """
    numbers = np.full(len(codes), -1, np.int64)
    known = codes >= 0
    unit = prototypes / np.linalg.norm(prototypes, axis=-1, keepdims=True)
    numbers[known] = np.einsum("nd,nkd->nk", embeddings[known], unit[codes[known]]).argmax(axis=1)
    return numbers


@styled
def draw_members(
    view: ModelExplanation,
    training: Mapping[int, NDArray[Any]],
    members: Mapping[int, Sequence[NDArray[Any]]],
    label: Any,
    *,
    member: int = 0,
    width: float = PAGE,
) -> Figure:
    """Prototypes of a class against original series: how they differ, and the most used one with its members.

    A prototype is shown by the training series nearest to it. `members` holds, by the number of a prototype, the
    original series that are nearest to it. Of many channels those are drawn in which the prototypes differ most,
    or, where a class has only one to show, the prototypes of all classes.
    """
    if label not in view.classes:
        raise DataError(f"{label!r} is no class of this model; expected one of {list(view.classes)!r:.300}.")
    entries = [each for each in shown_entries(view, label, member) if _nearest(each, training) is not None]
    if not entries:
        raise DataError(f"No training series is kept behind the prototypes of {label!r}; fit the model again.")
    series = [_kept(each, training) for each in entries]
    chosen = entries[0]
    company = list(members.get(chosen.number, ()))
    wide = width >= 5
    n_channels = len(series[0])
    all_shown = [each for label in view.classes for each in shown_entries(view, label, member)]
    others = [_nearest(each, training) for each in all_shown] if len(series) == 1 else []
    channels = telling_channels([*series, *(each for each in others if each is not None)], 3 if wide else 1)
    shape = (len(channels), 2) if wide else (2, 1)
    figure = new_figure(width, 0.75 + (1.15 if wide else 1.25) * shape[0])
    panels = figure.subplots(*shape, squeeze=False)
    length = max(each.shape[1] for each in (*series, *company))
    shown = company[:: max(1, -(-len(company) // SHOWN_MEMBERS))]
    lines = []
    for row, channel in enumerate(channels):
        left, right = panels[row] if wide else panels[:, 0]
        lines = [
            draw_line(left, each[channel], look_of(number).colour, linestyle=look_of(number).dashes)
            for number, each in enumerate(series)
        ]
        for each in shown:
            draw_line(right, each[channel], PALE, linewidth=0.5)
        draw_line(right, series[0][channel], look_of(0).colour, linewidth=1.3)
        for axes in (left, right):
            axes.set_ylim(*limits_of(np.concatenate([each[channel] for each in (*series, *shown)])))
            time_axis(axes, length, label=row == len(channels) - 1 and (wide or axes is right))
            value_axis(axes)
        for axes in (left,) if wide else (left, right):
            axes.set_ylabel(short(view.channel_names[channel], 18) if n_channels > 1 else "value")
        if row == 0:
            n_prototypes = sum(each.label == label for each in deciding_entries(view, member))
            some = f"{len(entries)} of {n_prototypes} " if len(entries) < n_prototypes else ""
            left.set_title(f"{some}prototypes, each by its nearest series", loc="left", fontsize=SMALL)
            right.set_title(_company_words(chosen, len(company), len(shown)), loc="left", fontsize=SMALL)
    legend_below(figure, [(line, f"prototype {each.number + 1}") for line, each in zip(lines, entries, strict=True)])
    headline(figure, f"Class {name_of(label)}: prototypes against original series.")
    return figure


def _draw_entry(
    axes: Axes,
    entry: GalleryEntry,
    training: Mapping[int, NDArray[Any]],
    colour: str,
    length: int,
    channel: int | None,
) -> None:
    series = _series_of(entry, training)
    if series:
        draw_cell(axes, series, colour, length, channel)
    else:
        _draw_nothing(axes, "not kept")
    axes.set_title(_entry_words(entry), loc="left", fontsize=SMALL - 0.5, linespacing=1.0)


def _series_of(entry: GalleryEntry, training: Mapping[int, NDArray[Any]]) -> list[NDArray[Any]]:
    return [training[each.index] for each in entry.neighbours if each.index in training]


def _draw_nothing(axes: Axes, text: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if text:
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)


def _entry_words(entry: GalleryEntry) -> str:
    first = f"{entry.number + 1}" if entry.usage is None else f"{entry.number + 1}: used {entry.usage:.0%}"
    facts = [] if entry.purity is None else [f"pure {entry.purity:.0%}"]
    facts += [] if entry.relative_gap is None else [f"gap {entry.relative_gap:.1f}×"]
    return f"{first}\n{', '.join(facts)}".rstrip()


def _hidden(n_prototypes: int, n_shown: int) -> str:
    return f"{n_shown} of {n_prototypes}" if n_shown < n_prototypes else ""


def _gallery_words(view: ModelExplanation, labels: Sequence[Any], channel: int | None) -> str:
    several = len(view.classes) > len(labels)
    first = view.classes.index(labels[0])
    which = f" Classes {first + 1} to {first + len(labels)} of {len(view.classes)}." if several else ""
    where = "" if channel is None else f" Channel {name_of(view.channel_names[channel])}."
    return f"Prototypes by their nearest training series.{which}{where}"


def _nearest(entry: GalleryEntry, training: Mapping[int, NDArray[Any]]) -> NDArray[Any] | None:
    return training.get(entry.neighbours[0].index) if entry.neighbours else None


def _kept(entry: GalleryEntry, training: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
    return training[entry.neighbours[0].index]


def _company_words(entry: GalleryEntry, n_members: int, n_shown: int) -> str:
    some = f"{n_shown} of {n_members}" if n_shown < n_members else str(n_members)
    return f"prototype {entry.number + 1} and {some} members"
