"""Whether several runs find the same prototypes: matched inside a class, with a number and its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.errors import DataError
from pdftime.explain.explanation import Floats
from pdftime.explain.figures.style import (
    COLUMN,
    GREY,
    INK,
    PAGE,
    SMALL,
    headline,
    legend_below,
    look_of,
    name_of,
    new_figure,
    room_for,
    short,
    styled,
)
from pdftime.explain.figures.traces import draw_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_CLASSES = 40
SHOWN_PROTOTYPES = 6


class Stability(NamedTuple):
    """How alike the prototypes of several runs are, after matching."""

    order: NDArray[np.int64]
    """(n_runs, n_classes, k): the number, in each run, of the prototype that matches number j of the first run."""
    correlations: Floats
    """(n_runs, n_classes, k) of profiles with those of the first run, matched; 1 for the first run itself."""
    correlation: float
    """Mean over all pairs of runs, classes and matched prototypes; -1 to 1."""
    correlation_by_chance: float
    """The same where prototypes are paired within a class without looking."""
    membership: float
    """Share of cases that belong, in both of two runs, to prototypes that match; mean over pairs of runs."""
    membership_by_chance: float
    """The same if the memberships in the two runs had nothing to do with each other."""


def profiles_of(embeddings: Sequence[NDArray[Any]], prototypes: Sequence[NDArray[Any]]) -> Floats:
    """(n_runs, n_classes, k, n_cases): the cosine of every prototype of every run to the same cases.

    Runs have spaces of their own, so prototypes are compared by what they say of common cases. Per run,
    `embeddings` holds (n_cases, d) and `prototypes` (n_classes, k, d).
    """
    result = []
    for z, own in zip(embeddings, prototypes, strict=True):
        unit = z / np.linalg.norm(z, axis=1, keepdims=True).clip(1e-12)
        result.append(np.einsum("nd,ckd->ckn", unit, own / np.linalg.norm(own, axis=-1, keepdims=True)))
    if len({each.shape for each in result}) > 1:
        raise DataError(
            f"The runs have prototypes and cases of shapes {[each.shape for each in result]}; expected the same "
            "number of classes, prototypes and cases. Compare models of the same settings."
        )
    return np.stack(result).astype(np.float64)


def match_prototypes(profiles: Floats, codes: NDArray[np.int64]) -> Stability:
    """Match prototypes of one class by their profiles over the cases of that class, so that the sum is highest.

    Only cases of the class itself count: that classes differ would make any two runs look alike.
    """
    n_runs, n_classes, k, _ = profiles.shape
    if n_runs < 2:
        raise DataError("Stability was asked for one run; expected at least 2, fitted with different seeds.")
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    if counts.min() < 2:
        raise DataError(
            f"Class {int(counts.argmin())} (from 0) has {counts.min()} case(s) to compare prototypes by; "
            "expected at least 2 of every class."
        )
    order = np.tile(np.arange(k), (n_runs, n_classes, 1))
    correlations = np.ones((n_runs, n_classes, k))
    matched, paired, shared, lucky = [], [], [], []
    for first, second in combinations(range(n_runs), 2):
        for code in range(n_classes):
            a, b = (profiles[run, code][:, codes == code] for run in (first, second))
            table = _correlations(a, b)
            match = _assignment(table)
            matched.append(table[np.arange(k), match].mean())
            paired.append(table.mean())
            mine, theirs = a.argmax(axis=0), b.argmax(axis=0)
            shared.append((match[mine] == theirs).mean() * counts[code])
            sizes = np.bincount(mine, minlength=k) * np.bincount(theirs, minlength=k)[match]
            lucky.append(sizes.sum() / counts[code])
            if first == 0:
                order[second, code], correlations[second, code] = match, table[np.arange(k), match]
    n_pairs = n_runs * (n_runs - 1) // 2
    return Stability(
        order,
        correlations,
        correlation=float(np.mean(matched)),
        correlation_by_chance=float(np.mean(paired)),
        membership=float(np.sum(shared) / counts.sum() / n_pairs),
        membership_by_chance=float(np.sum(lucky) / counts.sum() / n_pairs),
    )


def _correlations(a: Floats, b: Floats) -> Floats:
    """(k, k): Pearson's r between rows of a and rows of b; 0 where a row is constant."""
    a, b = (each - each.mean(axis=1, keepdims=True) for each in (a, b))
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None, :]
    result: Floats = np.where(norms > 1e-12, a @ b.T / norms.clip(1e-12), 0.0)
    return result


def _assignment(table: Floats) -> NDArray[np.int64]:
    """(k,): the column of each row in the one-to-one pairing with the highest sum."""
    from scipy.optimize import linear_sum_assignment

    columns: NDArray[np.int64] = linear_sum_assignment(table, maximize=True)[1]
    return columns


@styled
def draw_stability(stability: Stability, classes: Sequence[Any], *, width: float = COLUMN) -> Figure:
    """The correlation of every prototype of the first run with its match in each other run, a row per class."""
    n_runs, n_classes, k = stability.order.shape
    height = 0.16 if n_classes <= SHOWN_CLASSES else 0.16 * SHOWN_CLASSES / n_classes
    figure = new_figure(width, 1.35 + height * max(n_classes, 3))
    axes = figure.subplots()
    entries = []
    for run in range(1, n_runs):
        look = look_of(run - 1)
        rows = np.arange(n_classes)[:, None] + (run - n_runs / 2) * 0.6 / n_runs + np.zeros((n_classes, k))
        dots = axes.scatter(
            stability.correlations[run].ravel(), rows.ravel(), s=10, c=look.colour, marker=look.marker, linewidths=0
        )
        entries.append((dots, f"run {run + 1}"))
    mean = axes.axvline(stability.correlation, color=INK, linewidth=0.8)
    chance = axes.axvline(stability.correlation_by_chance, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    step = int(np.ceil(n_classes / SHOWN_CLASSES))
    axes.set_yticks(range(0, n_classes, step), [short(label, 16) for label in classes[::step]])
    axes.set_ylim(n_classes - 0.5, -0.5)
    axes.set_xlim(min(-0.05, float(stability.correlations.min()) - 0.05), 1.03)
    axes.set_xlabel("correlation with the matched prototype of run 1")
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.5)
    axes.set_axisbelow(True)
    legend_below(figure, [*entries, (mean, "mean of all pairs"), (chance, "by chance")])
    headline(figure, stability_words(stability))
    return figure


@styled
def draw_matched(
    stability: Stability,
    classes: Sequence[Any],
    label: Any,
    series: Mapping[tuple[int, int], Sequence[NDArray[Any]]],
    *,
    channel: int | None = None,
    width: float = PAGE,
) -> Figure:
    """The prototypes of one class in every run, matched ones in a column: the training series nearest to each.

    `series` holds them by (run, number of the prototype in that run), nearest first.
    """
    n_runs, _, k = stability.order.shape
    if label not in classes:
        raise DataError(f"{label!r} is no class of these models; expected one of {list(classes)!r:.300}.")
    code = list(classes).index(label)
    length = max(each.shape[1] for some in series.values() for each in some)
    columns = min(k, SHOWN_PROTOTYPES)
    figure = new_figure(width, 0.7 + 0.85 * n_runs)
    panels = figure.subplots(n_runs, columns, squeeze=False)
    roomy = room_for(width / columns - 0.15, SMALL) >= len("prototype 1, r 0.99")
    for run, column in product(range(n_runs), range(columns)):
        axes, number = panels[run, column], int(stability.order[run, code, column])
        draw_cell(axes, series[run, number], look_of(column).colour, length, channel)
        value = "" if run == 0 else f", r {stability.correlations[run, code, column]:.2f}"
        axes.set_title(f"{'prototype ' if roomy else ''}{number + 1}{value}", loc="left", fontsize=SMALL)
        axes.tick_params(labelbottom=run == n_runs - 1)
        if column == 0:
            axes.set_ylabel(f"run {run + 1}")
    figure.supxlabel("time point")
    some = f"{columns} of {k} matched" if columns < k else "matched"
    headline(figure, f"Class {name_of(label)}: {some} prototypes of {n_runs} runs. {stability_words(stability)}")
    return figure


def stability_words(stability: Stability) -> str:
    """The numbers in a sentence."""
    return (
        f"Correlation of matched prototypes {stability.correlation:.2f} "
        f"(chance {stability.correlation_by_chance:.2f}); {stability.membership:.0%} of series with the same one "
        f"(chance {stability.membership_by_chance:.0%})."
    )
