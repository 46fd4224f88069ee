"""How the features of a convolution bank change when one value of a series changes, for every value at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pdftime.model.bank import (
    N_STATISTICS,
    RIVALS,
    ROUNDING,
    TAPS,
    ConvolutionBank,
    Part,
    Scratch,
    lengths_of,
    rival_wins,
)


class Change(NamedTuple):
    """Some features, and what becomes of them when one value of one channel changes; a row a view and channel."""

    channels: Tensor
    """(r,) the channel whose values change."""
    features: Tensor
    """(r, m) places among all features."""
    before: Tensor
    """(r, m, b)"""
    after: Tensor
    """(r, m, b, t) when the value at each time point changes, alone."""
    times: float
    """As many features like these there are for each of them: 1 but for a sample."""


class Sample(NamedTuple):
    """Every `step`-th view of a bank; where there is only one, every `step`-th of its groups and kernels."""

    first: int = 0
    step: int = 1

    def of(self, numbers: Tensor) -> Tensor:
        """Its part of these; at least one."""
        step = min(self.step, len(numbers))
        return numbers[self.first % step :: step]


class _Move(NamedTuple):
    """Of a value at t the response at t + lag sees, under some of its taps, so much more."""

    lag: int
    seen: list[tuple[int, Tensor]]
    """Taps, and the changes (r, b, t) of what they see."""


@torch.no_grad()
def feature_changes(
    bank: ConvolutionBank, x: Tensor, mask: Tensor | None, change: Tensor, sample: Sample
) -> Iterator[Change]:
    """What becomes of features of the series (b, c, t) if one value alone grows by `change` (b, c, t).

    A value is under nine taps, so nine responses of a kernel move, and where to is known from the responses to the
    series. `change` is 0 behind the end. Longest stretches are left out: what is lost in one place may be found in
    another.
    """
    lengths = lengths_of(x, mask)
    scratch = Scratch()
    counts, pooled = 0, bank.n_counts
    for part, biases, windows, inside in bank.walk(x, mask):
        n_groups, n_kernels = part.rivals.shape[1] // RIVALS, part.pooled.shape[1]
        groups, kernels = torch.arange(n_groups), torch.arange(n_kernels)
        views, channels = part.mixture.nonzero().unbind(dim=1)
        if bank.n_views == 1:
            groups, kernels = sample.of(groups), sample.of(kernels)
            more = (n_groups / len(groups), n_kernels / len(kernels))
        else:
            some = sample.of(torch.arange(bank.n_views))
            chosen = torch.isin(views, some)
            views, channels = views[chosen], channels[chosen]
            more = (bank.n_views / len(some),) * 2
        weights = part.mixture[views, channels]
        moves = _moves(part, change.transpose(0, 1)[channels] * weights[:, None, None], inside)
        seen = windows[views]
        rivals = part.rivals.view(-1, RIVALS, n_groups, TAPS)[views][:, :, groups]
        places = torch.arange(RIVALS)[:, None] * n_groups + groups
        for number, (before, after) in enumerate(_of_rivals(rivals, seen, moves, inside, lengths, scratch)):
            rows = (number * bank.n_views + views) * RIVALS * n_groups
            yield Change(channels, counts + rows[:, None] + places.flatten(), before, after, more[0])
        own = part.pooled[views][:, kernels]
        responses = torch.matmul(own, seen).view(*own.shape[:2], *x.shape[::2])
        for number, bias in enumerate(biases[:, views][:, :, kernels]):
            found = _of_pooled(own, responses - bias[:, :, None, None], moves, inside, lengths)
            for statistic, (before, after) in enumerate(found):
                rows = ((number * N_STATISTICS + statistic) * bank.n_views + views) * n_kernels
                yield Change(channels, pooled + rows[:, None] + kernels, before, after, more[1])
        counts += 2 * RIVALS * n_groups * bank.n_views
        pooled += len(biases) * N_STATISTICS * bank.n_views * n_kernels


def _moves(part: Part, change: Tensor, inside: Tensor | None) -> list[_Move]:
    """What a change (r, b, t) of single values does to what taps see, by the place of the response."""
    if part.difference:  # a value is in its own difference and in the next
        own, following = F.pad(change[..., 1:], (1, 0)), F.pad(-change[..., :-1], (0, 1))
        if inside is not None:
            following = following * F.pad(inside[:, 1:], (0, 1))
        sources = [(0, own), (1, following)]
    else:
        sources = [(0, change)]
    found: dict[int, list[tuple[int, Tensor]]] = {}
    for tap in range(TAPS):
        for later, seen in sources:
            found.setdefault(later - (tap - TAPS // 2) * part.dilation, []).append((tap, seen))
    return [_Move(*each) for each in found.items() if abs(each[0]) < change.shape[2]]


def _slices(lag: int, n: int) -> tuple[slice, slice]:
    """Values whose response at this lag is on the axis, and these responses."""
    return slice(max(0, -lag), min(n, n - lag)), slice(max(0, lag), min(n, n + lag))


def _moved(response: Tensor, kernels: Tensor, move: _Move, values: slice) -> Tensor:
    """Responses (r, k, b, s) of kernels (r, k, 9) after the move."""
    for tap, seen in move.seen:
        response = torch.addcmul(response, kernels[:, :, tap, None, None], seen[:, None, :, values])
    return response


def _of_rivals(
    kernels: Tensor,
    windows: Tensor,
    moves: list[_Move],
    inside: Tensor | None,
    lengths: Tensor,
    scratch: Scratch,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Before and after: how strongly kernels (r, 8, g, 9) win, and then how often they lose."""
    flat = kernels.flatten(1, 2)
    response = torch.matmul(flat, windows).view(*flat.shape[:2], len(lengths), -1)
    shape, n = (*kernels.shape[:3], *response.shape[2:]), response.shape[-1]
    old = [wins.clone() for wins in rival_wins(response.view(shape), inside, scratch)]
    before = [wins.sum(dim=-1, keepdim=True) for wins in old]
    sums = [each.expand_as(wins).clone() for each, wins in zip(before, old, strict=True)]
    for move in moves:
        values, places = _slices(move.lag, n)
        moved = _moved(response[..., places], flat, move, values).view(*shape[:4], -1)
        here = None if inside is None else inside[:, places]
        for total, was, wins in zip(sums, old, rival_wins(moved, here, scratch), strict=True):
            total[..., values] += wins.sub_(was[..., places])
    for each, total in zip(before, sums, strict=True):
        total.masked_fill_(total < 0.5 * ROUNDING, 0.0)  # the least that wins is twice that: this is rounding
        yield (each[..., 0] / lengths).flatten(1, 2), (total / lengths[:, None]).flatten(1, 2)


def _of_pooled(
    kernels: Tensor, over: Tensor, moves: list[_Move], inside: Tensor | None, lengths: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Before and after: proportion, mean and place of responses less their bias, `over` (r, k, b, t), above 0."""
    n = over.shape[-1]
    own = lengths[:1] if inside is None else lengths
    place = (torch.arange(n) + 0.5) / own[:, None] - 0.5
    old = _terms(over, place, inside)
    before = [term.sum(dim=-1, keepdim=True) for term in old]
    sums = [each.expand_as(over).clone() for each in before]
    for move in moves:
        values, places = _slices(move.lag, n)
        here = None if inside is None else inside[:, places]
        terms = _terms(_moved(over[..., places], kernels, move, values), place[:, places], here)
        for total, was, term in zip(sums, old, terms, strict=True):
            total[..., values] += term.sub_(was[..., places])
    some, some_after = (each[0].clamp_min(1.0) for each in (before, sums))
    yield before[0][..., 0] / lengths, sums[0] / lengths[:, None]
    for each, total in zip(before[1:], sums[1:], strict=True):
        yield (each / some)[..., 0], total / some_after


def _terms(over: Tensor, place: Tensor, inside: Tensor | None) -> list[Tensor]:
    """Of each response: whether it is above 0, how far, and where."""
    above = (over > 0.0).to(over.dtype)
    if inside is not None:
        above *= inside
    return [above, over * above, place * above]
