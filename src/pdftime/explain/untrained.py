"""A model like this one that has learned nothing: what an explanation must not look like."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn

from pdftime.data.batches import generator_for
from pdftime.fitted import FittedModel, Member
from pdftime.model.bank_network import BankNetwork, Scaling
from pdftime.model.network import PDFTime


def untrained(model: FittedModel, seed: int = 0) -> FittedModel:
    """The model with one member of each view that has learned nothing.

    A network has fresh weights for the same settings (a backbone of the caller's keeps its weights in shuffled
    places), a bank its projection in shuffled places.
    """
    generator = generator_for(seed, "untrained")
    chosen: dict[str, Member] = {}
    for member in model.members:
        chosen.setdefault(member.view, member)
    members = []
    for member in chosen.values():
        own = member.network
        if isinstance(own, BankNetwork):
            shuffled = own.projection[torch.randperm(len(own.projection), generator=generator)]
            scaling = Scaling(own.centre, own.inverse)
            network = BankNetwork(own.bank, int(own.seed), scaling, shuffled, own.offset, own.head)
            members.append(member._replace(network=network))
            continue
        fresh = PDFTime(
            model.settings.model,
            model.preparation.n_channels,
            model.preparation.n_timepoints,
            len(model.classes),
            generator,
            _shuffled(own.backbone, generator),
        )
        members.append(member._replace(network=fresh.eval()))
    return replace(model, members=members)


def _shuffled(backbone: nn.Module | None, generator: torch.Generator) -> nn.Module | None:
    if backbone is None:
        return None
    copy = deepcopy(backbone)
    with torch.no_grad():
        for weight in copy.parameters():
            order = torch.randperm(weight.numel(), generator=generator)
            weight.copy_(weight.flatten()[order].view(weight.shape))
    return copy
