"""fit_model(): from checked cases to a FittedModel. Split, prepare, train each member, calibrate."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from pdftime.config import Settings, TrainConfig
from pdftime.data.batches import generator_for, seed_for, stratified_split
from pdftime.data.labels import classes_to_json
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet
from pdftime.explain.review import agreement_of, held_out_probabilities, review_of
from pdftime.fitted import FittedModel, KeptPrototypes, Member, Review, as_tensors, find_exemplars
from pdftime.model.network import PDFTime
from pdftime.training.calibration import expected_calibration_error, fit_temperature
from pdftime.training.checkpoint import Checkpoint
from pdftime.training.loop import Callback, Examples, Kept, Run, keep_prototypes_, scores_of, start, train
from pdftime.training.progress import ProgressBar

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelledCases:
    """Cases with the codes of their classes and a positive weight each."""

    cases: SeriesSet
    codes: Codes
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FitOptions:
    """How to run the fit; unlike `Settings`, nothing here describes the model."""

    seed: int = 0
    n_members: int = 1
    max_time_s: float | None = None
    backbone: nn.Module | None = None
    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    callbacks: Sequence[Callback] = ()
    progress: bool = False
    keep_prototypes: int | None = None
    """Keep a copy of the prototypes every so many epochs."""


def fit_model(
    data: LabelledCases,
    classes: NDArray[Any],
    settings: Settings,
    options: FitOptions,
    validation: LabelledCases | None = None,
) -> FittedModel:
    """A trained, calibrated model. Without `validation`, part of the cases is kept for it where there are enough."""
    preparation = Preparation.fit(data.cases, settings.prepare)
    examples = _examples(data, preparation)
    given = None if validation is None else _examples(validation, preparation)
    checkpoint = None
    if options.checkpoint is not None:
        identity = _identity(examples, given, classes, settings, options)
        checkpoint = Checkpoint(options.checkpoint, identity, resume=options.resume)
    members, measured, spent = [], [], 0.0
    held_out: list[Codes] = []
    with ProgressBar(enabled=options.progress) as bar:
        for number in range(options.n_members):
            bar.begin(f"member {number + 1} of {options.n_members}" if options.n_members > 1 else "training")
            seed = seed_for(options.seed, "member", number)
            fitting, kept, kept_rows = examples, given, np.arange(0)
            if given is None:
                rows, kept_rows = validation_split(data.codes, settings.training, seed)
                fitting = examples.take(rows)
                kept = examples.take(kept_rows) if len(kept_rows) else None
            network = PDFTime(
                settings.model,
                preparation.n_channels,
                preparation.n_timepoints,
                len(classes),
                generator_for(seed, "weights"),
                deepcopy(options.backbone),
            )
            run = start(network, len(fitting.y), settings.training, seed)
            held_out.append(kept_rows)
            callbacks: list[Callback] = [bar, *options.callbacks]
            if checkpoint is not None:
                checkpoint.restore_(run, number)
            if options.keep_prototypes is not None:
                callbacks.append(keep_prototypes_(run, options.keep_prototypes))
            if checkpoint is not None:
                callbacks.append(checkpoint.callback(number))
            share = _time_share(options, spent, number)
            train(run, fitting, kept, max_time_s=share, callbacks=callbacks)
            spent += run.seconds
            member, metrics = _calibrated(run, kept)
            members.append(member)
            measured.append(metrics)
    metrics = {"n_cases": len(data.cases), "seconds": spent, "members": measured}
    model = FittedModel(settings, classes, data.cases.channel_names, preparation, members, metrics=metrics)
    model = replace(model, exemplars=find_exemplars(model, data.cases, data.codes))
    return replace(model, review=_review(model, data, validation, held_out))


def _review(
    model: FittedModel, data: LabelledCases, validation: LabelledCases | None, held_out: list[Codes]
) -> Review:
    """What predictions are worth on cases that were not learned from, or on the training cases for want of such."""
    source, looked_at, index = "training", data, np.arange(len(data.codes))
    if validation is not None:
        source, looked_at, index = "validation", validation, np.arange(len(validation.codes))
        probabilities = model.probabilities(validation.cases)
    elif any(len(rows) for rows in held_out):
        probabilities, index = held_out_probabilities(model, data.cases, held_out)
        source = "held out"
    else:
        probabilities = model.probabilities(data.cases)
    known = looked_at.cases.take(index)
    return review_of(source, probabilities, looked_at.codes[index], index, agreement_of(model, known))


def validation_split(codes: Codes, config: TrainConfig, seed: int) -> tuple[Codes, Codes]:
    """Positions to fit on and to validate on; the latter empty where the set is too small to spare any."""
    fraction = config.validation_fraction
    if fraction is None:
        fraction = 0.0 if len(codes) < 100 else 0.2 if len(codes) < 1000 else 0.1
    return stratified_split(codes, fraction, seed=seed)


def _examples(data: LabelledCases, preparation: Preparation) -> Examples:
    x, mask = as_tensors(preparation(data.cases))
    return Examples(x, mask, torch.from_numpy(data.codes), torch.from_numpy(data.weight.astype(np.float32)))


def _calibrated(run: Run, validation: Examples | None) -> tuple[Member, dict[str, Any]]:
    """The run's network with its temperature, and what was measured on the validation cases."""
    run.network.eval()
    metrics: dict[str, Any] = {
        "epochs": run.epoch,
        "best_epoch": run.epoch if run.best is None else run.best.epoch,
        "n_validation": 0 if validation is None else len(validation.y),
    }
    kept = None if not run.kept else KeptPrototypes(*_stacked(run.kept))
    if validation is None:
        return Member(run.network, 1.0, run.history, kept), metrics
    scores = scores_of(run.network, validation.x, validation.mask)
    temperature = fit_temperature(scores, validation.y)
    probabilities = torch.softmax(scores.double() / temperature, dim=1)
    metrics |= {
        "validation_accuracy": float((scores.argmax(dim=1) == validation.y).double().mean()),
        "validation_log_loss": float(F.cross_entropy(scores.double() / temperature, validation.y)),
        "validation_calibration_error": expected_calibration_error(probabilities, validation.y),
        "calibration_error_before": expected_calibration_error(torch.softmax(scores, dim=1), validation.y),
    }
    return Member(run.network, temperature, run.history, kept), metrics


def _stacked(kept: list[Kept]) -> tuple[Codes, list[NDArray[np.float32]]]:
    """Epochs, and per level the prototypes of all of them."""
    levels = [
        np.stack([level.numpy() for level in same]) for same in zip(*(each.levels for each in kept), strict=True)
    ]
    return np.array([each.epoch for each in kept]), levels


def _time_share(options: FitOptions, spent: float, number: int) -> float | None:
    """What is left of the time limit, shared among the members that are still to come."""
    if options.max_time_s is None:
        return None
    return max(options.max_time_s - spent, 0.0) / (options.n_members - number)


def _identity(
    examples: Examples, given: Examples | None, classes: NDArray[Any], settings: Settings, options: FitOptions
) -> dict[str, Any]:
    """What a checkpoint must agree on with the run that resumes from it."""
    return {
        "series and labels": _digest(examples),
        "validation cases": None if given is None else _digest(given),
        "classes": classes_to_json(classes),
        "settings": _as_read(settings.to_json()),
        "seed": options.seed,
        "number of members": options.n_members,
    }


def _digest(examples: Examples) -> str:
    digest = hashlib.sha256()
    for tensor in examples:
        if tensor is not None:
            digest.update(str(tuple(tensor.shape)).encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _as_read(state: Any) -> Any:
    """Plain data as it comes back from JSON, where tuples are lists."""
    if isinstance(state, dict):
        return {key: _as_read(value) for key, value in state.items()}
    return [_as_read(item) for item in state] if isinstance(state, (list, tuple)) else state
