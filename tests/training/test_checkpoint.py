"""A run that was interrupted, however rudely, ends as if nothing had happened."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.config import Settings, preset
from pdftime.container import read_container
from pdftime.data.batches import generator_for
from pdftime.data.series import check_series
from pdftime.errors import ModelFileError
from pdftime.fitted import FittedModel
from pdftime.fitting import FitOptions, LabelledCases, fit_model
from pdftime.model.network import PDFTime
from pdftime.training import checkpoint as module
from pdftime.training.checkpoint import Checkpoint
from pdftime.training.loop import Examples, Run, start, train

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 5),
    "n_inception_layers": 2,
    "n_heads": 2,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warm_epochs": 1,
    "active_epochs": 1,
    "max_epochs": 5,
}


class PowerCutError(Exception):
    """What stands for one in the same process."""


@pytest.fixture(autouse=True)
def _write_after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.0)


def tiny(**changes: Any) -> Settings:
    return preset("network").but(**{**TINY, **changes})


def waves(n: int, c: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.sin(np.arange(16) * (0.5 + 0.7 * y[:, None, None]) + rng.uniform(0, 6, (n, c, 1)))
    return X + 0.5 * rng.normal(size=X.shape), y


def examples(n: int = 20, c: int = 3, seed: int = 0, *, padded: bool = False) -> Examples:
    X, y = waves(n, c, seed)
    mask = torch.arange(16) < (6 + torch.arange(n) % 11)[:, None] if padded else None
    return Examples(torch.from_numpy(X).float(), mask, torch.from_numpy(y), torch.ones(n))


def begin(c: int = 3, **changes: Any) -> Run:
    settings = tiny(**changes)
    net = PDFTime(settings.model, c, 16, 2, generator_for("weights"))
    return start(net, 20, settings.training, seed=0)


def assert_same_run(one: Run, other: Run) -> None:
    assert_same_tensors(one.network.state_dict(), other.network.state_dict())
    assert without_seconds(one.history) == without_seconds(other.history)
    assert (one.best is None) == (other.best is None)
    if one.best is not None and other.best is not None:
        assert one.best[:2] == other.best[:2]
        assert_same_tensors(one.best.weights, other.best.weights)


def assert_same_tensors(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert sorted(one) == sorted(other)
    different = [name for name in one if not torch.equal(one[name], other[name])]
    assert different == []


def without_seconds(state: Any) -> Any:
    """Plain data without wall-clock times."""
    if isinstance(state, dict):
        return {key: without_seconds(value) for key, value in state.items() if key != "seconds"}
    return [without_seconds(item) for item in state] if isinstance(state, list) else state


# One run


VARIANTS: dict[str, dict[str, Any]] = {
    "ordinary": {},
    "one channel": {"c": 1},
    "prototypes by gradient": {"prototype_update": "gradient"},
    "linear head": {"head": "linear"},
    "linear embedding": {"embedding": "linear"},
    "class token": {"pooling": "token", "n_layers": 2},
    "decay and a constant rate": {"weight_decay": 0.5, "schedule": "constant"},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("validated", [False, True])
def test_a_run_resumed_after_any_epoch_ends_as_if_never_interrupted(
    variant: dict[str, Any], validated: bool, tmp_path: Path
) -> None:
    c = variant.get("c", 3)
    validation = examples(c=c, seed=1, padded=True) if validated else None
    data = examples(c=c, padded=True)
    whole = train(begin(**variant), data, validation)
    for stop in (1, 2, 3, 4) if not variant else (3,):
        path = tmp_path / f"after-{stop}.ckpt"
        run = begin(**variant)
        writes = Checkpoint(path, {"what": "toy"}, resume=False).callback(0)
        train(run, data, validation, callbacks=[writes, lambda run, stop=stop: run.epoch == stop])  # type: ignore[misc,list-item]
        resumed = begin(**variant)
        Checkpoint(path, {"what": "toy"}, resume=True).restore_(resumed, 0)
        assert resumed.epoch == stop
        assert resumed.seconds == run.seconds
        assert_same_run(train(resumed, data, validation), whole)


def test_a_run_resumed_again_and_again_ends_as_if_never_interrupted(tmp_path: Path) -> None:
    path, data, validation = tmp_path / "run.ckpt", examples(), examples(seed=1)
    whole = train(begin(max_epochs=12, patience=4), data, validation)
    for _ in range(20):
        run = begin(max_epochs=12, patience=4)
        kept = Checkpoint(path, {}, resume=True)
        kept.restore_(run, 0)
        train(run, data, validation, callbacks=[kept.callback(0), lambda run: True])
        if run.finished:
            break
    assert_same_run(run, whole)


def test_the_optimisers_memory_lies_as_before_for_every_kernel(tmp_path: Path) -> None:
    run = begin()
    train(run, examples(), callbacks=[lambda run: True])
    kept = Checkpoint(tmp_path / "run.ckpt", {}, resume=False)
    kept.write(run, 0)
    resumed = begin()
    Checkpoint(tmp_path / "run.ckpt", {}, resume=True).restore_(resumed, 0)
    for one, other in zip(run.network.parameters(), resumed.network.parameters(), strict=True):
        assert one.stride() == other.stride()
        for key in ("exp_avg", "exp_avg_sq"):
            before, after = run.optimizer.state[one][key], resumed.optimizer.state[other][key]
            assert before.stride() == after.stride()
            assert torch.equal(before, after)


def test_a_checkpoint_is_written_not_too_often_but_always_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 1e6)
    written: list[int] = []
    kept = Checkpoint(tmp_path / "run.ckpt", {}, resume=False)
    monkeypatch.setattr(kept, "write", lambda run, member: written.append(run.epoch))
    train(begin(), examples(), callbacks=[kept.callback(0)])
    assert written == [5]


def test_a_finished_run_is_kept_without_its_optimiser(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    kept = Checkpoint(path, {}, resume=False)
    names: list[set[str]] = []

    def look(run: Run) -> None:
        names.append({name.split(".")[2] for name in read_container(path, "checkpoint")[0]})

    train(begin(), examples(), callbacks=[kept.callback(0), look])
    assert names == [{"network", "optimizer"}] * 4 + [{"network"}]


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    Checkpoint(path, {}, resume=False).write(train(begin(), examples(), callbacks=[lambda run: True]), 0)
    with pytest.raises(ModelFileError, match="The checkpoint does not fit the run: "):
        Checkpoint(path, {}, resume=True).restore_(begin(d_model=12), 0)


# A whole fit


def labelled(n: int = 20, seed: int = 0) -> LabelledCases:
    X, y = waves(n, 2, seed)
    return LabelledCases(check_series(X), y.astype(np.int64), np.ones(n))


CLASSES = np.array(["fast", "slow"])


def fitted(
    settings: Settings, options: FitOptions, validation: LabelledCases | None = None, n: int = 20
) -> FittedModel:
    return fit_model(labelled(n), CLASSES, settings, options, validation)


def assert_same_model(one: FittedModel, other: FittedModel) -> None:
    assert len(one.members) == len(other.members)
    for mine, yours in zip(one.members, other.members, strict=True):
        assert_same_tensors(mine.network.state_dict(), yours.network.state_dict())
        assert mine.temperature == yours.temperature
        assert without_seconds(mine.history) == without_seconds(yours.history)
    assert without_seconds(one.metrics) == without_seconds(other.metrics)


class StopAt:
    """Ends the process, so to say, at the given epochs, counted over all members; before the file is written."""

    def __init__(self, *epochs: int) -> None:
        self.epochs = epochs
        self.seen = 0

    def __call__(self, run: Run) -> None:
        self.seen += 1
        if self.seen in self.epochs:
            raise PowerCutError


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("validated", ["none", "given", "split"])
def test_a_fit_interrupted_at_every_epoch_ends_as_if_never_interrupted(
    n_members: int, validated: str, tmp_path: Path
) -> None:
    settings = tiny(max_epochs=3, validation_fraction=0.3 if validated == "split" else None)
    validation = labelled(10, seed=1) if validated == "given" else None
    whole = fitted(settings, FitOptions(n_members=n_members), validation)
    for stop in range(1, 3 * n_members + 1):
        options = FitOptions(n_members=n_members, checkpoint=tmp_path / f"{stop}.ckpt", resume=True)
        with pytest.raises(PowerCutError):
            fitted(settings, replace(options, callbacks=[StopAt(stop)]), validation)
        counter = StopAt()
        resumed = fitted(settings, replace(options, callbacks=[counter]), validation)
        assert counter.seen == 3 * n_members - stop + 1  # only what was not on disk is done again
        assert_same_model(resumed, whole)
        again = fitted(settings, replace(options, callbacks=[StopAt(1)]), validation)  # nothing left to do
        assert_same_model(again, whole)


def test_a_checkpoint_changes_nothing_about_the_result(tmp_path: Path) -> None:
    plain = fitted(tiny(), FitOptions())
    assert_same_model(fitted(tiny(), FitOptions(checkpoint=tmp_path / "fit.ckpt")), plain)


def test_a_file_is_not_resumed_from_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    fitted(tiny(max_epochs=2), FitOptions(checkpoint=path))
    before = path.read_bytes()
    counter = StopAt()
    fitted(tiny(max_epochs=3), FitOptions(checkpoint=path, callbacks=[counter]))  # another run: replaced, not refused
    assert counter.seen == 3
    assert path.read_bytes() != before


def test_resuming_where_there_is_no_file_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    assert_same_model(fitted(tiny(), FitOptions(checkpoint=path, resume=True)), fitted(tiny(), FitOptions()))
    assert path.exists()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"settings": tiny(learning_rate=0.02)}, "settings differ"),
        ({"options": {"seed": 1}}, "seed differ"),
        ({"options": {"n_members": 2}}, "number of members differ"),
        ({"n": 18}, "series and labels differ"),
        ({"validation": labelled(8, seed=1)}, "validation cases differ"),
        ({"settings": tiny(patience=3), "options": {"seed": 5}}, "settings, seed differ"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_kept(other: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    fitted(tiny(max_epochs=1), FitOptions(checkpoint=path))
    before = path.read_bytes()
    options = FitOptions(checkpoint=path, resume=True, **other.pop("options", {}))
    settings = other.pop("settings", tiny(max_epochs=1))
    with pytest.raises(ModelFileError) as caught:
        fitted(settings, options, **other)
    assert str(caught.value) == (
        f"{path} is the checkpoint of another run: {words}. "
        "Resume with the same series, labels and settings, or choose another checkpoint file."
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("spoiled", ["one value", "one label", "one weight", "the names of the classes"])
def test_the_smallest_difference_makes_another_run(spoiled: str, tmp_path: Path) -> None:
    path, data, classes = tmp_path / "fit.ckpt", labelled(), CLASSES
    fit_model(data, classes, tiny(max_epochs=1), FitOptions(checkpoint=path))
    if spoiled == "one value":
        data.cases.X[3, 1, 4] += 1e-3
    elif spoiled == "one label":
        data.codes[0] = 1
    elif spoiled == "one weight":
        data.weight[2] = 1.5
    else:
        classes = np.array(["fast", "slower"])
    with pytest.raises(ModelFileError, match=r"is the checkpoint of another run: (series and labels|classes) differ"):
        fit_model(data, classes, tiny(max_epochs=1), FitOptions(checkpoint=path, resume=True))


def test_a_broken_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    fitted(tiny(max_epochs=1), FitOptions(checkpoint=path))
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[-10] ^= 1
    for bad in (b"", good[: len(good) // 2], bytes(flipped), b"not a checkpoint"):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            fitted(tiny(max_epochs=1), FitOptions(checkpoint=path, resume=True))
        assert path.read_bytes() == bad


# A real kill


SCRIPT = """
import sys
import numpy as np
import torch
import pdftime.training.checkpoint as checkpoint
from pdftime import PDFTimeClassifier

checkpoint.EVERY_S = 0.0
torch.set_num_threads(1)
rng = np.random.default_rng(0)
y = np.arange(40) % 2
X = np.sin(np.arange(16) * (0.5 + 0.7 * y[:, None, None]) + rng.uniform(0, 6, (40, 2, 1)))
X += 0.5 * rng.normal(size=X.shape)

def announce(run):
    print("epoch", flush=True)

settings = {"branch_width": 4, "kernel_sizes": (3, 5), "n_heads": 2, "n_inception_layers": 2}
model = PDFTimeClassifier(
    preset="network",
    d_model=8, settings=settings, max_epochs=40, patience=40, validation_fraction=0.2, n_members=2, random_state=3,
    checkpoint=sys.argv[1] or None, resume=True, callbacks=[announce],
)
model.fit(X, y).save(sys.argv[2])
"""


def content(path: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    arrays, header = read_container(path, "model")
    return arrays, without_seconds(header)


@pytest.mark.slow
def test_a_fit_killed_at_random_moments_and_resumed_ends_as_if_never_killed(tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    script.write_text(SCRIPT)

    def begun(checkpoint: str, model: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(script), checkpoint, str(tmp_path / model)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"epoch\n"  # training is under way
        return process

    with begun("", "whole.pdftime") as whole:
        n_epochs = 1 + len(whole.stdout.read().splitlines())  # type: ignore[union-attr]
    assert (whole.returncode, n_epochs) == (0, 80)
    chance = random.Random(0)
    path = tmp_path / "fit.ckpt"
    for _ in range(3):
        with begun(str(path), "resumed.pdftime") as process:
            for _ in range(chance.randint(2, 16)):
                process.stdout.readline()  # type: ignore[union-attr]
            time.sleep(chance.uniform(0.0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL
    assert path.exists()
    with begun(str(path), "resumed.pdftime") as process:
        n_left = 1 + len(process.stdout.read().splitlines())  # type: ignore[union-attr]
    assert process.returncode == 0
    assert n_left < n_epochs  # it did not begin anew
    tensors, header = content(tmp_path / "resumed.pdftime")
    expected, expected_header = content(tmp_path / "whole.pdftime")
    assert header == expected_header
    assert sorted(tensors) == sorted(expected)
    for name, tensor in tensors.items():
        assert tensor.tobytes() == expected[name].tobytes(), name
