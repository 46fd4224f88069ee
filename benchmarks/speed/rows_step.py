"""Rows about single steps and predictions: against the plain network, the paper's configuration, and the peak."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pdftime import PDFTimeClassifier
from pdftime.config import Settings
from pdftime.data.series import check_series
from pdftime.fitted import as_tensors

from .plain import PlainNetwork, PlainTraining
from .subjects import (
    Shape,
    network_for,
    our_epoch,
    output_difference,
    plain_epoch,
    series,
    settings_for,
)
from .timing import Record, Spread, compare, spread_of

TOLERANCE = 1e-4
LENGTHS = (64, 128, 256, 512, 1024, 2048)
CHANNELS = (1, 6, 61)
PEAK_SIZE = 1024  # rows and columns of the matrices whose product measures the peak


def step_against_plain(quick: bool, repetitions: int) -> list[Record]:
    """(a) One training step, ours against the same equations written plainly; default sizes."""
    records = []
    for n_timepoints in LENGTHS[:2] if quick else LENGTHS:
        for n_channels in CHANNELS[:2] if quick else CHANNELS:
            shape = Shape(n_timepoints, n_channels)
            settings = settings_for("network", batch_size=16)
            network = network_for(settings, shape)
            plain = PlainNetwork.like(network, settings.model, n_timepoints)
            difference = output_difference(network, plain, shape)
            if difference > TOLERANCE:
                raise AssertionError(f"Scores differ by {difference:.2g} at {shape}; expected at most {TOLERANCE:g}.")
            n_steps = min(max(2048 // n_timepoints, 2), 16)
            timed = compare(
                {
                    "ours": our_epoch(network, settings, shape, n_steps),
                    "plain": plain_epoch(plain, settings, shape, n_steps),
                },
                repetitions,
            )
            facts = {**shape._asdict(), "batch_size": 16, "difference": difference}
            facts |= {name: seconds / n_steps for name, seconds in timed.medians().items()}
            subject = f"training step, length {n_timepoints}, channels {n_channels}, batch 16"
            records.append(Record("a", subject, "plain / ours", timed.ratio("plain", "ours"), facts=facts))
    return records


def step_against_paper(quick: bool, repetitions: int) -> list[Record]:
    """(a2) One step of our default against the paper's configuration written plainly, attention dropout included."""
    records = []
    # all pairs of 2048 tokens at batch 16 would take over 10 GB; the smaller batch is to our disadvantage
    for n_timepoints, batch_size in [(256, 16)] if quick else [(256, 16), (2048, 4)]:
        shape = Shape(n_timepoints)
        default, paper = (settings_for(name, batch_size) for name in ("network", "paper"))
        network = PlainNetwork(paper.model, *_sizes(shape), attention_dropout=paper.model.dropout)
        network.prototypes = [level.detach() for level in network_for(paper, shape).head.levels]
        n_steps = 1 if n_timepoints > 256 else 4
        timed = compare(
            {
                "ours": our_epoch(network_for(default, shape), default, shape, n_steps),
                "paper": plain_epoch(network, paper, shape, n_steps),
            },
            repetitions,
        )
        facts = {**shape._asdict(), "batch_size": batch_size}
        facts |= {name: seconds / n_steps for name, seconds in timed.medians().items()}
        subject = f"training step, default against the paper's plain form, length {n_timepoints}, batch {batch_size}"
        records.append(Record("a2", subject, "paper / ours", timed.ratio("paper", "ours"), facts=facts))
    return records


def compiled(quick: bool, repetitions: int) -> list[Record]:
    """(i) The embedding, forward and backward, as it is against itself under torch.compile."""
    records = []
    for n_timepoints in LENGTHS[:1] if quick else (64, 256, 1024):
        shape = Shape(n_timepoints)
        embedding = network_for(settings_for("network", batch_size=16), shape).embedding
        x = torch.from_numpy(series(16, shape)[0]).transpose(1, 2).contiguous()
        torch._dynamo.reset()
        faster = torch.compile(embedding, dynamic=False)
        began = time.perf_counter()
        _both_ways(faster, x)
        seconds = time.perf_counter() - began
        timed = compare(
            {"ours": partial(_both_ways, embedding, x), "compiled": partial(_both_ways, faster, x)}, 3 * repetitions
        )
        facts = {**shape._asdict(), "batch_size": 16, **timed.medians(), "to_compile_seconds": seconds}
        subject = f"embedding forward and backward, length {n_timepoints}, batch 16"
        ratio = timed.ratio("ours", "compiled")
        records.append(Record("i", subject, "as it is / under torch.compile", ratio, facts=facts))
    return records


def _both_ways(embedding: torch.nn.Module, x: torch.Tensor) -> object:
    return torch.autograd.grad(embedding(x, None, True)[0].sum(), list(embedding.parameters()))


def predict(quick: bool, repetitions: int) -> list[Record]:
    """(b) `predict` against a bare forward pass of its network on prepared series."""
    records = []
    for n_timepoints, n_channels in [(128, 1)] if quick else [(128, 1), (512, 1), (128, 6)]:
        shape = Shape(n_timepoints, n_channels)
        X, y = series(64, shape)
        model = PDFTimeClassifier(preset="network", max_epochs=1).fit(X, y)
        for n_cases in (1, 64 if quick else 1024):
            cases = series(n_cases, shape, seed=1)[0]
            timed = compare(
                {"predict": partial(model.predict, cases), "forward": _forward(model, cases)},
                repetitions,
                warm_up=3,
                runs=20 if n_cases == 1 else 1,
            )
            facts = {**shape._asdict(), "n_cases": n_cases, **timed.medians()}
            facts["cases_per_second"] = n_cases / timed.of("predict").value
            subject = f"predict, cases {n_cases}, length {n_timepoints}, channels {n_channels}"
            ratio = timed.ratio("predict", "forward")
            records.append(Record("b", subject, "predict / bare forward", ratio, facts=facts))
    return records


def utilisation(quick: bool, repetitions: int) -> list[Record]:
    """(f) FLOPs of the step's equations per second, over those of a matrix product in the same run."""
    records = []
    left, right = torch.randn(PEAK_SIZE, PEAK_SIZE), torch.randn(PEAK_SIZE, PEAK_SIZE)
    shape, batch_size = Shape(64 if quick else 512), 16 if quick else 64
    for name in ("network", "paper"):
        settings = settings_for(name, batch_size)
        timed = compare(
            {
                "step": our_epoch(network_for(settings, shape), settings, shape, n_steps=1),
                "product": lambda: [left @ right for _ in range(20)],
            },
            repetitions,
            warm_up=2,
        )
        flops, product = batch_size * flops_per_case(settings, shape), 20 * 2 * PEAK_SIZE**3
        shares = [
            flops / step / (product / peak)
            for step, peak in zip(timed.seconds["step"], timed.seconds["product"], strict=True)
        ]
        facts = {
            **shape._asdict(),
            "preset": name,
            "batch_size": batch_size,
            "step_gflop": flops / 1e9,
            "step_gflop_per_second": flops / timed.of("step").value / 1e9,
            "peak_gflop_per_second": product / timed.of("product").value / 1e9,
            **timed.medians(),
        }
        subject = f"training step, preset {name}, length {shape.n_timepoints}, batch {batch_size}"
        share = Spread(*(100 * value for value in spread_of(shares)))
        records.append(Record("f", subject, "share of the matrix product's FLOP/s", share, "%", facts))
    return records


def flops_per_case(settings: Settings, shape: Shape) -> float:
    """Of convolutions, linear maps and attention, forward and backward; counted on the plain network.

    The equations are counted and not what ours runs, so that wasted arithmetic does not pass for speed.
    """
    plain = PlainNetwork.like(network_for(settings, shape), settings.model, shape.n_timepoints)
    training = PlainTraining(plain, settings)
    x, y = (torch.from_numpy(array) for array in series(2, shape))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # other kernels are not counted
        training.loss(plain.train()(x)[0], y).backward()
    return counter.get_total_flops() / 2


def _forward(model: PDFTimeClassifier, X: NDArray[np.float32]) -> Callable[[], object]:
    """A pass through the model's network, of series that are prepared already."""
    x, mask = as_tensors(model.model_.preparation(check_series(X)))
    return torch.no_grad()(partial(model.model_.members[0].network, x, mask))


def _sizes(shape: Shape) -> tuple[int, int, int]:
    return shape.n_channels, shape.n_timepoints, shape.n_classes
