"""Published figures are complete, found by name, and never taken for equals where they are not."""

from __future__ import annotations

import csv
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pdftime.bench import published
from pdftime.errors import ConfigError

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
UCR_77 = (Path(__file__).parent / "ucr_77.txt").read_text().split()
"""The UCR datasets that the known means are over."""


def reference(archive: str) -> list[dict[str, str]]:
    path = SHARED / "reference" / f"reference_{archive}_default_split.csv"
    if not path.exists():
        pytest.skip("the reference tables are not here")
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize(
    ("archive", "n_datasets", "n_columns", "n_cells"), [("ucr", 128, 77, 9232), ("uea", 30, 114, 2942)]
)
def test_shipped_tables_are_whole(archive: str, n_datasets: int, n_columns: int, n_cells: int) -> None:
    columns = published.columns(archive)
    assert len(columns) == len({column.method for column in columns}) == n_columns
    assert len({name for column in columns for name in column.accuracies}) == n_datasets
    assert sum(len(column.accuracies) for column in columns) == n_cells
    for column in columns:
        assert column.protocol
        assert column.source
        assert all(0 <= accuracy <= 1 for accuracy in column.accuracies.values())
        assert set(column.variants) <= set(column.accuracies)


@pytest.mark.parametrize("archive", published.ARCHIVES)
def test_shipped_accuracies_are_those_of_the_reference(archive: str) -> None:
    shipped = {
        (name, column.method): accuracy
        for column in published.columns(archive)
        for name, accuracy in column.accuracies.items()
    }
    assert shipped == {(row["dataset"], row["method"]): float(row["accuracy"]) for row in reference(archive)}


@pytest.mark.parametrize("archive", published.ARCHIVES)
def test_whatever_looked_at_test_data_is_marked(archive: str) -> None:
    for column in published.columns(archive):
        if "TEST" in column.protocol.replace("TEST paper", "") or "TEST-selected" in column.method:
            assert column.standing == "selects on test", column.method
        if column.standing != published.EQUAL:
            assert column.standing in column.label
    every = {column.method: column.standing for column in published.columns("uea")}
    assert every["TimesNet (published: original)"] == "selects on test"
    assert every["HIVE-COTE 2.0 (published: original)"] == "other split"
    assert every["FIC-TSC (UNI.)"] == "not verifiable"
    assert every["ROCKET"] == published.EQUAL


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("hivecote2", 0.8745),
        ("multirocket-hydra", 0.8705),
        ("InceptionTime", 0.8582),
        ("rocket", 0.8538),
        ("Inception", 0.8520),
        ("RDST", 0.8654),
        ("WEASEL 2.0", 0.8638),
        ("H-InceptionTime", 0.8616),
        ("quant", 0.8495),
        ("ResNet", 0.8189),
    ],
)
def test_means_over_the_77_are_the_known_ones(name: str, mean: float) -> None:
    column = published.find("ucr", name, UCR_77)
    assert column.n_known(UCR_77) == len(UCR_77) == 77
    assert column.is_equal
    assert np.mean([column.accuracies[each] for each in UCR_77]) == pytest.approx(mean, abs=5e-5)


def test_the_77_are_those_of_the_data_folder() -> None:
    path = SHARED / "data" / "INDEX.csv"
    if not path.exists():
        pytest.skip("the index of datasets is not here")
    with path.open(newline="") as handle:
        names = [row["name"] for row in csv.DictReader(handle) if row["archive"] == "ucr"]
    assert sorted(names) == sorted(UCR_77)


def test_of_equally_good_sources_tsml_eval_is_taken() -> None:
    assert published.find("ucr", "ROCKET", ["GunPoint"]).origin == "tsml-eval"
    assert published.find("ucr", "ROCKET", ["GunPoint", "PLAID"]).origin == "authors"  # tsml-eval has no PLAID
    assert published.find("uea", "ROCKET", ["NATOPS", "JapaneseVowels", "PenDigits"]).origin == "aeon, MambaSL repo"


def test_a_whole_name_finds_that_source() -> None:
    assert published.find("ucr", "ROCKET (authors)", ["GunPoint"]).origin == "authors"
    assert published.find("ucr", "rocket tsml-eval", ["PLAID"]).origin == "tsml-eval"
    assert published.find("uea", "TimesNet (published: original)", []).standing == "selects on test"


def test_a_name_alone_prefers_figures_that_are_equals() -> None:
    for archive in published.ARCHIVES:
        families = {column.family for column in published.columns(archive) if column.is_equal}
        for family in families:
            assert published.find(archive, family, []).is_equal, family


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean .*ROCKET"):
        published.find("ucr", "rokcet", ["GunPoint"])


def test_archives_share_no_dataset() -> None:
    names = [
        {name for column in published.columns(archive) for name in column.accuracies} for archive in ("ucr", "uea")
    ]
    assert not names[0] & names[1]
    assert set(published.printed("ucr")["PDFTime"]) <= names[0]
    assert set(published.printed("uea")["PDFTime"]) <= names[1]


def test_printed_tables_are_as_printed() -> None:
    assert len(published.printed("ucr")["PDFTime"]) == 128
    assert list(published.printed("uea")) == (
        ["FEDformer", "PatchTST", "TSLANet", "ModernTCN", "FIC-TSC", "TimesNet", "NST", "GPT2", "ST-MEM", "PDFTime"]
    )
    assert np.mean(list(published.printed("uea")["PDFTime"].values())) == pytest.approx(0.783, abs=5e-4)
    assert np.mean(list(published.printed("ucr")["PDFTime"].values())) == pytest.approx(0.9461, abs=5e-3)


@pytest.mark.slow
def test_a_wheel_holds_the_tables(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    folder = "pdftime/bench/published"
    wanted = {path.name for path in (ROOT / "src" / folder).glob("*.csv")}
    assert {"ucr.csv", "uea.csv", "sources.csv", "printed_ucr.csv", "printed_uea.csv"} == wanted
    assert {f"{folder}/{name}" for name in wanted} <= inside
