"""A run is a function of its settings, seed and cases; it keeps its best weights and stops when it should."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pdftime.config import ModelConfig, TrainConfig
from pdftime.data.batches import generator_for
from pdftime.errors import TrainingError
from pdftime.model.network import PDFTime
from pdftime.model.prototypes import PrototypeHead
from pdftime.training.loop import Examples, Run, planned_epochs, scores_of, start, train

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 5),
    "n_inception_layers": 2,
    "n_heads": 2,
}
QUICK: dict[str, Any] = {
    "max_epochs": 4,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warm_epochs": 1,
    "active_epochs": 1,
}


def examples(n: int = 24, seed: int = 0, *, padded: bool = False) -> Examples:
    """Two classes: slow and fast waves in noise, on two channels."""
    generator = generator_for("examples", seed)
    y = torch.arange(n) % 2
    phase = torch.rand(n, 2, 1, generator=generator) * 6.0
    x = torch.sin(torch.arange(20.0) * (0.4 + 0.8 * y[:, None, None]) + phase)
    x = x + 0.3 * torch.randn(n, 2, 20, generator=generator)
    mask = torch.arange(20) < (10 + torch.arange(n) % 11)[:, None] if padded else None
    return Examples(x, mask, y, torch.ones(n))


def begin(n: int = 24, seed: int = 0, *, model: dict[str, Any] | None = None, **changes: Any) -> Run:
    net = PDFTime(ModelConfig(**{**TINY, **(model or {})}), 2, 20, 2, generator_for(seed, "weights"))
    return start(net, n, TrainConfig(**{**QUICK, **changes}), seed)


def weights(run: Run) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in run.network.state_dict().items()}


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def without_seconds(run: Run) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in run.history]


def accuracy(run: Run, on: Examples) -> float:
    return float((scores_of(run.network, on.x, on.mask).argmax(dim=1) == on.y).float().mean())


# Learning and determinism


@pytest.mark.parametrize("padded", [False, True])
def test_it_learns_what_there_is_to_learn(padded: bool) -> None:
    run = train(begin(max_epochs=20), examples(padded=padded))
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]
    assert accuracy(run, examples(seed=1, padded=padded)) >= 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_weights_bit_for_bit(seed: int) -> None:
    one, other = (train(begin(seed=seed), examples(padded=True), examples(seed=1, padded=True)) for _ in range(2))
    assert equal(weights(one), weights(other))
    assert without_seconds(one) == without_seconds(other)


def test_another_seed_gives_other_weights_and_zero_is_a_seed() -> None:
    ends = []
    for seed in (0, 1, 2):
        run = begin(seed=seed)
        run.network.load_state_dict(begin(seed=7).network.state_dict())  # the same start: order and dropout differ
        ends.append(weights(train(run, examples())))
    assert not equal(ends[0], ends[1])
    assert not equal(ends[1], ends[2])


@pytest.mark.parametrize(("n", "dropout"), [(24, 0.0), (1, 0.5)])
def test_every_epoch_has_an_order_and_a_dropout_of_its_own(n: int, dropout: float) -> None:
    """Where nothing is learned, losses of epochs differ only by the company in a batch, or by what is dropped."""
    still = {"learning_rate": 1e-8, "momentum": 1.0}
    run = train(begin(n=n, batch_size=6, model={"dropout": dropout}, **still), examples(n=n))
    losses = [record["loss"] for record in run.history]
    assert min(abs(one - other) for one, other in itertools.combinations(losses, 2)) > 1e-4
    calm = train(begin(batch_size=24, model={"dropout": 0.0}, **still), examples())
    assert np.ptp([record["loss"] for record in calm.history]) < 1e-4


def test_the_global_generators_are_neither_used_nor_moved() -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()
    first = weights(train(begin(), examples(), examples(seed=1)))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, np.random.get_state(), strict=True))
    torch.manual_seed(123)
    again = weights(train(begin(), examples(), examples(seed=1)))
    torch.set_rng_state(before)
    assert equal(first, again)


def test_it_leaves_the_examples_alone() -> None:
    data, kept = examples(padded=True), examples(padded=True)
    train(begin(), data)
    assert all(torch.equal(one, other) for one, other in zip(data, kept, strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [False, True])
def test_denormals_are_flushed_meanwhile_and_then_as_before(before: bool) -> None:
    seen = []
    torch.set_flush_denormal(before)
    try:
        train(begin(max_epochs=1), examples(), callbacks=[lambda run: seen.append(flushes())])
        after = flushes()
        with pytest.raises(ZeroDivisionError):
            train(begin(max_epochs=1), examples(), callbacks=[lambda run: 1 // 0])  # type: ignore[arg-type,return-value]
        after_error = flushes()
    finally:
        torch.set_flush_denormal(False)
    assert seen == [True]
    assert (after, after_error) == (before, before)


def flushes() -> bool:
    return bool(torch.tensor(1e-39) * 1.0 == 0.0)


# Stopping


def test_early_stopping_keeps_the_best_weights() -> None:
    validation = examples(seed=1)
    validation.y[:5] = 1 - validation.y[:5]  # wrong labels: the surer the network, the worse
    kept: list[dict[str, Tensor]] = []
    run = begin(max_epochs=40, patience=3, learning_rate=0.05)
    train(run, examples(), validation, callbacks=[lambda run: kept.append(weights(run))])
    losses = [record["validation_loss"] for record in run.history]
    assert run.best is not None
    assert run.best.epoch == 1 + int(np.argmin(losses))
    assert run.best.loss == min(losses)
    assert run.epoch == len(losses) == run.best.epoch + 3 < 40
    assert equal(weights(run), kept[run.best.epoch - 1])
    assert not equal(weights(run), kept[-1])
    scores = scores_of(run.network, validation.x, validation.mask)
    assert float(F.cross_entropy(scores, validation.y)) == pytest.approx(run.best.loss, rel=1e-5)


def test_patience_counts_epochs_without_a_better_loss() -> None:
    data = examples()
    never_better = data._replace(y=1 - data.y)  # what is learned is wrong here
    run = train(begin(max_epochs=40, patience=5, warmup=0.0), data, never_better)
    assert run.best is not None
    assert run.epoch == run.best.epoch + 5
    assert run.finished


def test_without_validation_the_last_weights_are_kept() -> None:
    kept: list[dict[str, Tensor]] = []
    run = train(begin(max_epochs=6), examples(), callbacks=[lambda run: kept.append(weights(run))])
    assert run.best is None
    assert run.epoch == 6
    assert equal(weights(run), kept[-1])
    assert not equal(kept[-1], kept[-2])


def test_validation_cases_choose_the_epoch_and_touch_nothing_else() -> None:
    ends, runs = [], []
    for validation in (None, examples(seed=1), examples(n=6, seed=2)):
        run = begin(max_epochs=5, patience=100)
        kept: list[dict[str, Tensor]] = []
        train(run, examples(), validation, callbacks=[lambda run, kept=kept: kept.append(weights(run))])  # type: ignore[misc]
        ends.append(kept[-1])
        runs.append(run)
    assert equal(ends[0], ends[1])
    assert equal(ends[0], ends[2])
    terms = [[(record["loss"], record["classification_0"]) for record in run.history] for run in runs]
    assert terms[0] == terms[1] == terms[2]


def test_a_time_limit_stops_the_run() -> None:
    run = begin(max_epochs=1_000_000)
    began = time.perf_counter()
    train(run, examples(), max_time_s=0.3)
    assert time.perf_counter() - began < 3.0
    assert 1 <= run.epoch < run.n_epochs
    assert run.seconds >= 0.3
    assert len(run.history) == run.epoch


def test_a_time_limit_stops_within_an_epoch_and_still_leaves_a_network() -> None:
    run = train(begin(n=400, batch_size=2), examples(n=400), examples(seed=1), max_time_s=1e-9)
    assert run.epoch == 1
    assert run.best is not None
    assert all(torch.isfinite(tensor).all() for tensor in weights(run).values())


def test_a_callback_that_returns_true_stops_the_run_and_others_do_not() -> None:
    told: list[int] = []
    stopped = train(
        begin(max_epochs=10), examples(), callbacks=[lambda run: run.epoch == 2, lambda run: told.append(run.epoch)]
    )
    assert stopped.epoch == 2
    assert told == [1, 2]
    assert not stopped.finished
    answers: list[Any] = [None, False, None, False]
    going = train(begin(), examples(), callbacks=[lambda run: answers[run.epoch - 1]])
    assert going.epoch == 4


def test_a_stopped_run_goes_on_where_it_was() -> None:
    whole = train(begin(), examples())
    run = begin()
    for stop in range(1, 5):
        train(run, examples(), callbacks=[lambda run, stop=stop: run.epoch == stop])  # type: ignore[misc]
    assert equal(weights(run), weights(whole))
    finished = weights(train(run, examples()))
    assert equal(finished, weights(whole))


@pytest.mark.parametrize(
    ("n_cases", "changes", "expected"),
    [
        (100, {"max_epochs": 7}, 7),
        (160, {"max_epochs": None, "n_steps": 600, "batch_size": 16}, 60),
        (5, {"max_epochs": None, "n_steps": 600, "batch_size": 16}, 300),
        (100_000, {"max_epochs": None, "n_steps": 600, "batch_size": 16}, 20),
    ],
)
def test_epochs_are_planned_by_the_number_of_steps(n_cases: int, changes: dict[str, Any], expected: int) -> None:
    assert planned_epochs(n_cases, TrainConfig(**changes)) == expected


# What can go wrong


def test_weights_that_explode_stop_training_with_step_and_cause() -> None:
    run = begin(max_epochs=100, learning_rate=10.0, weight_decay=10.0, warmup=0.0, clip_norm=1e6, schedule="constant")
    with pytest.raises(
        TrainingError,
        match=r"^Training stopped at epoch \d+, step \d+: \w+ became (nan|inf) at learning rate 10\. Lower learn",
    ):
        train(run, examples())


@pytest.mark.parametrize("planted", [math.inf, -math.inf, math.nan])
def test_a_planted_weight_that_is_not_finite_stops_the_first_step(planted: float) -> None:
    run = begin()
    with torch.no_grad():
        run.network.norm.weight[0] = planted
    before = weights(run)
    with pytest.raises(TrainingError, match=r"epoch 1, step 1: loss became nan at learning rate"):
        train(run, examples())
    for name, tensor in weights(run).items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0, equal_nan=True)


def test_a_validation_loss_that_is_not_finite_stops_training() -> None:
    validation = examples(seed=1)
    validation.x[3, 0, 5] = math.nan
    with pytest.raises(TrainingError, match=r"epoch 1, validation: validation_loss became nan"):
        train(begin(), examples(), validation)


# What is recorded


@pytest.mark.parametrize("n_prototypes", [(2,), (2, 3, 2)])
@pytest.mark.parametrize("validated", [False, True])
def test_the_history_names_every_term_in_every_epoch(n_prototypes: tuple[int, ...], validated: bool) -> None:
    run = begin(model={"n_prototypes": n_prototypes})
    train(run, examples(), examples(seed=1) if validated else None)
    levels = range(len(n_prototypes))
    keys = ["epoch", "loss", *(f"classification_{i}" for i in levels), *(f"diversity_{i}" for i in levels)]
    keys += [
        "momentum",
        "learning_rate",
        *(["validation_loss", "validation_accuracy"] if validated else []),
        "seconds",
    ]
    assert [list(record) for record in run.history] == [keys] * 4
    assert [record["epoch"] for record in run.history] == [1, 2, 3, 4]
    assert all(math.isfinite(value) for record in run.history for value in record.values())
    seconds = [record["seconds"] for record in run.history]
    assert seconds == sorted(seconds)
    assert seconds[-1] == run.seconds
    assert [record["momentum"] for record in run.history[:2]] == [1.0, 1.0]


def test_the_recorded_loss_is_the_mean_over_the_cases_of_an_epoch() -> None:
    """Without steps that teach (a rate of next to nothing), it is the loss of the start."""
    run = begin(n=10, max_epochs=1, batch_size=10, learning_rate=1e-8, model={"dropout": 0.0})
    data = examples(n=10)
    output = run.network(data.x, None, generator_for(0))
    expected = F.cross_entropy(output.scores[0], data.y)
    train(run, data)
    assert run.history[0]["classification_0"] == pytest.approx(float(expected.detach()), rel=1e-5)


# What moves


def test_prototypes_are_frozen_in_the_warm_up_and_follow_afterwards() -> None:
    seen: list[Tensor] = []

    def note(run: Run) -> None:
        assert isinstance(run.network.head, PrototypeHead)
        seen.append(run.network.head.levels[-1].clone())

    run = begin(max_epochs=5, warm_epochs=2, active_epochs=1, gamma_a=0.9)
    note(run)
    train(run, examples(), callbacks=[note])
    assert all(torch.equal(seen[0], seen[epoch]) for epoch in (1, 2, 3))  # the third begins at momentum 1
    assert not torch.allclose(seen[3], seen[4], atol=1e-3)


def test_the_diversity_step_keeps_prototypes_apart_while_training() -> None:
    ends = []
    for step in (0.0, 1.0):
        run = train(begin(max_epochs=8, momentum=0.8, diversity_step=step), examples())
        ends.append(run.history[-1]["diversity_1"])
    assert ends[1] < 0.8 * ends[0]


def test_running_averages_move_only_in_training_steps() -> None:
    run = begin(max_epochs=1)
    before = weights(run)
    scores_of(run.network, examples().x, None)
    assert equal(before, weights(run))
    train(run, examples())
    moved = [name for name, tensor in weights(run).items() if not torch.equal(tensor, before[name])]
    assert {name for name in before if name.endswith((".mean", ".variance"))} <= set(moved)


def test_decay_is_for_matrices_and_kernels_only() -> None:
    run = begin(model={"prototype_update": "gradient"}, weight_decay=0.3)
    names = {id(parameter): name for name, parameter in run.network.named_parameters()}
    decayed, free = ({names[id(each)] for each in group["params"]} for group in run.optimizer.param_groups)
    assert [group["weight_decay"] for group in run.optimizer.param_groups] == [0.3, 0.0]
    assert decayed | free == set(names.values())
    assert {"spectrum.gain", "head.level_0", "head.level_1", "norm.weight", "embedding.norm.bias"} <= free
    assert {"encoder.layers.0.widen.weight", "embedding.layers.0.convolutions.0.weight"} <= decayed


# Weights of cases


def test_where_labels_contradict_each_other_the_heavier_wins() -> None:
    data = examples(n=16)
    both = Examples(data.x.repeat(2, 1, 1), None, torch.cat([data.y, 1 - data.y]), torch.ones(32))
    for first, second in ((20.0, 1.0), (1.0, 20.0)):
        weight = torch.cat([torch.full((16,), first), torch.full((16,), second)])
        run = train(begin(n=32, max_epochs=15), both._replace(weight=weight))
        assert accuracy(run, data) == (1.0 if first > second else 0.0)


def test_a_case_of_hardly_any_weight_is_as_good_as_absent() -> None:
    data = examples(n=8)
    spoiled = Examples(
        torch.cat([data.x, 5.0 * data.x.flip(0)]),
        None,
        torch.cat([data.y, data.y]),
        torch.tensor([1.0] * 8 + [1e-9] * 8),
    )
    run = begin(n=16, batch_size=16, max_epochs=1, learning_rate=1e-8, model={"dropout": 0.0}, momentum=0.5)
    train(run, spoiled)
    net = begin(model={"dropout": 0.0}).network
    z = net(spoiled.x, None, generator_for(0)).z.detach()
    head = net.head
    assert isinstance(head, PrototypeHead)
    head.update_(head.statistics(z[:8], data.y), 0.5, run.config.diversity_step)
    torch.testing.assert_close(run.network.head.levels[-1], head.levels[-1], atol=1e-3, rtol=1e-3)


def test_validation_weighs_its_cases_too() -> None:
    validation = examples(n=12, seed=1)
    weight = torch.linspace(0.1, 3.0, 12)
    run = train(begin(max_epochs=1), examples(), validation._replace(weight=weight))
    each = F.cross_entropy(scores_of(run.network, validation.x, None), validation.y, reduction="none")
    assert run.history[0]["validation_loss"] == pytest.approx(float((each * weight).sum() / weight.sum()), rel=1e-5)


# Scoring in parts


def test_scores_in_batches_are_those_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run, data = begin(), examples(n=23, padded=True)
    whole = run.network(data.x, data.mask).scores[-1].detach()
    monkeypatch.setattr("pdftime.training.loop.EVALUATION_POINTS", 100)
    torch.testing.assert_close(scores_of(run.network, data.x, data.mask), whole, atol=1e-4, rtol=1e-5)
