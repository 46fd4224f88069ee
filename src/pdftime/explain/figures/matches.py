"""This looks like that: a series over the series behind its prototypes, and bars that add up to the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.data.prepare import resample
from pdftime.errors import DataError
from pdftime.explain.explanation import AttributionMap, Explanation, PrototypeMatch, ScoreSheet
from pdftime.explain.figures.series import strongest_channels
from pdftime.explain.figures.style import (
    BLUE,
    COLUMN,
    GREY,
    INK,
    SMALL,
    VERMILLION,
    headline,
    legend_below,
    name_of,
    new_figure,
    room_for,
    short,
    styled,
    wrapped,
)
from pdftime.explain.figures.traces import draw_line, draw_map, limits_of, mark_missing, time_axis, value_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_BARS = 8
NEGLIGIBLE = 1e-4  # a remainder below this share of the score is rounding


@styled
def draw_matches(
    explanation: Explanation,
    training: Mapping[int, NDArray[Any]],
    *,
    n_prototypes: int = 3,
    maps: Sequence[AttributionMap] = (),
    stretch: bool = True,
    width: float = COLUMN,
) -> Figure:
    """The series over the nearest training series of its top prototypes, and of the best one of the other class.

    `training` holds the series of `neighbours` by their index. `maps`, one per prototype shown, go behind it. With
    `stretch` a training series of another length is drawn on the axis of this one, as a network that resamples
    sees it.
    """
    pairs = top_matches(explanation, n_prototypes)
    if not pairs:
        raise DataError("This model has a linear head and no prototypes; expected one with head='prototypes'.")
    channels = strongest_channels(explanation.where.values, 3 if width >= 5 else 1)
    n_channels, length = explanation.series.shape
    behind = [_on_axis(_series_behind(match, training), length, stretch) for match in pairs]
    longest = max(length, *(each.shape[1] for each in behind if each is not None), 1)
    texts = [
        wrapped(_words(match, explanation, _series_behind(match, training), stretch), width - 0.5, SMALL)
        for match in pairs
    ]
    n_lines = 1 + max(text.count("\n") for text in texts)
    figure = new_figure(width, 0.7 + (0.9 + 0.1 * n_lines) * len(pairs))
    grid = figure.add_gridspec(2 * len(pairs), len(channels), height_ratios=[0.1 * n_lines, 0.8] * len(pairs))
    for row, text in enumerate(texts):
        _write(figure.add_subplot(grid[2 * row, :]), text)
    for column, channel in enumerate(channels):
        query, others = explanation.series[channel], [None if each is None else each[channel] for each in behind]
        y = limits_of(np.concatenate([query, *(each for each in others if each is not None)]))
        for row, (match, other) in enumerate(zip(pairs, others, strict=True)):
            axes, last = figure.add_subplot(grid[2 * row + 1, column]), row == len(pairs) - 1
            if row < len(maps):
                draw_map(axes, maps[row].values[channel], float(np.abs(maps[row].values).max()) or 1.0, y)
            if other is not None:
                draw_line(axes, other, _colour(match, explanation), linewidth=1.3)
            draw_line(axes, query, INK, linewidth=0.7)
            mark_missing(axes, explanation.missing[channel])
            axes.set_ylim(*y)
            time_axis(axes, longest, label=last, n_ticks=4, times=explanation.times)
            value_axis(axes)
            if last and n_channels > 1:
                name = short(explanation.channel_names[channel], room_for(width / len(channels) - 0.6))
                axes.set_xlabel(f"{axes.get_xlabel()}\n{name}")
    figure.supylabel("value")
    legend_below(figure, _legend(explanation, pairs))
    return figure


def top_matches(explanation: Explanation, n_prototypes: int) -> list[PrototypeMatch]:
    """The target's deciding prototypes with the largest contributions, then the best one of the contrast.

    Of prototypes behind which one and the same training series stands only the first is taken, for the picture would
    be the same; those that no training series is nearest to only where there are no others.
    """
    deciding, best = explanation.target.deciding, explanation.contrast.best_match
    alive = [match for match in deciding if match.usage != 0.0] or deciding
    behind = {match.neighbours[0].index if match.neighbours else match: match for match in reversed(alive)}
    different = [match for match in alive if match in behind.values()]
    return [*different[:n_prototypes], *([] if best is None else [best])]


class Bar(NamedTuple):
    """One part of a score."""

    name: str
    value: float


def bars_of(sheet: ScoreSheet, n_shown: int = SHOWN_BARS) -> list[Bar]:
    """The parts of a class's score, prototypes first; they sum to it. The smallest of many are one part."""
    n_members = max(len(sheet.level_entropies), 1)
    bars = [
        Bar(
            f"prototype {match.number + 1}" + (f" of member {match.member + 1}" if n_members > 1 else ""),
            match.contribution * match.weight,
        )
        for match in sheet.deciding
    ]
    if len(bars) > n_shown:
        rest = bars[n_shown - 1 :]
        bars = [*bars[: n_shown - 1], Bar(f"{len(rest)} others", sum(each.value for each in rest))]
    if len(sheet.deciding) > n_members:
        bars.append(Bar("several agree (entropy)", sheet.entropy))
    remainder = sheet.score - sheet.offset - sum(each.value for each in bars)
    if not sheet.matches:
        bars.append(Bar("weights times embedding", remainder))
    elif abs(remainder) > NEGLIGIBLE * max(abs(sheet.score), 1.0):
        bars.append(Bar("not accounted for", remainder))
    return [*bars, Bar("offset", sheet.offset)] if sheet.offset else bars


@styled
def draw_score_sheet(explanation: Explanation, *, width: float = COLUMN) -> Figure:
    """What the scores of the explained class and of the other are made of: bars, each from where the last ended."""
    sheets = (explanation.target, explanation.contrast)
    parts = [bars_of(sheet) for sheet in sheets]
    wide = width >= 5
    rows = [max(map(len, parts))] if wide else [len(each) for each in parts]
    figure = new_figure(width, 0.75 + 0.17 * (sum(rows) + len(rows)) + 0.25 * len(rows))
    if wide:
        panels = figure.subplots(1, 2, sharex=True)
    else:
        panels = figure.subplots(2, 1, sharex=True, height_ratios=[each + 1 for each in rows])
    for axes, sheet, bars, colour in zip(panels, sheets, parts, (BLUE, VERMILLION), strict=True):
        _draw_bars(axes, sheet, bars, colour)
    panels[-1].set_xlabel("score")
    if wide:
        panels[0].set_xlabel("score")
    margin = explanation.target.score - explanation.contrast.score
    headline(
        figure,
        f"{name_of(explanation.target.label)} against {name_of(explanation.contrast.label)}: "
        f"{explanation.target.score:.2f} against {explanation.contrast.score:.2f}, margin {margin:+.2f}",
    )
    return figure


def _draw_bars(axes: Axes, sheet: ScoreSheet, bars: Sequence[Bar], colour: str) -> None:
    """Bars from left to right and top to bottom; the last row is the score."""
    ends = np.cumsum([each.value for each in bars])
    starts = np.concatenate([[0.0], ends[:-1]])
    rows = np.arange(len(bars))
    colours = [colour if each.name.startswith("prototype") else GREY for each in bars]
    axes.barh(rows, [each.value for each in bars], left=starts, height=0.7, color=colours)
    for row in rows:
        axes.plot([ends[row]] * 2, [row - 0.35, row + 1.35], color=INK, linewidth=0.5)
    axes.barh([len(bars)], [sheet.score], height=0.7, color=INK)
    axes.axvline(0.0, color=INK, linewidth=0.6)
    axes.set_yticks(
        [*rows, len(bars)],
        [*(f"{each.name}  {each.value:+.2f}" for each in bars), f"score  {sheet.score:.2f}"],
    )
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(bars) + 0.55, -0.55)
    axes.use_sticky_edges = False
    axes.margins(x=0.03)
    axes.spines["left"].set_visible(False)
    title = f"{short(sheet.label, 20)}, probability {sheet.probability:.2f}"
    axes.set_title(title, loc="left", color=colour, fontweight="bold")


def _series_behind(match: PrototypeMatch, training: Mapping[int, NDArray[Any]]) -> NDArray[Any] | None:
    return training.get(match.neighbours[0].index) if match.neighbours else None


def _on_axis(series: NDArray[Any] | None, length: int, stretch: bool) -> NDArray[Any] | None:
    if series is None or not stretch or series.shape[1] == length:
        return series
    return resample(np.asarray(series, np.float64), length)


def _write(axes: Axes, text: str) -> None:
    """A text over the whole width; the axes hold its place."""
    axes.set_axis_off()
    words = axes.text(0.0, 0.0, text, transform=axes.transAxes, fontsize=SMALL, va="bottom", linespacing=1.1)
    words.set_in_layout(False)


def _colour(match: PrototypeMatch, explanation: Explanation) -> str:
    return VERMILLION if match.label == explanation.contrast.label else BLUE


def _words(match: PrototypeMatch, explanation: Explanation, other: NDArray[Any] | None, stretch: bool) -> str:
    length = explanation.series.shape[1]
    net = f" of member {match.member + 1}" if len(explanation.target.level_entropies) > 1 else ""
    text = (
        f"{short(match.label, 24)}, prototype {match.number + 1}{net}: "
        f"cosine {match.similarity:.2f}, share {match.responsibility:.0%}"
    )
    if other is None:
        return f"{text}; its training series are not kept"
    text += f", series {match.neighbours[0].index}"
    if other.shape[1] != length:
        text += f", {other.shape[1]} points" + (f" stretched to {length}" if stretch else "")
    return text


def _legend(explanation: Explanation, pairs: Sequence[PrototypeMatch]) -> list[Any]:
    from matplotlib.lines import Line2D

    entries: list[Any] = [(Line2D([], [], color=INK, linewidth=0.7), "this series")]
    for sheet, colour in ((explanation.target, BLUE), (explanation.contrast, VERMILLION)):
        if any(match.label == sheet.label for match in pairs):
            line = Line2D([], [], color=colour, linewidth=1.3)
            entries.append((line, f"{short(sheet.label, 24)}, training series"))
    return entries
