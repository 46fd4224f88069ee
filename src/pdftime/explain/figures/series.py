"""Where the evidence lies: the series with its signed map, the map as time by channel, and by frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdftime.explain.explanation import AttributionMap, Explanation, Floats
from pdftime.explain.figures.style import (
    BLUE,
    COLUMN,
    GREY,
    INK,
    SMALL,
    VERMILLION,
    headline,
    name_of,
    new_figure,
    room_for,
    short,
    signed_colours,
    styled,
)
from pdftime.explain.figures.traces import (
    box_segments,
    draw_line,
    draw_map,
    limits_of,
    mark_missing,
    thinned,
    time_axis,
    value_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_CHANNELS = 6


@styled
def draw_series(
    explanation: Explanation, attribution: AttributionMap | None = None, *, width: float = COLUMN
) -> Figure:
    """The series over its signed map, a panel per channel, segments that hold the positive evidence in boxes.

    The map is `where` unless another is given. Of more than six channels, those with the most evidence are drawn.
    """
    attribution = attribution or explanation.where
    shown = strongest_channels(attribution.values, SHOWN_CHANNELS)
    length = attribution.values.shape[1]
    figure = new_figure(width, 0.85 + (1.1 if len(shown) == 1 else 0.62 * len(shown)))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    limit = _limit(attribution.values[shown])
    for axes, channel in zip(panels, shown, strict=True):
        values = explanation.series[channel]
        y = limits_of(values)
        image = draw_map(axes, attribution.values[channel], limit, y)
        draw_line(axes, values, linewidth=0.8)
        mark_missing(axes, explanation.missing[channel])
        box_segments(axes, [each for each in attribution.segments if each.channel == channel], y)
        time_axis(axes, length, label=axes is panels[-1], times=explanation.times)
        value_axis(axes)
        if explanation.missing[channel].all():
            axes.set_yticks([])
            axes.text(0.5, 0.5, "all missing", transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_title(
            short(explanation.channel_names[channel], room_for(width - 1.6, SMALL)), loc="left", fontsize=SMALL
        )
        axes.set_title(f"sum {attribution.by_channel[channel]:+.3g}", loc="right", fontsize=SMALL, color=GREY)
    figure.supylabel("value")
    bar = figure.colorbar(image, ax=panels.tolist(), location="right", fraction=0.05, aspect=30, pad=0.02)
    bar.set_label("added by a time point")
    headline(
        figure,
        f"{_decision(explanation)} What adds to the {attribution.quantity}{_left_out(shown, attribution)}."
        + (" Grey bars: missing." if explanation.missing[shown].any() else ""),
    )
    return figure


@styled
def draw_heat_map(
    explanation: Explanation, attribution: AttributionMap | None = None, *, width: float = COLUMN
) -> Figure:
    """The map as time by channel, with its sums over channels and over time; segments boxed, missing values grey."""
    attribution = attribution or explanation.where
    values = attribution.values
    n_channels, length = values.shape
    height = float(np.clip(0.2 * n_channels, 0.4, 4.0))
    figure = new_figure(width, height + 1.65)
    grid = figure.add_gridspec(3, 2, width_ratios=(4, 1), height_ratios=(0.55, height, 0.08))
    main = figure.add_subplot(grid[1, 0])
    top = figure.add_subplot(grid[0, 0], sharex=main)
    side = figure.add_subplot(grid[1, 1], sharey=main)
    limit = _limit(values)
    image = main.imshow(
        thinned(values),
        extent=(-0.5, length - 0.5, n_channels - 0.5, -0.5),
        aspect="auto",
        cmap=signed_colours(),
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    _cover_missing(main, explanation.missing)
    for segment in attribution.segments:
        box_segments(main, [segment], (segment.channel - 0.5, segment.channel + 0.5))
    step = int(np.ceil(n_channels * 0.11 / height))
    places = range(0, n_channels, step)
    names = [short(explanation.channel_names[place], 14) for place in places]
    main.set_yticks(list(places), names)
    time_axis(main, length, n_ticks=4, times=explanation.times)
    draw_signed_steps(top, attribution.by_time, np.arange(length + 1) - 0.5)
    top.tick_params(labelbottom=False)
    top.set_ylabel("sum")
    value_axis(top, 2)
    sums = attribution.by_channel
    side.barh(np.arange(n_channels), sums, height=0.8, color=[BLUE if each >= 0 else VERMILLION for each in sums])
    side.axvline(0.0, color=INK, linewidth=0.6)
    side.tick_params(labelleft=False, left=False)
    side.spines["left"].set_visible(False)
    side.xaxis.set_major_locator(_few(2))
    side.set_xlabel("sum")
    bar = figure.colorbar(image, cax=figure.add_subplot(grid[2, 0]), orientation="horizontal", ticks=_few(4))
    bar.set_label("added by a time point of a channel" + ("; grey: missing" if explanation.missing.any() else ""))
    headline(
        figure, f"{_decision(explanation)} What adds to the {attribution.quantity}, {attribution.total:+.3g} in all."
    )
    return figure


@styled
def draw_spectrum(
    explanation: Explanation, attribution: AttributionMap | None = None, *, width: float = COLUMN
) -> Figure:
    """What each frequency adds, channels summed; together as much as the map in time."""
    attribution = attribution or explanation.where
    figure = new_figure(width, 1.9)
    axes = figure.subplots()
    frequencies, sums = attribution.frequencies, attribution.by_frequency
    half = (frequencies[1] - frequencies[0]) / 2 if len(frequencies) > 1 else 0.05
    draw_signed_steps(axes, sums, np.append(frequencies - half, frequencies[-1] + half))
    axes.set_xlim(-1.5 * half, 0.5 + 1.5 * half)
    axes.set_xlabel("frequency (cycles per time point)")
    axes.set_ylabel("added by a frequency")
    value_axis(axes, 4)
    headline(figure, f"{_decision(explanation)} What adds to the {attribution.quantity}, {sums.sum():+.3g} in all.")
    return figure


def strongest_channels(values: Floats, n: int) -> list[int]:
    """The n channels with the largest sum of |values|, in their order.

    >>> strongest_channels(np.array([[1.0], [-3.0], [2.0]]), 2)
    [1, 2]
    """
    return sorted(np.argsort(-np.abs(values).sum(axis=1), kind="stable")[:n].tolist())


def draw_signed_steps(axes: Axes, values: Floats, edges: Floats) -> None:
    """Values between edges as filled steps, blue above 0 and vermillion below."""
    axes.stairs(values.clip(0.0), edges, fill=True, color=BLUE)
    axes.stairs(values.clip(None, 0.0), edges, fill=True, color=VERMILLION)
    axes.axhline(0.0, color=INK, linewidth=0.6)


def _limit(values: Floats) -> float:
    return float(np.abs(values).max()) or 1.0


def _few(n: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(n)


def _cover_missing(axes: Axes, missing: NDArray[np.bool_]) -> None:
    """Grey over the cells whose values are missing."""
    if missing.any():
        columns = thinned(missing.astype(np.float64)) > 0.0
        cover = np.zeros((*columns.shape, 4))
        cover[columns] = (0.43, 0.43, 0.43, 0.6)
        n_channels, length = missing.shape
        extent = (-0.5, length - 0.5, n_channels - 0.5, -0.5)
        axes.imshow(cover, extent=extent, aspect="auto", interpolation="nearest", zorder=1)


def _decision(explanation: Explanation) -> str:
    place = explanation.classes.index(explanation.predicted)
    return f"Predicted '{name_of(explanation.predicted)}' ({explanation.probabilities[place]:.2f})."


def _left_out(shown: list[int], attribution: AttributionMap) -> str:
    n_channels = len(attribution.values)
    return "" if len(shown) == n_channels else f": the {len(shown)} of {n_channels} channels with the most"
