"""How prototypes move during training: their paths in a plane, and how far each step goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pdftime.errors import DataError
from pdftime.explain.figures.space import Plane, plane_of
from pdftime.explain.figures.style import COLUMN, INK, headline, legend_below, look_of, new_figure, short, styled
from pdftime.explain.gallery import Evolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_CLASSES = 14
SHOWN_RANGES = 4


def evolution_plane(evolution: Evolution) -> Plane:
    """The plane in which all the kept prototypes differ most; `Plane.points` is (n_kept, n_classes, k, 2)."""
    plane = plane_of(evolution.prototypes.reshape(-1, evolution.prototypes.shape[-1]))
    return plane._replace(points=plane.points.reshape(*evolution.prototypes.shape[:-1], 2))


@styled
def draw_evolution(evolution: Evolution, plane: Plane, classes: Sequence[Any], *, width: float = COLUMN) -> Figure:
    """Each prototype's path from its start (ring) to its end (X), and how far it moved from one time to the next.

    `plane` comes from `evolution_plane`.
    """
    if len(evolution.epochs) < 2:
        raise DataError(
            f"Prototypes were kept {len(evolution.epochs)} time(s); expected at least 2. "
            "Fit with keep_prototypes at a smaller number of epochs."
        )
    wide = width >= 5
    figure = new_figure(width, 3.0 if wide else 4.6)
    paths, steps = figure.subplots(*((1, 2) if wide else (2, 1)))
    _, n_classes, k, _ = plane.points.shape
    entries = []
    for code in range(n_classes):
        look = look_of(code)
        for number in range(k):
            x, y = plane.points[:, code, number].T
            paths.plot(x, y, color=look.colour, linewidth=0.8, marker=".", markersize=2.5, alpha=0.5)
            paths.plot(x[:1], y[:1], color=look.colour, marker="o", markersize=4, markerfacecolor="white")
            paths.plot(x[-1:], y[-1:], color=look.colour, marker="X", markersize=6, markeredgecolor=INK, mew=0.5)
        moved = evolution.steps[:, code]  # (n_kept - 1, k)
        if k > 1 and n_classes <= SHOWN_RANGES:
            steps.fill_between(
                evolution.epochs[1:], moved.min(axis=1), moved.max(axis=1), color=look.colour, alpha=0.12, linewidth=0
            )
        (line,) = steps.plot(
            evolution.epochs[1:],
            moved.mean(axis=1),
            color=look.colour,
            linestyle=look.dashes,
            marker=look.marker,
            markersize=3,
        )
        entries.append((line, short(classes[code], 16)))
    first, second = plane.shares
    paths.set_xlabel(f"first component ({first:.0%})")
    paths.set_ylabel(f"second component ({second:.0%})")
    paths.set_title("paths: ring to X", loc="left", fontweight="bold")
    steps.set_xlabel("epoch")
    steps.set_ylabel("1 - cosine to the time before")
    steps.set_ylim(bottom=0.0)
    steps.xaxis.get_major_locator().set_params(integer=True)
    steps.set_title(
        "steps: mean of a class" + (", and range" if n_classes <= SHOWN_RANGES and k > 1 else ""),
        loc="left",
        fontweight="bold",
    )
    if n_classes <= SHOWN_CLASSES:
        legend_below(figure, entries)
    gaps = sorted(set((evolution.epochs[1:] - evolution.epochs[:-1]).tolist()))
    every = f"every {gaps[0]} epochs" if len(gaps) == 1 else f"at {len(evolution.epochs)} times"
    headline(figure, f"Prototypes of level {evolution.level + 1} during training, kept {every}.")
    return figure
