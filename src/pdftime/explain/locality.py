"""Locality: whether evidence at a token depends on the series near that token, measured by occlusion."""

from __future__ import annotations

import torch
from torch import Tensor

from pdftime.explain.split import token_evidence
from pdftime.fitted import Network
from pdftime.model.network import PDFTime

N_BLOCKS = 8
DRAWABLE = 0.8  # measured in docs/explanations.md: below it, token evidence points to other places than the input


@torch.no_grad()
def locality(network: Network, x: Tensor, mask: Tensor | None, baseline: Tensor, direction: Tensor) -> Tensor:
    """(b,) from 0, evidence depends on the whole series alike, to 1, on the series near its token alone.

    An eighth of the series after the other is replaced by the baseline. Of the change in evidence
    |token . direction - token' . direction|, the share at tokens in that eighth and half an eighth to each
    side is compared with the share that such tokens have of the series. A class token has no place: 0.
    """
    zeros = x.new_zeros(len(x), dtype=torch.float64)
    if isinstance(network, PDFTime) and network.class_token is not None:
        return zeros
    ends = torch.full((len(x),), x.shape[2]) if mask is None else mask.sum(dim=1)
    time = torch.arange(x.shape[2])
    before, edges = token_evidence(network, x, mask, direction)
    place = (edges[1:] + edges[:-1]) / 2
    inside = edges[:-1] < ends[:, None]
    near_change, change, expected = zeros.clone(), zeros.clone(), zeros.clone()
    for block in range(N_BLOCKS):
        start, stop = ends * block / N_BLOCKS, ends * (block + 1) / N_BLOCKS
        hidden = (time >= start[:, None]) & (time < stop[:, None])
        after, _ = token_evidence(network, torch.where(hidden[:, None, :], baseline, x), mask, direction)
        moved = (after - before).abs()
        margin = (stop - start)[:, None] / 2
        near = inside & (place >= start[:, None] - margin) & (place < stop[:, None] + margin)
        near_change += (moved * near).sum(dim=1)
        change += moved.sum(dim=1)
        expected += moved.sum(dim=1) * near.sum(dim=1) / inside.sum(dim=1)
    excess = (near_change - expected) / (change - expected).clamp_min(1e-12)
    return excess.clamp(0.0, 1.0)
