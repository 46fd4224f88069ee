"""The commands of the harness: every example, how they fail, what they print."""

from __future__ import annotations

import inspect
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from bench_settings import TINY
from typer.testing import CliRunner, Result

from pdftime.bench import audit, runner
from pdftime.bench.duplicates import NEAR
from pdftime.bench.process import Outcome
from pdftime.bench.store import Row, read_rows, write_rows
from pdftime.bench.task import Task
from pdftime.cli import app
from pdftime.cli.bench import audit as audit_command
from pdftime.cli.bench import export, methods, run
from pdftime.cli.bench.options import numbers_of
from pdftime.errors import ConfigError

EXAMPLES = [example for module in (run, audit_command, methods, export) for example in module.EXAMPLES]


def invoke(*arguments: str | Path, code: int = 0) -> Result:
    """Run `pdftime bench ...` in this process; its exit code must be `code`."""
    result = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


class Instant:
    """In place of a process: answers at once that all went well."""

    def __init__(self, module: str, question: dict[str, Any], folder: Path, **_: Any) -> None:
        self.module, self.question = module, question

    def has_ended(self) -> bool:
        return True

    def kill(self) -> None:
        pass

    def outcome(self) -> Outcome:
        if self.module == "pdftime.bench.probe":
            rows = [[0.5, 0.5]] * 2
            told = {
                "test": rows,
                "again": rows,
                "probe": rows,
                "rows": [0],
                "single": rows[:1],
                "classes": ["a", "b"],
            }
            return Outcome(told)
        row = Task.from_json(self.question).row(
            status="ok",
            accuracy=0.5,
            balanced_accuracy=0.5,
            fit_seconds=1.0,
            predict_seconds=0.1,
            peak_memory_mb=100.0,
        )
        return Outcome({"rows": [row.__dict__]})


@pytest.fixture
def here(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples name, where no process is started."""
    shutil.copytree(archive, tmp_path / "archives")
    for name in ("Gun", "ECG200"):
        shutil.copy(archive / "ucr" / "Waves.npz", tmp_path / "archives" / "ucr" / f"{name}.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "Process", Instant)
    monkeypatch.setattr(audit, "Process", Instant)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_works(here: Path, example: str) -> None:
    if "aeon" in example or "rocket" in example:
        pytest.importorskip("aeon", reason="aeon is an extra")
    invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves")
    result = invoke(*shlex.split(example)[2:])
    if "--json" in example:
        json.loads(result.stdout)


def test_run_says_each_row_and_the_time_left(here: Path) -> None:
    said = invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves,Pair", "--seeds", "0,2").stdout
    lines = said.splitlines()
    assert lines[0] == "4 tasks to do."
    assert lines[1].startswith("1/4  Waves  default  seed 0  accuracy 0.5000  fit 1.0 s  predict 0.1 s  100 MB")
    assert lines[1].endswith(" left")
    assert lines[-1] == "Added 4 rows to results.csv."
    assert len(read_rows(Path("results.csv"))) == 4
    again = invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves,Pair", "--seeds", "0-2").stdout
    assert again.startswith("2 tasks to do, 4 rows finished before.")


def test_json_holds_the_counts(here: Path) -> None:
    told = json.loads(invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves", "--json").stdout)
    assert told == {"results": "results.csv", "added": 1, "failed": 0, "skipped": 0, "failed_before": 0}


def test_failures_are_said_and_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Instant, "outcome", lambda self: Outcome(None, "MemoryError"))
    said = invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves").stdout
    assert "Waves  default  seed 0  failed: MemoryError" in said
    assert "Added 1 row, 1 of them failed to results.csv." in said
    again = invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves").stdout
    assert "0 tasks to do, 1 failed before (--retry-failed tries them again)." in again
    retried = json.loads(
        invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves", "--retry-failed", "--json").stdout
    )
    assert (retried["added"], retried["failed"]) == (1, 1)


def test_an_interrupted_run_says_how_to_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Instant) -> Outcome:
        if self.question["seed"] == 1:
            raise KeyboardInterrupt
        return outcome(self)

    outcome = Instant.outcome
    monkeypatch.setattr(Instant, "outcome", interrupted)
    stopped = invoke("run", "archives", "-r", "results.csv", "--datasets", "Waves", "--seeds", "0-2", code=130)
    assert "1 new row and all earlier ones are in results.csv. Give the same command again" in stopped.stderr
    assert [row.seed for row in read_rows(Path("results.csv"))] == [0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("run absent -r r.csv", 1, "absent is no folder"),
        ("run archives -r r.csv --datasets Absent", 1, "no dataset Absent"),
        ("run archives -r absent/r.csv", 1, "there is no folder absent"),
        ("run archives -r r.txt", 2, "expected a file that ends in .csv"),
        ("run archives -r r.csv -m nothing", 2, "no method 'nothing'"),
        ("run archives -r r.csv -m default:dropot=1", 2, "Unknown settings"),
        ("run archives -r r.csv -m timesnet", 2, "install pdftime[pypots]"),
        ("run archives -r r.csv --seeds a", 2, "--seeds is 'a'"),
        ("run archives -r r.csv --resamples 3-1", 2, "--resamples is '3-1'"),
        ("run archives -r r.csv --max-time 0", 2, "--max-time is 0"),
        ("export absent.csv", 1, "neither absent.csv nor absent.sqlite"),
        ("audit absent", 1, "absent is no folder"),
        ("audit archives -m nothing", 2, "no method 'nothing'"),
    ],
)
def test_what_cannot_work_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, code: int, words: str
) -> None:
    monkeypatch.setattr("pdftime.bench.methods.missing_extra", lambda m: "pypots" if m.name == "timesnet" else None)
    before = sorted(path.name for path in here.iterdir())
    result = invoke(*shlex.split(arguments), code=code)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(path.name for path in here.iterdir()) == before


def test_export_brings_database_and_csv_together(here: Path) -> None:
    row = Row("ucr", "Waves", 0, "default", 0, "abc", "ok", accuracy=0.5)
    write_rows(Path("results.csv"), [row])
    invoke("run", "archives", "-r", "results.csv", "--datasets", "Pair")
    Path("results.csv").unlink()
    told = json.loads(invoke("export", "results.csv", "-o", "copy.csv", "--json").stdout)
    assert told == {"output": "copy.csv", "n_rows": 2, "n_failed": 0}
    assert row in read_rows(Path("copy.csv"))
    assert not Path("results.csv").exists()
    invoke("export", "results.csv")
    assert Path("results.csv").read_bytes() == Path("copy.csv").read_bytes()


def test_methods_lists_what_is_installed() -> None:
    told = {each["method"]: each for each in json.loads(invoke("methods", "--json").stdout)}
    assert told["default"]["installed"] is True
    assert told["linear-head"] == {
        "method": "linear-head",
        "kind": "ablation",
        "class": "pdftime.estimator:PDFTimeClassifier",
        "settings": {"head": "linear"},
        "installed": True,
        "install": None,
    }
    assert told["timesnet"]["install"] in (None, "pdftime[pypots]")
    assert "multirocket-hydra" in invoke("methods").stdout


def test_audit_reports_duplicates_and_catches(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree("archives/other")
    said = invoke("audit", "archives").stdout
    assert said.startswith("0 datasets of 5 with test cases that are training cases too")
    honest = invoke("audit", "archives", "-m", TINY).stdout
    assert f"{TINY} on ECG200: honest." in honest
    monkeypatch.setattr(Instant, "outcome", lambda self: Outcome(None, "PeekError: the method opened it by itself."))
    caught = invoke("audit", "archives", "-m", TINY, code=1).stdout
    assert f"{TINY} on ECG200: CAUGHT.\n  The method opened it by itself." in caught
    told = json.loads(invoke("audit", "archives", "-m", TINY, "--cheapest", "2", "--json", code=1).stdout)
    assert [each["status"] for each in told["methods"]] == ["caught", "caught"]
    assert [each["dataset"] for each in told["duplicates"]] == ["ECG200", "Gun", "Larger", "Pair", "Waves"]


def test_defaults_of_the_commands_are_those_of_the_functions() -> None:
    assert inspect.signature(audit_command.run).parameters["near"].default == NEAR
    assert [order.value for order in run.Order] == list(runner.ORDERS)
    with pytest.raises(ConfigError, match="order is 'random'"):
        runner.plan(None, [], [], order="random")  # type: ignore[arg-type]


def test_numbers_are_read_with_ranges() -> None:
    assert numbers_of("3,0-2,1", "--seeds") == [3, 0, 1, 2]
