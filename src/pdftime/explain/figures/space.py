"""The space in which series are compared with prototypes, flattened: by t-SNE or along its main directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import ConfigError
from pdftime.explain.explanation import Floats
from pdftime.explain.figures.style import COLUMN, GREY, INK, PAGE, legend_below, look_of, new_figure, short, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("tsne", "pca")
PERPLEXITY = 30.0
SHOWN_CLASSES = 30


class Plane(NamedTuple):
    """Vectors on the plane in which they differ most."""

    points: Floats
    """(n, 2)."""
    shares: tuple[float, float]
    """Of all variance, along each axis."""


class SpaceMap(NamedTuple):
    """Embeddings and prototypes of one model, flattened together."""

    points: Floats
    """(n_cases, 2)."""
    prototypes: Floats
    """(n_classes, k, 2); k is 0 where the head has no prototypes."""
    method: str
    """'tsne' or 'pca'."""
    shares: tuple[float, float] | None
    """Of all variance, along each axis; None for t-SNE, whose axes have no meaning."""


def plane_of(vectors: Floats) -> Plane:
    """Principal components 1 and 2 of (n, d) vectors; 0 where there is no second direction."""
    centred = vectors - vectors.mean(axis=0)
    _, scale, directions = np.linalg.svd(centred, full_matrices=False)
    scale, directions = np.append(scale, [0.0, 0.0])[:2], directions[:2]
    turned = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    points = np.zeros((len(vectors), 2))
    points[:, : len(directions)] = centred @ (directions * turned[:, None]).T
    total = float((centred**2).sum())
    first, second = (scale**2 / total if total > 0.0 else np.zeros(2)).tolist()
    return Plane(points, (first, second))


def flatten(embeddings: NDArray[Any], prototypes: NDArray[Any], method: str = "tsne", seed: int = 0) -> SpaceMap:
    """(n_cases, d) embeddings and (n_classes, k, d) prototypes on one plane, as unit vectors: so the head sees them.

    t-SNE begins at the main directions and is seeded: the same numbers give the same map.
    """
    if method not in METHODS:
        raise ConfigError(f"method is {method!r}; expected one of {METHODS}.")
    n_classes, k, d = prototypes.shape
    vectors = np.concatenate([embeddings, prototypes.reshape(-1, d)]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    points, shares = plane_of(vectors)
    if method == "tsne" and len(vectors) > 3 and points.any():
        from sklearn.manifold import TSNE

        start = 1e-4 * points / points[:, 0].std()
        perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
        tsne = TSNE(init=start.astype(np.float32), perplexity=perplexity, random_state=seed)
        points = tsne.fit_transform(vectors.astype(np.float32)).astype(np.float64)
    cases, flat = points[: len(embeddings)], points[len(embeddings) :]
    return SpaceMap(cases, flat.reshape(n_classes, k, 2), method, shares if method == "pca" else None)


@styled
def draw_space(
    maps: Sequence[SpaceMap],
    codes: Sequence[NDArray[np.int64]] | NDArray[np.int64],
    classes: Sequence[Any],
    titles: Sequence[str],
    *,
    width: float | None = None,
) -> Figure:
    """Embeddings as dots and prototypes as X in the colours of their classes, a panel per map and title.

    `codes` are the classes of the cases, -1 where it is not known. Two maps, of a model with a prototype head and
    of one with a linear head, make the paper's Fig. 3.
    """
    from matplotlib.lines import Line2D

    if width is None:
        width = COLUMN if len(maps) == 1 else PAGE
    columns = max(1, min(len(maps), int(width // 2.2)))
    rows = -(-len(maps) // columns)
    side = width / columns
    named = len(classes) <= SHOWN_CLASSES
    figure = new_figure(width, rows * side * 0.92 + (0.15 * (1 + len(classes) * 0.9 // width) if named else 0.0))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    codes = np.asarray(codes)
    for axes, each, title in zip(panels, maps, titles, strict=False):
        _draw_map(axes, each, codes)
        axes.set_title(title, loc="left", fontweight="bold")
        if each.shares is None:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel("t-SNE (no units)")
        else:
            axes.set_xlabel(f"first component ({each.shares[0]:.0%})")
            axes.set_ylabel(f"second component ({each.shares[1]:.0%})")
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    dot = {"linestyle": "none", "markersize": 4}
    entries = []
    if named:
        entries = [
            (Line2D([], [], color=look_of(code).colour, marker=look_of(code).marker, **dot), short(label, 16))  # type: ignore[arg-type]
            for code, label in enumerate(classes)
        ]
    if (codes < 0).any():
        entries.append((Line2D([], [], color=GREY, marker=".", **dot), "no label"))  # type: ignore[arg-type]
    if any(each.prototypes.size for each in maps):
        mark = Line2D([], [], color="white", marker="X", markeredgecolor=INK, linestyle="none", markersize=6)
        entries.append((mark, "prototype"))
    if entries:
        legend_below(figure, entries)
    return figure


def _draw_map(axes: Axes, each: SpaceMap, codes: NDArray[np.int64]) -> None:
    size = float(np.clip(1500 / max(len(codes), 1), 3, 14))
    for code in np.unique(codes).tolist():
        own, look = each.points[codes == code], look_of(code)
        colour, marker = (GREY, ".") if code < 0 else (look.colour, look.marker)
        axes.scatter(own[:, 0], own[:, 1], s=size, c=colour, marker=marker, alpha=0.6, linewidths=0, zorder=2)
    for code, own in enumerate(each.prototypes):
        axes.scatter(
            own[:, 0], own[:, 1], s=42, c=look_of(code).colour, marker="X", edgecolors=INK, linewidths=0.6, zorder=3
        )
