"""Writes docs/benchmarks.md and its pictures from results/*.csv: `python docs/make_benchmark_page.py`."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pdftime.bench import overview, paper, pictures, published
from pdftime.bench.comparison import Comparison, compare
from pdftime.bench.gathered import ended_by_limit, is_view, time_limit
from pdftime.bench.store import Row, read_rows
from pdftime.bench.tables import Table, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "benchmarks"
ANALYSIS = ROOT / "docs" / "benchmarks-analysis.md"
"""Prose on where we lose and why, taken into the page as it is."""
AGAINST = {
    "ucr": ("HIVE-COTE 2.0", "MultiROCKET-Hydra", "InceptionTime", "ROCKET", "Inception", "ResNet"),
    "uea": ("HIVE-COTE 2.0", "MultiROCKET-Hydra", "ROCKET", "InceptionTime", "ResNet"),
}
ARCHIVES = ("ucr", "uea")
GOALS = {
    "fast": {"ucr": "MultiROCKET-Hydra", "uea": "MultiROCKET-Hydra"},
    "strong": {"ucr": "HIVE-COTE 2.0", "uea": "HIVE-COTE 2.0"},
}
"""Presets, and the method whose published mean each is compared with, on each archive."""
ABOUT = {
    "fast": "The default: `-m default` is the same.\n",
    "strong": "A bank and four networks; `strong/bank` and `strong/network` are the two views of the same fits, "
    "each without\nthe other. The first is what preset `fast` gives with the same seed.\n",
}
N_NAMED = 20
"""A command names its datasets up to this many."""
OPENING = """\
# Benchmarks

<!-- Made by docs/make_benchmark_page.py from results/*.csv; change those, then run it. -->

Every number on this page comes from a row in `results/`, and every table can be printed again with the last command
above it; `make docs` writes the whole page again. `FOLDER` is a folder with datasets of the UCR and UEA archives
([data formats](data-formats.md)).

- **Original splits.** A model is fitted on the training part alone; settings, number of epochs, scaling and
  calibration come from it. The test part scores the finished model, once.
- **Published figures** ship with the package, each with its source and protocol. Of several sources for a method the
  one that knows most of the datasets is taken, tsml-eval before others. Figures that were chosen on test data, and
  the paper's own, stand apart and are not compared as equals.
- **Means** are over datasets that all methods of a table have; seeds are averaged first, dataset by dataset.
"""
TIMES = """\
Seconds are those of the hours in which rows were run, most of them beside other work, and the machine's speed changed
up to threefold between them: `fast` and `strong/bank` are the same fits. Ratios that were measured in one run are on
the page about [performance](performance.md).
"""
CLOSING = """\
## This page again

```sh
python docs/make_benchmark_page.py
```
"""


class Drawing(NamedTuple):
    """A picture of the page: what its numbers are, and how to draw it."""

    fingerprint: str
    draw: Callable[[], Figure]


class Page(NamedTuple):
    """The text, and the pictures by the name of their file."""

    text: str
    drawings: dict[str, Drawing]


def build(results: Path) -> Page:
    """The whole page from a folder of results, with whatever files there are."""
    files = {path.stem: read_rows(path) for path in sorted(results.glob("*.csv")) if _is_ours(path)}
    drawings: dict[str, Drawing] = {}
    parts = [
        OPENING,
        *(part for file, goals in GOALS.items() for part in _preset(file, goals, files, drawings)),
        *_paper_preset(files),
        "## The paper's experiments\n",
        "Each table stands beside the values that the paper prints, which were measured under another protocol:\n"
        "on ten datasets, with early stopping on test data.\n",
        *(part for name in ("embedding", "head", "momentum", "prototypes") for part in _ablation(name, files)),
        *_peers(files, drawings),
        CLOSING,
    ]
    return Page("\n".join(parts), drawings)


def write(page: Page) -> None:
    PAGE.write_text(page.text, encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        if old.name not in page.drawings:
            old.unlink()
    for name, drawing in page.drawings.items():
        pictures.save(drawing.draw(), PICTURES / name, drawing.fingerprint)


def fingerprint_of(path: Path) -> str:
    """The fingerprint that a picture was saved with."""
    return path.read_text(encoding="utf-8").partition("<dc:description>numbers ")[2].partition("<")[0]


def _preset(file: str, goals: dict[str, str], files: dict[str, list[Row]], drawings: dict[str, Drawing]) -> list[str]:
    parts = [f"## Preset `{file}`\n"]
    rows = files.get(file)
    if not rows:
        return [*parts, _not_run(file)]
    parts += [ABOUT[file], _commands(run_commands(rows, file)), _about(rows)]
    for archive, goal in goals.items():
        for comparison in _comparisons(rows, archive):
            parts += _archive(file, comparison, goal, drawings)
    if file == "fast" and ANALYSIS.exists():
        parts += ["### Where we lose, and why\n", ANALYSIS.read_text(encoding="utf-8")]
    return parts


def _archive(file: str, comparison: Comparison, goal: str, drawings: dict[str, Drawing]) -> list[str]:
    scores, ours = comparison.scores, comparison.ran[0]
    peer = comparison.peer(goal)
    behind = f" --behind {_quoted(goal)}" if peer is not None else ""
    parts = [
        f"### {comparison.name}\n",
        _commands([table_command([file], comparison.archive) + behind]),
    ]
    if peer is not None:
        parts.append(_verdict(comparison, peer))
    parts.append(markdown(overview.summary(comparison)))
    if len(scores.methods) > 1:
        parts.append(
            _picture(
                f"{file}-{comparison.archive}-critical-difference.svg",
                f"Critical-difference diagram, {comparison.name}",
                Drawing(
                    pictures.digest(pictures.numbers_of(scores)),
                    lambda: pictures.critical_difference(scores, comparison.ours),
                ),
                drawings,
            )
        )
    if peer is not None:
        parts.append(
            _picture(
                f"{file}-{comparison.archive}-against-{pictures.slug(goal)}.svg",
                f"{ours} against {peer}, dataset by dataset",
                Drawing(
                    pictures.digest([peer, pictures.numbers_of(scores)]),
                    lambda: pictures.against(scores, ours, peer),
                ),
                drawings,
            )
        )
        losses = overview.largest_losses(comparison, peer)
        parts.append(markdown(losses) if losses.rows else losses.notes[0] + "\n")
    aside = overview.beside(comparison)
    if aside is not None:
        parts.append(markdown(aside))
    return [*parts, _folded("Every dataset", overview.by_dataset(comparison))]


def _paper_preset(files: dict[str, list[Row]]) -> list[str]:
    parts = ["## Preset `paper`\n"]
    rows = files.get("paper_preset")
    if not rows:
        return [*parts, _not_run("paper_preset")]
    datasets = {row.dataset for row in rows}
    sources = [name for name in GOALS if any(row.dataset in datasets for row in files.get(name, []))]
    beside = [row for name in sources for row in files[name] if row.dataset in datasets]
    parts += [
        "The paper's own settings, as far as it gives them, beside our other presets on the same datasets.\n",
        _commands(run_commands(rows, "paper_preset")),
        _about(rows),
    ]
    for archive in ARCHIVES:
        for comparison in _comparisons([*rows, *beside], archive):
            parts += [
                _commands([table_command(["paper_preset", *sources], archive, datasets)]),
                markdown(overview.summary(comparison)),
                _folded("Every dataset", overview.by_dataset(comparison)),
            ]
    return parts


def _ablation(name: str, files: dict[str, list[Row]]) -> list[str]:
    experiment, file = paper.EXPERIMENTS[name], f"ablation_{name}"
    parts = [f"### {experiment.title}\n"]
    rows = files.get(file)
    if not rows:
        return [*parts, _not_run(file)]
    first, *rest = paper.tables_of(experiment, rows)
    return [
        *parts,
        _commands([*paper_commands(name, rows, file), f"pdftime bench paper {name} -r results/{file}.csv"]),
        _about(rows),
        markdown(first),
        *(_folded("Every dataset", table) if "each dataset" in table.title else markdown(table) for table in rest),
    ]


def _peers(files: dict[str, list[Row]], drawings: dict[str, Drawing]) -> list[str]:
    parts = ["## Peers, run again by this harness\n"]
    rows = files.get("peers")
    if not rows:
        return [*parts, _not_run("peers")]
    parts += [
        "If the harness is right, a peer that it runs gets what was published for it, up to chance.\n",
        _commands([*run_commands(rows, "peers"), "pdftime bench table results/peers.csv --against none"]),
        _about(rows),
        *(markdown(table) for table in overview.agreement(rows)),
    ]
    parts.append(TIMES)
    sources = [name for name in (*GOALS, "paper_preset", "peers") if files.get(name)]
    for archive in ARCHIVES:
        for comparison in _comparisons([row for name in sources for row in files[name]], archive, against=()):
            if comparison.scores.has_common() and len(comparison.ran) > 1:
                parts += [
                    _commands([table_command(sources, archive, against=()) + " --pictures pictures"]),
                    _time_picture(comparison, drawings),
                ]
    return parts


def _time_picture(comparison: Comparison, drawings: dict[str, Drawing]) -> str:
    scores, seconds = comparison.scores, comparison.fit_seconds
    return _picture(
        f"{comparison.archive}-time.svg",
        f"Accuracy against the time of a fit, {comparison.name}",
        Drawing(
            pictures.digest([pictures.numbers_of(scores), seconds]),
            lambda: pictures.accuracy_against_time(scores, seconds, comparison.ours),
        ),
        drawings,
    )


def _comparisons(rows: Sequence[Row], archive: str, against: Sequence[str] | None = None) -> list[Comparison]:
    """At most one: of this archive."""
    own = [row for row in rows if published.archive_of(row.dataset) == archive]
    if not any(row.status == "ok" for row in own):
        return []
    return compare(own, AGAINST[archive] if against is None else against)


def table_command(
    files: Sequence[str], archive: str, datasets: Iterable[str] = (), against: Sequence[str] | None = None
) -> str:
    """The command that prints the tables of an archive from files of results."""
    peers = AGAINST[archive] if against is None else against
    names = f" --datasets {','.join(sorted(datasets, key=str.lower))}" if datasets else ""
    paths = " ".join(f"results/{file}.csv" for file in files)
    return f"pdftime bench table {paths} --archive {archive} --against {_quoted(','.join(peers) or 'none')}{names}"


def run_commands(rows: Sequence[Row], file: str) -> list[str]:
    """The `pdftime bench run` commands that give these rows."""
    rows = [row for row in rows if not is_view(row)]  # they come with the others
    methods = dict.fromkeys(row.method for row in rows)
    named = "".join(f" -m {_quoted(method)}" for method in methods if list(methods) != ["default"])
    return [f"pdftime bench run FOLDER -r results/{file}.csv{named}{rest}" for rest in _scopes(rows)]


def paper_commands(name: str, rows: Sequence[Row], file: str) -> list[str]:
    """The `pdftime bench paper` commands that give these rows."""
    commands = []
    bases = dict.fromkeys(parts[::2] for row in rows if (parts := paper.parts_of(row.method)) is not None)
    for preset, overrides in bases:
        own = [row for row in rows if (parts := paper.parts_of(row.method)) and parts[::2] == (preset, overrides)]
        methods = paper.method_names(paper.EXPERIMENTS[name], preset, overrides)
        if overrides not in ("", paper.QUICK) or not {row.method for row in own} <= set(methods):
            commands += run_commands(own, file)
            continue
        options = (" --preset paper" if preset == "paper" else "") + (" --quick" if overrides else "")
        commands += [
            f"pdftime bench paper {name} FOLDER -r results/{file}.csv{options}{rest}"
            for rest in _scopes(own, always_named=True)
        ]
    return commands


def _scopes(rows: Sequence[Row], *, always_named: bool = False) -> list[str]:
    """Seeds, datasets and time limits as options: one for all datasets, one for the seeds that only some have."""
    scopes = []
    for limit in sorted({time_limit(row) or 0.0 for row in rows}):
        limited = [row for row in rows if (time_limit(row) or 0.0) == limit]
        whole = {row.dataset for row in limited}
        by_seed: dict[int, set[str]] = defaultdict(set)
        for row in limited:
            by_seed[row.seed].add(row.dataset)
        seeds_of: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for seed, datasets in sorted(by_seed.items()):
            seeds_of[tuple(sorted(datasets, key=str.lower))].append(seed)
        for names, seeds in seeds_of.items():
            every = set(names) == {row.dataset for row in rows} and not always_named
            text = "" if seeds == [0] else f" --seeds {_ranges(seeds)}"
            if not (every and len(whole) > N_NAMED):
                text += f" --datasets {','.join(names)}"
            scopes.append(text + (f" --max-time {limit:g}" if limit else ""))
    return scopes


def _about(rows: Sequence[Row]) -> str:
    """How many rows, on how many datasets and seeds, how long they took, and what a time limit ended."""
    rows = [row for row in rows if not is_view(row)]
    hours = sum((row.fit_seconds or 0.0) + (row.predict_seconds or 0.0) for row in rows) / 3600
    took = f"{hours:.1f} hours" if hours >= 1.5 else f"{60 * hours:.0f} minutes"
    threads = sorted({row.n_threads for row in rows if row.n_threads})
    n_seeds = defaultdict(set)
    for row in rows:
        n_seeds[row.dataset].add(row.seed)
    by_seeds: dict[tuple[int, ...], int] = defaultdict(int)
    for seeds in n_seeds.values():
        by_seeds[tuple(sorted(seeds))] += 1
    seeds_text = "; ".join(
        f"{n} with seed{'s' if len(seeds) > 1 else ''} {_ranges(seeds)}" for seeds, n in sorted(by_seeds.items())
    )
    failed = [row for row in rows if row.status != "ok"]
    sentences = [
        f"{len(rows)} rows on {len(n_seeds)} datasets ({seeds_text}), {took} of one process with "
        f"{'one thread' if threads in ([], [1]) else f'{_ranges(threads)} threads'}."
    ]
    hosts = sorted({row.host for row in rows if row.host})
    if hosts:
        sentences.append(f"Machine: {'; '.join(hosts)}.")
    ended = ended_by_limit(rows)
    if ended:
        limits = sorted({limit for row in rows if (limit := time_limit(row)) is not None})
        sentences.append(
            f"Training was ended by its time limit ({', '.join(f'{limit:g}' for limit in limits)} s) on: "
            f"{', '.join(ended)}."
        )
    if failed:
        sentences.append(f"{len(failed)} rows are failures, with their reasons in the file.")
    return textwrap.fill(" ".join(sentences), 118, break_long_words=False, break_on_hyphens=False) + "\n"


def _verdict(comparison: Comparison, peer: str) -> str:
    """Whether the goal is reached, in one sentence."""
    common = comparison.scores.common()
    ours, place = comparison.ran[0], common.methods.index(peer)
    mine, theirs = float(common.values[:, 0].mean()), float(common.values[:, place].mean())
    word = "at least as good as" if mine >= theirs else "behind"
    text = (
        f"Over {len(common.datasets)} datasets **{ours} has a mean accuracy of {mine:.4f}**, {word} the published "
        f"{theirs:.4f} of {peer} on the same datasets ({mine - theirs:+.4f})."
    )
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"


def _commands(lines: Iterable[str]) -> str:
    return "\n".join(["```sh", *lines, "```", ""])


def _folded(title: str, table: Table) -> str:
    """A long table that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{markdown(table)}\n</details>\n"


def _picture(name: str, words: str, drawing: Drawing, drawings: dict[str, Drawing]) -> str:
    drawings[name] = drawing
    return f"![{words}]({PICTURES.name}/{name})\n"


def _not_run(file: str) -> str:
    return f"Not run yet: there is no `results/{file}.csv`.\n"


def _is_ours(path: Path) -> bool:
    """Whether it is a file of this page; `results/` holds other tables as well."""
    return path.stem in (*GOALS, "paper_preset", "peers") or path.stem.startswith("ablation_")


def _ranges(numbers: Iterable[int]) -> str:
    """
    >>> _ranges([0, 1, 2, 5])
    '0-2,5'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _quoted(text: str) -> str:
    return f"'{text}'" if any(mark in text for mark in "{}\"' ;*") else text


if __name__ == "__main__":
    write(build(RESULTS))
