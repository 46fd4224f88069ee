"""fit_model(): from checked cases to a FittedModel. Split, prepare, train each member, calibrate."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import log
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from pdftime.config import Settings, TrainConfig
from pdftime.data.batches import generator_for, seed_for, stratified_folds, stratified_split
from pdftime.data.labels import classes_to_json
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet
from pdftime.explain.review import agreement_of, review_of
from pdftime.fitted import FittedModel, KeptPrototypes, LeftOut, Member, Review, as_tensors, find_exemplars
from pdftime.model.network import PDFTime
from pdftime.scores import score
from pdftime.training.calibration import expected_calibration_error, fit_temperature
from pdftime.training.checkpoint import Checkpoint
from pdftime.training.closed_form import fit_bank
from pdftime.training.loop import Callback, Examples, Kept, Run, keep_prototypes_, scores_of, start, train
from pdftime.training.progress import ProgressBar

Codes = NDArray[np.int64]

PRIOR_SHARE, PRIOR_CASES = 0.7, 30.0  # of the bank beside a network, and how many cases it takes to outweigh it
UNJUDGED_SHARE = 0.9  # of the bank beside a network that kept no cases and is too sure of itself (docs/recipe.md)
LEAST = 1e-12  # probability that counts as such where logarithms are averaged
FOLDED_CASES = 1000  # from here on one network with a validation part of a tenth


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


class MemberFit(NamedTuple):
    """A network and what it makes of cases that it did not learn from."""

    number: int
    """The member that it belongs to; of both views there are several networks in one."""
    member: Member
    metrics: dict[str, Any]
    rows: Codes
    """Places of the training cases that it was judged by; none where others were given for that, or none kept."""
    probabilities: Tensor
    """(n, n_classes) of those cases, or of the given ones; double."""
    left_out: LeftOut | None = None
    """Embeddings of training cases that were made without them; None where there are none."""
    seconds: float = 0.0


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
    fits: list[MemberFit] = []
    with ProgressBar(enabled=options.progress) as bar:
        for number in range(options.n_members):
            if settings.model.views != "network":
                bar.begin(_whose(options, number) + (", bank" if settings.model.views == "both" else ""))
                fits.append(_fit_bank(examples, given, len(classes), settings, options, number))
            if settings.model.views != "bank":
                spent = sum(fit.seconds for fit in fits)
                fits += _fit_networks(
                    examples, given, len(classes), settings, options, number, spent, bar, checkpoint
                )
    members = [
        fit.member._replace(weight=weight) for fit, weight in zip(fits, _weights(fits, examples, given), strict=True)
    ]
    metrics = {
        "n_cases": len(data.cases),
        "n_members": options.n_members,
        "seconds": sum(fit.seconds for fit in fits),
        "members": [fit.metrics | {"seconds": fit.seconds} for fit in fits],
    }
    model = FittedModel(settings, classes, data.cases.channel_names, preparation, members, metrics=metrics)
    left_out = [fit.left_out for fit in fits]
    model = replace(model, exemplars=find_exemplars(model, data.cases, data.codes, left_out))
    return replace(model, review=_review(model, data, validation, fits))


def _fit_bank(
    examples: Examples,
    given: Examples | None,
    n_classes: int,
    settings: Settings,
    options: FitOptions,
    number: int,
) -> MemberFit:
    """A bank of convolutions with prototypes in closed form, judged by cases that were left out in turn."""
    began = time.perf_counter()
    fit = fit_bank(examples, n_classes, settings.bank, seed_for(options.seed, "member", number))
    head = fit.network.head
    if given is None:
        probabilities = torch.softmax(head(fit.z.float())[-1].double(), dim=1)
        judged = examples.y[torch.from_numpy(fit.rows)]
    else:
        probabilities = torch.softmax(scores_of(fit.network, given.x, given.mask).double(), dim=1)
        judged = given.y
    metrics = fit.metrics | {"view": "bank", "n_validation": len(judged)} | _measured(probabilities, judged)
    return MemberFit(
        number,
        Member(fit.network, 1.0, []),
        metrics,
        fit.rows if given is None else np.arange(0),
        probabilities,
        LeftOut(fit.rows, fit.z.float().numpy()),
        time.perf_counter() - began,
    )


def _fit_networks(
    examples: Examples,
    given: Examples | None,
    n_classes: int,
    settings: Settings,
    options: FitOptions,
    number: int,
    spent: float,
    bar: ProgressBar,
    checkpoint: Checkpoint | None,
) -> list[MemberFit]:
    """A member's learned networks, stopped, calibrated and judged by cases that they did not learn from, if any."""
    member_seed = seed_for(options.seed, "member", number)
    splits = [(np.arange(len(examples.y)), np.arange(0))]
    if given is None:
        splits = splits_of(examples.y.numpy(), settings.training, member_seed)
    alone = len(splits) == 1
    config = replace(settings.training, n_steps=-(-settings.training.n_steps // len(splits)))
    runs: list[Run] = []
    judges: list[Examples | None] = []
    for place, (rows, kept_rows) in enumerate(splits):
        bar.begin(_whose(options, number) + ("" if alone else f", network {place + 1} of {len(splits)}"))
        seed = member_seed if alone else seed_for(member_seed, "fold", place)
        kept = examples.take(kept_rows) if len(kept_rows) else given
        network = PDFTime(
            settings.model,
            examples.x.shape[1],
            examples.x.shape[2],
            n_classes,
            generator_for(seed, "weights"),
            deepcopy(options.backbone),
        )
        run = start(network, len(rows), config, seed)
        callbacks: list[Callback] = [bar, *options.callbacks]
        run_number = number * len(splits) + place
        if checkpoint is not None:
            checkpoint.restore_(run, run_number)
        if options.keep_prototypes is not None:
            callbacks.append(keep_prototypes_(run, options.keep_prototypes))
        if checkpoint is not None:
            callbacks.append(checkpoint.callback(run_number))
        to_come = (options.n_members - number) * len(splits) - place
        limit = _time_share(options, spent + sum(run.seconds for run in runs), to_come)
        # a fold is too small to say when to stop
        train(run, examples.take(rows), kept if alone else None, max_time_s=limit, callbacks=callbacks)
        runs.append(run)
        judges.append(kept)
    return _calibrated(number, runs, judges, [kept_rows for _, kept_rows in splits], n_classes)


def _weights(fits: list[MemberFit], examples: Examples, given: Examples | None) -> list[float]:
    """What each network counts: alike among those of one view, and between views by out-of-sample likelihood."""
    banks = [fit for fit in fits if fit.member.view == "bank"]
    networks = [fit for fit in fits if fit.member.view == "network"]
    if not banks or not networks:
        return [1.0] * len(fits)
    own: list[tuple[Tensor, Tensor, Tensor]] = []
    for bank, network in ((one, other) for one in banks for other in networks if one.number == other.number):
        if given is not None:
            y, (one, other) = given.y, (bank.probabilities, network.probabilities)
        else:
            _, places, others = np.intersect1d(bank.rows, network.rows, return_indices=True)
            y = examples.y[torch.from_numpy(bank.rows[places])]
            one, other = bank.probabilities[places], network.probabilities[others]
        own.append((one, other, y))
    of_banks, of_networks, labels = (torch.cat(each) for each in zip(*own, strict=True))
    share = view_share(of_banks, of_networks, labels) if len(labels) else UNJUDGED_SHARE
    of_network = (1.0 - share) * len(banks) / len(networks)
    return [share if fit.member.view == "bank" else of_network for fit in fits]


def view_share(bank: Tensor, network: Tensor, y: Tensor) -> float:
    """The bank's share, from the probabilities (n, n_classes) that bank and network give to the same cases.

    Logarithms are averaged by shares, as scores are in the model. The share makes the labels most likely, as if
    `PRIOR_CASES` more had said `PRIOR_SHARE`.

    >>> import torch
    >>> sure, unsure = torch.tensor([[0.9, 0.1]] * 500), torch.tensor([[0.5, 0.5]] * 500)
    >>> view_share(sure, unsure, torch.zeros(500, dtype=torch.long)) > 0.9
    True
    """
    logs = torch.stack([network, bank]).double().clamp_min(LEAST).log()

    def likelihood(share: float) -> float:
        loss = F.cross_entropy(torch.lerp(logs[0], logs[1], share), y, reduction="sum")
        return PRIOR_CASES * (PRIOR_SHARE * log(share) + (1.0 - PRIOR_SHARE) * log(1.0 - share)) - float(loss)

    return max((percent / 100.0 for percent in range(1, 100)), key=likelihood)


def _review(
    model: FittedModel, data: LabelledCases, validation: LabelledCases | None, fits: list[MemberFit]
) -> Review:
    """What predictions are worth on cases that were not learned from, or on the training cases for want of such."""
    source, looked_at, index = "training", data, np.arange(len(data.codes))
    if validation is not None:
        source, looked_at, index = "validation", validation, np.arange(len(validation.codes))
        probabilities = model.probabilities(validation.cases)
    elif any(len(fit.rows) for fit in fits):
        probabilities, index = _held_out(model, fits, len(data.codes))
        source = "held out"
    else:
        probabilities = model.probabilities(data.cases)
    known = [fit.left_out for fit in fits if fit.left_out is not None]
    same = [np.array_equal(each.rows, known[0].rows) for each in known]
    if validation is None and len(known) == len(fits) and all(same):  # embedded already, and none has taught itself
        agreement = agreement_of(model, known)
    else:
        agreement = agreement_of(model, looked_at.cases.take(index))
    return review_of(source, probabilities, looked_at.codes[index], index, agreement)


def _held_out(model: FittedModel, fits: list[MemberFit], n_cases: int) -> tuple[NDArray[np.float64], Codes]:
    """Probabilities of cases that did not teach some member, by those members alone; and their places.

    With two views, only of cases that taught neither of them.
    """
    views = sorted({fit.member.view for fit in fits})
    total, weight = np.zeros((len(views), n_cases, len(model.classes))), np.zeros((len(views), n_cases, 1))
    worth = np.zeros((len(views), 1, 1))
    for member, fit in zip(model.members, fits, strict=True):
        view = views.index(member.view)
        total[view, fit.rows] += member.weight * np.log(np.maximum(fit.probabilities.numpy(), LEAST))
        weight[view, fit.rows] += member.weight
        worth[view] += member.weight
    judged = weight > 0.0
    index = np.flatnonzero(judged.all(axis=0))
    if not len(index):  # a network that kept no cases has no say here
        index = np.flatnonzero(judged.any(axis=0))
    share = (worth * judged)[:, index]
    each = total[:, index] / np.where(judged, weight, 1.0)[:, index]
    together = (share * each).sum(axis=0) / share.sum(axis=0)
    probabilities: NDArray[np.float64] = torch.softmax(torch.from_numpy(together), dim=1).numpy()
    return probabilities, index


def validation_split(codes: Codes, config: TrainConfig, seed: int) -> tuple[Codes, Codes]:
    """Positions to fit on and to validate on; the latter empty where the set is too small to spare any."""
    fraction = config.validation_fraction
    if fraction is None:
        fraction = 0.0 if len(codes) < 100 else 0.2 if len(codes) < 1000 else 0.1
    return stratified_split(codes, fraction, seed=seed)


def splits_of(codes: Codes, config: TrainConfig, seed: int) -> list[tuple[Codes, Codes]]:
    """Positions to fit on and to be judged by, for each network of a member; all judge where there are folds."""
    if config.n_folds > 1 and config.validation_fraction is None and len(codes) < FOLDED_CASES:
        fold = stratified_folds(codes, config.n_folds, seed=seed)
        folds = [(np.flatnonzero(fold != each), np.flatnonzero(fold == each)) for each in range(config.n_folds)]
        if all(len(judging) for _, judging in folds):
            return folds
    return [validation_split(codes, config, seed)]


def _examples(data: LabelledCases, preparation: Preparation) -> Examples:
    x, mask = as_tensors(preparation(data.cases))
    return Examples(x, mask, torch.from_numpy(data.codes), torch.from_numpy(data.weight.astype(np.float32)))


def _calibrated(
    number: int, runs: list[Run], judges: list[Examples | None], rows: list[Codes], n_classes: int
) -> list[MemberFit]:
    """The networks of a member's runs with one temperature, and what was measured on the cases that judge each."""
    judged = [
        (torch.zeros(0, n_classes), torch.zeros(0, dtype=torch.long))
        if judging is None
        else (scores_of(run.network.eval(), judging.x, judging.mask), judging.y)
        for run, judging in zip(runs, judges, strict=True)
    ]
    scores, y = (torch.cat(each) for each in zip(*judged, strict=True))
    temperature = fit_temperature(scores, y) if len(y) else 1.0
    fits = []
    for run, (own, labels), own_rows in zip(runs, judged, rows, strict=True):
        metrics: dict[str, Any] = {
            "view": "network",
            "epochs": run.epoch,
            "best_epoch": run.epoch if run.best is None else run.best.epoch,
            "n_validation": len(labels),
        }
        probabilities = torch.softmax(own.double() / temperature, dim=1)
        if len(labels):
            metrics |= _measured(probabilities, labels)
            metrics["calibration_error_before"] = expected_calibration_error(torch.softmax(own, dim=1), labels)
        kept = None if not run.kept else KeptPrototypes(*_stacked(run.kept))
        member = Member(run.network.eval(), temperature, run.history, kept)
        fits.append(MemberFit(number, member, metrics, own_rows, probabilities, seconds=run.seconds))
    return fits


def _measured(probabilities: Tensor, y: Tensor) -> dict[str, float]:
    """What probabilities of cases that were not learned from are worth."""
    found = score(probabilities.numpy(), y.numpy())
    return {
        "validation_accuracy": found.accuracy,
        "validation_log_loss": found.log_loss,
        "validation_calibration_error": found.calibration_error,
    }


def _stacked(kept: list[Kept]) -> tuple[Codes, list[NDArray[np.float32]]]:
    """Epochs, and per level the prototypes of all of them."""
    levels = [
        np.stack([level.numpy() for level in same]) for same in zip(*(each.levels for each in kept), strict=True)
    ]
    return np.array([each.epoch for each in kept]), levels


def _time_share(options: FitOptions, spent: float, to_come: int) -> float | None:
    """What is left of the time limit, shared among the runs that are still to come."""
    return None if options.max_time_s is None else max(options.max_time_s - spent, 0.0) / to_come


def _whose(options: FitOptions, number: int) -> str:
    """What the progress bar calls a member."""
    return f"member {number + 1} of {options.n_members}" if options.n_members > 1 else "training"


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
