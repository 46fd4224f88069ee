"""Exact evidence: what a class score is made of, prototype by prototype and token by token."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pdftime.model.network import LinearHead, Output, PDFTime
from pdftime.model.prototypes import PrototypeHead


class Parts(NamedTuple):
    """One level's score of one class per case: sum_k r_k cos_k / T + H(r)."""

    similarity: Tensor
    """(b, k) cosines to the prototypes of the class."""
    responsibility: Tensor
    """(b, k) r = softmax_k(cos / T)."""
    contribution: Tensor
    """(b, k) r_k cos_k / T."""
    entropy: Tensor
    """(b,) H(r): what several prototypes add by agreeing."""


class Split(NamedTuple):
    """The score of one class per case, split over tokens; everything sums to the score."""

    tokens: Tensor
    """(b, n_tokens) what each token on the time axis adds; 0 behind the end of a series."""
    class_token: Tensor
    """(b,) what a class token adds; 0 with mean pooling."""
    entropy: Tensor
    """(b,) of the deciding level; 0 with a linear head."""
    offset: Tensor
    """(b,) the bias of a linear head; 0 with prototypes."""
    direction: Tensor
    """(b, d): what a token is multiplied with to give its evidence."""


def parts_of_score(head: PrototypeHead, z: Tensor, target: Tensor, level: int) -> Parts:
    """What the score of each case's target class is made of at one level, in double precision."""
    prototypes = head.levels[level].double()[target]  # (b, k, d)
    unit = torch.nn.functional.normalize(z.double(), dim=1)
    similarity = torch.einsum("bd,bkd->bk", unit, prototypes)
    logits = similarity / head.temperature
    responsibility = torch.softmax(logits, dim=1)
    entropy = -(responsibility * torch.log_softmax(logits, dim=1)).sum(dim=1)
    return Parts(similarity, responsibility, responsibility * logits, entropy)


def token_edges(network: PDFTime, n_tokens: int, n_timepoints: int) -> Tensor:
    """(n_tokens + 1,) where tokens begin and end on the prepared axis; in even parts where a backbone made others."""
    if n_tokens == -(-n_timepoints // network.stride):
        return (torch.arange(n_tokens + 1) * network.stride).clamp_max(n_timepoints).double()
    return torch.linspace(0.0, n_timepoints, n_tokens + 1, dtype=torch.float64)


def split_over_tokens(network: PDFTime, output: Output, target: Tensor) -> Split:
    """The exact split of the deciding score, in double precision.

    s_c = (1/T) sum_t sum_k r_k (token_t . p_k) / (n |z|) + H(r) with prototypes and mean pooling, and
    sum_t (token_t . w_c) / n + b_c with a linear head. With a class token z is that token and all evidence is its.
    """
    tokens, z = output.tokens.double(), output.z.double()
    zeros = z.new_zeros(len(z))
    if isinstance(network.head, PrototypeHead):
        parts = parts_of_score(network.head, z, target, level=-1)
        prototypes = network.head.levels[-1].double()[target]
        weights = torch.einsum("bk,bkd->bd", parts.responsibility, prototypes)
        direction = weights / (network.head.temperature * z.norm(dim=1, keepdim=True).clamp_min(1e-12))
        entropy, offset = parts.entropy, zeros
    else:
        assert isinstance(network.head, LinearHead)
        projection = network.head.projection
        direction, entropy, offset = projection.weight.double()[target], zeros, projection.bias.double()[target]
    if network.class_token is not None:
        own = torch.einsum("bd,bd->b", z, direction)
        return Split(tokens.new_zeros(len(z), tokens.shape[1] - 1), own, entropy, offset, direction)
    if output.inside is None:
        direction = direction / tokens.shape[1]
    else:
        tokens = tokens * output.inside[:, :, None]
        direction = direction / output.inside.sum(dim=1, keepdim=True)
    return Split(torch.einsum("btd,bd->bt", tokens, direction), zeros, entropy, offset, direction)
