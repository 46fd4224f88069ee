"""The paper's experiments have the right methods, datasets and printed values; tables are worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_rows import row, rows_of
from typer.testing import CliRunner

from pdftime.bench import paper, published
from pdftime.bench.ablations import ABLATIONS
from pdftime.bench.archives import Dataset
from pdftime.bench.methods import method_of
from pdftime.bench.store import read_rows
from pdftime.cli import app
from pdftime.config import preset
from pdftime.errors import ConfigError, DataError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(ABLATIONS))
@pytest.mark.parametrize("base", ["network", "paper"])
def test_every_ablation_is_a_setting(name: str, base: str) -> None:
    changed = preset(base).but(**ABLATIONS[name])
    values = {**changed.model.__dict__, **changed.training.__dict__}
    assert all(values[key] == value for key, value in ABLATIONS[name].items())
    assert method_of(f"{base}+{name}").is_ours


def test_the_ablations_of_the_paper_are_all_there() -> None:
    models = {name: preset("paper").but(**changes) for name, changes in ABLATIONS.items()}
    assert not models["no-frequency-mask"].model.frequency_mask
    assert models["linear-embedding"].model.embedding == "linear"
    assert models["linear-head"].model.head == "linear"
    assert len(models["one-level"].model.n_prototypes) == 1
    assert models["prototypes-by-gradient"].model.prototype_update == "gradient"
    assert {models[f"momentum-{value}"].training.momentum for value in ("1", "0.999", "0.95")} == {1.0, 0.999, 0.95}
    pairs = {
        (each.training.gamma_a, each.training.gamma_b) for each in models.values() if each.training.momentum is None
    }
    assert pairs >= {(0.7, 0.99), (0.95, 0.999), (0.97, 0.997), (0.99, 0.999)}
    levels = {each.model.n_prototypes for each in models.values()}
    assert levels >= {(3, 3, 3), (5, 3), (3, 3), (2, 2), (2, 3)}


def test_printed_values_are_those_of_the_paper() -> None:
    source = ROOT.parent / "shared" / "paper" / "pdftime.tex"
    if not source.exists():
        pytest.skip("the paper is not here")
    text = source.read_text()
    for experiment in paper.EXPERIMENTS.values():
        for variant in experiment.variants:
            assert variant.printed is None or f"{variant.printed:.3f}" in text or f"{variant.printed:.4f}" in text


def test_every_method_of_an_experiment_can_be_made() -> None:
    for name in paper.EXPERIMENTS:
        for base in ("network", "paper"):
            for overrides in ("", paper.QUICK):
                for method in paper.method_names(paper.experiment_of(name), base, overrides):
                    assert method_of(method).is_ours
                    parts = paper.parts_of(method)
                    assert parts is not None
                    assert (parts.preset, parts.overrides) == (base, overrides)


def test_a_quick_look_has_fewer_steps() -> None:
    for base in ("network", "paper"):
        (method,) = paper.method_names(paper.experiment_of("uea"), base, paper.QUICK)
        training = method_of(method).identity["settings"]["training"]
        assert training["n_steps"] < preset("network").training.n_steps
        assert training["max_epochs"] is None


def test_a_variant_that_changes_nothing_is_not_run_twice() -> None:
    names = paper.method_names(paper.experiment_of("prototypes"), "paper")
    assert preset("paper").model.n_prototypes == (2, 3)
    assert "paper" in names
    assert "paper+prototypes-2-3" not in names


def test_unknown_experiment_is_refused() -> None:
    with pytest.raises(ConfigError, match="embedding"):
        paper.experiment_of("embeding")


class _Sized(Dataset):
    """A dataset whose size is told by its file's name."""

    def cost(self) -> int:
        return int(self.train_file)


FOUND = [
    _Sized("GunPoint", "", "1", ""),
    _Sized("NATOPS", "", "2", ""),
    _Sized("Handwriting", "", "30", ""),
    _Sized("JapaneseVowels", "uea", "10", ""),
    _Sized("UWaveGestureLibrary", "", "20", ""),
    _Sized("SpokenArabicDigits", "", "40", ""),
]


def test_main_tables_take_their_archive_and_ablations_the_papers_datasets() -> None:
    def names(experiment: str, **choice: bool) -> list[str]:
        return [each.name for each in paper.datasets_of(paper.experiment_of(experiment), FOUND, **choice)]

    assert names("ucr") == ["GunPoint"]
    assert names("uea") == [each.name for each in FOUND[1:]]
    assert names("head") == ["Handwriting", "JapaneseVowels", "UWaveGestureLibrary", "SpokenArabicDigits"]
    assert names("head", quick=True) == ["JapaneseVowels", "UWaveGestureLibrary", "Handwriting"]
    assert names("head", quick=True, chosen=True) == [each.name for each in FOUND]
    with pytest.raises(DataError, match="UEA"):
        paper.datasets_of(paper.experiment_of("uea"), FOUND[:1])


def test_ablation_table_by_hand() -> None:
    methods = ["network+no-frequency-mask", "network+linear-embedding", "network"]
    accuracies = {  # method: dataset: by seed
        methods[0]: {"Handwriting": (0.4, 0.6), "NATOPS": (0.8, 0.8)},
        methods[1]: {"Handwriting": (0.1, 0.1), "NATOPS": (0.5, 0.7), "Libras": (0.9, 0.9)},
        methods[2]: {"Handwriting": (0.6, 0.6), "NATOPS": (0.9, 0.9)},
    }
    rows = [
        row(name, accuracy, method, seed=seed)
        for method, by_name in accuracies.items()
        for name, numbers in by_name.items()
        for seed, accuracy in enumerate(numbers)
    ]
    overview, detail = paper.tables_of(paper.experiment_of("embedding"), rows)
    assert overview.title == "Embedding: mean over 2 datasets, 2 seeds, preset network"
    assert [cells[1] for cells in overview.rows] == pytest.approx([0.65, 0.35, 0.75])
    # Means over datasets by seed: 0.6 and 0.7, 0.3 and 0.4, 0.75 and 0.75.
    assert [cells[2] for cells in overview.rows] == pytest.approx([0.1 / 2**0.5, 0.1 / 2**0.5, 0.0])
    assert [cells[3] for cells in overview.rows[:2]] == pytest.approx([-0.1, -0.4])
    assert overview.rows[2][3] is None
    assert [cells[4] for cells in overview.rows] == [0.766, 0.686, 0.783]
    assert overview.columns[4].name == "as printed, other protocol"
    assert overview.strong == {(2, 1)}
    assert any("1 more" in note for note in overview.notes)
    assert detail.rows[0] == ("Handwriting", pytest.approx(0.5), pytest.approx(0.1), pytest.approx(0.6))


def test_ablation_table_counts_the_original_split_only() -> None:
    rows = [row("Handwriting", 0.5, "network"), row("Handwriting", 0.4, "network+linear-head")]
    drawn = [replace(each, resample=1, accuracy=0.0) for each in rows]
    overview, _ = paper.tables_of(paper.experiment_of("head"), [*rows, *drawn])
    assert [cells[1] for cells in overview.rows] == [0.4, 0.5]


def test_one_seed_has_no_spread_and_a_missing_variant_is_named() -> None:
    rows = [row("Handwriting", 0.5, "network"), row("Handwriting", 0.4, "linear-head")]
    overview, _ = paper.tables_of(
        paper.experiment_of("head"), [rows[0], replace(rows[1], method="network+linear-head")]
    )
    assert {cells[2] for cells in overview.rows} == {None}
    assert any("no spread" in note for note in overview.notes)
    assert any("Not run: one level of prototypes, prototypes by back-propagation" in note for note in overview.notes)


def test_a_quick_look_is_said_in_its_table() -> None:
    rows = [
        row("Handwriting", 0.5, method)
        for method in paper.method_names(paper.experiment_of("head"), overrides=paper.QUICK)
    ]
    overview, _ = paper.tables_of(paper.experiment_of("head"), rows)
    assert any("reduced budget" in note for note in overview.notes)


def test_a_failed_variant_is_said() -> None:
    rows = [
        row("Handwriting", 0.5, "network"),
        row("Handwriting", 0.5, "network+linear-head"),
        row("Handwriting", 0.0, "network+one-level", status="failed"),
    ]
    overview, _ = paper.tables_of(paper.experiment_of("head"), rows)
    assert any("Failed: network+one-level on Handwriting" in note for note in overview.notes)


def test_main_table_puts_spread_and_printed_values_beside_ours() -> None:
    rows = rows_of({"Handwriting": 0.5, "NATOPS": 0.9}) + rows_of({"Handwriting": 0.7}, seed=1)
    main, summary, beside = paper.tables_of(paper.experiment_of("uea"), rows)
    names = [column.name for column in main.columns]
    assert names[:3] == ["dataset", "pdftime default", "spread"]
    assert names[-1] == "PDFTime as printed, other protocol"
    first, second = main.rows
    assert first[:3] == ("Handwriting", pytest.approx(0.6), pytest.approx(np.std([0.5, 0.7], ddof=1)))
    assert first[-1] == published.printed("uea")["PDFTime"]["Handwriting"]
    assert (second[2], second[-1]) == (None, None)  # one seed, not in the paper
    assert all((place, len(names) - 1) not in main.strong for place in range(2))
    assert "1 to 2 seeds" in main.title
    assert "2 datasets" in summary.title
    assert beside.rows[-1][1] == "as printed, other protocol"


def test_no_row_of_the_experiment_is_an_error() -> None:
    with pytest.raises(DataError, match="run the experiment first"):
        paper.tables_of(paper.experiment_of("head"), [row("GunPoint", 0.5, "rocket")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An archive with one tiny dataset that has the name of one of the paper's."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 8)
    X = rng.normal(size=(16, 2, 12)).astype(np.float32) + 3 * (y == "a")[:, None, None]
    (tmp_path / "uea").mkdir()
    np.savez(tmp_path / "uea" / "Handwriting.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    return tmp_path


@pytest.mark.slow
def test_command_runs_prints_and_runs_nothing_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "QUICK", "max_epochs=2,d_model=8,branch_width=2,n_layers=1")
    command = ["bench", "paper", "uea", str(folder), "-r", str(folder / "r.csv"), "--quick"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "reduced budget" in first.output
    assert "as printed, other protocol" in first.output
    assert len(read_rows(folder / "r.csv")) == 1
    again = CliRunner().invoke(app, [*command, "--json"])
    assert again.exit_code == 0, again.output
    assert len(read_rows(folder / "r.csv")) == 1
    only_printed = CliRunner().invoke(app, ["bench", "paper", "uea", "-r", str(folder / "r.csv"), "--json"])
    assert json.loads(only_printed.stdout) == json.loads(again.stdout)


def test_command_says_what_is_wrong(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "paper", "head", "-r", str(tmp_path / "none.csv")])
    assert done.exit_code == 1
    assert "none.csv" in done.stderr
    done = CliRunner().invoke(app, ["bench", "paper", "heads"])
    assert done.exit_code == 2
