"""Our rows are compared with what may be compared, and the tables say what was left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_rows import peer, row, rows_of
from typer.testing import CliRunner

from pdftime.bench import overview, published
from pdftime.bench.comparison import compare
from pdftime.bench.gathered import ended_by_limit, labels_of, mean_by_dataset
from pdftime.bench.store import write_rows
from pdftime.cli import app
from pdftime.errors import ConfigError, DataError

ACCURACIES = {"GunPoint": 0.98, "ECG200": 0.9, "Coffee": 1.0}


def test_seeds_are_averaged_before_anything_is_compared() -> None:
    rows = [row("GunPoint", 0.8), row("GunPoint", 0.9, seed=1), row("ECG200", 0.7)]
    assert mean_by_dataset(rows) == {"pdftime default": {"GunPoint": pytest.approx(0.85), "ECG200": 0.7}}


def test_ours_come_before_peers() -> None:
    rows = [peer("GunPoint", 0.99, "a-peer"), *rows_of(ACCURACIES)]
    (comparison,) = compare(rows, [])
    assert comparison.ran == comparison.scores.methods == ("pdftime default", "a-peer (run here)")
    assert comparison.ours == ("pdftime default",)


def test_only_common_datasets_enter_and_the_table_says_how_many() -> None:
    (comparison,) = compare([*rows_of(ACCURACIES), peer("GunPoint", 1.0)], ["ROCKET"])
    table = overview.summary(comparison)
    assert table.title.endswith("mean over 1 dataset")
    assert any("1 dataset of 3" in note and "rocket (run here) has 1" in note for note in table.notes)
    means = {cells[0]: cells[2] for cells in table.rows}
    assert means["pdftime default"] == 0.98
    assert means["ROCKET (tsml-eval)"] == published.find("ucr", "ROCKET", ["GunPoint"]).accuracies["GunPoint"]


def test_published_figures_meet_only_rows_of_the_original_split() -> None:
    rows = [*rows_of(ACCURACIES), *rows_of(dict.fromkeys(ACCURACIES, 0.1), resample=1)]
    (against,) = compare(rows, ["ROCKET"])
    assert np.nanmean(against.scores.values[:, 0]) == pytest.approx(0.96)
    assert any("3 rows of resamples left out" in note for note in against.notes)
    (alone,) = compare(rows, [])
    assert alone.scores.values[:, 0].mean() == pytest.approx((0.96 + 0.1) / 2)


def test_figures_that_saw_test_data_stand_apart() -> None:
    rows = rows_of({"NATOPS": 0.9, "Handwriting": 0.5}, archive="uea")
    (comparison,) = compare(rows, ["TimesNet", "ROCKET"])
    assert comparison.scores.methods == ("pdftime default", "ROCKET (tsml-eval)")
    table = overview.beside(comparison)
    assert table is not None
    assert {cells[1] for cells in table.rows} == {"selects on test", "as printed, other protocol"}
    printed = next(cells for cells in table.rows if str(cells[0]).startswith("PDFTime"))
    assert printed[2:] == (1, 0.713, 0.5)  # of the two only Handwriting is in the paper
    summary = overview.summary(comparison)
    assert not any("TimesNet" in str(cells[0]) for cells in summary.rows)


def test_archives_are_kept_apart_and_own_datasets_have_no_published_figures() -> None:
    rows = [*rows_of(ACCURACIES), row("NATOPS", 0.9), row("my-own", 0.5)]
    comparisons = compare(rows)
    assert [each.archive for each in comparisons] == ["ucr", "uea", "own"]
    assert comparisons[2].scores.methods == ("pdftime default",)


def test_failures_are_said_and_leave_their_dataset_out() -> None:
    failed = row("ECG200", 0.0, method="paper", status="failed")
    rows = [*rows_of(ACCURACIES), *rows_of({"GunPoint": 0.9, "Coffee": 0.9}, "paper"), failed]
    (comparison,) = compare(rows, [])
    assert comparison.scores.common().datasets == ("Coffee", "GunPoint")
    assert any("1 row failed: paper on ECG200" in note for note in comparison.notes)
    with pytest.raises(DataError, match="nothing to compare"):
        compare([failed])


def test_configurations_that_differ_in_more_than_time_are_told_apart() -> None:
    free = row("GunPoint", 0.9, configuration="a" * 12)
    limited = row("Coffee", 0.9, configuration="b" * 12, settings='{"preset": "default", "max_time": 900}')
    other = row("Coffee", 0.9, configuration="c" * 12)
    assert set(labels_of([free, limited]).values()) == {"pdftime default"}
    assert len(set(labels_of([free, other]).values())) == 2  # nothing visible differs, so something else did
    same_task = row("GunPoint", 0.9, configuration="b" * 12, settings='{"preset": "default", "max_time": 900}')
    assert len(set(labels_of([free, same_task]).values())) == 2


def test_datasets_that_used_up_their_time_are_known() -> None:
    limit = '{"preset": "default", "max_time": 900}'
    rows = [
        row("FordA", 0.9, fit_seconds=905.0, settings=limit),
        row("Coffee", 0.9, fit_seconds=20.0, settings=limit),
        row("Crop", 0.9, fit_seconds=5000.0),
    ]
    assert ended_by_limit(rows) == ["FordA"]


def test_a_doubtful_dataset_is_pointed_out() -> None:
    (comparison,) = compare([row("PigAirwayPressure", 0.5)], ["ROCKET"])
    assert any("PigAirwayPressure is among them" in note for note in comparison.notes)


def test_largest_losses_are_the_largest_and_only_losses() -> None:
    column = published.find("ucr", "InceptionTime", ["GunPoint"])
    names = sorted(column.accuracies)[:14]
    steps = dict(zip(names, np.linspace(-0.3, 0.05, len(names)), strict=True))
    (comparison,) = compare(
        rows_of({name: column.accuracies[name] + steps[name] for name in names}), ["InceptionTime"]
    )
    table = overview.largest_losses(comparison, "InceptionTime (tsml-eval)")
    assert [cells[0] for cells in table.rows] == names[:10]
    assert [cells[-1] for cells in table.rows] == pytest.approx([steps[name] for name in names[:10]])
    assert table.rows[0][1:4] == (20, 2, 50)
    assert f"behind on {sum(step < 0 for step in steps.values())}; without these 10" in table.notes[0]
    (comparison,) = compare(rows_of(dict.fromkeys(names, 1.0)), ["InceptionTime"])
    assert overview.largest_losses(comparison, "InceptionTime (tsml-eval)").notes[0].endswith("is behind on none.")


def test_wins_are_counted_from_our_side() -> None:
    rows = [*rows_of({"GunPoint": 0.9, "Coffee": 0.9, "ECG200": 0.8}), peer("GunPoint", 0.8), peer("Coffee", 0.7)]
    (comparison,) = compare([*rows, peer("ECG200", 0.8)], [])
    table = overview.summary(comparison)
    assert table.columns[5].name == "pdftime default wins/ties/loses"
    assert {cells[0]: cells[5] for cells in table.rows} == {"pdftime default": None, "rocket (run here)": "2/1/0"}
    (pair,) = overview.pairwise(comparison).rows
    assert pair[:2] == ("pdftime default", "rocket (run here)")
    assert pair[3] == "2/1/0"


def test_peers_run_here_are_held_against_their_published_figures() -> None:
    known = published.find("ucr", "ROCKET", ["GunPoint", "Coffee"]).accuracies
    rows = [peer("GunPoint", known["GunPoint"] - 0.01), peer("Coffee", known["Coffee"]), row("GunPoint", 0.5)]
    (table,) = overview.agreement(rows)
    assert [cells[4] for cells in table.rows] == pytest.approx([0.0, -0.01])
    assert "mean size 0.0050, largest 0.0100" in table.notes[0]


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(ConfigError, match="rokcet"):
        compare(rows_of(ACCURACIES), ["rokcet"])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    write_rows(path, [*rows_of(ACCURACIES), row("NATOPS", 0.9, archive="uea"), peer("GunPoint", 1.0)])
    return path


def test_command_prints_every_form(results: Path, tmp_path: Path) -> None:
    for form, sign in {
        "terminal": "mean accuracy",
        "markdown": "|---|",
        "csv": "method,figures",
        "latex": r"\toprule",
        "html": "<table>",
    }.items():
        done = CliRunner().invoke(app, ["bench", "table", str(results), "--form", form])
        assert done.exit_code == 0, done.output
        assert sign in done.output
    target = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["bench", "table", str(results), "--form", "html", "-o", str(target)])
    assert done.exit_code == 0
    assert target.read_text().startswith("<!doctype html>")


def test_command_keeps_what_is_asked_for(results: Path) -> None:
    options = ["--archive", "ucr", "--datasets", "G*,Coffee", "-m", "default", "--against", "quant", "--json"]
    done = CliRunner().invoke(app, ["bench", "table", str(results), *options])
    assert done.exit_code == 0, done.output
    tables = json.loads(done.stdout)
    assert {cells[0] for cells in tables[0]["rows"]} == {"pdftime default", "QUANT (tsml-eval)"}
    assert "2 datasets" in tables[0]["title"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--datasets", "Nothing*"], 1, "no dataset Nothing*"),
        (["-m", "paper"], 1, "no method paper"),
        (["--against", "rokcet"], 2, "Did you mean"),
        (["--behind", "quant"], 2, "--behind names quant"),
        (["--archive", "own"], 1, "archive own"),
        (["-o", "x.txt"], 2, "--form"),
    ],
)
def test_command_says_what_is_wrong(results: Path, options: list[str], code: int, words: str) -> None:
    done = CliRunner().invoke(app, ["bench", "table", str(results), *options])
    assert done.exit_code == code
    assert words in done.stderr
    assert "Traceback" not in done.output


def test_command_draws(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "pictures"
    done = CliRunner().invoke(app, ["bench", "table", str(results), "--pictures", str(folder), "--archive", "ucr"])
    assert done.exit_code == 0, done.output
    names = {path.name for path in folder.iterdir()}
    assert {"ucr-critical-difference.svg", "ucr-critical-difference.png", "ucr-time.png"} <= names
    assert f"Drew {len(names)} pictures" in done.output
