"""The model file: a FittedModel written, read, and refused where anything in it does not fit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pdftime.config import Settings
from pdftime.container import read_container, write_container
from pdftime.data.labels import classes_from_json, classes_to_json
from pdftime.data.prepare import Preparation
from pdftime.data.series import check_series
from pdftime.errors import ModelFileError, PDFTimeError
from pdftime.fitted import Exemplars, FittedModel, Member, Nearest
from pdftime.model.network import PDFTime
from pdftime.training.tensors import from_arrays, to_arrays, with_prefix, without_prefix

Arrays = dict[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], model: FittedModel) -> None:
    """One file with everything that prediction and explanation need."""
    arrays: Arrays = {}
    for number, member in enumerate(model.members):
        arrays |= with_prefix(f"member.{number}.", to_arrays(member.network.state_dict()))
    if model.exemplars is not None:
        arrays |= with_prefix("exemplars.", _exemplar_arrays(model.exemplars))
    header = {
        "settings": model.settings.to_json(),
        "classes": classes_to_json(model.classes),
        "channel_names": list(model.channel_names),
        "preparation": model.preparation.to_json(),
        "members": [{"temperature": member.temperature, "history": member.history} for member in model.members],
        "metrics": model.metrics,
        "custom_backbone": model.members[0].network.backbone is not None,
    }
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
        network = _empty_network(settings, preparation, len(classes), backbone)
        weights = from_arrays(without_prefix(f"member.{number}.", arrays))
        if _forms(weights) != _forms(network.state_dict()):
            raise ModelFileError(f"the weights of member {number} are not of the network that its settings describe")
        network.load_state_dict(weights, assign=True)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # or the last bits differ
        temperature = float(state["temperature"])
        if not 0.0 < temperature < np.inf:
            raise ModelFileError(f"member {number} has the temperature {temperature}")
        history = [dict(record) for record in state["history"]]
        members.append(Member(network.requires_grad_(True).eval(), temperature, history))
    exemplars = _exemplars(without_prefix("exemplars.", arrays), len(members), settings, classes, preparation)
    expected = {f"member.{n}.{name}" for n, member in enumerate(members) for name in member.network.state_dict()}
    expected |= set(with_prefix("exemplars.", {} if exemplars is None else _exemplar_arrays(exemplars)))
    if not members or set(arrays) != expected:
        raise ModelFileError(f"its entries differ from those expected: {sorted(set(arrays) ^ expected)[:5]}")
    names = tuple(str(name) for name in header["channel_names"])
    if len(names) != preparation.n_channels or len(set(classes.tolist())) != len(classes) or len(classes) < 2:
        raise ModelFileError(f"its channel names are {names}, its classes {classes.tolist()}")
    if preparation.config != settings.prepare:
        raise ModelFileError("its preparation is not the one that its settings describe")
    return FittedModel(settings, classes, names, preparation, members, exemplars, dict(header["metrics"]))


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
    return arrays


def _exemplars(
    arrays: Arrays, n_members: int, settings: Settings, classes: NDArray[Any], preparation: Preparation
) -> Exemplars | None:
    if settings.model.head != "prototypes":
        return None
    numbers, codes = _whole(arrays["numbers"], 2**62), _whole(arrays["codes"], len(classes))
    shape = (numbers.size, preparation.n_channels, preparation.n_timepoints)
    if numbers.shape != codes.shape or numbers.ndim != 1 or arrays["X"].shape != shape:
        raise ModelFileError("the training series behind its prototypes have another shape than the model")
    cases = check_series(arrays["X"], codes, lengths=arrays["lengths"])
    nearest = []
    for number in range(n_members):
        levels = []
        for level, k in enumerate(settings.model.n_prototypes):
            position = _whole(arrays[f"{number}.{level}.position"], len(cases))
            similarity = arrays[f"{number}.{level}.similarity"]
            same = similarity.dtype == np.float32 and position.shape == similarity.shape
            if not same or position.shape[:-1] != (len(classes), k):
                raise ModelFileError("the training series behind its prototypes do not fit the prototypes")
            levels.append(Nearest(position, similarity))
        nearest.append(levels)
    return Exemplars(cases, numbers, nearest)


def _whole(array: NDArray[Any], high: int) -> NDArray[np.int64]:
    """The array, if it holds whole numbers from 0 on and below `high`."""
    if array.dtype != np.int64 or array.size == 0 or array.min() < 0 or array.max() >= high:
        raise ModelFileError("a number of a training series or of its class is out of range")
    return array
