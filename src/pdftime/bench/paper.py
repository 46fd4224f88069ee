"""The paper's experiments: which methods and datasets each one takes, and its tables beside the printed values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pdftime.bench import published
from pdftime.bench.ablations import ABLATIONS
from pdftime.bench.comparison import OTHER_PROTOCOL, compare
from pdftime.bench.overview import beside, by_dataset, summary
from pdftime.bench.tables import Cell, Column, Table, best_of_each_row
from pdftime.config import PRESETS, preset
from pdftime.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pdftime.bench.archives import Dataset
    from pdftime.bench.store import Row

QUICK = "max_epochs=null,n_steps=150"
"""Settings of a look in minutes."""
N_QUICK = 3
"""Datasets of a look in minutes."""


@dataclass(frozen=True)
class Variant:
    """One line of a table of the paper."""

    label: str
    ablation: str | None
    """Its name in `ABLATIONS`; None: the whole method."""
    printed: float | None
    """The mean accuracy that the paper prints for it."""


PRINTED = f"PDFTime {OTHER_PROTOCOL}"
FULL = Variant("PDFTime, whole", None, 0.783)


@dataclass(frozen=True)
class Experiment:
    """A table of the paper."""

    title: str
    archive: str
    variants: tuple[Variant, ...]
    """The whole method comes last, as in the paper."""

    @property
    def is_ablation(self) -> bool:
        return len(self.variants) > 1


EXPERIMENTS = {
    "uea": Experiment("UEA archive", "uea", (FULL,)),
    "ucr": Experiment("UCR archive", "ucr", (Variant("PDFTime, whole", None, 0.9461),)),
    "embedding": Experiment(
        "Embedding",
        "uea",
        (
            Variant("no weights on frequencies", "no-frequency-mask", 0.766),
            Variant("linear embedding", "linear-embedding", 0.686),
            FULL,
        ),
    ),
    "head": Experiment(
        "Head",
        "uea",
        (
            Variant("linear head", "linear-head", 0.754),
            Variant("one level of prototypes", "one-level", 0.763),
            Variant("prototypes by back-propagation", "prototypes-by-gradient", 0.761),
            FULL,
        ),
    ),
    "momentum": Experiment(
        "Momentum of the prototypes",
        "uea",
        (
            Variant("fixed, 1", "momentum-1", 0.767),
            Variant("fixed, 0.999", "momentum-0.999", 0.771),
            Variant("fixed, 0.95", "momentum-0.95", 0.768),
            Variant("Algorithm 1, 0.7 to 0.99", "momentum-0.7-0.99", 0.755),
            Variant("Algorithm 1, 0.95 to 0.999", "momentum-0.95-0.999", 0.766),
            Variant("Algorithm 1, 0.97 to 0.997 (appendix C)", "momentum-0.97-0.997", None),
            Variant("Algorithm 1, 0.99 to 0.999 (section 4.4)", "momentum-0.99-0.999", None),
            FULL,
        ),
    ),
    "prototypes": Experiment(
        "Prototypes per class and level",
        "uea",
        (
            Variant("3, 3, 3", "prototypes-3-3-3", 0.763),
            Variant("5, 3", "prototypes-5-3", 0.772),
            Variant("3, 3", "prototypes-3-3", 0.780),
            Variant("2, 2", "prototypes-2-2", 0.778),
            Variant("2, 3 (whole)", "prototypes-2-3", 0.783),
        ),
    ),
}
"""By name on the command line. The paper prints 0.783 for the whole method, and gives its momenta as 0.99 to 0.999
in section 4.4 and as 0.97 to 0.997 in appendix C."""


class Parts(NamedTuple):
    """A method's name taken apart."""

    preset: str
    ablation: str | None
    overrides: str


def experiment_of(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}; expected one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def method_names(experiment: Experiment, base: str = "network", overrides: str = "") -> list[str]:
    """The methods to run, as `pdftime bench run` takes them; a variant that changes nothing is the whole method.

    >>> method_names(experiment_of("embedding"), overrides="n_steps=150")[1:]
    ['network+linear-embedding:n_steps=150', 'network:n_steps=150']
    """
    names = [_method_name(variant, base, overrides) for variant in experiment.variants]
    return list(dict.fromkeys(names))


def parts_of(method: str) -> Parts | None:
    """A method's preset, ablation and overrides; None where it is no single ablation of ours.

    >>> parts_of("paper+linear-head:n_steps=150")
    Parts(preset='paper', ablation='linear-head', overrides='n_steps=150')
    >>> parts_of("rocket") is None
    True
    """
    names, _, overrides = method.partition(":")
    first, _, ablation = names.partition("+")
    if first in ABLATIONS and not ablation:
        first, ablation = "network", first
    if first not in PRESETS or (ablation and ablation not in ABLATIONS):
        return None
    return Parts(first, ablation or None, overrides)


def datasets_of(
    experiment: Experiment, found: Sequence[Dataset], *, quick: bool = False, chosen: bool = False
) -> list[Dataset]:
    """Which of these datasets an experiment takes.

    The two main tables take all of their archive, an ablation those of the paper's ten; a quick look the few with
    the fewest training values. What was `chosen` by name is taken as it is.
    """
    if chosen:
        return list(found)
    fitting = [each for each in found if (each.archive or published.archive_of(each.name)) == experiment.archive]
    if experiment.is_ablation:
        printed = published.printed(experiment.archive)["PDFTime"]
        fitting = [each for each in fitting if each.name in printed] or fitting
    if not fitting:
        raise DataError(f"No dataset of the {experiment.archive.upper()} archive is among the {len(found)} found.")
    return sorted(fitting, key=lambda each: each.cost())[:N_QUICK] if quick else fitting


def tables_of(experiment: Experiment, rows: Iterable[Row]) -> list[Table]:
    """The tables of an experiment from rows of its methods, one set for every preset and overrides in them."""
    by_base: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        parts = parts_of(row.method)
        if parts is not None:
            by_base[parts.preset, parts.overrides].append(row)
    tables: list[Table] = []
    for (base, overrides), own in by_base.items():
        if experiment.is_ablation:
            tables += _ablation_tables(experiment, own, base, overrides)
        else:
            tables += _main_tables(experiment, own, base, overrides)
    if not tables:
        raise DataError(f"There is no row of {', '.join(method_names(experiment))}; run the experiment first.")
    return tables


def spread_over_seeds(accuracies: Mapping[int, float]) -> float | None:
    """The standard deviation over seeds; None for a single one.

    >>> spread_over_seeds({0: 0.5, 1: 0.5}), spread_over_seeds({0: 0.5})
    (0.0, None)
    """
    return float(np.std(list(accuracies.values()), ddof=1)) if len(accuracies) > 1 else None


def _method_name(variant: Variant, base: str, overrides: str) -> str:
    whole = variant.ablation is None or preset(base).but(**ABLATIONS[variant.ablation]) == preset(base)
    name = base if whole else f"{base}+{variant.ablation}"
    return f"{name}:{overrides}" if overrides else name


def _main_tables(experiment: Experiment, rows: Sequence[Row], base: str, overrides: str) -> list[Table]:
    method = _method_name(FULL, base, overrides)
    own = [row for row in rows if row.method == method]
    found = [each for each in compare(own) if each.archive == experiment.archive] if _finished(own) else []
    tables: list[Table] = []
    for comparison in found:
        printed = published.printed(experiment.archive)
        table = by_dataset(comparison)
        spreads = _spreads(own)
        rows_beside: list[tuple[Cell, ...]] = [
            (row[0], row[1], spreads.get(str(row[0])), *row[2:], printed["PDFTime"].get(str(row[0])))
            for row in table.rows
        ]
        columns = (*table.columns[:2], Column("spread", ".4f"), *table.columns[2:], Column(PRINTED, ".4f"))
        tables.append(
            Table(
                title=f"{experiment.title}: accuracy on each dataset, preset {base}, {_seeds_text(own)}",
                columns=columns,
                rows=tuple(rows_beside),
                notes=(
                    "Spread: standard deviation over seeds.",
                    *_budget_notes(overrides),
                    f"The paper prints a mean of {experiment.variants[-1].printed:g} "
                    f"over its {len(printed['PDFTime'])} datasets.",
                ),
                strong=best_of_each_row(rows_beside, [1, *range(3, len(columns) - 1)]),
            )
        )
        tables.append(summary(comparison))
        aside = beside(comparison)
        if aside is not None:
            tables.append(aside)
    return tables


def _ablation_tables(experiment: Experiment, rows: Sequence[Row], base: str, overrides: str) -> list[Table]:
    names = {variant: _method_name(variant, base, overrides) for variant in experiment.variants}
    cells: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in _finished(rows):
        if row.resample == 0 and row.accuracy is not None:
            cells[row.method][row.dataset, row.seed] = row.accuracy
    present = [variant for variant in experiment.variants if cells.get(names[variant])]
    if not present:
        return []
    common = set.intersection(*(set(cells[names[variant]]) for variant in present))
    seeds = sorted({seed for _, seed in common})
    every = {name for name, _ in common}
    datasets = sorted((name for name in every if all((name, seed) in common for seed in seeds)), key=str.lower)
    if not datasets:
        return []
    by_seed = {
        variant: {seed: float(np.mean([cells[names[variant]][name, seed] for name in datasets])) for seed in seeds}
        for variant in present
    }
    means = {variant: float(np.mean(list(numbers.values()))) for variant, numbers in by_seed.items()}
    best, whole = max(means.values()), means.get(experiment.variants[-1])
    overview: list[tuple[Cell, ...]] = [
        (
            variant.label,
            means[variant],
            spread_over_seeds(by_seed[variant]),
            None if whole is None or variant is experiment.variants[-1] else means[variant] - whole,
            variant.printed,
        )
        for variant in present
    ]
    detail: list[tuple[Cell, ...]] = [
        (name, *(float(np.mean([cells[names[variant]][name, seed] for seed in seeds])) for variant in present))
        for name in datasets
    ]
    n_printed = len(published.printed(experiment.archive)["PDFTime"])
    n_seeds = f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    n_left_out = len({name for variant in present for name, _ in cells[names[variant]]}) - len(datasets)
    missing = [variant.label for variant in experiment.variants if variant not in present]
    return [
        Table(
            title=f"{experiment.title}: mean over {len(datasets)} datasets, {n_seeds}, preset {base}",
            columns=(
                Column("variant"),
                Column("mean accuracy", ".4f"),
                Column("spread", ".4f"),
                Column("against whole", "+.4f"),
                Column(OTHER_PROTOCOL, ".3f"),
            ),
            rows=tuple(overview),
            notes=(
                *_budget_notes(overrides),
                f"Datasets: {', '.join(datasets)}.",
                *(
                    [f"{n_left_out} more that not every variant has with every seed are left out."]
                    if n_left_out
                    else []
                ),
                *([f"Not run: {', '.join(missing)}."] if missing else []),
                "Spread: standard deviation over seeds of the mean over datasets."
                if len(seeds) > 1
                else "One seed, so no spread is known.",
                f"Printed: the paper's mean over its {n_printed} datasets, stopped early on test data.",
                *_failed_notes(rows),
            ),
            strong=frozenset((place, 1) for place, variant in enumerate(present) if means[variant] == best),
        ),
        Table(
            title=f"{experiment.title}: accuracy on each dataset, mean over {n_seeds}",
            columns=(Column("dataset"), *(Column(variant.label, ".4f") for variant in present)),
            rows=tuple(detail),
            strong=best_of_each_row(detail, range(1, len(present) + 1)),
        ),
    ]


def _finished(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.status == "ok"]


def _spreads(rows: Iterable[Row]) -> dict[str, float | None]:
    """By dataset."""
    by_dataset: dict[str, dict[int, float]] = defaultdict(dict)
    for row in _finished(rows):
        if row.resample == 0 and row.accuracy is not None:
            by_dataset[row.dataset][row.seed] = row.accuracy
    return {name: spread_over_seeds(accuracies) for name, accuracies in by_dataset.items()}


def _seeds_text(rows: Iterable[Row]) -> str:
    """How many seeds the datasets have."""
    counts: dict[str, set[int]] = defaultdict(set)
    for row in _finished(rows):
        counts[row.dataset].add(row.seed)
    fewest, most = min(len(each) for each in counts.values()), max(len(each) for each in counts.values())
    return f"{fewest} to {most} seeds" if fewest != most else f"{most} seeds" if most > 1 else "one seed"


def _budget_notes(overrides: str) -> list[str]:
    if overrides == QUICK:
        return [f"A quick look with a reduced budget ({overrides}); not a result."]
    return [f"With the settings {overrides}."] if overrides else []


def _failed_notes(rows: Iterable[Row]) -> list[str]:
    failed = sorted({f"{row.method} on {row.dataset}" for row in rows if row.status != "ok"})
    return [f"Failed: {', '.join(failed)}."] if failed else []
