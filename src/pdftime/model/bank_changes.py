"""How the features of a convolution bank change when one value of a series changes, for every value at once."""

from __future__ import annotations

import math
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
    rival_winners,
)

NO_TAP = TAPS  # behind the taps of a kernel there is one that sees nothing


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
    """What a change of the value at t does to the responses at t + lag, for l lags `step` apart."""

    first: int
    """The least lag."""
    step: int
    seen: list[tuple[list[int], Tensor]]
    """For each lag a tap, and (r, b, t) how much more it sees; a second time where two taps see the value."""
    inside: Tensor
    """(l, b or 1, t) 1 where there is such a response, 0 beyond the ends of the series."""

    @property
    def lags(self) -> Tensor:
        """(l,)"""
        return self.first + self.step * torch.arange(len(self.inside))

    def at_lags(self, padded: Tensor) -> Tensor:
        """(..., l, b, t) what is at t + lag of (..., b, reach + t + reach): a view."""
        n_lags, _, n = self.inside.shape
        reach = (padded.shape[-1] - n) // 2
        return padded[..., reach + self.first :].unfold(-1, n, self.step)[..., :n_lags, :].transpose(-2, -3)

    def moved(self, padded: Tensor, kernels: Tensor, scratch: Scratch) -> Tensor:
        """Responses, padded, of kernels (r, k, 10) -> (r, k, l, b, t) those at the lags after the move."""
        found = self.at_lags(padded)
        place = scratch("moved")(found.shape)
        for taps, seen in self.seen:
            found = torch.addcmul(found, kernels[:, :, taps, None, None], seen[:, None, None], out=place)
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
        rivals = part.rivals.view(-1, RIVALS, n_groups, TAPS)[views][:, :, groups].transpose(1, 2)
        places = torch.arange(RIVALS)[:, None] * n_groups + groups
        rows = (torch.arange(2) * bank.n_views + views[:, None])[..., None] * RIVALS * n_groups + places.flatten()
        before, after = _of_rivals(rivals, seen, moves, inside, lengths, scratch)
        yield Change(channels, counts + rows.flatten(1), before, after, more[0])
        own = part.pooled[views][:, kernels]
        responses = torch.matmul(own, seen).view(*own.shape[:2], *x.shape[::2])
        numbers = torch.arange(N_STATISTICS - 1)[:, None] + torch.arange(len(biases)) * N_STATISTICS
        rows = (numbers * bank.n_views + views[:, None, None])[..., None] * n_kernels + kernels
        before, after = _of_pooled(own, responses, biases[:, views][:, :, kernels], moves, inside, lengths, scratch)
        yield Change(channels, pooled + rows.flatten(1), before, after, more[1])
        counts += 2 * RIVALS * n_groups * bank.n_views
        pooled += len(biases) * N_STATISTICS * bank.n_views * n_kernels


def _moves(part: Part, change: Tensor, inside: Tensor | None) -> list[_Moves]:
    """Of a change (r, b, t) of single values, at all lags."""
    step, taps = part.dilation, list(reversed(range(TAPS)))  # the last tap sees it first
    first = -(TAPS // 2) * step
    if part.difference:  # a value is in its own difference and in the next
        own, following = F.pad(change[..., 1:], (1, 0)), F.pad(-change[..., :-1], (0, 1))
        if inside is not None:
            following = following * F.pad(inside[:, 1:], (0, 1))
        if step == 1:
            runs = [(first, [([*taps, NO_TAP], own), ([NO_TAP, *taps], following)])]
        else:
            runs = [(first, [(taps, own)]), (first + 1, [(taps, following)])]
    else:
        runs = [(first, [(taps, change)])]
    there = torch.ones(1, change.shape[2]) if inside is None else inside
    found = [_Moves(least, step, seen, there.expand(len(seen[0][0]), -1, -1)) for least, seen in runs]
    return [each._replace(inside=each.at_lags(_padded(there, found))) for each in found]


def _padded(values: Tensor, moves: list[_Moves], beyond: float = 0.0) -> Tensor:
    """(..., t) -> (..., reach + t + reach): what is `beyond` the ends, as far as a change of one value reaches."""
    reach = 1 - moves[0].first  # a value is in the next difference too
    return F.pad(values, (reach, reach), value=beyond)


def _of_rivals(
    kernels: Tensor,
    windows: Tensor,
    moves: list[_Moves],
    inside: Tensor | None,
    lengths: Tensor,
    scratch: Scratch,
) -> tuple[Tensor, Tensor]:
    """Before and after: how strongly kernels (r, g, 8, 9) win, and then how often they lose."""
    form, flat = kernels.shape[:3], kernels.flatten(1, 2)
    response = torch.matmul(flat, windows).view(*flat.shape[:2], len(lengths), -1)
    padded, taps = _padded(response, moves), F.pad(flat, (0, 1))
    wins = response.new_zeros(len(flat), 2, RIVALS, form[1], *response.shape[2:])  # (r, 2, 8, g, b, t)
    for number, (winner, worth) in enumerate(rival_winners(response.view(*form, *response.shape[2:]), inside)):
        wins[:, number].scatter_(1, winner[:, None], worth[:, None])
    total, gains, old = wins.sum(dim=-1), torch.zeros_like(wins), _padded(wins, moves)
    for each in moves:
        gains -= each.at_lags(old).sum(dim=-3)
        moved = each.moved(padded, taps, scratch)
        for number, new in enumerate(rival_winners(moved.view(*form, *moved.shape[2:]), each.inside)):
            by_group = gains[:, number].transpose(1, 2)  # (r, g, 8, b, t)
            by_group.scatter_add_(2, *new)
    sums = gains.add_(total[..., None])
    torch.threshold_(sums, 0.5 * ROUNDING, 0.0)  # the least that wins is twice that: this is rounding
    return (total / lengths).flatten(1, 3), sums.div_(lengths[:, None]).flatten(1, 3)


def _of_pooled(
    kernels: Tensor,
    responses: Tensor,
    biases: Tensor,
    moves: list[_Moves],
    inside: Tensor | None,
    lengths: Tensor,
    scratch: Scratch,
) -> tuple[Tensor, Tensor]:
    """Before and after: proportion, mean and place of responses (r, k, b, t) above biases (n, r, k)."""
    own = (lengths[:1] if inside is None else lengths)[:, None]
    place = (torch.arange(responses.shape[-1]) + 0.5) / own - 0.5
    if inside is not None:
        responses = responses.masked_fill(inside == 0.0, -math.inf)
    padded, taps = _padded(responses, moves, -math.inf), F.pad(kernels, (0, 1))  # above no bias
    sums = responses.new_empty(3, len(biases), *responses.shape)
    for over, each in zip((responses - biases[..., None, None]).clamp_min_(0.0), sums.transpose(0, 1), strict=True):
        above = torch.gt(over, 0.0, out=each[0])
        each[1] = over
        torch.mul(above, place, out=each[2])
    before = sums.sum(dim=-1, keepdim=True)
    old = _padded(sums, moves)
    sums.copy_(before)
    for each in moves:
        moved = each.moved(padded, taps, scratch)
        over, above = (scratch(name)(moved.shape) for name in ("over", "above"))
        lags = each.lags.to(moved.dtype)
        by_lag = torch.stack([torch.ones_like(lags), lags])
        sums -= each.at_lags(old).sum(dim=-3)
        for bias, after in zip(biases, sums.transpose(0, 1), strict=True):
            torch.sub(moved, bias[..., None, None, None], out=over)
            torch.gt(over, 0.0, out=above)
            counted = torch.matmul(by_lag, above.flatten(3)).view(*moved.shape[:2], 2, *moved.shape[3:])
            count, behind = counted.unbind(dim=2)  # how many, and how far they lie behind the value
            after[0] += count
            after[1] += over.clamp_min_(0.0).sum(dim=-3)
            after[2] += torch.addcmul(behind / own, count, place)
    for sum_of in (before, sums):
        sum_of[1:] /= sum_of[0].clamp_min(1.0)
        sum_of[0] /= lengths[:, None]
    return before[..., 0].permute(2, 0, 1, 3, 4).flatten(1, 3), sums.permute(2, 0, 1, 3, 4, 5).flatten(1, 3)
