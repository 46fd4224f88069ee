"""The model file: a FittedModel written, read, and refused where anything in it does not fit."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pdftime.config import Settings
from pdftime.container import read_container, write_container
from pdftime.data.labels import classes_from_json, classes_to_json
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet, check_series
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
    except (PDFTimeError, KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{os.fspath(path)} is not a model that this version can use: {error}") from error


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
        if any(tensor.dtype != network.state_dict()[name].dtype for name, tensor in weights.items()):
            raise ModelFileError(f"member {number} has weights of another number type")
        network.load_state_dict(weights, assign=True)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # or the last bits differ
        temperature = float(state["temperature"])
        if not 0.0 < temperature < np.inf:
            raise ModelFileError(f"member {number} has the temperature {temperature}")
        members.append(Member(network.requires_grad_(True).eval(), temperature, list(state["history"])))
    exemplars = _exemplars(without_prefix("exemplars.", arrays), len(members), settings, classes)
    expected = {f"member.{n}.{name}" for n, member in enumerate(members) for name in member.network.state_dict()}
    expected |= set(with_prefix("exemplars.", {} if exemplars is None else _exemplar_arrays(exemplars)))
    if not members or set(arrays) != expected:
        raise ModelFileError(f"its entries differ from those expected: {sorted(set(arrays) ^ expected)[:5]}")
    names = tuple(str(name) for name in header["channel_names"])
    if len(names) != preparation.n_channels or len(classes) < 2:
        raise ModelFileError(f"it has {len(names)} channel names and {len(classes)} classes")
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


def _exemplars(arrays: Arrays, n_members: int, settings: Settings, classes: NDArray[Any]) -> Exemplars | None:
    if settings.model.head != "prototypes":
        return None
    cases: SeriesSet = check_series(arrays["X"], arrays["codes"], lengths=arrays["lengths"])
    nearest = [
        [
            Nearest(arrays[f"{number}.{level}.position"], arrays[f"{number}.{level}.similarity"])
            for level in range(len(settings.model.n_prototypes))
        ]
        for number in range(n_members)
    ]
    for levels in nearest:
        for k, level in zip(settings.model.n_prototypes, levels, strict=True):
            shape = (len(classes), k)
            good = level.position.shape == level.similarity.shape and level.position.shape[:2] == shape
            if not good or level.position.min() < 0 or level.position.max() >= len(cases):
                raise ModelFileError("the training series behind its prototypes do not fit the prototypes")
    if arrays["numbers"].shape != (len(cases),) or not set(arrays["codes"].tolist()) <= set(range(len(classes))):
        raise ModelFileError("the training series behind its prototypes have labels or numbers out of range")
    return Exemplars(cases, arrays["numbers"], nearest)
