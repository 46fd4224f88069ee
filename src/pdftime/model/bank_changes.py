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


class _Moves(NamedTuple):
    """What a change of the value at t does to the responses at t + lag, for l lags."""

    lags: list[int]
    seen: list[tuple[list[int], Tensor]]
    """For each lag a tap, and (r, l, b, t) how much more it sees; a second time where two taps see the value."""
    inside: Tensor
    """(l, b or 1, t) 1 where there is such a response, 0 beyond the ends of the series."""

    def at_lags(self, values: Tensor) -> Tensor:
        """(..., b, t) -> (..., l, b, t): what is at t + lag; 0 beyond the ends of the axis."""
        n, reach = values.shape[-1], max(map(abs, self.lags))
        padded = F.pad(values, (reach, reach))
        return torch.stack([padded[..., reach + lag : reach + lag + n] for lag in self.lags], dim=-3)

    def moved(self, response: Tensor, kernels: Tensor) -> Tensor:
        """Responses (r, k, b, t) of kernels (r, k, 9) -> (r, k, l, b, t) those at the lags after the move."""
        found = self.at_lags(response)
        for taps, seen in self.seen:
            found.addcmul_(kernels[:, :, taps, None, None], seen[:, None])
        return found


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
        found = _of_pooled(own, responses, biases[:, views][:, :, kernels], moves, inside, lengths)
        for statistic, (before, after) in enumerate(found):
            numbers = torch.arange(len(biases))[:, None] * N_STATISTICS + statistic
            rows = (numbers * bank.n_views + views)[..., None] * n_kernels + kernels  # (biases, r, k)
            yield Change(channels, pooled + rows.transpose(0, 1).flatten(1), before, after, more[1])
        counts += 2 * RIVALS * n_groups * bank.n_views
        pooled += len(biases) * N_STATISTICS * bank.n_views * n_kernels


def _moves(part: Part, change: Tensor, inside: Tensor | None) -> _Moves:
    """Of a change (r, b, t) of single values."""
    n = change.shape[2]
    if part.difference:  # a value is in its own difference and in the next
        own, following = F.pad(change[..., 1:], (1, 0)), F.pad(-change[..., :-1], (0, 1))
        if inside is not None:
            following = following * F.pad(inside[:, 1:], (0, 1))
        sources = [(0, own), (1, following)]
    else:
        sources = [(0, change)]
    by_lag: dict[int, list[tuple[int, Tensor]]] = {}
    for tap in range(TAPS):
        for later, seen in sources:
            by_lag.setdefault(later - (tap - TAPS // 2) * part.dilation, []).append((tap, seen))
    lags = [lag for lag in by_lag if abs(lag) < n]
    nothing = (0, torch.zeros_like(change))
    terms = []
    for turn in range(max(len(by_lag[lag]) for lag in lags)):
        each = [by_lag[lag][turn] if turn < len(by_lag[lag]) else nothing for lag in lags]
        terms.append(([tap for tap, _ in each], torch.stack([seen for _, seen in each], dim=1)))
    found = _Moves(lags, terms, torch.ones(0))
    return found._replace(inside=found.at_lags(torch.ones(1, n) if inside is None else inside))


def _of_rivals(
    kernels: Tensor, windows: Tensor, moves: _Moves, inside: Tensor | None, lengths: Tensor, scratch: Scratch
) -> Iterator[tuple[Tensor, Tensor]]:
    """Before and after: how strongly kernels (r, 8, g, 9) win, and then how often they lose."""
    flat = kernels.flatten(1, 2)
    response = torch.matmul(flat, windows).view(*flat.shape[:2], len(lengths), -1)
    old = [
        wins.clone() for wins in rival_wins(response.view(*kernels.shape[:3], *response.shape[2:]), inside, scratch)
    ]
    moved = moves.moved(response, flat)
    new = rival_wins(moved.view(*kernels.shape[:3], *moved.shape[2:]), moves.inside, scratch)
    for before, after in zip(old, new, strict=True):
        total = before.sum(dim=-1, keepdim=True)
        sums = total + (after.sum(dim=-3) - moves.at_lags(before).sum(dim=-3))
        sums.masked_fill_(sums < 0.5 * ROUNDING, 0.0)  # the least that wins is twice that: this is rounding
        yield (total[..., 0] / lengths).flatten(1, 2), (sums / lengths[:, None]).flatten(1, 2)


def _of_pooled(
    kernels: Tensor, responses: Tensor, biases: Tensor, moves: _Moves, inside: Tensor | None, lengths: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Before and after: proportion, mean and place of responses (r, k, b, t) above biases (n, r, k)."""
    n = responses.shape[-1]
    own = lengths[:1] if inside is None else lengths
    place = (torch.arange(n) + 0.5) / own[:, None] - 0.5
    level = biases.transpose(0, 1)  # (r, n, k)
    over = (responses[:, None] - level[..., None, None]).flatten(1, 2)
    moved = (moves.moved(responses, kernels)[:, None] - level[..., None, None, None]).flatten(1, 2)
    old, new = _terms(over, place, inside), _terms(moved, moves.at_lags(place), moves.inside)
    before = [term.sum(dim=-1, keepdim=True) for term in old]
    sums = [
        total + (after.sum(dim=-3) - moves.at_lags(term).sum(dim=-3))
        for total, term, after in zip(before, old, new, strict=True)
    ]
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
