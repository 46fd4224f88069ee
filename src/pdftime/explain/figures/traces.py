"""How a series is put on axes: its line with gaps, what is missing, a map behind it, several channels together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.prepare import resample
from pdftime.data.times import time_axis_of
from pdftime.explain.explanation import Floats, Segment
from pdftime.explain.figures.style import GREY, INK, PALE, signed_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D

LONG = 500
"""Longer series get thinner lines."""
SHOWN_COLUMNS = 800
"""A map of more time points is drawn with so many columns: more than a page can show."""
MONTAGE_CHANNELS = 8
"""Up to so many channels are drawn as lines over each other; more of them as rows of colour."""


def draw_line(axes: Axes, values: NDArray[Any], colour: str = INK, **options: Any) -> Line2D:
    """A series over its time points; a value between two missing ones is a dot."""
    present = np.isfinite(values)
    beside = np.zeros(len(values), bool)
    beside[1:] |= present[:-1]
    beside[:-1] |= present[1:]
    alone = np.flatnonzero(present & ~beside).tolist()
    dots: dict[str, Any] = {"marker": "o", "markersize": 2.5, "markevery": alone} if alone else {}
    thin = {"linewidth": 0.5} if len(values) > LONG else {}
    (line,) = axes.plot(np.arange(len(values)), values, color=colour, **{**dots, **options, **thin})
    return line


def draw_map(axes: Axes, values: Floats, limit: float, y: tuple[float, float]) -> AxesImage:
    """A row of signed evidence as colour behind a series, from -limit to limit."""
    image = axes.imshow(
        thinned(values[None, :]),
        extent=(-0.5, len(values) - 0.5, *y),
        aspect="auto",
        origin="lower",
        cmap=signed_colours(),
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
        zorder=0,
    )
    axes.set_ylim(*y)
    return image


def thinned(values: Floats, n: int = SHOWN_COLUMNS) -> Floats:
    """(rows, t) -> (rows, at most n): of the time points in a column the value farthest from 0, so that it is seen.

    >>> thinned(np.array([[0.0, -3.0, 1.0, 2.0]]), 2).tolist()
    [[-3.0, 2.0]]
    """
    length = values.shape[1]
    if length <= n:
        return values
    edges = np.linspace(0, length, n + 1).astype(int)
    columns = [values[:, start:end] for start, end in pairwise(edges.tolist())]
    return np.stack([each[np.arange(len(each)), np.abs(each).argmax(axis=1)] for each in columns], axis=1)


def mark_missing(axes: Axes, missing: NDArray[np.bool_]) -> None:
    """A grey bar at the bottom under what is missing."""
    if missing.any():
        axes.broken_barh(
            runs(missing), (0.0, 0.06), transform=axes.get_xaxis_transform(), color=GREY, linewidth=0, zorder=3
        )


def runs(flags: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Start and width of every run of true places, a place reaching half a step to both sides.

    >>> runs(np.array([True, True, False, True]))
    [(-0.5, 2.0), (2.5, 1.0)]
    """
    steps = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return [(start - 0.5, float(end - start)) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def box_segments(axes: Axes, segments: Sequence[Segment], y: tuple[float, float]) -> None:
    """A frame around each segment, from its first to its last time point."""
    from matplotlib.patches import Rectangle

    for segment in segments:
        corner, width = (segment.start - 0.5, y[0]), segment.end - segment.start + 1
        axes.add_patch(Rectangle(corner, width, y[1] - y[0], fill=False, edgecolor=INK, linewidth=0.8, zorder=4))


def limits_of(values: NDArray[Any], margin: float = 0.08) -> tuple[float, float]:
    """Lowest and highest value with some room; half of it around a constant, 0 to 1 without any value."""
    present = values[np.isfinite(values)]
    if not present.size:
        return 0.0, 1.0
    low, high = float(present.min()), float(present.max())
    room = margin * (high - low) if high > low else 0.5 * (abs(low) or 1.0)
    return low - room, high + room


def time_axis(
    axes: Axes, length: int, *, label: bool = True, n_ticks: int = 5, times: NDArray[Any] | None = None
) -> None:
    """Whole time points from first to last, named where asked for; marked by time stamps where there are any."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    name = "time point"
    if times is not None:
        name, stamps = time_axis_of(times)
        texts = [stamp.replace(" ", "\n") for stamp in stamps]  # the day above the time of day
        n_ticks = min(n_ticks, 1 + 24 // max(len(line) for text in texts for line in text.splitlines()))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda step, _: texts[round(step)] if 0 <= round(step) < len(texts) else "")
        )
    axes.set_xlim(-0.5, max(length - 0.5, 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(n_ticks, integer=True, min_n_ticks=1))
    axes.set_xlabel(name if label else "")
    axes.tick_params(labelbottom=label)


def value_axis(axes: Axes, n_ticks: int = 3) -> None:
    """Few ticks, for a small panel."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(n_ticks))


def draw_cell(
    axes: Axes, series: Sequence[NDArray[Any]], colour: str, length: int, channel: int | None = None
) -> None:
    """Some series in a small panel, the first one on top and in colour, the others pale behind it.

    One channel is drawn as lines; a few as lines over each other, each in its own band; many as rows of colour, of
    the first series only. A `channel` that is named is drawn alone. The axis goes to `length`.
    """
    if channel is not None:
        series = [each[channel : channel + 1] for each in series]
    n_channels = len(series[0])
    if n_channels > MONTAGE_CHANNELS:
        axes.imshow(
            banded(series[:1])[0] - 0.5 - np.arange(n_channels)[::-1, None],
            extent=(-0.5, series[0].shape[1] - 0.5, n_channels - 0.5, -0.5),
            aspect="auto",
            cmap="cividis",
            vmin=-0.5,
            vmax=0.5,
        )
    else:
        shown = series if n_channels == 1 else banded(series)
        for place, each in reversed(list(enumerate(shown))):
            for row in each:
                first = place == 0
                draw_line(axes, row, colour if first else PALE, linewidth=0.9 if first else 0.6, zorder=2 + first)
    axes.set_yticks([])
    time_axis(axes, length, label=False, n_ticks=3)


def banded(series: Sequence[NDArray[Any]]) -> list[Floats]:
    """The channels of several series scaled alike into bands of height 1, the first channel in the highest band.

    >>> banded([np.array([[0.0, 2.0], [5.0, 5.0]])])[0].round(2).tolist()
    [[1.05, 1.95], [0.5, 0.5]]
    """
    n_channels = len(series[0])
    result = [np.empty(each.shape) for each in series]
    for channel in range(n_channels):
        low, high = limits_of(np.concatenate([each[channel] for each in series]), margin=0.0)
        for scaled, each in zip(result, series, strict=True):
            scaled[channel] = 0.05 + 0.9 * (each[channel] - low) / (high - low) + n_channels - 1 - channel
    return result


def telling_channels(series: Sequence[NDArray[Any]], n: int) -> list[int]:
    """The n channels in which some series differ most from each other, in their order.

    >>> telling_channels([np.array([[0.0, 1.0], [5.0, 5.0]]), np.array([[0.0, 1.0], [9.0, 5.0]])], 1)
    [1]
    """
    n_channels = len(series[0])
    if n_channels <= n:
        return list(range(n_channels))
    length = max(each.shape[1] for each in series)
    stretched = np.stack([resample(np.asarray(each, np.float64), length) for each in series])
    scale = np.array([np.ptp(limits_of(stretched[:, channel], margin=0.0)) for channel in range(n_channels)])
    present = np.isfinite(stretched)
    counts = present.sum(axis=0).clip(1)
    means = np.where(present, stretched, 0.0).sum(axis=0) / counts
    squares = np.where(present, stretched - means, 0.0) ** 2
    spread = (squares.sum(axis=0) / counts).mean(axis=1) / scale**2  # (n_channels,)
    return sorted(np.argsort(-spread, kind="stable")[:n].tolist())
