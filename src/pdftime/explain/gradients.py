"""Integrated gradients through a whole network, along a straight path, with points where the path is steep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pdftime import fitted
from pdftime.model.network import Output
from pdftime.model.prototypes import PrototypeHead

PROBES = 16
STEPS = 45
EVEN = 0.3  # share of the points that lie evenly, wherever the path is steep
COMPLETE = 0.01  # the largest gap that a map may have without being made again with more points
DOUBLINGS = 2  # how often it is made again, with twice the points each time

Quantity = Callable[[Any, Output, Tensor], Tensor]
"""(network, its output, rows) -> (n, q): what is explained, for a batch that holds the cases `rows`."""


class Rule(NamedTuple):
    """A quadrature rule on 0 to 1 per case."""

    nodes: NDArray[np.float64]
    """(n, b) places on the path from the baseline, 0, to the series, 1."""
    weights: NDArray[np.float64]
    """(n, b), summing to 1 per case."""


class HeadAlone(nn.Module):
    """A head as a network whose series is z: gradients of what a bank, which has none, leads to."""

    def __init__(self, head: PrototypeHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Output:
        """(b, 1, d) -> Output."""
        z = x[:, 0]
        return Output(self.head(z), z, x, None, [])


class Integral(NamedTuple):
    """Gradients averaged along the path, and the quantities at its ends."""

    gradient: Tensor
    """(q, b, c, t) double; times series less baseline it is the map."""
    start: Tensor
    """(q, b) at the baseline."""
    stop: Tensor
    """(q, b) at the series."""


@torch.no_grad()
def integrate(
    network: nn.Module,
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    quantity: Quantity,
    *,
    n_steps: int = STEPS,
) -> Integral:
    """Integrated gradients of each quantity with `n_steps` points per case, most of them where they change.

    Cases whose gradients do not add up to 1% are done again with twice the points, and once more with four times.
    """
    probes = _along(network, x, mask, baseline, quantity, np.linspace(0.0, 1.0, PROBES + 1))
    gradient = mean_gradient(network, x, mask, baseline, quantity, steep_rule(probes.numpy(), n_steps))
    found = Integral(gradient, probes[0], probes[-1])
    for doubling in range(1, DOUBLINGS + 1):
        total = (gradient * (x - baseline)).sum(dim=(2, 3))
        rows = (completeness_gap(total, found.start, found.stop) > COMPLETE).any(dim=0).nonzero()[:, 0]
        if not len(rows):
            break
        rule = steep_rule(probes[:, :, rows].numpy(), n_steps * 2**doubling)
        some = None if mask is None else mask[rows]
        gradient[:, rows] = mean_gradient(network, x[rows], some, baseline[rows], of_rows(quantity, rows), rule)
    return found


def completeness_gap(total: Tensor, start: Tensor, stop: Tensor) -> Tensor:
    """How far a map's total is from stop - start, as a share of the largest of |start|, |stop|, |stop - start|, 1."""
    rise = stop - start
    size = torch.stack([start.abs(), stop.abs(), rise.abs()]).amax(dim=0)
    return (total - rise).abs() / size.clamp_min(1.0)


def of_rows(quantity: Quantity, chosen: Tensor) -> Quantity:
    """The same quantity for a batch that holds only the `chosen` cases."""
    return lambda network, output, rows: quantity(network, output, chosen[rows])


def mean_gradient(
    network: nn.Module, x: Tensor, mask: Tensor | None, baseline: Tensor, quantity: Quantity, rule: Rule
) -> Tensor:
    """(q, b, c, t) double: the gradient of each quantity, averaged along the path by a quadrature rule."""
    total = torch.zeros(0)
    for rows, nodes, weights in _batches(x, rule):
        point = _points(x, baseline, rows, nodes).requires_grad_(True)
        with torch.enable_grad():
            values = quantity(network, network(point, None if mask is None else mask[rows]), rows)
            sums = values.sum(dim=0).unbind()
        if not len(total):
            total = torch.zeros((len(sums), *x.shape), dtype=torch.float64)
        for number, each in enumerate(sums):
            more = number + 1 < len(sums)
            (gradient,) = torch.autograd.grad(each, point, retain_graph=more)
            total[number].index_add_(0, rows, gradient.double() * weights[:, None, None])
    return total


def steep_rule(probes: NDArray[np.float64], n_steps: int) -> Rule:
    """Gauss-Legendre points between neighbouring probes (n, q, b), more of them where the quantities change more.

    A decision often turns within a small part of the path; even points would step over it.
    """
    n_parts = len(probes) - 1
    change = np.abs(np.diff(probes, axis=0))  # (n_parts, q, b)
    change += 1e-9 * (1.0 + np.abs(probes).max())  # where nothing changes, all parts are alike
    share = (change / change.sum(axis=0)).mean(axis=1)  # (n_parts, b)
    wanted = (n_steps - n_parts) * ((1.0 - EVEN) * share + EVEN / n_parts)
    counts = 1 + wanted.astype(np.int64)
    nodes = np.empty((n_steps, probes.shape[2]))
    weights = np.empty_like(nodes)
    for case in range(probes.shape[2]):
        spare = n_steps - counts[:, case].sum()
        counts[np.argsort(counts[:, case] - wanted[:, case], kind="stable")[:spare], case] += 1
        inner = [np.polynomial.legendre.leggauss(count) for count in counts[:, case]]
        nodes[:, case] = np.concatenate([part + (at + 1.0) / 2.0 for part, (at, _) in enumerate(inner)]) / n_parts
        weights[:, case] = np.concatenate([weight for _, weight in inner]) / (2.0 * n_parts)
    return Rule(nodes, weights)


def even_rule(n_steps: int, n_cases: int) -> Rule:
    """Gauss-Legendre points over the whole path, the same for all cases."""
    at, weight = np.polynomial.legendre.leggauss(n_steps)
    return Rule(np.tile((at[:, None] + 1.0) / 2.0, n_cases), np.tile(weight[:, None] / 2.0, n_cases))


def _along(
    network: nn.Module,
    x: Tensor,
    mask: Tensor | None,
    baseline: Tensor,
    quantity: Quantity,
    places: NDArray[np.float64],
) -> Tensor:
    """(n, q, b) the quantities at these places of the path."""
    rule = Rule(np.tile(places[:, None], len(x)), np.zeros((len(places), len(x))))
    found = []
    for rows, nodes, _ in _batches(x, rule):
        output = network(_points(x, baseline, rows, nodes), None if mask is None else mask[rows])
        found.append(quantity(network, output, rows).double())
    return torch.cat(found).view(len(places), len(x), -1).transpose(1, 2)


def _points(x: Tensor, baseline: Tensor, rows: Tensor, nodes: Tensor) -> Tensor:
    start = baseline[rows]
    return start + (x[rows] - start) * nodes[:, None, None].to(x.dtype)


def _batches(x: Tensor, rule: Rule) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Rows, nodes and weights of all points, in parts of bounded memory."""
    n, b = rule.nodes.shape
    rows = torch.arange(b).repeat(n)
    nodes, weights = (torch.from_numpy(each.ravel()) for each in rule)
    size = max(1, fitted.BATCH_POINTS // x.shape[2])
    parts = [slice(start, start + size) for start in range(0, n * b, size)]
    return [(rows[part], nodes[part], weights[part]) for part in parts]
