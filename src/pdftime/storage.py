"""The model file: a FittedModel written, read, and refused where anything in it does not fit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pdftime.config import BankConfig, Settings
from pdftime.container import read_container, write_container
from pdftime.data.labels import classes_from_json, classes_to_json
from pdftime.data.prepare import Preparation
from pdftime.data.series import check_series
from pdftime.errors import ModelFileError, PDFTimeError
from pdftime.explain.review import N_BINS
from pdftime.fitted import Company, Exemplars, FittedModel, KeptPrototypes, Member, Nearest, Network, Review
from pdftime.model.bank import ConvolutionBank
from pdftime.model.bank_network import BankNetwork, Scaling
from pdftime.model.network import PDFTime
from pdftime.model.places import n_places
from pdftime.model.prototypes import FixedPrototypes, PrototypeHead
from pdftime.training.tensors import from_arrays, to_arrays, with_prefix, without_prefix

Arrays = dict[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], model: FittedModel) -> None:
    """One file with everything that prediction and explanation need."""
    arrays: Arrays = {}
    for number, member in enumerate(model.members):
        arrays |= with_prefix(f"member.{number}.", to_arrays(member.network.state_dict()))
        if member.kept is not None:
            arrays |= with_prefix(f"kept.{number}.", _kept_arrays(member.kept))
    if model.exemplars is not None:
        arrays |= with_prefix("exemplars.", _exemplar_arrays(model.exemplars))
    if model.review is not None:
        arrays |= with_prefix("review.", _review_arrays(model.review))
    header = {
        "settings": model.settings.to_json(),
        "classes": classes_to_json(model.classes),
        "channel_names": list(model.channel_names),
        "preparation": model.preparation.to_json(),
        "members": [
            {
                "view": member.view,
                "temperature": member.temperature,
                "share": member.weight,
                "history": member.history,
            }
            for member in model.members
        ],
        "averaged": model.averaged,
        "metrics": model.metrics,
        "custom_backbone": any(_backbone(member.network) is not None for member in model.members),
    }
    if model.review is not None:  # one that was read from a file of format 1 has none
        header["review"] = {"source": model.review.source, "agreement": model.review.agreement}
    write_container(path, arrays, header, kind="model")


def read_model(path: str | os.PathLike[str], backbone: nn.Module | None = None) -> FittedModel:
    """The model in a file. One trained with a custom backbone needs that module again: files hold no code."""
    arrays, header = read_container(path, kind="model")
    try:
        return _model(arrays, header, backbone)
    except (PDFTimeError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RuntimeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0].rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} is not a model that this version can use: {reason}.") from error


def _model(arrays: Arrays, header: dict[str, Any], backbone: nn.Module | None) -> FittedModel:
    header = _of_now(header)
    settings = Settings.from_json(header["settings"])
    classes = classes_from_json(header["classes"])
    preparation = Preparation.from_json(header["preparation"])
    if header["custom_backbone"] != (backbone is not None):
        raise ModelFileError(
            "it was trained with a backbone of yours; pass it, load(path, backbone=module)"
            if header["custom_backbone"]
            else "it was trained with our encoder, and a backbone was passed"
        )
    members = []
    for number, state in enumerate(header["members"]):
        weights = from_arrays(without_prefix(f"member.{number}.", arrays))
        network: Network
        if state["view"] == "bank":
            if arrays["exemplars.X"].shape[1:] != (preparation.n_channels, preparation.n_timepoints):
                raise ModelFileError("the training series behind its prototypes have another shape than the model")
            network = _bank_network(weights, settings, preparation, len(classes))
        elif state["view"] == "network":
            network = _empty_network(settings, preparation, len(classes), backbone)
        else:
            raise ModelFileError(f"member {number} has the view {state['view']!r:.100}")
        if _forms(weights) != _forms(network.state_dict()):
            raise ModelFileError(f"the weights of member {number} are not of the network that its settings describe")
        network.load_state_dict(weights, assign=True)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # or the last bits differ
        temperature, weight = float(state["temperature"]), float(state["share"])
        if not (1e-6 < temperature < 1e6 and 1e-6 < weight < 1e6):
            raise ModelFileError(f"member {number} has the temperature {temperature} and the share {weight}")
        history = [dict(record) for record in state["history"]]
        kept = _kept(without_prefix(f"kept.{number}.", arrays), network)
        members.append(Member(network.requires_grad_(True).eval(), temperature, history, kept, weight))
    exemplars = _exemplars(without_prefix("exemplars.", arrays), members, classes, preparation)
    review = None
    if "review" in header or any(name.startswith("review.") for name in arrays):
        review = _review(without_prefix("review.", arrays), header["review"], len(classes))
    if exemplars is not None and (review is None) != (exemplars.company is None):
        raise ModelFileError("it holds a review of its predictions without its prototypes' company, or the reverse")
    expected = {f"member.{n}.{name}" for n, member in enumerate(members) for name in member.network.state_dict()}
    for number, member in enumerate(members):
        expected |= set(with_prefix(f"kept.{number}.", {} if member.kept is None else _kept_arrays(member.kept)))
    expected |= set(with_prefix("exemplars.", {} if exemplars is None else _exemplar_arrays(exemplars)))
    expected |= set(with_prefix("review.", {} if review is None else _review_arrays(review)))
    if not members or set(arrays) != expected:
        raise ModelFileError(f"its entries differ from those expected: {sorted(set(arrays) ^ expected)[:5]}")
    names = tuple(str(name) for name in header["channel_names"])
    if len(names) != preparation.n_channels or len(set(classes.tolist())) != len(classes) or len(classes) < 2:
        raise ModelFileError(f"its channel names are {names}, its classes {classes.tolist()}")
    if preparation.config != settings.prepare:
        raise ModelFileError("its preparation is not the one that its settings describe")
    metrics, averaged = dict(header["metrics"]), header["averaged"]
    if not isinstance(averaged, bool):
        raise ModelFileError(f"whether it averages probabilities is told as {averaged!r:.100}")
    return FittedModel(settings, classes, names, preparation, members, exemplars, metrics, review, averaged)


def _empty_network(
    settings: Settings, preparation: Preparation, n_classes: int, backbone: nn.Module | None
) -> PDFTime:
    """The network that the settings describe, without memory: a file cannot ask for more than it brings."""
    with torch.device("meta"):
        return PDFTime(
            settings.model,
            preparation.n_channels,
            preparation.n_timepoints,
            n_classes,
            backbone=deepcopy(backbone),
        )


def _bank_network(
    weights: Mapping[str, Tensor], settings: Settings, preparation: Preparation, n_classes: int
) -> BankNetwork:
    """The bank that a seed stands for, with places for what the file brings; as large as the file, not larger."""
    biases, projection, prototypes = weights["bank.biases"], weights["projection"], weights["head.level_0"]
    make = partial(ConvolutionBank, preparation.n_channels, preparation.n_timepoints, seed=int(weights["seed"]))
    one = make(n_groups=1, n_biases=1).biases
    if biases.ndim != one.ndim or not biases.shape[1] or biases[:, :1].shape != one.shape:
        raise ModelFileError(f"the biases of its bank have the shape {tuple(biases.shape)}")
    n_values = preparation.n_channels * n_places(preparation.n_channels, preparation.n_timepoints)
    for n_groups in (settings.bank.n_groups, max(1, settings.bank.n_groups // 2)):
        bank = make(n_groups=n_groups, n_biases=biases.shape[1])
        if len(projection) - bank.n_features in (0, n_values):
            break
    else:
        raise ModelFileError("its bank of convolutions is not the one that its settings describe")
    if prototypes.ndim != 3 or len(prototypes) != n_classes or prototypes.shape[2] != projection.shape[1] + 1:
        raise ModelFileError(f"its prototypes have the shape {tuple(prototypes.shape)}")
    features, d = projection.new_empty(len(projection)), projection.shape[1]
    head = FixedPrototypes(prototypes, prototypes.new_empty(prototypes.shape[:2]), torch.tensor(1.0))
    scaling = Scaling(features, features)
    return BankNetwork(bank, 0, scaling, projection.new_empty(len(projection), d), projection.new_empty(d), head)


def _of_now(header: dict[str, Any]) -> dict[str, Any]:
    """A header of an older format in today's form.

    Before format 5 probabilities were averaged, before format 4 none knew folds, and the first two one view only.
    """
    settings, members = header["settings"], header["members"]
    told = {*settings, *settings["model"], *settings["training"], *(name for state in members for name in state)}
    if not told & {"least_timepoints", "n_folds"}:
        settings = {
            **settings,
            "model": {"least_timepoints": None, **settings["model"]},
            "training": {"n_folds": 1, **settings["training"]},
        }
        header = header | {"settings": settings}
    if not told & {"bank", "views", "view", "weight", "share"}:
        settings = {**settings, "model": {"views": "network", **settings["model"]}, "bank": BankConfig().to_json()}
        members = [{"view": "network", "weight": 1.0, **state} for state in members]
        header = header | {"settings": settings}
    if "share" in told:
        return header
    return header | {"averaged": True, "members": [{**state, "share": state["weight"]} for state in members]}


def _backbone(network: Network) -> nn.Module | None:
    return None if isinstance(network, BankNetwork) else network.backbone


def _forms(weights: Mapping[str, Tensor]) -> dict[str, tuple[Any, ...]]:
    return {name: (tensor.dtype, tensor.shape) for name, tensor in weights.items()}


def _exemplar_arrays(exemplars: Exemplars) -> Arrays:
    cases = exemplars.cases
    arrays: Arrays = {
        "X": np.ascontiguousarray(cases.X),
        "lengths": cases.lengths,
        "numbers": exemplars.numbers,
        "codes": np.asarray(cases.y, np.int64),
    }
    for number, levels in enumerate(exemplars.nearest):
        for level, nearest in enumerate(levels):
            arrays[f"{number}.{level}.position"] = nearest.position
            arrays[f"{number}.{level}.similarity"] = nearest.similarity
            if exemplars.company is not None:
                company = exemplars.company[number][level]
                arrays |= with_prefix(f"{number}.{level}.", company._asdict())
    return arrays


def _exemplars(
    arrays: Arrays, members: list[Member], classes: NDArray[Any], preparation: Preparation
) -> Exemplars | None:
    heads = [member.network.head for member in members]
    if not all(isinstance(head, PrototypeHead) for head in heads):
        return None
    numbers, codes = _whole(arrays["numbers"], 2**62), _whole(arrays["codes"], len(classes))
    shape = (numbers.size, preparation.n_channels, preparation.n_timepoints)
    if numbers.shape != codes.shape or numbers.ndim != 1 or arrays["X"].shape != shape:
        raise ModelFileError("the training series behind its prototypes have another shape than the model")
    cases = check_series(arrays["X"], codes, lengths=arrays["lengths"])
    nearest, company = [], []
    has_company = "0.0.usage" in arrays  # files of format 1 have not
    for number, head in enumerate(heads):
        levels, around = [], []
        for level, k in enumerate(prototypes.shape[1] for prototypes in head.levels):
            position = _whole(arrays[f"{number}.{level}.position"], len(cases))
            similarity = arrays[f"{number}.{level}.similarity"]
            same = similarity.dtype == np.float32 and position.shape == similarity.shape
            if not same or position.shape[:-1] != (len(classes), k):
                raise ModelFileError("the training series behind its prototypes do not fit the prototypes")
            levels.append(Nearest(position, similarity))
            if has_company:
                around.append(_company(without_prefix(f"{number}.{level}.", arrays), (len(classes), k), len(cases)))
        nearest.append(levels)
        company.append(around)
    return Exemplars(cases, numbers, nearest, company if has_company else None)


def _company(arrays: Arrays, shape: tuple[int, int], n_cases: int) -> Company:
    found = Company(**{name: arrays[name] for name in Company._fields})
    _whole(found.wrong_position, n_cases)
    forms = [(each.dtype, each.shape) for each in (*found[:3], found.wrong_similarity)]
    same = set(forms) == {(np.dtype(np.float32), shape)} and found.wrong_position.shape == shape
    if not same or found.gaps.shape != (shape[0], 2) or found.gaps.dtype != np.float32:
        raise ModelFileError("what it says of the company of its prototypes does not fit the prototypes")
    return found


def _kept_arrays(kept: KeptPrototypes) -> Arrays:
    return {"epochs": kept.epochs, **{f"level.{level}": each for level, each in enumerate(kept.levels)}}


def _kept(arrays: Arrays, network: Network) -> KeptPrototypes | None:
    if not arrays:
        return None
    epochs = _whole(arrays["epochs"], 2**31)
    levels = [arrays[f"level.{level}"] for level in range(len(network.head.levels))]
    for each, own in zip(levels, network.head.levels, strict=True):
        if each.dtype != np.float32 or each.shape != (*epochs.shape, *own.shape) or epochs.ndim != 1 or not levels:
            raise ModelFileError("the prototypes that were kept during training do not fit the network")
    return KeptPrototypes(epochs, levels)


def _review_arrays(review: Review) -> Arrays:
    return {name: value for name, value in review._asdict().items() if isinstance(value, np.ndarray)}


def _review(arrays: Arrays, header: Mapping[str, Any], n_classes: int) -> Review:
    source, agreement = header["source"], header["agreement"]
    review = Review(source, agreement, **{name: arrays[name] for name in Review._fields[2:]})
    n = review.mistake_confidence.size
    forms = {
        "confusion": (np.int64, (n_classes, n_classes)),
        "mistakes": (np.int64, (n, 3)),
        "mistake_confidence": (np.float64, (n,)),
        "bin_counts": (np.int64, (N_BINS,)),
        "bin_confidence": (np.float64, (N_BINS,)),
        "bin_right": (np.int64, (N_BINS,)),
    }
    good = all(
        getattr(review, name).dtype == dtype and getattr(review, name).shape == shape
        for name, (dtype, shape) in forms.items()
    )
    if n:
        _whole(review.mistakes[:, 1:].copy(), n_classes)
    good = good and source in ("held out", "validation", "training") and set(header) == {"source", "agreement"}
    if not good or not (agreement is None or (isinstance(agreement, float) and 0.0 <= agreement <= 1.0)):
        raise ModelFileError(f"the review of its predictions is not one: {dict(header)!r:.100}")
    return review


def _whole(array: NDArray[Any], high: int) -> NDArray[np.int64]:
    """The array, if it holds whole numbers from 0 on and below `high`."""
    if array.dtype != np.int64 or array.size == 0 or array.min() < 0 or array.max() >= high:
        raise ModelFileError("a number of a training series or of its class is out of range")
    return array
