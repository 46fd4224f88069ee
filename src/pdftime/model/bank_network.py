"""BankNetwork: a convolution bank, a linear projection and prototypes; one of the networks a member may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pdftime.config import BankConfig
from pdftime.model.bank import ConvolutionBank, Features, n_dilations
from pdftime.model.bank_changes import Sample, feature_changes
from pdftime.model.network import Output
from pdftime.model.places import interval_shares, place_spectrum, place_values
from pdftime.model.prototypes import FixedPrototypes, PrototypeHead

ALL = Sample()
EVIDENCE_POINTS = 8192  # time points whose evidence is found together: responses of all kernels are kept meanwhile


class Scaling(NamedTuple):
    """How features are brought to one size; fitted on training cases."""

    centre: Tensor
    """(n_features,)"""
    inverse: Tensor
    """(n_features,) one over the spread; 0 for a feature that is the same for all cases."""


class BankEvidence(NamedTuple):
    """What a series adds to a direction in z, and where."""

    values: Tensor
    """(q, b, c, t) exactly, by time point and channel."""
    frequency_values: Tensor
    """(q, b, c, f) the same sums by frequency, as the power that kernels see is spread over them."""


class BankNetwork(nn.Module):
    """Series -> features of the bank -> z, linear in them -> prototypes. Nothing in it has a gradient.

    Behind the bank's features there may be values at their places, the same number of each channel.
    """

    seed: Tensor
    centre: Tensor
    inverse: Tensor
    projection: Tensor
    offset: Tensor

    def __init__(
        self,
        bank: ConvolutionBank,
        seed: int,
        scaling: Scaling,
        projection: Tensor,
        offset: Tensor,
        head: FixedPrototypes | HeadsBeside,
    ) -> None:
        """`projection` (n_features, d) and `offset` (d,) give z, but for its last entry, which is 1."""
        super().__init__()
        self.bank, self.head = bank, head
        self.d_model = projection.shape[1] + 1
        self.n_places = (len(projection) - bank.n_features) // bank.n_channels
        self.register_buffer("seed", torch.tensor(seed))
        self.register_buffer("centre", scaling.centre)
        self.register_buffer("inverse", scaling.inverse)
        self.register_buffer("projection", projection)
        self.register_buffer("offset", offset)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Output:
        """(b, c, t) -> Output; its one token is z, because evidence over time is `evidence`'s."""
        features = scaled_features(self.bank, x, mask, Scaling(self.centre, self.inverse))
        # in double precision: thousands of terms add up, and evidence must add up to the same
        z = lifted((features.double() @ self.projection.double() + self.offset).float())
        return Output(self.head(z), z, z[:, None, :], None, [])

    @torch.no_grad()
    def evidence(
        self, x: Tensor, mask: Tensor | None, direction: Tensor, *, frequencies: bool = True
    ) -> BankEvidence:
        """What each value of the series adds to direction (q, b, d) . z, exactly.

        Together they give direction . (z - start), where start is the z of a case with average features. Without
        `frequencies`, the values alone are found, and there are none of those.
        """
        size = max(1, EVIDENCE_POINTS // x.shape[2])
        parts = [
            self._evidence(x[rows], None if mask is None else mask[rows], direction[:, rows], frequencies)
            for rows in (slice(start, start + size) for start in range(0, len(x), size))
        ]
        return BankEvidence(*(torch.cat(each, dim=1) for each in zip(*parts, strict=True)))

    @torch.no_grad()
    def changes(self, x: Tensor, mask: Tensor | None, change: Tensor, sample: Sample = ALL) -> Tensor:
        """(b, c, t, d) how z changes if one value of the series alone grows by `change` (b, c, t), for every value.

        Of a sample of features it is estimated: what they do, as many times as there are more of them.
        """
        size = max(1, EVIDENCE_POINTS // x.shape[2])
        parts = [
            self._changes(x[rows], None if mask is None else mask[rows], change[rows], sample)
            for rows in (slice(start, start + size) for start in range(0, len(x), size))
        ]
        return torch.cat(parts)

    def _changes(self, x: Tensor, mask: Tensor | None, change: Tensor, sample: Sample) -> Tensor:
        weights = self.projection * self.inverse[:, None]
        found = x.new_zeros(x.shape[1], self.d_model, len(x), x.shape[2])
        for channels, features, before, after, times in feature_changes(self.bank, x, mask, change, sample):
            if int(features[0, 0]) < self.bank.n_counts:
                centre = self.centre[features][:, :, None]
                moved = _rooted(after, centre[..., None]) - _rooted(before, centre)[..., None]
            else:
                moved = after - before[..., None]
            added = torch.matmul(times * weights[features].transpose(1, 2), moved.flatten(2))  # (r, d, b * t)
            found[:, :-1].index_add_(0, channels, added.view(*added.shape[:2], *moved.shape[2:]))
        found = found.permute(2, 0, 3, 1)
        if self.n_places:
            of_places = weights[self.bank.n_features :].view(x.shape[1], self.n_places, -1)
            slopes = torch.einsum("ant,cnd->actd", interval_shares(x, mask, self.n_places), of_places)
            found[..., :-1] += change[..., None] * slopes
        return found

    @property
    def start(self) -> Tensor:
        """(d,) the z of a case with average features."""
        return lifted(self.offset[None])[0]

    def _evidence(self, x: Tensor, mask: Tensor | None, direction: Tensor, by_frequency: bool) -> BankEvidence:
        counts = self.bank.counts(x, mask)
        weights = (direction[..., :-1].double() @ self.projection.double().T).float() * self.inverse  # (q, b, n)
        n = counts.shape[1]
        there = counts > 0.0
        roots = counts.clamp_min(0.0).sqrt()
        of_counts = torch.where(there, weights[..., :n] / roots.clamp_min(1e-30), 0.0)
        of_bank, of_places = weights[..., : self.bank.n_features], weights[..., self.bank.n_features :]
        by_part = self.bank.evidence(x, mask, Features(of_counts, of_bank[..., n:]))
        counted = torch.cat([there, there.new_ones(len(x), self.bank.n_pooled)], dim=1)
        average = (of_bank.double() * counted * self.centre[: self.bank.n_features]).sum(dim=-1)  # taken off evenly
        inside = torch.ones(len(x), x.shape[2]) if mask is None else mask.to(x.dtype)
        evenly = inside / (inside.sum(dim=1, keepdim=True) * x.shape[1])
        values = by_part.sum(dim=0) - average[:, :, None, None] * evenly[:, None, :]
        at_places = self._place_evidence(x, mask, of_places) if self.n_places else torch.zeros_like(values)
        values += at_places
        if not by_frequency:
            return BankEvidence(values, values[..., :0])
        shares = self.bank.spectral_shares(x, mask)
        frequencies = torch.einsum("pqbc,pbcf->qbcf", by_part.sum(dim=-1), shares.double())
        frequencies[..., 0] -= average[:, :, None] / x.shape[1]
        if self.n_places:
            frequencies += at_places.sum(dim=-1, keepdim=True) * place_spectrum(x, mask, self.n_places)
        return BankEvidence(values, frequencies)

    def _place_evidence(self, x: Tensor, mask: Tensor | None, weights: Tensor) -> Tensor:
        """(q, b, c, t): what values at their places add to weights (q, b, c * n) . their features."""
        weights = weights.reshape(*weights.shape[:2], x.shape[1], self.n_places).double()
        shares = interval_shares(x, mask, self.n_places).double().expand(len(x), -1, -1)
        centre = self.centre[self.bank.n_features :].view(x.shape[1], -1).double()
        here = torch.einsum("qbcn,bnt->qbct", weights, shares) * x
        return here - torch.einsum("qbcn,bnt->qbct", weights * centre, shares)


class HeadsBeside(PrototypeHead):
    """Heads that each read a part of z of their own; their scores stand side by side."""

    def __init__(self, heads: Sequence[FixedPrototypes | HeadsBeside], sizes: Sequence[int]) -> None:
        """`sizes` are those of the parts, without the 1 at the end, which all have."""
        nn.Module.__init__(self)
        self.heads, self.sizes = nn.ModuleList(heads), list(sizes)

    def forward(self, z: Tensor) -> list[Tensor]:
        """(b, d) -> (b, all their classes)."""
        parts = torch.split(z[:, :-1], self.sizes, dim=1)
        return [torch.cat([head(lifted(part))[-1] for head, part in zip(self.heads, parts, strict=True)], dim=1)]


def side_by_side(networks: Sequence[BankNetwork]) -> BankNetwork:
    """Networks that read the same scaled features of the same bank as one, whose scores are theirs side by side."""
    first = networks[0]
    return BankNetwork(
        first.bank,
        int(first.seed),
        Scaling(first.centre, first.inverse),
        torch.cat([each.projection for each in networks], dim=1),
        torch.cat([each.offset for each in networks]),
        HeadsBeside([each.head for each in networks], [each.d_model - 1 for each in networks]),
    )


def scaled_features(bank: ConvolutionBank, x: Tensor, mask: Tensor | None, scaling: Scaling) -> Tensor:
    """(b, n): all features of series (b, c, t); values at their places are as many as the scaling has for them."""
    n = bank.n_features
    features = scaled(bank(x, mask), Scaling(scaling.centre[:n], scaling.inverse[:n]))
    n_values = len(scaling.centre) - n
    if not n_values:
        return features
    values = place_values(x, mask, n_values // x.shape[1])
    return torch.cat([features, (values - scaling.centre[n:]) * scaling.inverse[n:]], dim=1)


def scaled(features: Features, scaling: Scaling) -> Tensor:
    """(b, n_features): roots of counts less their centre, 0 where there is nothing to count; pooled ones centred."""
    n = features.counts.shape[1]
    counts = _rooted(features.counts, scaling.centre[:n])
    return torch.cat([counts, features.pooled - scaling.centre[n:]], dim=1).mul_(scaling.inverse)


def _rooted(counts: Tensor, centre: Tensor) -> Tensor:
    """Roots less their centre; 0 where there is nothing to count."""
    roots = counts.clamp_min(0.0).sqrt()
    return torch.where(roots > 0.0, roots - centre, 0.0)


def fit_scaling(features: Features) -> Scaling:
    """Centre and spread of training cases; the spread of a count that is mostly 0 is not taken for small."""
    counts = features.counts.clamp_min(0.0).sqrt()
    rare = (counts == 0.0).to(counts.dtype).mean(dim=0) ** 4
    values = torch.cat([counts, features.pooled], dim=1)
    centre, spread = values.mean(dim=0), values.std(dim=0, correction=0)
    constant = spread <= 1e-6 * (1.0 + centre.abs())
    spread[: len(rare)] += rare
    return Scaling(centre, torch.where(constant, 0.0, 1.0 / spread.clamp_min(1e-12)))


def lifted(z: Tensor) -> Tensor:
    """(b, d) -> (b, d + 1), a 1 at the end: on the unit sphere, how sure a case is stays in its direction."""
    return torch.cat([z, z.new_ones(len(z), 1)], dim=1)


def make_bank(config: BankConfig, n_channels: int, n_timepoints: int, seed: int, *, large: bool) -> ConvolutionBank:
    """The bank for series of this form; short series, which have few dilations, get more biases for each."""
    n_biases = max(config.n_biases, -(-6 * config.n_biases // n_dilations(n_timepoints)))
    n_groups = config.n_groups
    if large:  # the cost of many cases grows with the square of the number of features
        n_groups, n_biases = max(1, n_groups // 2), max(1, n_biases // 2)
    return ConvolutionBank(n_channels, n_timepoints, n_groups=n_groups, n_biases=n_biases, seed=seed)
