"""The page of benchmarks is in step with results/, and its commands print its tables."""

from __future__ import annotations

import importlib.util
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from made_rows import peer, row
from typer.testing import CliRunner

from pdftime.bench import paper
from pdftime.bench.store import Row, write_rows
from pdftime.cli import app

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
UCR = {"GunPoint": 0.98, "ECG200": 0.85, "Coffee": 1.0, "Beef": 0.7}
UEA = {"Handwriting": 0.4, "JapaneseVowels": 0.98}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_benchmark_page", ROOT / "docs" / "make_benchmark_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_results(folder: Path) -> Path:
    """Every file that the page knows, small and made up."""
    folder.mkdir()

    def rows(method: str, names: dict[str, float], seeds: int, shift: float = 0.0) -> list[Row]:
        return [
            row(name, min(1.0, accuracy + shift + 0.01 * seed), method, seed=seed)
            for name, accuracy in names.items()
            for seed in range(seeds)
        ]

    large = row("FordA", 0.95, "fast", fit_seconds=900.0, settings='{"preset": "fast", "max_time": 900}')
    write_rows(folder / "fast.csv", [*rows("fast", {**UCR, **UEA}, 2), large])
    views = [
        replace(each, settings=f'{{"preset": "strong", "view": "{view}"}}')
        for view in ("bank", "network")
        for each in rows(f"strong/{view}", {**UCR, **UEA}, 1, -0.01)
    ]
    write_rows(folder / "strong.csv", [*rows("strong", {**UCR, **UEA}, 1, 0.02), *views])
    write_rows(folder / "paper_preset.csv", rows("paper", UCR, 1, -0.02))
    for name in ("embedding", "head", "momentum", "prototypes"):
        methods = paper.method_names(paper.EXPERIMENTS[name], overrides=paper.QUICK)
        made = [each for place, method in enumerate(methods) for each in rows(method, UEA, 2, -0.01 * place)]
        write_rows(folder / f"ablation_{name}.csv", made)
    write_rows(folder / "peers.csv", [peer(name, accuracy) for name, accuracy in UCR.items()])
    return folder


def test_page_is_in_step_with_results(maker: ModuleType) -> None:
    page = maker.build(maker.RESULTS)
    assert maker.PAGE.read_text(encoding="utf-8") == page.text, "run: python docs/make_benchmark_page.py"
    there = {path.name for path in maker.PICTURES.glob("*.svg")}
    assert there == set(page.drawings), "run: python docs/make_benchmark_page.py"
    for name, drawing in page.drawings.items():
        assert maker.fingerprint_of(maker.PICTURES / name) == drawing.fingerprint, name


def test_a_changed_result_changes_the_page_and_its_pictures(maker: ModuleType, tmp_path: Path) -> None:
    folder = made_results(tmp_path / "results")
    before = maker.build(folder)
    text = (folder / "fast.csv").read_text()
    (folder / "fast.csv").write_text(text.replace(",0.98,", ",0.97,", 1))
    after = maker.build(folder)
    assert before.text != after.text
    assert any(before.drawings[name].fingerprint != after.drawings[name].fingerprint for name in before.drawings)


def test_pictures_are_written_with_the_page_and_old_ones_go(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(maker, "PICTURES", tmp_path / "benchmarks")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "old.svg").write_text("old")
    page = maker.build(made_results(tmp_path / "results"))
    maker.write(page)
    shown = set(re.findall(r"\]\(benchmarks/([^)]+)\)", page.text))
    assert shown == set(page.drawings) == {path.name for path in (tmp_path / "benchmarks").iterdir()}
    for name, drawing in page.drawings.items():
        assert maker.fingerprint_of(tmp_path / "benchmarks" / name) == drawing.fingerprint


def test_a_file_that_is_not_there_has_not_been_run(maker: ModuleType, tmp_path: Path) -> None:
    page = maker.build(tmp_path)
    assert page.text.count("Not run yet") == 8
    assert not page.drawings
    made_results(tmp_path / "results")
    assert "Not run yet" not in maker.build(tmp_path / "results").text


def test_every_table_of_the_page_is_printed_by_a_command_on_it(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = maker.build(made_results(tmp_path / "results")).text
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in re.findall(r"^pdftime (bench .*)$", text, flags=re.MULTILINE):
        if "FOLDER" in line:
            continue
        done = CliRunner().invoke(app, [*shlex.split(line), "--form", "markdown"])
        assert done.exit_code == 0, (line, done.output)
        printed += done.output
    tables = re.findall(r"^\*\*.+?\*\*\n\n(?:\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) > 15
    for table in tables:
        assert table in printed


def test_commands_that_make_rows_name_their_seeds_datasets_and_limits(maker: ModuleType, tmp_path: Path) -> None:
    text = maker.build(made_results(tmp_path / "results")).text
    made = re.findall(r"^pdftime (bench .* FOLDER .*)$", text, flags=re.MULTILINE)
    assert "bench run FOLDER -r results/fast.csv -m fast --datasets FordA --max-time 900" in made
    names = ",".join(sorted({**UCR, **UEA}, key=str.lower))
    assert f"bench run FOLDER -r results/fast.csv -m fast --seeds 0-1 --datasets {names}" in made
    assert any(
        line.startswith("bench paper head FOLDER -r results/ablation_head.csv --quick --seeds 0-1") for line in made
    )
    assert any(line.startswith("bench run FOLDER -r results/peers.csv -m rocket") for line in made)
    assert f"bench run FOLDER -r results/strong.csv -m strong --datasets {names}" in made  # its views come with it


def test_page_says_whether_the_goal_is_reached_and_what_was_cut_short(maker: ModuleType, tmp_path: Path) -> None:
    text = " ".join(maker.build(made_results(tmp_path / "results")).text.split())
    assert "the published 0.8582 of" not in text  # those are other datasets
    assert re.search(r"Over 5 datasets \*\*pdftime fast has a mean accuracy of [\d.]+\*\*, (behind|at least)", text)
    assert "Training was ended by its time limit (900 s) on: FordA." in text
    assert "1 with seed 0; 6 with seeds 0-1" in text


def test_rows_of_a_large_sweep_need_no_list_of_datasets(maker: ModuleType) -> None:
    rows = [row(f"Dataset{number:02}", 0.5) for number in range(30)] + [row("Dataset00", 0.5, seed=1)]
    assert maker.run_commands(rows, "default") == [
        "pdftime bench run FOLDER -r results/default.csv",
        "pdftime bench run FOLDER -r results/default.csv --seeds 1 --datasets Dataset00",
    ]
