"""Exact evidence: what a class score is made of, prototype by prototype and token by token."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pdftime.fitted import Network
from pdftime.model.bank_network import BankNetwork
from pdftime.model.network import LinearHead, Output, PDFTime
from pdftime.model.prototypes import PrototypeHead


class Parts(NamedTuple):
    """One level's score of one class per case: sum_k r_k cos_k / T + H(r) + sum_k r_k log m_k."""

    similarity: Tensor
    """(b, k) cosines to the prototypes of the class."""
    responsibility: Tensor
    """(b, k) r = softmax_k(cos / T + log m)."""
    contribution: Tensor
    """(b, k) r_k cos_k / T."""
    entropy: Tensor
    """(b,) H(r): what several prototypes add by agreeing."""
    mass: Tensor
    """(b,) sum_k r_k log m_k: what the masses of prototypes take away; 0 where all count 1."""


class ReadOut(NamedTuple):
    """The score of one class per case: direction . z + entropy + offset."""

    direction: Tensor
    """(b, d)"""
    entropy: Tensor
    """(b,) of the deciding level; 0 with a linear head."""
    offset: Tensor
    """(b,) a linear head's bias; of a bank, what the masses of its prototypes take away."""
    start: Tensor
    """(b,) of direction . z what a case with average features has, where a bank's evidence begins; 0 of a network."""


class Split(NamedTuple):
    """The score of one class per case, split over tokens; all parts but edges and direction sum to it."""

    tokens: Tensor
    """(b, n_tokens) what each token on the time axis adds; 0 behind the end of a series."""
    edges: Tensor
    """(n_tokens + 1,) where tokens begin and end on the prepared axis."""
    class_token: Tensor
    """(b,) what a class token adds; 0 with mean pooling."""
    direction: Tensor
    entropy: Tensor
    offset: Tensor
    start: Tensor
    """These four as in `ReadOut`."""


def parts_of_score(head: PrototypeHead, z: Tensor, target: Tensor, level: int) -> Parts:
    """What the score of each case's target class is made of at one level, in double precision."""
    prototypes = head.levels[level].double()[target]  # (b, k, d)
    unit = torch.nn.functional.normalize(z.double(), dim=1)
    similarity = torch.einsum("bd,bkd->bk", unit, prototypes)
    matched = similarity / head.temperature
    logits = matched + head.masses[level].double().log()[target]
    responsibility = torch.softmax(logits, dim=1)
    logs = torch.where(responsibility > 0.0, torch.log_softmax(logits, dim=1), 0.0)
    entropy = -(responsibility * logs).sum(dim=1)
    mass = (responsibility * torch.where(responsibility > 0.0, logits - matched, 0.0)).sum(dim=1)
    return Parts(similarity, responsibility, responsibility * matched, entropy, mass)


def read_out(network: Network, output: Output, target: Tensor) -> ReadOut:
    """The deciding score of each case's target as direction . z + entropy + offset, in double precision."""
    z, head = output.z.double(), network.head
    zeros = z.new_zeros(len(z))
    if isinstance(head, LinearHead):
        return ReadOut(head.projection.weight.double()[target], zeros, head.projection.bias.double()[target], zeros)
    parts = parts_of_score(head, z, target, level=-1)
    weights = torch.einsum("bk,bkd->bd", parts.responsibility, head.levels[-1].double()[target])
    direction = weights / (head.temperature * z.norm(dim=1, keepdim=True).clamp_min(1e-12))
    start = direction @ network.start.double() if isinstance(network, BankNetwork) else zeros
    return ReadOut(direction, parts.entropy, parts.mass, start)


def split_over_tokens(network: Network, x: Tensor, mask: Tensor | None, output: Output, target: Tensor) -> Split:
    """The exact split of the deciding score, in double precision.

    s_c = (1/T) sum_t sum_k r_k (token_t . p_k) / (n |z|) + H(r) with prototypes and mean pooling, and
    sum_t (token_t . w_c) / n + b_c with a linear head. With a class token z is that token and all evidence is its.
    Tokens of a bank are time points, and masses of prototypes add sum_k r_k log m_k.
    """
    found = read_out(network, output, target)
    tokens, edges = token_evidence(network, x, mask, found.direction, output)
    own = found.entropy.new_zeros(len(x))
    if isinstance(network, PDFTime) and network.class_token is not None:
        own = torch.einsum("bd,bd->b", output.z.double(), found.direction)
    return Split(tokens, edges, own, *found)


def token_evidence(
    network: Network, x: Tensor, mask: Tensor | None, direction: Tensor, output: Output | None = None
) -> tuple[Tensor, Tensor]:
    """(b, n_tokens) what each token on the time axis adds to direction (b, d) . z, and the tokens' edges.

    It is 0 behind the end of a series, and everywhere with a class token, which has no place on the axis.
    """
    n = x.shape[2]
    if isinstance(network, BankNetwork):
        tokens = network.evidence(x, mask, direction[None], frequencies=False).values[0].sum(dim=1)
        return tokens, torch.arange(n + 1, dtype=torch.float64)
    output = network(x, mask) if output is None else output
    tokens = output.tokens.double()
    if network.class_token is not None:
        found = tokens.new_zeros(len(x), tokens.shape[1] - 1)
    elif output.inside is None:
        found = torch.einsum("btd,bd->bt", tokens, direction) / tokens.shape[1]
    else:
        found = torch.einsum("btd,bd->bt", tokens * output.inside[:, :, None], direction)
        found = found / output.inside.sum(dim=1, keepdim=True)
    return found, token_edges(network, found.shape[1], n)


def token_edges(network: PDFTime, n_tokens: int, n_timepoints: int) -> Tensor:
    """(n_tokens + 1,) where tokens begin and end on the prepared axis; in even parts where a backbone made others."""
    if n_tokens == -(-n_timepoints // network.stride):
        return (torch.arange(n_tokens + 1) * network.stride).clamp_max(n_timepoints).double()
    return torch.linspace(0.0, n_timepoints, n_tokens + 1, dtype=torch.float64)
