"""Checks of an explanation, drawn: what happens to the probability when the map's first choices go, or come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pdftime.explain.explanation import Checks, Curve
from pdftime.explain.figures.style import (
    BLUE,
    COLUMN,
    DASHES,
    GREY,
    headline,
    legend_below,
    name_of,
    new_figure,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def draw_curves(checks: Checks, target: Any, *, width: float = COLUMN) -> Figure:
    """Deletion and insertion in the order of the map, against random orders: their mean and range."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    wide = width >= 5
    figure = new_figure(width, 2.1 if wide else 3.3)
    panels = figure.subplots(*((1, 2) if wide else (2, 1)), sharey=True)
    _draw_curve(panels[0], checks.deletion, "deletion", "share taken away, first choices first (%)")
    _draw_curve(panels[1], checks.insertion, "insertion", "share given back, first choices first (%)")
    for axes in panels if not wide else panels[:1]:
        axes.set_ylabel("probability")
    n_orders = len(checks.deletion.by_chance)
    legend_below(
        figure,
        [
            (Line2D([], [], color=BLUE, linewidth=1.4), "by the map"),
            (Line2D([], [], color=GREY, linestyle=DASHES[1]), f"by chance, mean of {n_orders}"),
            (Patch(color=GREY, alpha=0.2, linewidth=0), "their range"),
        ],
    )
    headline(figure, f"Probability of {name_of(target)} as the series is taken apart and put together.")
    return figure


def _draw_curve(axes: Axes, curve: Curve, title: str, label: str) -> None:
    percent = 100.0 * curve.shares
    axes.fill_between(
        percent, curve.by_chance.min(axis=0), curve.by_chance.max(axis=0), color=GREY, alpha=0.2, linewidth=0
    )
    axes.plot(percent, curve.by_chance.mean(axis=0), color=GREY, linestyle=DASHES[1], linewidth=1.0)
    axes.plot(percent, curve.by_map, color=BLUE, linewidth=1.4, marker="o", markersize=2.5)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(label)
    axes.set_title(title, loc="left", fontweight="bold")
