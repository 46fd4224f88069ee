"""Rows: kept once, never lost, the same in CSV and database."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pdftime.bench.store import COLUMNS, Row, Store, database_of, read_rows, write_rows
from pdftime.errors import DataError

ROW = Row("ucr", "Waves", 0, "default", 0, "0123456789ab", "ok", accuracy=0.9, log_loss=0.25, n_train=18)
FAILED = replace(ROW, status="failed", accuracy=None, log_loss=None, reason='it "broke", twice')


def test_the_columns_are_those_that_were_agreed() -> None:
    assert ",".join(COLUMNS) == (
        "archive,dataset,resample,method,seed,configuration,status,accuracy,balanced_accuracy,log_loss,"
        "calibration_error,fit_seconds,predict_seconds,peak_memory_mb,epochs,n_train,n_test,n_channels,n_timepoints,"
        "n_classes,n_threads,reason,settings,versions,host,finished"
    )


def test_rows_come_back_from_csv_and_database(tmp_path: Path) -> None:
    rows = [ROW, replace(FAILED, seed=1), replace(ROW, dataset="other", archive="", accuracy=0.123456)]
    write_rows(tmp_path / "a.csv", rows)
    assert read_rows(tmp_path / "a.csv") == rows
    with Store(tmp_path / "b.csv") as store:
        store.add(rows)
        assert store.rows() == [rows[2], rows[0], rows[1]]
        assert store.get(ROW.identity) == ROW
        assert store.get(replace(ROW, seed=9).identity) is None


def test_rows_are_sorted_by_identity_whatever_order_they_come_in(tmp_path: Path) -> None:
    rows = [replace(ROW, dataset=name, seed=seed) for name in ("BME", "bme2", "CBF") for seed in (0, 2, 10)]
    with Store(tmp_path / "a.csv") as store:
        store.add(rows[::-1])
        store.export()
    assert read_rows(tmp_path / "a.csv") == rows


def test_numbers_in_the_csv_are_plain(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv", [replace(ROW, accuracy=1.0, log_loss=1e-7, fit_seconds=12.5)])
    line = (tmp_path / "a.csv").read_text().splitlines()[1]
    assert line.startswith("ucr,Waves,0,default,0,0123456789ab,ok,1,,0,,12.5,")


def test_a_finished_row_stays_and_a_failed_one_gives_way(tmp_path: Path) -> None:
    with Store(tmp_path / "a.csv") as store:
        store.add([replace(FAILED, finished="2025-01-01")])
        store.add([replace(FAILED, finished="2025-01-02", reason="newer")])
        assert store.rows()[0].reason == "newer"
        store.add([replace(FAILED, finished="2025-01-01", reason="older")])
        assert store.rows()[0].reason == "newer"
        store.add([ROW])
        store.add([replace(ROW, accuracy=0.1), replace(FAILED, finished="2026-01-01")])
        assert store.rows() == [ROW]


def test_a_csv_from_elsewhere_is_taken_in(tmp_path: Path) -> None:
    with Store(tmp_path / "a.csv") as store:
        store.add([replace(ROW, seed=1)])
        store.export()
    write_rows(tmp_path / "a.csv", [replace(ROW, seed=2)])  # as a checkout would replace it
    with Store(tmp_path / "a.csv") as store:
        assert [row.seed for row in store.rows()] == [1, 2]


def test_many_processes_write_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    code = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from pdftime.bench.store import Row, Store\n"
        "row = Row('ucr', 'Waves', 0, 'm', 0, 'c', 'ok')\n"
        "with Store(Path(sys.argv[1])) as store:\n"
        "    for seed in range(30): store.add([replace(row, seed=seed)]); store.export()\n"
        "    store.add([replace(row, dataset=sys.argv[2])])\n"
    )
    path = tmp_path / "a.csv"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "xyz"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with Store(path) as store:
        found = [(row.dataset, row.seed) for row in store.rows()]
    assert found == [("Waves", seed) for seed in range(30)] + [("x", 0), ("y", 0), ("z", 0)]


def test_a_claim_holds_against_other_processes_until_it_is_released_or_its_holder_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    code = (
        "import sys; from pathlib import Path; from pdftime.bench.store import Identity, Store\n"
        "identity = Identity('Waves', 0, 'default', int(sys.argv[2]), 'c')\n"
        "with Store(Path(sys.argv[1])) as store: print(store.claim(identity))\n"
    )

    def other(seed: int) -> str:
        command = [sys.executable, "-c", code, str(path), str(seed)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    identity = replace(ROW, configuration="c").identity
    with Store(path) as store:
        assert store.claim(identity)
        assert other(0) == "False"
        assert other(1) == "True"
        store.release(identity)
        assert other(0) == "True"
        assert store.claim(identity)  # the other is gone


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing"),
        ("a,b\n1,2\n", "columns a, b"),
        (",".join(COLUMNS) + "\nucr,Waves\n", "line 2: 2 cells"),
        (",".join(COLUMNS) + "\nucr,Waves,zero,m,0,c,ok" + "," * 19 + "\n", "resample is 'zero'"),
        (",".join(COLUMNS) + "\nucr,,0,m,0,c,ok" + "," * 19 + "\n", "dataset must not be empty"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        Store(tmp_path / "a.csv")


def test_a_broken_database_is_one_clear_sentence(tmp_path: Path) -> None:
    database_of(tmp_path / "a.csv").write_bytes(b"this is no database" * 100)
    with pytest.raises(DataError, match="delete it"):
        Store(tmp_path / "a.csv")
