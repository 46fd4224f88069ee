"""The sweep: every task once, failures as rows, nothing lost by a kill, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pdftime.bench import runner
from pdftime.bench.archives import find_datasets
from pdftime.bench.methods import Method, method_of
from pdftime.bench.runner import Clock, Plan, Progress, allowed_seconds, plan, run
from pdftime.bench.store import Row, Store, read_rows
from pdftime.bench.task import Task

HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell may have it ignored
START = [sys.executable, "-c", f"{HEARS}; from pdftime.cli import main; main()", "bench", "run"]


def test_failures_are_rows_with_their_reason_and_the_sweep_goes_on(
    archive: Path, contestants: Path, tmp_path: Path
) -> None:
    names = ["Honest", "Broken", "Killed"]
    methods = [method_of(f"contestants:{name}") for name in names]
    datasets = find_datasets([str(archive)], ["Waves"])
    told: list[Progress] = []
    path = tmp_path / "results.csv"
    with Store(path) as store:
        assert run(store, plan(store, datasets, methods), n_jobs=2, on_progress=told.append) == 3
        rows = {row.method.removeprefix("contestants:"): row for row in store.rows()}
    assert read_rows(path) == sorted(rows.values(), key=lambda row: row.method.lower())
    assert [rows[name].status for name in names] == ["ok", "failed", "failed"]
    assert rows["Broken"].reason == "ZeroDivisionError: nothing works here"
    assert rows["Killed"].reason == "the process was ended by SIGKILL (out of memory?)"
    ends = [progress for progress in told if progress.row is not None]
    assert [(each.n_done, each.n_tasks) for each in ends] == [(1, 3), (2, 3), (3, 3)]
    assert ends[-1].seconds_left == 0.0
    with Store(path) as store:
        again = plan(store, datasets, methods)
        assert (again.tasks, again.n_finished, again.n_failed) == ([], 1, 2)
        retried = plan(store, datasets, methods, retry_failed=True)
        assert [task.method.name for task in retried.tasks] == ["contestants:Broken", "contestants:Killed"]
        assert retried.n_failed == 0


def test_a_method_that_takes_too_long_is_ended(
    archive: Path, contestants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "GRACE_S", 1.0)
    with Store(tmp_path / "results.csv") as store:
        methods = [method_of('contestants:Honest{"seconds": 600}')]
        run(store, plan(store, find_datasets([str(archive)], ["Waves"]), methods, max_time=1.0))
        (row,) = store.rows()
    assert (row.status, row.reason) == ("failed", "time limit: ended after 2 s")


def test_a_failure_that_is_tried_again_and_works_becomes_a_result(
    archive: Path, contestants: Path, tmp_path: Path
) -> None:
    datasets, methods = find_datasets([str(archive)], ["Waves"]), [method_of("contestants:Honest")]
    with Store(tmp_path / "results.csv") as store:
        task = plan(store, datasets, methods).tasks[0]
        store.add([task.row(status="failed", reason="the disk was full")])
        assert plan(store, datasets, methods).tasks == []
        run(store, plan(store, datasets, methods, retry_failed=True))
        assert [row.status for row in store.rows()] == ["ok"]


def test_tasks_are_every_combination_and_the_cheap_come_first(archive: Path, tmp_path: Path) -> None:
    datasets = find_datasets([str(archive)], ["Waves", "Larger", "Pair"])
    methods = [method_of("default"), method_of("rocket")]
    with Store(tmp_path / "results.csv") as store:
        todo = plan(store, datasets, methods, seeds=[0, 1], resamples=[0, 3])
        assert len({task.identity for task in todo.tasks}) == len(todo.tasks) == 24
        assert _order(todo) == ["Waves", "Larger", "Pair"]
        assert _order(plan(store, datasets, methods, order="costly")) == ["Pair", "Larger", "Waves"]
        assert _order(plan(store, datasets, methods, order="name")) == ["Larger", "Pair", "Waves"]


def _order(todo: Plan) -> list[str]:
    return list(dict.fromkeys(task.dataset.name for task in todo.tasks))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait(condition: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_sweep_leaves_its_rows_and_no_process_and_goes_on(
    archive: Path, contestants: Path, tmp_path: Path, number: signal.Signals
) -> None:
    results, pids = tmp_path / "results.csv", tmp_path / "pids"
    pids.mkdir()
    command = [*START, str(archive), "-r", str(results), "--datasets", "Waves", "--jobs", "2", "--seeds"]
    arguments = ["0-2", "-m", "contestants:Honest", "-m", 'contestants:Honest{"seconds": 0.5}']
    environment = {**os.environ, "PDFTIME_TEST_PIDS": str(pids)}
    process = subprocess.Popen([*command, *arguments], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("2/6"):
            break
    n_started = len(list(pids.iterdir()))
    _wait(lambda: len(list(pids.iterdir())) > n_started)  # a task is at work
    process.send_signal(number)
    process.stdout.read()
    assert process.wait() == (-number if number is signal.SIGKILL else 130)
    process.stdout.close()
    _wait(lambda: not any(_alive(int(path.name)) for path in pids.iterdir()), 10.0)
    with Store(results) as store:
        before = store.rows()
    assert 2 <= len(before) < 6
    if number is not signal.SIGKILL:
        assert read_rows(results) == before
    done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=True)
    assert f" to do, {len(before)} rows finished before." in done.stdout
    assert done.stdout.count("accuracy") == 6 - len(before)
    after = read_rows(results)
    assert len({row.identity for row in after}) == len(after) == 6
    assert all(row.status == "ok" for row in after)
    assert [row for row in after if row.identity in {each.identity for each in before}] == before


def test_two_runners_share_a_sweep(archive: Path, contestants: Path, tmp_path: Path) -> None:
    results, pids = tmp_path / "results.csv", tmp_path / "pids"
    pids.mkdir()
    command = [*START, str(archive), "-r", str(results), "--datasets", "Waves", "--seeds", "0-2"]
    environment = {**os.environ, "PDFTIME_TEST_PIDS": str(pids)}
    arguments = ["-m", 'contestants:Honest{"seconds": 0.3}']
    both = [
        subprocess.Popen([*command, *arguments], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    told = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert len(read_rows(results)) == 3
    assert len(list(pids.iterdir())) == 3  # nothing was done twice
    assert sum(text.count("accuracy") for text in told) == 3


def test_a_committed_csv_is_enough_to_go_on(archive: Path, contestants: Path, tmp_path: Path) -> None:
    datasets, methods = find_datasets([str(archive)], ["Waves"]), [method_of("contestants:Honest")]
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    with Store(here) as store:
        run(store, plan(store, datasets, methods))
    shutil.copy(here, there)
    with Store(there) as store:
        assert plan(store, datasets, methods).tasks == []


def test_time_is_for_methods_that_cannot_keep_it_and_longer_for_those_that_can(archive: Path) -> None:
    (dataset,) = find_datasets([str(archive)], ["Waves"])
    assert allowed_seconds(Task(dataset, 0, method_of("rocket"), 0)) is None
    assert allowed_seconds(Task(dataset, 0, method_of("rocket"), 0, max_time=100.0)) == 160.0
    assert allowed_seconds(Task(dataset, 0, method_of("default"), 0, max_time=100.0)) == 360.0


def test_the_time_left_follows_size_and_method(archive: Path) -> None:
    (dataset,) = find_datasets([str(archive)], ["Waves"])
    sizes = {f"set{k}": 10**k for k in range(2, 7)}
    seconds = {"quick": 0.01, "slow": 0.1}  # for each value

    def tasks(names: list[str]) -> list[Task]:
        sets = [runner.Dataset(name, "ucr", dataset.train_file, dataset.test_file) for name in names]
        return [Task(each, 0, Method(method, "m:M"), 0) for each in sets for method in seconds]

    todo = Plan(tasks(list(sizes)), sizes, 0, 0)
    clock = Clock(todo, [])
    assert clock.left([], 1) is None
    for task in tasks(["set2", "set3", "set4"]):
        spent = seconds[task.method.name] * sizes[task.dataset.name]
        row = Row("ucr", *task.identity, "ok", fit_seconds=spent, predict_seconds=0.0)
        clock.remove(task, row)
    expected = 0.11 * (10**5 + 10**6)
    left = clock.left([], 1)
    assert left is not None
    assert expected / 3 < left < expected * 3
    halved = clock.left([], 2)
    assert halved == pytest.approx(left / 2)
    for task in tasks(["set5", "set6"]):
        clock.remove(task)
    assert clock.left([], 2) == 0.0
