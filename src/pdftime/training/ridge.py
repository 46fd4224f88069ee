"""Ridge regression with exact leave-one-out predictions, by cases for few of them, by features for many."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

STRENGTHS = torch.logspace(-4.0, 2.0, 13, dtype=torch.float64)
"""Shares of the mean eigenvalue that are tried."""
BLOCK = 2048
SMALLEST = 1e-20  # mean eigenvalue: where no feature varies, a strength must still be a number


class Solution(NamedTuple):
    """A linear map from features to targets."""

    projection: Tensor
    """(n_features, d)"""
    offset: Tensor
    """(d,)"""


class DualRidge:
    """Ridge regression of weighted cases through their (n, n) products; the intercept is not shrunk."""

    def __init__(self, features: Tensor, weight: Tensor) -> None:
        self.weight = weight.double() / weight.double().sum()
        self.root = (self.weight * len(weight)).sqrt()
        self.centre = (self.weight[None] @ features.double())[0].to(features.dtype)
        self.rows = (features - self.centre) * self.root[:, None].to(features.dtype)
        values, vectors = torch.linalg.eigh(_without(products(self.rows), self.weight.sqrt()))
        there = values > 1e-9 * values[-1].clamp_min(1e-300)
        self.values, self.vectors = values[there], vectors[:, there]
        self.mean_value = max(float(self.values.sum()) / len(weight), SMALLEST)
        self.shrink_(1.0)

    def shrink_(self, share: float) -> None:
        """Set the strength, what is added to the eigenvalues, to a share of their mean."""
        self.strength = share * self.mean_value
        self.own = self._own(torch.tensor([self.strength], dtype=torch.float64))

    def choose_(self, targets: Tensor) -> float:
        """Set the strength to that with the smallest squared leave-one-out error; returns its share."""
        strengths = STRENGTHS * self.mean_value
        errors = self._dual(targets, strengths) / self._own(strengths)[:, :, None] / self.root[:, None, None]
        best = float(STRENGTHS[(self.weight @ errors.square().mean(dim=2)).argmin()])
        self.shrink_(best)
        return best

    def left_out(self, targets: Tensor) -> Tensor:
        """(n, d) predictions of targets, each by a regression without its own case, in double precision."""
        predicted: Tensor = targets - self._chosen_dual(targets) / self.own / self.root[:, None]
        return predicted

    def solve(self, targets: Tensor) -> Solution:
        projection = self.rows.T @ self._chosen_dual(targets).to(self.rows.dtype)
        mean = self.weight[None] @ targets
        return Solution(projection, mean[0].to(self.rows.dtype) - self.centre @ projection)

    def _chosen_dual(self, targets: Tensor) -> Tensor:
        """(n, d) for the strength that is set."""
        return self._dual(targets, torch.tensor([self.strength], dtype=torch.float64))[:, 0]

    def _dual(self, targets: Tensor, strengths: Tensor) -> Tensor:
        """(n, s, d) for each of (s,) strengths, found together: reading the large vectors is what costs."""
        centred = (targets - self.weight[None] @ targets) * self.root[:, None]
        along = self.vectors.T @ centred
        shrunk = along[:, None, :] / (self.values[:, None] + strengths)[:, :, None]
        both = self.vectors @ torch.cat([along, shrunk.flatten(1)], dim=1)
        d = targets.shape[1]
        rest = (centred - both[:, :d])[:, None, :] / strengths[:, None]
        dual: Tensor = both[:, d:].unflatten(1, (-1, d)) + rest
        return dual

    def _own(self, strengths: Tensor) -> Tensor:
        """(n, s) what of each case's own weight is in its prediction, for each of (s,) strengths."""
        squares = self.vectors.square()
        # what the vectors do not reach is reached by nothing but the intercept and the strength
        unreached = (1.0 - squares.sum(dim=1) - self.weight).clamp_min(0.0)
        inverse = 1.0 / (self.values[:, None] + strengths)
        own: Tensor = (squares @ inverse + unreached[:, None] / strengths).clamp_min(1e-300)
        return own


class PrimalRidge:
    """The same regression through (p, p) sums that add up batch by batch, for any number of cases."""

    def __init__(self, n_features: int, n_targets: int, weight_sum: float, centre: Tensor) -> None:
        """`centre` (p,) is near the mean of the features, so that sums about it lose nothing."""
        self.weight_sum, self.centre = weight_sum, centre
        self.n_cases = 0
        self.squares = torch.zeros(n_features, n_features, dtype=torch.float64)
        self.cross = torch.zeros(n_features, n_targets, dtype=torch.float64)
        self.sums, self.target_sums = torch.zeros(n_features).double(), torch.zeros(n_targets).double()

    def add_(self, features: Tensor, targets: Tensor, weight: Tensor) -> None:
        """Take in a batch of (b, p) features and (b, d) targets; the weights of all batches sum to `weight_sum`."""
        share = weight.double() / self.weight_sum
        rows = features - self.centre
        weighted = rows * share[:, None].to(rows.dtype)
        self.squares += weighted.T @ rows
        self.cross += weighted.double().T @ targets
        self.sums += weighted.double().sum(dim=0)
        self.target_sums += share @ targets
        self.n_cases += len(rows)

    def choose_(self, features: Tensor, targets: Tensor, weight: Tensor, start: float) -> tuple[Solution, Tensor]:
        """The solution whose strength suits some of the cases best when each is left out, and those predictions.

        Strengths are tried from the share `start` on, downwards and upwards as long as the error falls.
        """
        squares = (self.squares - self.sums[:, None] * self.sums) * self.n_cases
        cross = (self.cross - self.sums[:, None] * self.target_sums) * self.n_cases
        mean_value = max(float(squares.diagonal().sum()) / self.n_cases, SMALLEST)
        rows = (features - self.centre).double() - self.sums
        both = torch.cat([rows.T, cross], dim=1)
        share = weight.double() / self.weight_sum

        def tried(strength: float) -> tuple[float, Solution, Tensor]:
            system = squares.clone()
            system.diagonal().add_(strength * mean_value)
            factor = torch.linalg.cholesky(system)
            along = torch.linalg.solve_triangular(factor, both, upper=False)
            projection = torch.linalg.solve_triangular(factor.T, along[:, len(rows) :], upper=True)
            own = share * self.n_cases * along[:, : len(rows)].square().sum(dim=0) + share
            error = (targets - rows @ projection - self.target_sums) / (1.0 - own).clamp_min(1e-9)[:, None]
            offset = self.target_sums - (self.centre.double() + self.sums) @ projection
            size = float((share * error.square().mean(dim=1)).sum())
            return size, Solution(projection.float(), offset.float()), targets - error

        first = int((STRENGTHS - start).abs().argmin())
        best = tried(float(STRENGTHS[first]))
        for step in (-1, 1):
            place = first + step
            while 0 <= place < len(STRENGTHS):
                found = tried(float(STRENGTHS[place]))
                if found[0] >= best[0]:
                    break
                best, place = found, place + step
            if place != first + step:  # the error has one valley, and this was the way down
                break
        return best[1:]


def _without(matrix: Tensor, unit: Tensor) -> Tensor:
    """The symmetric matrix with nothing left of it along a unit vector, which rounding would leave there."""
    along = matrix @ unit
    return matrix - unit[:, None] * along - along[:, None] * unit + unit[:, None] * unit * (unit @ along)


def products(rows: Tensor) -> Tensor:
    """(n, p) -> (n, n) products of rows, added up in double precision."""
    total = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for start in range(0, rows.shape[1], BLOCK):
        block = rows[:, start : start + BLOCK]
        total += block @ block.T
    return (total + total.T) / 2.0  # single precision may round (i, j) and (j, i) apart, which `eigh` does not see
