"""Locality: whether evidence at a token depends on the series near that token, measured by occlusion."""

from __future__ import annotations

import torch
from torch import Tensor

from pdftime import fitted
from pdftime.explain.split import Split, token_evidence
from pdftime.fitted import Network
from pdftime.model.network import PDFTime

N_BLOCKS = 8
DRAWABLE = 0.8  # measured in docs/explanations.md: below it, token evidence points to other places than the input


@torch.no_grad()
def locality(network: Network, x: Tensor, mask: Tensor | None, baseline: Tensor, split: Split) -> Tensor:
    """(b,) from 0, evidence depends on the whole series alike, to 1, on the series near its token alone.

    An eighth of the series after the other is replaced by the baseline. Of the change in evidence, which the
    `split` has of the series itself, |token . direction - token' . direction|, the share at tokens in that eighth
    and half an eighth to each side is compared with the share that such tokens have of the series. A class token
    has no place: 0.
    """
    zeros = x.new_zeros(len(x), dtype=torch.float64)
    if isinstance(network, PDFTime) and network.class_token is not None:
        return zeros
    ends = torch.full((len(x),), x.shape[2]) if mask is None else mask.sum(dim=1)
    time = torch.arange(x.shape[2])
    before, edges = split.tokens, split.edges
    place = (edges[1:] + edges[:-1]) / 2
    inside = edges[:-1] < ends[:, None]
    near_change, change, expected = zeros.clone(), zeros.clone(), zeros.clone()
    together = max(1, fitted.BATCH_POINTS // (len(x) * x.shape[2]))
    for blocks in torch.split(torch.arange(N_BLOCKS), together):
        n = len(blocks)
        start, stop = (ends * edge[:, None] / N_BLOCKS for edge in (blocks, blocks + 1))  # (n, b)
        hidden = (time >= start[..., None]) & (time < stop[..., None])
        other = torch.where(hidden[:, :, None, :], baseline, x).flatten(0, 1)
        masks = None if mask is None else mask.repeat(n, 1)
        after, _ = token_evidence(network, other, masks, split.direction.repeat(n, 1))
        moved = (after.view(n, *before.shape) - before).abs()
        margin = (stop - start)[..., None] / 2
        near = inside & (place >= start[..., None] - margin) & (place < stop[..., None] + margin)
        near_change += (moved * near).sum(dim=(0, 2))
        change += moved.sum(dim=(0, 2))
        expected += (moved.sum(dim=2) * near.sum(dim=2) / inside.sum(dim=1)).sum(dim=0)
    excess = (near_change - expected) / (change - expected).clamp_min(1e-12)
    return excess.clamp(0.0, 1.0)
