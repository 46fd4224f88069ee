"""Shapley values of a bank: what each value of a series adds, on average over which other values are there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.explain.gradients import HeadAlone, Quantity, of_rows
from pdftime.model.bank_changes import Sample
from pdftime.model.bank_network import EVIDENCE_POINTS, BankNetwork

CONTEXTS = 16  # random parts of the series in which it is seen what values do
SHORT = 256  # time points; of a longer series of one channel half as many contexts are seen
SAMPLES = 8  # features are taken by turns, an eighth of them in each context
VIEW_SAMPLES = 4  # the same of the mixtures of several channels: four of 16
LEAST = 1e-3  # a factor beyond this is a sum of one sign that should have the other


class Shapley(NamedTuple):
    """What values add to several quantities, and the quantities at both ends."""

    values: Tensor
    """(q, b, c, t) double; they sum to stop - start."""
    start: Tensor
    """(q, b) of the baseline."""
    stop: Tensor
    """(q, b) of the series."""
    factor: Tensor
    """(q, b) what positive estimates were multiplied by, and negative ones divided, to make them sum to it."""


@torch.no_grad()
def shapley_values(
    network: BankNetwork,
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    quantity: Quantity,
    *,
    n_contexts: int | None = None,
    z: Tensor | None = None,
) -> Shapley:
    """Shapley values against the baseline in Owen's form: what a value does where a random share s of the others has
    given way to the baseline, on average over s from 0 to 1.

    What every value does in one such context is found at once (`BankNetwork.changes`), so few contexts do. The
    estimates are then made to sum to what the series adds to the baseline. `z` (b, d) is the series', if it is known.
    """
    if n_contexts is None:
        n_contexts = CONTEXTS if x.shape[1] > 1 or x.shape[2] <= SHORT else CONTEXTS // 2
    size = max(1, EVIDENCE_POINTS // x.shape[2])
    if len(x) > size:
        parts = []
        for rows in torch.split(torch.arange(len(x)), size):
            some = None if mask is None else mask[rows]
            own = of_rows(quantity, rows)
            known = None if z is None else z[rows]
            parts.append(shapley_values(network, x[rows], some, baseline[rows], own, n_contexts=n_contexts, z=known))
        return Shapley(*(torch.cat(each, dim=1) for each in zip(*parts, strict=True)))
    shared = mask is None and bool((baseline == baseline[:1]).all())  # then one does for all
    at_baseline = network(baseline[:1] if shared else baseline, mask).z.expand(len(x), -1)
    ends = at_baseline, network(x, mask).z if z is None else z
    head, every = HeadAlone(network.head), torch.arange(len(x))
    start, stop = (quantity(network, head(end[:, None]), every).double().T for end in ends)
    shares = (torch.arange(n_contexts, dtype=torch.float64) + 0.5) / n_contexts
    generator = generator_for("shapley", *x.shape[1:])  # the same for every case, in whatever batch it comes
    draws = torch.rand(n_contexts, *x.shape[1:], dtype=torch.float64, generator=generator)
    inside = torch.ones(len(x), x.shape[2], dtype=torch.bool) if mask is None else mask
    reached = torch.where(inside[:, None, :], baseline, x)
    effects = _mean_effects(network, x, mask, reached, draws >= shares[:, None, None], quantity)
    values, factor = complete(effects * inside[:, None, :], stop - start, inside[:, None, :])
    return Shapley(values, start, stop, factor)


def complete(values: Tensor, total: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Values (q, b, c, t) that sum to `total` (q, b), and a factor (q, b).

    Positive ones are multiplied by it, negative ones divided: signs and order stay. Where values of one sign cannot
    have the total, what is missing is added to all alike that are inside (b, 1, t).
    """
    above, below = values.clamp_min(0.0).sum(dim=(2, 3)), -values.clamp_max(0.0).sum(dim=(2, 3))
    # factor * above - below / factor = total
    root = (total.square() + 4.0 * above * below).sqrt()
    up, down = 2.0 * above, root - total
    factor = torch.where(total >= 0.0, (total + root) / up, 2.0 * below / down)
    usable = factor.isfinite() & (factor > LEAST) & (factor < 1.0 / LEAST)
    factor = torch.where(usable, factor, 1.0)
    by = factor[:, :, None, None]
    scaled = torch.where(values > 0.0, values * by, values / by)
    missing = torch.where(usable, 0.0, total - scaled.sum(dim=(2, 3)))[:, :, None, None]
    evenly = inside.double() / (inside.sum(dim=(1, 2), keepdim=True) * values.shape[2])
    return scaled + missing * evenly, factor


def _mean_effects(
    network: BankNetwork, x: Tensor, mask: Tensor | None, baseline: Tensor, there: Tensor, quantity: Quantity
) -> Tensor:
    """(q, b, c, t): how much higher quantities are with each value than without it, on average over contexts.

    `there` (n, c, t) says which values of the series a context has; it has the baseline's in place of the others.
    """
    head = HeadAlone(network.head)
    n, step = len(there), SAMPLES if network.bank.n_views == 1 else VIEW_SAMPLES
    keep = there[:, None].expand(-1, len(x), -1, -1)
    contexts = torch.where(keep, x, baseline)  # (n, b, c, t)
    z = network(contexts.flatten(0, 1), None if mask is None else mask.repeat(n, 1)).z.unflatten(0, (n, len(x)))
    found = []
    for first in range(min(step, n)):
        own, context, before = (each[first::step].flatten(0, 1) for each in (keep, contexts, z))  # (m * b, ...)
        rows = torch.arange(len(x)).repeat(len(own) // len(x))
        change = (x + baseline)[rows] - 2.0 * context
        moved = before[:, None, None] + network.changes(
            context, None if mask is None else mask[rows], change, Sample(first, step)
        )
        after = quantity(network, head(moved.flatten(0, 2)[:, None]), rows.repeat_interleave(x[0].numel())).double()
        less = quantity(network, head(before[:, None]), rows).double()[:, None, None] - after.view(*own.shape, -1)
        gain = less * torch.where(own, 1.0, -1.0)[..., None]
        found.append(gain.view(-1, *x.shape, gain.shape[-1]).sum(dim=0).movedim(-1, 0))
    return torch.stack(found).sum(dim=0) / n
