"""A network like the model's that has learned nothing: what an explanation must not look like."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn

from pdftime.data.batches import generator_for
from pdftime.fitted import FittedModel
from pdftime.model.network import PDFTime


def untrained(model: FittedModel, seed: int = 0) -> PDFTime:
    """Fresh weights for the same settings; a backbone of the caller's keeps its weights in shuffled places."""
    generator = generator_for(seed, "untrained")
    network = PDFTime(
        model.settings.model,
        model.preparation.n_channels,
        model.preparation.n_timepoints,
        len(model.classes),
        generator,
        _shuffled(model.members[0].network.backbone, generator),
    )
    return network.eval()


def _shuffled(backbone: nn.Module | None, generator: torch.Generator) -> nn.Module | None:
    if backbone is None:
        return None
    copy = deepcopy(backbone)
    with torch.no_grad():
        for weight in copy.parameters():
            order = torch.randperm(weight.numel(), generator=generator)
            weight.copy_(weight.flatten()[order].view(weight.shape))
    return copy
