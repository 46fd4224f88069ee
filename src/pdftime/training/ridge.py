"""Ridge regression with exact leave-one-out predictions, by cases up to thousands of them, by features for more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

STRENGTHS = torch.logspace(-4.0, 2.0, 13, dtype=torch.float64)
"""Shares of the mean eigenvalue that are tried."""
FEW_CASES = 4000  # whose products are decomposed whole; of more they are factored, one strength after the other
START_CASES = 1000  # of more than few, those whose best strength is the first that is tried
BLOCK = 2048  # features
COLUMNS = 512  # of a factor's inverse
SMALLEST = 1e-20  # mean eigenvalue: where no feature varies, a strength must still be a number


Found = TypeVar("Found")


class Solution(NamedTuple):
    """A linear map from features to targets."""

    projection: Tensor
    """(n_features, d)"""
    offset: Tensor
    """(d,)"""


class CaseRidge(ABC):
    """Ridge regression of weighted cases through their (n, n) products; the intercept is not shrunk."""

    own: Tensor
    """(n, 1) what of each case's own weight is in its prediction."""

    def __init__(self, features: Tensor, weight: Tensor) -> None:
        self.weight = weight.double() / weight.double().sum()
        self.root = (self.weight * len(weight)).sqrt()
        self.centre = (self.weight[None] @ features.double())[0].to(features.dtype)
        self.rows = (features - self.centre).mul_(self.root[:, None].to(features.dtype))

    @abstractmethod
    def choose_(self, targets: Tensor) -> float:
        """Set the strength to that with the smallest squared leave-one-out error; returns its share."""

    def left_out(self, targets: Tensor) -> Tensor:
        """(n, d) predictions of targets, each by a regression without its own case, in double precision."""
        predicted: Tensor = targets - self._chosen_dual(targets) / self.own / self.root[:, None]
        return predicted

    def solve(self, targets: Tensor) -> Solution:
        projection = self.rows.T @ self._chosen_dual(targets).to(self.rows.dtype)
        mean = self.weight[None] @ targets
        return Solution(projection, mean[0].to(self.rows.dtype) - self.centre @ projection)

    @abstractmethod
    def _chosen_dual(self, targets: Tensor) -> Tensor:
        """(n, d) for the strength that is set."""

    def _products(self) -> Tensor:
        """(n, n) of weighted rows, double."""
        return _without_(products(self.rows), self.weight.sqrt())

    def _weighted(self, targets: Tensor) -> Tensor:
        return (targets - self.weight[None] @ targets) * self.root[:, None]


class DualRidge(CaseRidge):
    """Through eigenvectors: every strength at once."""

    def __init__(self, features: Tensor, weight: Tensor) -> None:
        super().__init__(features, weight)
        values, vectors = torch.linalg.eigh(self._products())
        there = values > 1e-9 * values[-1].clamp_min(1e-300)
        self.values, self.vectors = values[there], vectors[:, there]
        self.mean_value = max(float(self.values.sum()) / len(weight), SMALLEST)
        self.shrink_(1.0)

    def shrink_(self, share: float) -> None:
        """Set the strength, what is added to the eigenvalues, to a share of their mean."""
        self.strength = share * self.mean_value
        self.own = self._own(torch.tensor([self.strength], dtype=torch.float64))

    def choose_(self, targets: Tensor) -> float:
        strengths = STRENGTHS * self.mean_value
        errors = self._dual(targets, strengths) / self._own(strengths)[:, :, None] / self.root[:, None, None]
        best = float(STRENGTHS[(self.weight @ errors.square().mean(dim=2)).argmin()])
        self.shrink_(best)
        return best

    def _chosen_dual(self, targets: Tensor) -> Tensor:
        return self._dual(targets, torch.tensor([self.strength], dtype=torch.float64))[:, 0]

    def _dual(self, targets: Tensor, strengths: Tensor) -> Tensor:
        """(n, s, d) for each of (s,) strengths, found together: reading the large vectors is what costs."""
        centred = self._weighted(targets)
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


class FactoredRidge(CaseRidge):
    """Through a factor of the products for each strength that is tried: of thousands of cases much faster."""

    def __init__(self, features: Tensor, weight: Tensor) -> None:
        super().__init__(features, weight)
        self.products = self._products()
        self.diagonal = self.products.diagonal().clone()
        self.mean_value = max(float(self.diagonal.mean()), SMALLEST)

    def shrink_(self, share: float) -> None:
        """Set the strength, what is added to the diagonal, to a share of the mean eigenvalue."""
        self.strength = share * self.mean_value
        self.products.diagonal().copy_(self.diagonal + self.strength)
        self.factor = torch.zeros(0)  # makes room: a factor is as large as the products
        self.factor = torch.linalg.cholesky(self.products)
        # the products have nothing along the intercept, where their inverse has one over the strength
        own = _inverse_diagonal(self.factor) - self.weight / self.strength
        self.own = own.clamp_min(1e-300)[:, None]

    def choose_(self, targets: Tensor) -> float:
        some = torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(0))[:START_CASES]
        features = self.rows[some] / self.root[some, None].to(self.rows.dtype)

        def tried(share: float) -> tuple[float, float]:
            self.shrink_(share)
            return float(self.weight @ (self.left_out(targets) - targets).square().mean(dim=1)), share

        best = _downhill(tried, DualRidge(features, self.weight[some]).choose_(targets[some]))
        self.shrink_(best)  # once more: to keep a factor while others are tried would take as much memory again
        return best

    def _chosen_dual(self, targets: Tensor) -> Tensor:
        along = torch.linalg.solve_triangular(self.factor, self._weighted(targets), upper=False)
        dual: Tensor = torch.linalg.solve_triangular(self.factor.T, along, upper=True)
        return dual


def by_cases(features: Tensor, weight: Tensor) -> CaseRidge:
    """The regression in the way that is the faster one for so many cases."""
    return (DualRidge if len(weight) <= FEW_CASES else FactoredRidge)(features, weight)


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

        def tried(strength: float) -> tuple[float, tuple[Solution, Tensor]]:
            system = squares.clone()
            system.diagonal().add_(strength * mean_value)
            factor = torch.linalg.cholesky(system)
            along = torch.linalg.solve_triangular(factor, both, upper=False)
            projection = torch.linalg.solve_triangular(factor.T, along[:, len(rows) :], upper=True)
            own = share * self.n_cases * along[:, : len(rows)].square().sum(dim=0) + share
            error = (targets - rows @ projection - self.target_sums) / (1.0 - own).clamp_min(1e-9)[:, None]
            offset = self.target_sums - (self.centre.double() + self.sums) @ projection
            size = float((share * error.square().mean(dim=1)).sum())
            return size, (Solution(projection.float(), offset.float()), targets - error)

        return _downhill(tried, start)


def _downhill(tried: Callable[[float], tuple[float, Found]], start: float) -> Found:
    """What the strength with the smallest error gives, found from `start` on, downwards or upwards while it falls."""
    first = int((STRENGTHS - start).abs().argmin())
    best = tried(float(STRENGTHS[first]))
    for step in (-1, 1):
        place = first + step
        while 0 <= place < len(STRENGTHS):
            before = best
            best = min(before, tried(float(STRENGTHS[place])), key=lambda found: found[0])
            if best is before:
                break
            place += step
        if place != first + step:  # the error has one valley, and this was the way down
            break
    return best[1]


def _without_(matrix: Tensor, unit: Tensor) -> Tensor:
    """The symmetric matrix with nothing left of it along a unit vector, which rounding would leave there."""
    along = matrix @ unit
    matrix -= unit[:, None] * along
    matrix -= along[:, None] * unit
    matrix += (unit[:, None] * unit).mul_(unit @ along)
    return matrix


def _inverse_diagonal(factor: Tensor) -> Tensor:
    """(n,) the diagonal of the inverse of a matrix with this lower factor."""
    n, found = len(factor), []
    for start in range(0, n, COLUMNS):  # the factor's inverse is lower too: what is above needs no work
        unit = torch.eye(n - start, min(COLUMNS, n - start), dtype=factor.dtype)
        found.append(torch.linalg.solve_triangular(factor[start:, start:], unit, upper=False).square().sum(dim=0))
    return torch.cat(found)


def products(rows: Tensor) -> Tensor:
    """(n, p) -> (n, n) products of rows, added up in double precision."""
    total = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for first in range(0, len(rows), FEW_CASES):  # each pair of many once
        here = slice(first, first + FEW_CASES)
        for start in range(0, rows.shape[1], BLOCK):
            block = rows[: here.stop, start : start + BLOCK]
            total[here, : here.stop] += block[first:] @ block.T
        total[:first, here] = total[here, :first].T
        own = total[here, here]  # single precision may round (i, j) and (j, i) apart, which `eigh` does not see
        own.copy_((own + own.T) / 2.0)
    return total
