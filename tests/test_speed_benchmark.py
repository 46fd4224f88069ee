"""The speed benchmark compares like with like, runs, and prediction stays within its memory."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pdftime.config import preset

ROOT = Path(__file__).parents[1]
SHAPES = [("network", 64, 1), ("network", 97, 6), ("network", 300, 2), ("paper", 40, 3)]


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.speed.subjects")


@pytest.fixture
def plain(subjects: ModuleType) -> ModuleType:
    return importlib.import_module("benchmarks.speed.plain")


@pytest.mark.parametrize(("name", "n_timepoints", "n_channels"), SHAPES)
def test_plain_network_has_our_outputs(
    subjects: ModuleType, plain: ModuleType, name: str, n_timepoints: int, n_channels: int
) -> None:
    settings, shape = preset(name), subjects.Shape(n_timepoints, n_channels)
    network = subjects.network_for(settings, shape)
    same = plain.PlainNetwork.like(network, settings.model, n_timepoints)
    assert subjects.output_difference(network, same, shape) < 1e-4


@pytest.mark.parametrize(("name", "n_timepoints", "n_channels"), SHAPES)
def test_plain_step_moves_weights_and_prototypes_as_ours_does(
    subjects: ModuleType, plain: ModuleType, name: str, n_timepoints: int, n_channels: int
) -> None:
    settings = subjects.settings_for(name, batch_size=16).but(dropout=0.0, learning_rate=1e-4)
    shape = subjects.Shape(n_timepoints, n_channels)
    network = subjects.network_for(settings, shape).double()  # in single precision rounding decides who is largest
    same = plain.PlainNetwork.like(network, settings.model, n_timepoints)
    training = plain.PlainTraining(same, settings)
    X, y = (torch.from_numpy(array) for array in subjects.series(16, shape))
    examples = subjects.Examples(X.double(), None, y, torch.ones(16, dtype=torch.float64))
    run = subjects.start(network, 16, settings.training, seed=0)
    subjects.train(run, examples, callbacks=[lambda run: True])
    loss = training.epoch(X.double(), y)
    assert run.history[0]["loss"] == pytest.approx(loss, rel=1e-6)
    for ours, theirs in plain.paired(network, same):
        torch.testing.assert_close(ours.reshape(theirs.shape), theirs, rtol=0.0, atol=1e-6)
        if ours.requires_grad:
            torch.testing.assert_close(ours.grad.reshape(theirs.shape), theirs.grad, rtol=1e-4, atol=1e-7)
    for level, expected in zip(network.head.levels, same.prototypes, strict=True):
        torch.testing.assert_close(level, expected, rtol=0.0, atol=1e-6)


@pytest.mark.slow
def test_one_command_prints_and_writes_the_ratios(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    before = json.loads((ROOT / "results" / "speed.json").read_text())
    out.write_text(json.dumps({"rows": {"b": before["rows"]["b"]}}))
    command = ["-m", "benchmarks.speed", "--quick", "--repetitions", "1", "--rows", "a", "e", "h", "--out", str(out)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert set(written["rows"]) == {"a", "b", "e", "h"}  # b was there before
    assert all({"cpu", "cores", "threads", "torch", "date"} <= set(row["host"]) for row in written["rows"].values())
    records = [record for row in written["rows"].values() for record in row["records"]]
    assert all(record["low"] <= record["value"] <= record["high"] for record in records)
    assert not any(record["facts"].get("imports_torch") for record in records)
    assert str(Path.home()) not in out.read_text()
    assert str(ROOT) not in out.read_text()


@pytest.mark.slow
def test_prediction_from_a_memory_mapped_array_takes_little_memory() -> None:
    task = {"task": "predict", "n_cases": 60_000, "tiny": True, "n_timepoints": 64, "n_classes": 2}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.worker", json.dumps(task)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] < 150e6
