"""Pictures of comparisons: critical-difference diagram, one method against another, accuracy against time.

Drawn for the width of a text column, in colours that colour-blind readers can tell apart, with matplotlib and without
its global state.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.bench.statistics import ALPHA, DECIMALS, Scores, cliques, standings, wins_ties_losses
from pdftime.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdftime.bench.comparison import Comparison

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
WIDTH = 5.0
"""Inches; text is 8 points, so that it can be read at the width of a column."""
LETTER = 0.072
"""Inches that a letter takes, with some to spare."""
SUFFIXES = (".png", ".svg")


@contextlib.contextmanager
def _style() -> Iterator[None]:
    """Our look, for as long as something is drawn; a clear sentence where matplotlib is missing."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ConfigError("Pictures need matplotlib: pip install 'pdftime[bench]'.") from error
    with matplotlib.rc_context(
        {
            "font.size": 8,
            "font.family": "sans-serif",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "pdftime",
            "svg.fonttype": "none",
        }
    ):
        yield


@_style()
def critical_difference(scores: Scores, ours: Sequence[str] = (), alpha: float = ALPHA) -> Figure:
    """Methods on an axis of mean ranks, the best to the right; a bar joins those that cannot be told apart."""
    common = scores.common()
    placed = sorted(standings(common), key=lambda each: each.mean_rank)
    groups = cliques(common, alpha)
    rank_of = {each.method: each.mean_rank for each in placed}
    n_left = len(placed) // 2  # the worse half is named on the left, the better half on the right
    better, worse = placed[: len(placed) - n_left], placed[len(placed) - n_left :][::-1]
    bars_end = 0.35 + 0.28 * len(groups)
    depth = bars_end + 0.25 + 0.42 * max(len(better), len(worse))
    names = short_names(common.methods)
    margins = [
        0.3 + LETTER * max((len(names[each.method]) + 6 for each in half), default=0) for half in (worse, better)
    ]
    width = max(WIDTH, sum(margins) + 2.0)
    left, right = margins[0] / width, 1 - margins[1] / width
    figure = _figure(0.8 + 0.32 * depth, width)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    low = float(np.floor(placed[0].mean_rank))
    high = max(float(np.ceil(placed[-1].mean_rank)), low + 1)
    axes.set_xlim(0, 1)
    axes.set_ylim(depth + 0.15, -1.15)

    def across(rank: float) -> float:
        return right - (rank - low) / (high - low) * (right - left)

    axes.plot([left, right], [0, 0], color="black", lw=1)
    for tick in np.arange(low, high + 0.25, 0.5 if high - low <= 3 else 1.0).tolist():
        axes.plot([across(tick)] * 2, [-0.16, 0], color="black", lw=1)
        axes.text(across(tick), -0.28, f"{tick:g}", ha="center", va="bottom")
    axes.text(
        0.5,
        -1.1,
        f"mean rank over {len(common.datasets)} datasets; joined: no difference at {alpha:g} (Wilcoxon, Holm)",
        ha="center",
        va="top",
        color=GREY,
    )
    for row, group in enumerate(groups):
        ends = [across(rank_of[group[0]]) + 0.008, across(rank_of[group[-1]]) - 0.008]
        axes.plot(ends, [0.35 + 0.28 * row] * 2, color="black", lw=3, solid_capstyle="butt")
    for side, half in ((1, better), (-1, worse)):
        for row, each in enumerate(half):
            height = bars_end + 0.25 + 0.42 * row
            x, end = across(each.mean_rank), (right + 0.02 if side == 1 else left - 0.02)
            colour = BLUE if each.method in ours else "black"
            axes.plot([x, x, end], [0, height, height], color=colour, lw=1)
            rank, name = f"{each.mean_rank:.2f}", names[each.method]
            text = f"{rank}  {name}" if side == 1 else f"{name}  {rank}"
            axes.text(
                end + 0.01 * side,
                height,
                text,
                ha="left" if side == 1 else "right",
                va="center",
                color=colour,
                fontweight="bold" if each.method in ours else "normal",
            )
    return figure


@_style()
def against(scores: Scores, ours: str, peer: str, n_named: int = 4) -> Figure:
    """Our accuracy over a peer's, a point per dataset; above the diagonal ours is better."""
    both = Scores(
        scores.datasets,
        (ours, peer),
        scores.values[:, [scores.methods.index(ours), scores.methods.index(peer)]],
    ).common()
    y, x = both.values.T
    wins, ties, losses = wins_ties_losses(y, x)
    figure = _figure(WIDTH * 0.86)
    axes = figure.add_axes((0.13, 0.11, 0.83, 0.81))
    low = max(0.0, np.floor(10 * min(x.min(), y.min()) - 0.2) / 10)
    axes.plot([low, 1], [low, 1], color=GREY, lw=1)
    mine, theirs = y.round(DECIMALS), x.round(DECIMALS)
    for kept, marker, colour, inside, text in (
        (mine > theirs, "o", BLUE, BLUE, f"better: {wins}"),
        (mine == theirs, "s", GREY, "none", f"equal: {ties}"),
        (mine < theirs, "^", ORANGE, ORANGE, f"worse: {losses}"),
    ):
        axes.scatter(
            x[kept], y[kept], s=20, marker=marker, color=inside, edgecolors=colour, alpha=0.8, label=text, zorder=3
        )
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, frameon=False, handletextpad=0.1)
    furthest = [place for place in np.argsort(-np.abs(y - x))[:n_named] if abs(y[place] - x[place]) > 0.02]
    names: list[_Corner] = []
    for place in furthest:
        names.append(_roomiest(x, y, int(place), len(both.datasets[place]), low, names))
        to_right, to_top = names[-1].to_right, names[-1].to_top
        axes.annotate(
            both.datasets[place],
            (x[place], y[place]),
            xytext=(4 if to_right else -4, 3 if to_top else -3),
            textcoords="offset points",
            ha="left" if to_right else "right",
            va="bottom" if to_top else "top",
            fontsize=7,
        )
    margin = 0.02 * (1 - low)
    axes.set_xlim(low - margin, 1 + margin)
    axes.set_ylim(low - margin, 1 + margin)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(f"accuracy of {peer}")
    axes.set_ylabel(f"accuracy of {ours}")
    return figure


class _Corner(NamedTuple):
    """Where the name of a point goes, and what it covers, in units of accuracy."""

    to_right: bool
    to_top: bool
    left: float
    right: float
    bottom: float
    top: float

    def covers(self, other: _Corner) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top


def _roomiest(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    place: int,
    n_letters: int,
    low: float,
    names: Sequence[_Corner],
) -> _Corner:
    """The corner of a point for its name: inside the axes, over no other name, and over the fewest points."""
    inch = (1 - low) / (0.81 * 0.86 * WIDTH)  # in units of accuracy

    def corner(to_right: bool, to_top: bool) -> _Corner:
        far_x = x[place] + (0.08 + 0.06 * n_letters) * inch * (1 if to_right else -1)
        far_y = y[place] + 0.2 * inch * (1 if to_top else -1)
        return _Corner(to_right, to_top, *sorted((x[place], far_x)), *sorted((y[place], far_y)))

    def cost(at: _Corner) -> int:
        points = int(((at.left < x) & (x < at.right) & (at.bottom < y) & (y < at.top)).sum())
        crossed = int(at.left < at.top and at.bottom < at.right)  # the diagonal
        outside = at.left < low or at.right > 1 + 0.45 * inch or at.bottom < low or at.top > 1.01
        return points + 2 * crossed + 10 * sum(map(at.covers, names)) + 100 * int(outside)

    return min((corner(to_right, to_top) for to_top in (True, False) for to_right in (True, False)), key=cost)


@_style()
def accuracy_against_time(
    scores: Scores, fit_seconds: Mapping[str, Mapping[str, float]], ours: Sequence[str] = ()
) -> Figure:
    """Mean accuracy over the mean time of a fit, a point per method that was run, over their common datasets."""
    timed = [method for method in scores.methods if fit_seconds.get(method)]
    if not timed:
        raise ConfigError("No row has a fit time; expected rows of methods that were run here.")
    ran = Scores.of(
        {
            method: {
                name: float(value)
                for name, value in zip(scores.datasets, scores.values[:, scores.methods.index(method)], strict=True)
                if name in fit_seconds[method] and not np.isnan(value)
            }
            for method in timed
        }
    ).common()
    seconds = [float(np.mean([fit_seconds[method][name] for name in ran.datasets])) for method in timed]
    means = ran.values.mean(axis=0)
    figure = _figure(WIDTH * 0.6)
    axes = figure.add_axes((0.14, 0.17, 0.82, 0.78))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    for method, x, y in zip(timed, seconds, means, strict=True):
        own = method in ours
        axes.scatter([x], [y], s=36, marker="o" if own else "^", color=BLUE if own else ORANGE)
    axes.set_xlim(min(seconds) / 3, max(seconds) * 3)
    spread = max(float(means.max() - means.min()), 0.02)
    axes.set_ylim(float(means.min()) - 0.3 * spread, float(means.max()) + 0.45 * spread)
    axes.grid(color="#e5e5e5", lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("seconds of a fit, mean (logarithmic)")
    axes.set_ylabel(f"mean accuracy, {len(ran.datasets)} datasets")
    _label(axes, dict(zip(timed, zip(seconds, means.tolist(), strict=True), strict=True)), ours)
    return figure


def _label(axes: Axes, points: Mapping[str, tuple[float, float]], ours: Sequence[str]) -> None:
    """The name of each point above it, or where it stays inside and covers no other name and no point."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(axes.figure).get_renderer()  # type: ignore[arg-type,no-untyped-call]
    markers = {name: axes.transData.transform(place) for name, place in points.items()}
    taken: list[Bbox] = []
    for name, place in points.items():
        own = name in ours
        others = [Bbox([at - 5, at + 5]) for other, at in markers.items() if other != name]
        for offset, ha, va in PLACES:
            text = axes.annotate(
                name,
                place,
                xytext=offset,
                textcoords="offset points",
                ha=ha,
                va=va,
                color=BLUE if own else "black",
                fontweight="bold" if own else "normal",
            )
            box = text.get_window_extent(renderer)
            inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
            free = inside and not any(box.overlaps(each) for each in (*taken, *others))
            if free or (offset, ha, va) == PLACES[-1]:
                taken.append(box)
                break
            text.remove()


PLACES = (
    ((0, 7), "center", "bottom"),
    ((8, 0), "left", "center"),
    ((0, -7), "center", "top"),
    ((-8, 0), "right", "center"),
    ((6, 6), "left", "bottom"),
    ((6, -6), "left", "top"),
    ((-6, 6), "right", "bottom"),
    ((-6, -6), "right", "top"),
    ((0, -28), "center", "top"),
    ((0, 28), "center", "bottom"),
)


def short_names(methods: Sequence[str]) -> dict[str, str]:
    """Names without the source of their figures, where they still differ.

    >>> list(short_names(["ROCKET (authors)", "QUANT (authors)", "QUANT (tsml-eval)"]).values())
    ['ROCKET', 'QUANT (authors)', 'QUANT (tsml-eval)']
    """
    short = {method: re.sub(r" \(.*\)$", "", method) for method in methods}
    seen = [name.lower() for name in short.values()]
    return {method: name if seen.count(name.lower()) == 1 else method for method, name in short.items()}


def figures_of(comparison: Comparison) -> dict[str, Figure]:
    """Every picture of a comparison, by the name of its file without a suffix."""
    figures: dict[str, Figure] = {}
    if len(comparison.scores.methods) > 1:
        figures[f"{comparison.archive}-critical-difference"] = critical_difference(comparison.scores, comparison.ours)
    for peer in comparison.scores.methods[1:]:
        name = f"{comparison.archive}-against-{slug(peer)}"
        figures[name] = against(comparison.scores, comparison.ran[0], peer)
    if any(comparison.fit_seconds.values()):
        figures[f"{comparison.archive}-time"] = accuracy_against_time(
            comparison.scores, comparison.fit_seconds, comparison.ours
        )
    return figures


def slug(name: str) -> str:
    """A name as a part of a file's name.

    >>> slug("HIVE-COTE 2.0 (tsml-eval)")
    'hive-cote-2-0-tsml-eval'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def digest(numbers: Any) -> str:
    """A fingerprint of what a picture shows, kept in its file, so that a test can tell an old picture.

    >>> digest({"a": 0.5}) == digest({"a": 0.5}), digest({"a": 0.5}) == digest({"a": 0.6})
    (True, False)
    """
    return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:16]


def numbers_of(scores: Scores) -> list[Any]:
    """What a picture of scores shows, ready for `digest`."""
    return [scores.datasets, scores.methods, np.nan_to_num(scores.values, nan=-1.0).round(6).tolist()]


def save(figure: Figure, path: Path, fingerprint: str = "") -> None:
    """Write a picture; the same figure gives the same bytes."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path.name} has the suffix {path.suffix!r}; expected one of {', '.join(SUFFIXES)}.")
    metadata = {"Description": f"numbers {fingerprint}"} if fingerprint else {}
    if path.suffix == ".svg":
        metadata = {**metadata, "Date": None}  # type: ignore[dict-item]
    with _style():
        figure.savefig(path, dpi=200, metadata=metadata)


def _figure(height: float, width: float = WIDTH) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor="white")
