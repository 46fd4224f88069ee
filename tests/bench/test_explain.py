"""The explanation benchmark: every map on one problem, rows that are kept, and tables of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pdftime import PDFTimeClassifier
from pdftime.bench.archives import find_datasets
from pdftime.bench.explain import Plan, all_maps, deletion, known_moments, mean_loss
from pdftime.bench.explain_rows import Row, read_rows, tables_of, write_rows
from pdftime.cli import app
from pdftime.data.synthetic import make_problem
from pdftime.errors import ConfigError, SeriesFileError

OURS = {"score map", "margin map", "token evidence", "untrained network", "|x - median|", "random"}
TINY = {"branch_width": 4, "n_inception_layers": 1, "kernel_sizes": (5, 9)}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small networks and short training wherever the benchmark fits one."""
    start = PDFTimeClassifier.__init__

    def small(self: Any, **keywords: Any) -> None:
        start(self, **{"preset": "network", "d_model": 8, "max_epochs": 3, "settings": TINY, **keywords})

    monkeypatch.setattr("pdftime.bench.explain.PDFTimeClassifier.__init__", small)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder with one small dataset."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 10)
    X = rng.normal(size=(20, 1, 30)) + (y == "a")[:, None, None] * 2.0
    np.savez(tmp_path / "Small.npz", X_train=X[:12], y_train=y[:12], X_test=X[12:], y_test=y[12:])
    return tmp_path


@pytest.mark.usefixtures("quick")
def test_every_map_gets_a_row_with_the_accuracy_beside_it() -> None:
    rows = known_moments("decoy", Plan("none", 1, n_explained=4, n_cases=24))
    assert {row.map for row in rows} >= OURS
    for row in rows:
        assert (row.data, row.kind, row.encoder, row.seed, row.n_cases) == ("decoy", "moments", "none", 1, 4)
        assert 0.0 <= row.accuracy <= 1.0
        assert row.auprc is not None
        assert 0.0 < row.auprc <= 1.0
        assert row.aopc is None
    with pytest.raises(ConfigError, match="no problem 'frequency' with known moments; choose one of motifs"):
        known_moments("frequency", Plan())


@pytest.mark.usefixtures("quick")
def test_deletion_is_judged_on_test_cases(archive: Path) -> None:
    (dataset,) = find_datasets([str(archive)])
    rows = deletion(dataset, Plan(n_explained=3))
    assert {row.map for row in rows} >= OURS
    for row in rows:
        assert (row.data, row.kind, row.n_cases) == ("Small", "deletion", 3)
        assert row.aopc is not None
        assert -1.0 <= row.aopc <= 1.0
        assert row.agreement is not None
        assert row.purity is not None


def test_maps_lie_where_the_network_sees_the_series() -> None:
    problem = make_problem("lengths", n_cases=12, n_fresh=4)
    settings = {**TINY, "lengths": "pad"}
    model = PDFTimeClassifier(preset="network", d_model=8, max_epochs=1, settings=settings).fit(
        problem.train, problem.train.y
    )
    maps, explanations = all_maps(model.model_, problem.fresh, 0)
    for name, values in maps.values.items():
        assert values.shape == tuple(maps.x.shape), name
    for row, each in enumerate(explanations):
        length = each.series.shape[1]
        np.testing.assert_allclose(maps.values["score map"][row, :, :length], each.input_map)
        assert not maps.values["score map"][row, :, length:].any()
        spread = np.abs(maps.x[row, 0, :length].numpy() - np.median(maps.x[row, 0, :length].numpy()))
        np.testing.assert_allclose(maps.values["|x - median|"][row, 0, :length], spread, atol=1e-6)
        expected = each.tokens.on_input_axis(length)
        np.testing.assert_allclose(maps.values["token evidence"][row, 0, :length], expected, atol=1e-9)
    losses = [mean_loss(model.model_, maps, maps.values[name]) for name in ("score map", "random")]
    assert all(np.isfinite(losses))


def test_the_loss_is_that_of_the_checks() -> None:
    problem = make_problem("decoy", n_cases=24, n_fresh=3)
    model = PDFTimeClassifier(preset="network", d_model=8, max_epochs=2, settings=TINY).fit(
        problem.train, problem.train.y
    )
    maps, explanations = all_maps(model.model_, problem.fresh, 0)
    expected = np.mean([each.check()["AOPC"].value for each in explanations])
    assert mean_loss(model.model_, maps, maps.values["score map"]) == pytest.approx(expected, abs=1e-6)


def row(data: str, name: str, **measures: Any) -> Row:
    kind = "moments" if "auprc" in measures else "deletion"
    given = {"encoder": "none", "seed": 0, "accuracy": 0.9, "n_cases": 5, **measures}
    return Row(data=data, kind=kind, map=name, **given)


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    rows = [row("lowvar", "score map", auprc=0.5, ndcg=0.25, iou=0.125), row("X, Y", "random", aopc=0.25)]
    write_rows(tmp_path / "rows.csv", rows)
    assert read_rows(tmp_path / "rows.csv") == rows
    assert read_rows(tmp_path / "none.csv") == []
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SeriesFileError, match="holds other columns"):
        read_rows(tmp_path / "other.csv")


def test_tables_average_seeds_and_count_wins() -> None:
    rows = [
        row("lowvar", name, auprc=auprc + 0.1 * seed, ndcg=0.5, iou=0.2, seed=seed)
        for name, auprc in (("random", 0.1), ("score map", 0.8))
        for seed in (0, 1)
    ]
    (table,) = tables_of(rows)
    assert table.title == "lowvar, encoder none, 2 seeds"
    assert table.rows[0][:3] == ("score map", pytest.approx(0.85), 0.8)
    assert [line[0] for line in table.rows] == ["score map", "random"]
    others = ["margin map", "token evidence", "untrained network", "|x - median|", "random"]
    deleted = [
        row(data, name, aopc=0.5 if name == "score map" else 0.4 if data == "A" else 0.6, purity=1.0, agreement=0.98)
        for data in ("A", "B")
        for name in ["score map", *others]
    ]
    all_of_them, wins, facts = tables_of(deleted)
    assert [line[0] for line in all_of_them.rows] == ["A", "B"]
    assert wins.rows == tuple((name, 0.5, 2) for name in others)
    assert dict(facts.rows)["agreement with nearest training series, median"] == 0.98
    assert tables_of([]) == []


@pytest.mark.usefixtures("quick")
def test_the_command_adds_what_is_not_there_yet(archive: Path) -> None:
    results = archive / "explain.csv"
    (archive / "models").mkdir()
    command = ["bench", "explain", str(archive), "-r", str(results), "--problems", "decoy", "--encoders", "none"]
    command += ["--explained", "2", "--n-cases", "24", "--models", str(archive / "models")]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "decoy  encoder none  seed 0" in first.output
    assert "Small  encoder none  seed 0" in first.output
    assert sorted(path.name for path in (archive / "models").iterdir()) == [
        "Small-none-0.pdftime",
        "decoy-none-0.pdftime",
    ]
    before = results.read_text()
    again = CliRunner().invoke(app, [*command, "--json"])
    assert results.read_text() == before
    titles = [table["title"] for table in json.loads(again.stdout)]
    assert titles[0] == "decoy, encoder none, 1 seed"
    assert len(titles) == 4
    results.unlink()
    kept = CliRunner().invoke(app, command)
    assert kept.exit_code == 0
    assert [each.auprc for each in read_rows(results)] == [
        each.auprc for each in read_rows_of(before, archive / "before.csv")
    ]


def read_rows_of(text: str, path: Path) -> list[Row]:
    path.write_text(text)
    return read_rows(path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--encoders", "lstm"], "--encoders is 'lstm'; expected attention, window, none or bank"),
        (["--problems", "noise"], "There is no problem 'noise' with known moments"),
        (["--max-time", "0"], "--max-time is 0"),
        (["--models", "nowhere"], "--models is nowhere, which is no folder"),
        (["-r", "rows.txt"], "expected a file that ends in .csv"),
    ],
)
def test_what_cannot_be_measured_is_refused(options: list[str], sentence: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "explain", "-r", str(tmp_path / "rows.csv"), *options])
    assert result.exit_code != 0
    assert sentence in " ".join((result.output + str(result.exception)).split())
