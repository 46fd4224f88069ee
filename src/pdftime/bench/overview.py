"""The tables of a comparison: overview, pairs, datasets, largest losses, figures under other protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pdftime.bench import published
from pdftime.bench.comparison import Comparison, n_datasets
from pdftime.bench.gathered import is_ours, mean_by_dataset
from pdftime.bench.statistics import pairs, standings
from pdftime.bench.tables import Cell, Column, Table, best_of_each_row
from pdftime.errors import ConfigError

if TYPE_CHECKING:
    from pdftime.bench.store import Row

PUBLISHED_AS = {"inceptiontime": "Inception"}
"""Peers whose published namesake is something else: here one network is trained, the published is a mean of five."""
_Behind = tuple[str, float, float, float]  # dataset, ours, theirs, difference


def summary(comparison: Comparison, *, digits: int = 4) -> Table:
    """Mean accuracy, mean rank, how often best, wins, ties and losses of each method, over the common datasets."""
    scores = comparison.scores.common()
    first = scores.methods[0]
    p_holm = {pair.second: pair.p_holm for pair in pairs(scores) if pair.first == first}
    rows = [
        (
            each.method,
            "run here" if each.method in comparison.ran else "published",
            each.mean,
            each.mean_rank,
            each.n_best,
            None if each.method == first else f"{each.losses}/{each.ties}/{each.wins}",
            _p_text(p_holm.get(each.method)),
        )
        for each in sorted(standings(scores), key=lambda each: -each.mean)
    ]
    return Table(
        title=f"{comparison.name}: mean over {n_datasets(len(scores.datasets))}",
        columns=(
            Column("method"),
            Column("figures"),
            Column("mean accuracy", f".{digits}f"),
            Column("mean rank", ".2f"),
            Column("best on", "d"),
            Column(f"{first} wins/ties/loses", "s"),
            Column("p (Holm)", "s"),
        ),
        rows=tuple(rows),
        notes=(
            *comparison.notes,
            "Accuracies tie when equal to four decimals; tied methods share the mean rank and each counts as best.",
            "p: Wilcoxon's signed-rank test, two-sided, exact, zero differences ranked and then dropped (Pratt), "
            f"Holm over all {len(scores.methods) * (len(scores.methods) - 1) // 2} pairs.",
        ),
        strong=frozenset(
            (place, column) for place, row in enumerate(rows) if row[0] in comparison.ours for column in (0, 2)
        ),
    )


def pairwise(comparison: Comparison) -> Table:
    """Every two methods: difference, wins, ties, losses, and the signed-rank test."""
    scores = comparison.scores.common()
    return Table(
        title=f"{comparison.name}: every two methods over {n_datasets(len(scores.datasets))}",
        columns=(
            Column("first"),
            Column("second"),
            Column("mean difference", "+.4f"),
            Column("wins/ties/losses", "s"),
            Column("p", "s"),
            Column("p (Holm)", "s"),
        ),
        rows=tuple(
            (
                pair.first,
                pair.second,
                pair.mean_difference,
                f"{pair.wins}/{pair.ties}/{pair.losses}",
                _p_text(pair.p),
                _p_text(pair.p_holm),
            )
            for pair in pairs(scores)
        ),
    )


def by_dataset(comparison: Comparison, *, digits: int = 4) -> Table:
    """Every dataset that was run, also those that not every method has; the best of each row is brought out."""
    scores, n_ran = comparison.scores, len(comparison.ran)
    ran = np.flatnonzero(~np.isnan(scores.values[:, :n_ran]).all(axis=1))
    rows: list[tuple[Cell, ...]] = [
        (scores.datasets[place], *(None if np.isnan(value) else float(value) for value in scores.values[place]))
        for place in ran
    ]
    return Table(
        title=f"{comparison.name}: accuracy on each dataset",
        columns=(Column("dataset"), *(Column(method, f".{digits}f") for method in scores.methods)),
        rows=tuple(rows),
        strong=best_of_each_row(rows, range(1, len(scores.methods) + 1)),
    )


def largest_losses(comparison: Comparison, peer: str, n: int = 10) -> Table:
    """The datasets on which our first method is furthest behind a peer."""
    ours = comparison.ran[0]
    place = comparison.scores.methods.index(peer)
    both = [
        (name, float(values[0]), float(values[place]), float(values[0] - values[place]))
        for name, values in zip(comparison.scores.datasets, comparison.scores.values, strict=True)
        if not np.isnan(values[[0, place]]).any()
    ]
    worst = [row for row in sorted(both, key=lambda row: (row[3], row[0])) if row[3] < 0][:n]
    sizes = comparison.sizes
    without = f"; without these {len(worst)} its mean difference would be {_mean_without(both, worst):+.4f}"
    return Table(
        title=f"{comparison.name}: where {ours} is furthest behind {peer}",
        columns=(
            Column("dataset"),
            Column("training cases", "d"),
            Column("classes", "d"),
            Column("length", "d"),
            Column(ours, ".4f"),
            Column(peer, ".4f"),
            Column("difference", "+.4f"),
        ),
        rows=tuple((row[0], *sizes.get(row[0], (None, None, None)), *row[1:]) for row in worst),
        notes=(
            f"Of {n_datasets(len(both))}, {ours} is behind on {sum(row[3] < 0 for row in both) or 'none'}"
            f"{without if worst else ''}.",
        ),
    )


def beside(comparison: Comparison) -> Table | None:
    """Figures under other protocols, each with our mean on the very same datasets; None if there are none."""
    ours = comparison.ran[0]
    own = {
        name: float(value)
        for name, value in zip(comparison.scores.datasets, comparison.scores.values[:, 0], strict=True)
        if not np.isnan(value)
    }
    rows: list[tuple[Cell, ...]] = []
    for each in comparison.beside:
        shared = [name for name in own if name in each.accuracies]
        if shared:
            theirs, mine = (float(np.mean([source[name] for name in shared])) for source in (each.accuracies, own))
            rows.append((each.name, each.standing, len(shared), theirs, mine))
    if not rows:
        return None
    return Table(
        title=f"{comparison.name}: figures under other protocols, not to be compared as equals",
        columns=(
            Column("method"),
            Column("standing"),
            Column("datasets", "d"),
            Column("mean accuracy", ".4f"),
            Column(f"{ours} on the same", ".4f"),
        ),
        rows=tuple(rows),
    )


def agreement(rows: Iterable[Row]) -> list[Table]:
    """Peers that were run here beside the published figures of the same method: does the harness agree?"""
    ran = [row for row in rows if not is_ours(row) and row.resample == 0]
    tables = []
    for method in dict.fromkeys(row.method for row in ran):
        cells: list[tuple[Cell, ...]] = []
        labels: set[str] = set()
        own = [row for row in ran if row.method == method]
        accuracies = next(iter(mean_by_dataset(own).values()), {})
        for archive in published.ARCHIVES:
            datasets = [name for name in accuracies if published.archive_of(name) == archive]
            try:
                column = published.find(archive, PUBLISHED_AS.get(method, method.partition("{")[0]), datasets)
            except ConfigError:
                continue
            shared = sorted((name for name in datasets if name in column.accuracies), key=str.lower)
            labels |= {column.label} if shared else set()
            cells += [
                (
                    name,
                    archive.upper(),
                    accuracies[name],
                    column.accuracies[name],
                    accuracies[name] - column.accuracies[name],
                )
                for name in shared
            ]
        if cells:
            differences = np.array([row[4] for row in cells], float)
            tables.append(
                Table(
                    title=f"{method}, run here and published, on {n_datasets(len(cells))}",
                    columns=(
                        Column("dataset"),
                        Column("archive"),
                        Column("run here", ".4f"),
                        Column("published", ".4f"),
                        Column("difference", "+.4f"),
                    ),
                    rows=tuple(cells),
                    notes=(
                        f"Mean difference {differences.mean():+.4f}, mean size {np.abs(differences).mean():.4f}, "
                        f"largest {np.abs(differences).max():.4f}.",
                        f"Published: {', '.join(sorted(labels))}.",
                    ),
                )
            )
    return tables


def all_tables(comparisons: Sequence[Comparison], behind: Sequence[str] = ()) -> list[Table]:
    """Every table of every archive, in reading order; `behind` names peers to list the largest losses against."""
    tables: list[Table] = []
    for comparison in comparisons:
        tables.append(summary(comparison))
        if len(comparison.scores.methods) > 2:
            tables.append(pairwise(comparison))
        peers = [peer for name in behind if (peer := comparison.peer(name)) is not None]
        tables += [largest_losses(comparison, peer) for peer in peers]
        tables.append(by_dataset(comparison))
        aside = beside(comparison)
        if aside is not None:
            tables.append(aside)
    return tables


def _mean_without(rows: Sequence[_Behind], left_out: Sequence[_Behind]) -> float:
    kept = [row[3] for row in rows if row not in left_out]
    return float(np.mean(kept)) if kept else 0.0


def _p_text(p: float | None) -> str | None:
    """
    >>> _p_text(0.0312), _p_text(1e-7), _p_text(None)
    ('0.031', '<0.001', None)
    """
    return None if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"
