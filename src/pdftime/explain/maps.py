"""Maps on the input axis, of scores, margins, similarities; by time, channel, frequency.

A network's are integrated gradients. A bank has Shapley values and its exact evidence; `explain` takes, case by
case, the one that names what the decision misses most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.explain.explanation import AttributionMap, Floats, PrototypeMatch, Segment, Source
from pdftime.explain.gradients import (
    STEPS,
    HeadAlone,
    Quantity,
    completeness_gap,
    even_rule,
    integrate,
    mean_gradient,
)
from pdftime.explain.shapley import shapley_values
from pdftime.fitted import FittedModel, Network, pooled
from pdftime.model.bank_network import BankNetwork, side_by_side
from pdftime.model.network import Output, PDFTime
from pdftime.model.prototypes import PrototypeHead

NEIGHBOURS = 7  # time points that a map is averaged over, fewer in short series; measured in docs/explanations.md
HELD = 0.8  # share of the positive mass that the segments hold


GRADIENTS, SHAPLEY, EXACT = "integrated gradients", "Shapley values", "exact evidence"
AVERAGE = "a case with the average features of the training series"  # where a bank's evidence begins


class Maps(NamedTuple):
    """Maps of several quantities for a batch, on the prepared axis."""

    values: Floats
    """(q, b, c, t); 0 behind the end of a series."""
    frequency_values: Floats
    """(q, b, c, f)."""
    start: Floats
    """(q, b) the quantities at the baseline."""
    stop: Floats
    """(q, b) the quantities at the series."""
    gap: Floats
    """(q, b) what is missing of completeness, as a share."""
    neighbours: int
    """Time points that values are averaged over."""
    method: str
    """How they were found."""
    baseline: str
    """What series are compared with."""


def baseline_of(model: FittedModel, x: Tensor, mask: Tensor | None) -> tuple[Tensor, str]:
    """(b, c, t) what series are compared with, and its name."""
    if model.settings.prepare.scaling == "series":
        return torch.zeros_like(x), "the mean of the series itself, per channel"
    if model.settings.prepare.scaling == "train":
        return torch.zeros_like(x), "the mean of the training series, per channel"
    mean = torch.from_numpy(model.preparation.mean.astype(np.float32))[:, None].expand(x.shape)
    inside = mean if mask is None else torch.where(mask[:, None, :], mean, 0.0)
    return inside.contiguous(), "the mean of the training series, per channel"


def score_and_margin(target: Tensor, contrast: Tensor) -> Quantity:
    """The target's score, and how far it is above the contrast's."""

    def quantity(network: Network, output: Output, rows: Tensor) -> Tensor:
        scores = output.scores[-1]
        here = torch.arange(len(rows))
        score = scores[here, target[rows]]
        return torch.stack([score, score - scores[here, contrast[rows]]], dim=1)

    return quantity


def score_of(target: Tensor, n_networks: int = 1) -> Quantity:
    """The target's score alone, by each of several networks whose scores stand side by side."""

    def quantity(network: Network, output: Output, rows: Tensor) -> Tensor:
        each = output.scores[-1].view(len(rows), n_networks, -1)
        return each[torch.arange(len(rows)), :, target[rows]]

    return quantity


def similarity_to(level: int, code: int, number: int) -> Quantity:
    """The cosine to one prototype."""

    def quantity(network: Network, output: Output, rows: Tensor) -> Tensor:
        assert isinstance(network.head, PrototypeHead)
        return network.head.similarities(output.z)[level][:, code, number, None]

    return quantity


class _Found(NamedTuple):
    """One network's maps of several quantities, as they are."""

    values: Tensor
    """(q, b, c, t)"""
    frequency_values: Tensor
    """(q, b, c, f)"""
    start: Tensor
    """(q, b)"""
    stop: Tensor
    """(q, b)"""


def make_maps(
    networks: Sequence[Network],
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    quantity: Quantity,
    *,
    name: str = "",
    weights: Sequence[float] | None = None,
    n_steps: int = STEPS,
) -> tuple[Maps, Maps | None]:
    """The maps of the networks, averaged by weights that sum to 1, or alike; `name` is the baseline's.

    The second are the exact evidence of the banks among them, laid on values; None where there is none.
    """
    shares = [1.0 / len(networks)] * len(networks) if weights is None else weights
    exact: list[_Found | None] = []
    found: list[_Found] = []
    for network in networks:
        if isinstance(network, BankNetwork):
            z = network(x, mask).z
            own = _evidence(network, x, mask, z, quantity)
            exact.append(own)
            found.append(_shapley(network, x, mask, z, baseline, quantity, own))
        else:
            exact.append(None)
            found.append(_gradients(network, x, mask, baseline, quantity, n_steps))
    methods = [GRADIENTS if own is None else SHAPLEY for own in exact]
    width = width_of(x.shape[2])
    method = " and ".join(sorted(set(methods), reverse=True))
    maps = _as_maps(found, shares, width if GRADIENTS in methods else 1, method, name)
    banks = [(own, share) for own, share in zip(exact, shares, strict=True) if own is not None]
    if not banks:
        return maps, None
    whole = sum(share for _, share in banks)
    return maps, _as_maps([own for own, _ in banks], [share / whole for _, share in banks], width, EXACT, AVERAGE)


def _as_maps(found: Sequence[_Found], shares: Sequence[float], neighbours: int, method: str, baseline: str) -> Maps:
    together = _Found(*(pooled(parts, shares) for parts in zip(*found, strict=True)))
    return Maps(
        together.values.numpy(),
        together.frequency_values.numpy(),
        together.start.numpy(),
        together.stop.numpy(),
        completeness_gap(together.values.sum(dim=(2, 3)), together.start, together.stop).numpy(),
        neighbours,
        method,
        baseline,
    )


def _gradients(
    network: Network, x: Tensor, mask: Tensor | None, baseline: Tensor, quantity: Quantity, n_steps: int
) -> _Found:
    """Integrated gradients from the baseline to the series, averaged over neighbours."""
    integral = integrate(network, x, mask, baseline, quantity, n_steps=n_steps)
    difference = (x - baseline).double()
    values = _averaged(integral.gradient * difference, mask)
    return _Found(values, by_frequency(integral.gradient, difference), integral.start, integral.stop)


def _shapley(
    network: BankNetwork,
    x: Tensor,
    mask: Tensor | None,
    z: Tensor,
    baseline: Tensor,
    quantity: Quantity,
    exact: _Found,
) -> _Found:
    """Shapley values of a bank; by frequency they are as its exact evidence."""
    values, start, stop, _ = shapley_values(network, x, mask, baseline, quantity, z=z)
    frequencies = exact.frequency_values.clone()
    # evidence begins elsewhere; what that makes in a channel is no matter of any wave
    frequencies[..., 0] += values.sum(dim=-1) - frequencies.sum(dim=-1)
    return _Found(values, frequencies, start, stop)


def _evidence(network: BankNetwork, x: Tensor, mask: Tensor | None, z: Tensor, quantity: Quantity) -> _Found:
    """What values add from average features to the series' own, exactly; averaged over neighbours.

    A bank has no gradient, but z is linear in its features, and these split exactly over the series. So the path
    leads from one z to the other, and the gradient along it is the direction whose evidence is sought.
    """
    start = network.start.expand_as(z)
    integral = integrate(HeadAlone(network.head), z[:, None], None, start[:, None], quantity)
    values, frequency_values = network.evidence(x, mask, integral.gradient[:, :, 0])
    return _Found(_averaged(values, mask), frequency_values, integral.start, integral.stop)


def score_maps(
    models: Sequence[FittedModel],
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    target: Tensor,
    *,
    n_steps: int = 16,
    n_contexts: int | None = None,
    exact: bool = False,
) -> list[Floats]:
    """By each model (b, c, t) maps of the targets' scores on the prepared axis, with few even steps: for comparisons.

    Of a bank Shapley values, or its exact evidence. Of networks with one bank, what it does is found once.
    """
    rule = even_rule(n_steps, len(x))
    networks = list(dict.fromkeys(member.network for model in models for member in model.members))
    found: dict[Network, Tensor] = {}
    for network in networks:
        if isinstance(network, BankNetwork) and exact:
            found[network] = _evidence(network, x, mask, network(x, mask).z, score_of(target)).values[0]
        elif isinstance(network, BankNetwork) and network not in found:
            alike = [each for each in networks if isinstance(each, BankNetwork) and each.bank is network.bank]
            scores = score_of(target, len(alike))
            values = shapley_values(side_by_side(alike), x, mask, baseline, scores, n_contexts=n_contexts).values
            found |= zip(alike, values, strict=True)
        elif isinstance(network, PDFTime):
            gradient = mean_gradient(network, x, mask, baseline, score_of(target), rule)[0]
            found[network] = _averaged(gradient * (x - baseline), mask)
    return [model.pooled([found[member.network] for member in model.members]).numpy() for model in models]


def _averaged(values: Tensor, mask: Tensor | None) -> Tensor:
    inside = np.ones((values.shape[-3], values.shape[-1]), bool) if mask is None else mask.numpy()
    return torch.from_numpy(averaged(values.numpy(), inside))


def by_frequency(gradient: Tensor, difference: Tensor) -> Tensor:
    """(..., t) gradients and differences -> (..., t // 2 + 1): the sum of their product, frequency by frequency.

    The part of the series at one frequency is a series itself; its product with the gradient, summed over time, is
    what it adds. The gradient has come through the frequency mask, so its gain is in it. By Parseval's theorem
    this is the product of the two spectra, and nothing is lost.
    """
    n = difference.shape[-1]
    product: Tensor = (torch.fft.rfft(gradient).conj() * torch.fft.rfft(difference)).real / n
    twice = torch.full((product.shape[-1],), 2.0, dtype=product.dtype)
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    return product * twice


def averaged(values: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Each value spread evenly over its neighbourhood inside the series: (..., b, c, t), sums per channel stay.

    Gradients of convolutions change sign from one time point to the next without meaning; averages do not.
    """
    width = width_of(values.shape[-1])
    counts = _window_sums(inside[:, None, :].astype(np.float64), width)
    spread: Floats = _window_sums(values / np.maximum(counts, 1.0), width) * inside[:, None, :]
    return spread


def width_of(n_timepoints: int) -> int:
    """How many neighbouring time points a map is averaged over."""
    return min(NEIGHBOURS, n_timepoints // 20 | 1)


def _window_sums(values: Floats, width: int) -> Floats:
    """Sums over `width` neighbours (odd), the place itself in the middle."""
    half = width // 2
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(half, half)])
    n = values.shape[-1]
    result: Floats = sum((padded[..., shift : shift + n] for shift in range(width)), start=np.zeros_like(values))
    return result


def as_map(
    maps: Maps,
    number: int,
    row: int,
    *,
    length: int,
    padded: bool,
    quantity: str,
    channel_names: tuple[str, ...],
) -> AttributionMap:
    """One quantity's map of one case, on the series' own axis."""
    n = maps.values.shape[-1]
    values = on_own_axis(maps.values[number, row], length, padded=padded)
    cycles = np.arange(maps.frequency_values.shape[-1])
    return AttributionMap(
        quantity=quantity,
        values=values,
        baseline=maps.baseline,
        start=float(maps.start[number, row]),
        stop=float(maps.stop[number, row]),
        completeness_gap=float(maps.gap[number, row]),
        frequencies=cycles / (n if padded and length <= n else length),
        frequency_values=maps.frequency_values[number, row],
        segments=segments_of(values, channel_names),
        neighbours=maps.neighbours,
        method=maps.method,
    )


def prototype_map(source: Source, match: PrototypeMatch, channel_names: tuple[str, ...]) -> AttributionMap:
    """Where a series resembles one prototype."""
    model = source.model
    ((_, x, mask),) = model.batches(source.case)
    code = model.classes.tolist().index(match.label)
    alone = replace(model, members=[model.members[match.member]])
    baseline, name = baseline_of(alone, x, mask)
    networks = [member.network for member in alone.members]
    quantity = similarity_to(match.level, code, match.number)
    maps, _ = make_maps(networks, x, mask, baseline, quantity, name=name)
    return as_map(
        maps,
        0,
        0,
        length=int(source.case.lengths[0]),
        padded=mask is not None,
        quantity=f"similarity to prototype {match.number + 1} of {match.label!r}",
        channel_names=channel_names,
    )


def on_own_axis(prepared: Floats, length: int, *, padded: bool) -> Floats:
    """A map on the prepared axis brought to the series' own length; what it sums to per channel stays."""
    n = prepared.shape[1]
    if padded and length <= n:
        return prepared[:, :length]
    if length == n:
        return prepared
    edges = np.linspace(0.0, n, length + 1)
    running = np.concatenate([np.zeros((len(prepared), 1)), prepared.cumsum(axis=1)], axis=1)
    at_edges = np.stack([np.interp(edges, np.arange(n + 1), row) for row in running])
    return np.diff(at_edges, axis=1)


def segments_of(values: Floats, channel_names: tuple[str, ...]) -> tuple[Segment, ...]:
    """Spans of channels that hold 80% of the positive mass, found where it is densest; the largest share first."""
    positive = values.clip(0.0)
    total = positive.sum()
    if total <= 0.0:
        return ()
    density = _window_sums(positive, values.shape[1] // 25 | 1)
    order = np.argsort(-density, axis=None, kind="stable")
    held = positive.ravel()[order].cumsum()
    chosen = np.zeros(values.size, bool)
    chosen[order[: int(np.searchsorted(held, HELD * total)) + 1]] = True
    found = []
    for channel, row in enumerate(chosen.reshape(values.shape)):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
        for start, stop in edges.reshape(-1, 2):
            share = float(positive[channel, start:stop].sum() / total)
            found.append(Segment(channel, channel_names[channel], int(start), int(stop) - 1, share))
    return tuple(sorted(found, key=lambda segment: -segment.share))
