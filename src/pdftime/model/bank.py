"""ConvolutionBank: fixed random dilated convolutions, and what is counted and pooled of their responses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

TAPS = 9  # time points that a kernel looks at
RIVALS = 8  # kernels that compete in a group
N_VIEWS = 16  # mixtures of channels, where there are several
N_SHARED = 96  # pooled kernels of all mixtures together
N_STATISTICS = 4
BATCH_POINTS = 8192  # time points that go through the bank together: what stays in the processor's cache
WORD = 16  # time points whose runs are looked up in a table
SMALLEST = 1e-2  # how large a value counts at least when evidence is shared among values
ROUNDING = 1e-5  # of prepared series, whose values are about 1: less than this is rounding
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Part(NamedTuple):
    """The kernels of one dilation, on the series or on its first difference."""

    difference: bool
    dilation: int
    mixture: Tensor
    """(v, n_channels): the channels that each view adds up, with their weights."""
    rivals: Tensor
    """(v, 8 * g, 9): random kernels; the eight of a group compete at every time point."""
    pooled: Tensor
    """(v, k, 9): kernels of weights -1 and 2, whose responses are compared with biases."""


class Features(NamedTuple):
    """What a batch leaves behind."""

    counts: Tensor
    """(b, n_counts): how strongly and how often each rival wins, per time point; many are 0."""
    pooled: Tensor
    """(b, n_pooled): proportion, mean, place and longest stretch of responses above each bias."""


class ConvolutionBank(nn.Module):
    """Features from fixed convolutions: nothing is trained, and the same seed gives the same kernels.

    Groups of eight random kernels compete: of each kernel is kept how strong its responses were where it was the
    highest of its group, and how often it was the lowest. Responses of the other kernels are compared with biases,
    quantiles of what training cases gave. Both are done on the series and on its first difference, at dilations
    1, 2, 4 and so on while a kernel fits. With several channels, kernels look at random mixtures of few of them.
    """

    biases: Tensor

    def __init__(self, n_channels: int, n_timepoints: int, *, n_groups: int, n_biases: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.n_channels = n_channels
        self.n_views = 1 if n_channels == 1 else N_VIEWS
        per_view = max(1, n_groups // self.n_views)
        self.parts = [
            _part(generator, n_channels, self.n_views, per_view, difference=difference, dilation=2**exponent)
            for difference in (False, True)
            for exponent in range(n_dilations(n_timepoints))
        ]
        n_kernels = self.parts[0].pooled.shape[:2].numel()
        self.n_counts = len(self.parts) * 2 * RIVALS * self.n_views * per_view
        self.n_pooled = len(self.parts) * n_biases * N_STATISTICS * n_kernels
        self.n_features = self.n_counts + self.n_pooled
        shape = (len(self.parts), n_biases, self.n_views, n_kernels // self.n_views)
        self.register_buffer("biases", torch.zeros(shape))

    @torch.no_grad()
    def fit_biases_(self, x: Tensor, mask: Tensor | None, generator: torch.Generator) -> None:
        """Set the biases to quantiles of responses: each kernel's of one of the cases (b, c, t), evenly spread.

        They lie between two responses, and a little higher, so that rounding does not lift a response over them.
        """
        n_cases, lengths = len(x), lengths_of(x, mask)
        for (part, _, windows, _), biases in zip(self.walk(x, mask), self.biases, strict=True):
            n_biases, n_views, k = biases.shape
            shape = (n_views, k, n_biases)
            case = torch.randint(n_cases, shape, generator=generator)
            start = float(torch.rand(1, generator=generator))
            quantile = ((start + GOLDEN * torch.arange(biases.numel())) % 1.0).view(shape)
            place = (quantile * (lengths[case] - 1)).long()
            response = torch.matmul(part.pooled, windows).view(n_views, k, n_cases, -1)
            if mask is not None:  # behind the end of a series there is nothing to compare
                response.masked_fill_(~mask, math.inf)
            view, kernel = torch.arange(n_views)[:, None, None], torch.arange(k)[None, :, None]
            ordered = response[view, kernel, case].sort(dim=3).values
            after = torch.minimum(place + 1, lengths[case].long() - 1)
            between = (ordered.gather(3, place[..., None]) + ordered.gather(3, after[..., None])) / 2.0
            biases.copy_(between[..., 0].permute(2, 0, 1) + ROUNDING)

    @torch.no_grad()
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Features:
        """(b, c, t) -> Features, in parts of bounded memory; `mask` (b, t) is false behind the end of a series."""
        size = max(1, BATCH_POINTS // x.shape[2])
        counts, pooled = x.new_empty(len(x), self.n_counts), x.new_empty(len(x), self.n_pooled)
        scratch = Scratch()
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            counts[rows], pooled[rows] = self._features(x[rows], None if mask is None else mask[rows], scratch)
        return Features(counts, pooled)

    @torch.no_grad()
    def counts(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(b, n_counts): the counts alone, all at once."""
        lengths, scratch = lengths_of(x, mask), Scratch()
        parts = (_counts(part, windows, inside, lengths, scratch) for part, _, windows, inside in self.walk(x, mask))
        return torch.cat(list(parts)).T

    def _features(self, x: Tensor, mask: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
        lengths = lengths_of(x, mask)
        counts, pooled = [], []
        for part, biases, windows, inside in self.walk(x, mask):
            counts.append(_counts(part, windows, inside, lengths, scratch))
            response = _convolved(part.pooled, windows, scratch("pooled")).view(self.n_views, -1, *x.shape[::2])
            pooled.append(_statistics(response, biases, inside, lengths, scratch).flatten(0, -2))
        return torch.cat(counts).T, torch.cat(pooled).T

    @torch.no_grad()
    def evidence(self, x: Tensor, mask: Tensor | None, weights: Features) -> Tensor:
        """(n_parts, q, b, c, t): what each value of the series adds to sums of features with (q, b, n) weights.

        A feature is a sum over time of local terms. Each is laid on the values that its kernel looked at, in shares
        as large as they are. Summed over parts, time and channels it gives weights . features again.
        """
        n_quantities, b, t = len(weights.counts), len(x), x.shape[2]
        lengths = lengths_of(x, mask)
        found = []
        counts, pooled = (_Shares(each) for each in weights)
        scratch = Scratch()
        both = series_and_change(x, mask)
        there = SMALLEST if mask is None else SMALLEST * mask[:, None, :]
        for part, biases, windows, inside in self.walk(x, mask):
            local = x.new_zeros(n_quantities, self.n_views, b, t, dtype=torch.float64)
            for number, worth in rival_winners(_rivals(part, windows, b, scratch), inside):
                share = counts.take(torch.Size([self.n_views, RIVALS, worth.shape[1]])) / lengths
                own = share.permute(0, 1, 3, 4, 2).gather(-1, number.expand(n_quantities, *number.shape))
                local += own.mul_(worth).sum(dim=2)
            response = _convolved(part.pooled, windows, scratch("pooled")).view(self.n_views, -1, b, t)
            for bias in biases:
                shares = pooled.take(torch.Size([N_STATISTICS, *bias.shape]))
                local += _local_sums(response, bias, shares, inside, lengths, scratch)
            found.append(_spread(local, part, both[part.difference].abs() + there))
        return torch.stack(found)

    @torch.no_grad()
    def spectral_shares(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(n_parts, b, c, f): the share of each frequency in the power that a part's kernels see."""
        t = x.shape[2]
        series = x if mask is None else x * mask[:, None, :]
        power = torch.fft.rfft(series).abs().square()
        frequencies = torch.arange(t // 2 + 1) / t
        shares = []
        for part in self.parts:
            places = torch.arange(TAPS) * part.dilation
            waves = torch.exp(-2j * math.pi * frequencies[:, None] * places)  # (f, 9)
            kernels = torch.cat([part.rivals.flatten(0, 1), part.pooled.flatten(0, 1)])
            gain = (waves @ kernels.T.to(waves.dtype)).abs().square().mean(dim=1)
            if part.difference:
                gain = gain * (2.0 - 2.0 * torch.cos(2.0 * math.pi * frequencies))
            seen = power * gain
            seen[..., 0] += 1e-20  # of a series without any power all is constant
            shares.append(seen / seen.sum(dim=-1, keepdim=True))
        return torch.stack(shares)

    def walk(self, x: Tensor, mask: Tensor | None) -> Iterator[tuple[Part, Tensor, Tensor, Tensor | None]]:
        """Each part with its biases, the windows that its kernels see, and (b, t) ones inside the series."""
        inside = None if mask is None else mask.to(x.dtype)
        both = series_and_change(x, mask)
        for part, biases in zip(self.parts, self.biases, strict=True):
            yield part, biases, _windows(both[part.difference], part), inside


def n_dilations(n_timepoints: int) -> int:
    """How many of the dilations 1, 2, 4, ... fit a kernel into a series; at least one."""
    return 1 + int(math.log2(max(n_timepoints - 1, TAPS - 1) / (TAPS - 1)))


class Scratch:
    """Memory that one batch after the other works in: fresh memory costs as much as the arithmetic on it."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def __call__(self, name: str, dtype: torch.dtype = torch.float32) -> Scratch.Place:
        def place(shape: Sequence[int]) -> Tensor:
            size = math.prod(shape)
            if name not in self._kept or self._kept[name].numel() < size:
                self._kept[name] = torch.empty(size, dtype=dtype)
            return self._kept[name][:size].view(*shape)

        return place

    Place = Callable[[Sequence[int]], Tensor]


class _Shares:
    """Weights (q, b, n) handed out in the order of the features."""

    def __init__(self, weights: Tensor) -> None:
        self.weights, self.taken = weights.transpose(1, 2), 0

    def take(self, shape: torch.Size) -> Tensor:
        """(q, *shape, b)"""
        size = math.prod(shape)
        part = self.weights[:, self.taken : self.taken + size]
        self.taken += size
        return part.reshape(len(part), *shape, part.shape[2])


def series_and_change(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The series (b, c, t) and its first difference, 0 at the start; both 0 behind the end."""
    series = x if mask is None else x * mask[:, None, :]
    change = F.pad(series[:, :, 1:] - series[:, :, :-1], (1, 0))
    return series, change if mask is None else change * mask[:, None, :]


def _windows(x: Tensor, part: Part) -> Tensor:
    """(b, c, t) -> (v, 9, b * t): what the nine taps of a kernel see at each time point; 0 beyond the ends."""
    views = torch.einsum("bct,vc->vbt", x, part.mixture) if x.shape[1] > 1 else x.transpose(0, 1)
    reach = TAPS // 2 * part.dilation
    padded = F.pad(views, (reach, reach))
    taps = [padded[:, :, tap * part.dilation :][:, :, : x.shape[2]] for tap in range(TAPS)]
    return torch.stack(taps, dim=1).flatten(2)


def _convolved(kernels: Tensor, windows: Tensor, place: Scratch.Place) -> Tensor:
    """(v, k, 9) and (v, 9, n) -> (v, k, n)."""
    return torch.matmul(kernels, windows, out=place((*kernels.shape[:2], windows.shape[2])))


def _rivals(part: Part, windows: Tensor, n_cases: int, scratch: Scratch) -> Tensor:
    """(v, g, 8, b, t): responses of the kernels that compete."""
    kernels = part.rivals.view(len(part.rivals), RIVALS, -1, TAPS).transpose(1, 2)
    response = _convolved(kernels.flatten(1, 2), windows, scratch("rivals"))
    return response.view(*kernels.shape[:3], n_cases, -1)


class Winners(NamedTuple):
    """Which of the eight kernels of a group wins, and what that counts."""

    number: Tensor
    """(v, g, ..., t) whole numbers"""
    worth: Tensor
    """(v, g, ..., t)"""


def rival_winners(response: Tensor, inside: Tensor | None) -> Iterator[Winners]:
    """Of responses (v, g, 8, ..., t), which it uses up: the highest, which count as they are, and the lowest, each 1.

    Where the series is flat, nothing but rounding would decide: there it counts 0.
    """
    form = (*response.shape[:2], *response.shape[3:])
    # to a pool the eight are lines of an image, and time points its channels; it finds height and place in one pass
    image = response.reshape(-1, RIVALS, 1, math.prod(form[2:])).permute(0, 3, 1, 2)
    for highest in (True, False):
        if not highest:
            image.neg_()
        height, number = F.max_pool2d(image, (RIVALS, 1), return_indices=True)
        worth = height.view(form)
        worth = torch.threshold_(worth, ROUNDING, 0.0) if highest else torch.gt(worth, ROUNDING, out=worth)
        yield Winners(number.view(form), worth if inside is None else worth.mul_(inside))


def _counts(part: Part, windows: Tensor, inside: Tensor | None, lengths: Tensor, scratch: Scratch) -> Tensor:
    """(n, b): how strongly each rival wins per time point, and then how often it is the lowest."""
    response = _rivals(part, windows, len(lengths), scratch)
    sums = response.new_zeros(2, *response.shape[:2], len(lengths), RIVALS)
    for each, winners in zip(sums, rival_winners(response, inside), strict=True):
        each.scatter_add_(-1, *winners)
    return (sums.permute(0, 1, 4, 2, 3) / lengths).flatten(0, -2)


def _statistics(response: Tensor, biases: Tensor, inside: Tensor | None, lengths: Tensor, scratch: Scratch) -> Tensor:
    """(n, 4, v, k, b) of responses (v, k, b, t) above biases (n, v, k): proportion, mean, place and longest stretch.

    The mean is that of what exceeds the bias; the place that of the responses above it, from -0.5 at the start of
    the series to 0.5 at its end; both are 0 where none is.
    """
    n_timepoints = response.shape[-1]
    found = response.new_empty(len(biases), N_STATISTICS, *response.shape[:-1])
    bits = np.zeros((len(biases), *response.shape[:-1], _n_words(n_timepoints) * WORD // 8), np.uint8)
    over = scratch("over")(response.shape)
    for bias, own, packed in zip(biases, found, bits, strict=True):
        torch.sub(response, bias[:, :, None, None], out=over)
        if inside is not None:
            over *= inside
        packed[..., : -(-n_timepoints // 8)] = np.packbits(over.numpy() > 0.0, axis=-1, bitorder="little")
        torch.sum(over.clamp_min_(0.0), dim=-1, out=own[1])
    count, place, longest = (torch.from_numpy(each) for each in _ones(bits))
    some = count.clamp_min(1.0)
    found[:, 0] = count / lengths
    found[:, 1] /= some
    found[:, 2] = torch.where(count > 0.0, (place / some + 0.5) / lengths - 0.5, 0.0)
    found[:, 3] = longest / lengths
    return found


def _local_sums(
    response: Tensor, bias: Tensor, weights: Tensor, inside: Tensor | None, lengths: Tensor, scratch: Scratch
) -> Tensor:
    """(q, v, b, t): what each time point adds to `_statistics` together, with weights (q, 4, v, k, b)."""
    over, above = _above(response, bias, inside, scratch)
    place = _places(response.shape[-1], inside, lengths)
    some = above.sum(dim=-1).clamp_min(1.0)
    proportion, mean, centre, stretch = weights.unbind(dim=1)
    runs = _run_lengths(above, scratch)
    longest = runs.amax(dim=-1)
    steps = torch.arange(1, runs.shape[-1] + 1, dtype=runs.dtype)
    ends = torch.eq(runs, longest[..., None], out=scratch("ends", runs.dtype)(runs.shape)).mul_(steps)
    last = ends.amax(dim=-1).long()  # of several equal ones the latest
    share = (stretch / lengths).double().transpose(2, 3)  # (q, v, b, k), from the first time point of it to the last
    steep = share.new_zeros(*share.shape[:3], runs.shape[-1] + 1)
    for edge, sign in ((last - longest, 1.0), (last, -1.0)):
        steep.scatter_add_(3, edge.transpose(1, 2).expand_as(share), sign * share)
    found = steep.cumsum(dim=3)[..., :-1]
    found += _weighed(above, proportion / lengths)
    found += _weighed(above, centre / some) * place
    found += _weighed(over.mul_(above), mean / some)
    return found


def _weighed(values: Tensor, weights: Tensor) -> Tensor:
    """Values (v, k, b, t) summed over kernels with weights (q, v, k, b) -> (q, v, b, t)."""
    return torch.matmul(weights.permute(1, 3, 0, 2), values.transpose(1, 2)).permute(2, 0, 1, 3)


def _above(response: Tensor, bias: Tensor, inside: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
    """Responses (v, k, b, t) less the bias (v, k), and 1 where that is positive and inside."""
    over = torch.sub(response, bias[:, :, None, None], out=scratch("over")(response.shape))
    above = torch.gt(over, 0.0, out=scratch("above")(response.shape))
    if inside is not None:
        above *= inside
    return over, above


def _places(n_timepoints: int, inside: Tensor | None, lengths: Tensor) -> Tensor:
    """(b, t), or (1, t) where nothing is outside: places from -0.5 to 0.5."""
    own = lengths[:1] if inside is None else lengths
    return (torch.arange(n_timepoints) + 0.5) / own[:, None] - 0.5


class _Ones(NamedTuple):
    """What is known of the ones among bits, the lowest bit first."""

    number: NDArray[np.float32]
    place: NDArray[np.float32]
    """The sum of their places."""
    longest: NDArray[np.integer[Any]]
    """The most in a row."""


@cache
def _words() -> tuple[_Ones, NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """Of every word its ones, with how many of them it begins, and with how many it ends."""
    count, place, longest, first, last = np.zeros((5, 2**WORD), np.int16)
    for bit in range(WORD):
        one = (np.arange(2**WORD) >> bit & 1).astype(np.int16)
        count += one
        place += bit * one
        last[:] = (last + 1) * one
        first += last == bit + 1
        np.maximum(longest, last, out=longest)
    return _Ones(count.astype(np.float32), place.astype(np.float32), longest), first, last


def _n_words(n_timepoints: int) -> int:
    """How many words hold the bits of a series: a power of two."""
    return 1 << (-(-n_timepoints // WORD) - 1).bit_length()


def _ones(bits: NDArray[np.uint8]) -> _Ones:
    """(..., bytes) of bits in `_n_words` words -> (...) of all their ones.

    Words are joined, two and two: a run is in the one, in the other, or ends the one and begins the other.
    """
    words = bits.view(f"<u{WORD // 8}")
    words = words.reshape(-1, words.shape[-1]).T.astype(np.intp, order="C")  # (words, ...)
    of_words, *edges = _words()
    count, place, longest = (table.take(words) for table in of_words)
    first, last = (table.take(words) for table in edges)
    if bits.shape[-1] * 8 >= 2**15:  # more than small numbers hold
        longest, first, last = (each.astype(np.int32) for each in (longest, first, last))
    place = place.sum(axis=0) + np.arange(0, len(words) * WORD, WORD, dtype=np.float32) @ count
    size = WORD
    while len(longest) > 1:
        longest = np.maximum(np.maximum(longest[::2], longest[1::2]), last[::2] + first[1::2])
        first = first[::2] + (first[::2] == size) * first[1::2]
        last = last[1::2] + (last[1::2] == size) * last[::2]
        size *= 2
    return _Ones(*(each.reshape(bits.shape[:-1]) for each in (count.sum(axis=0), place, longest[0])))


def _run_lengths(above: Tensor, scratch: Scratch) -> Tensor:
    """(..., t) of ones and zeros -> how many ones in a row end at each time point, as whole numbers.

    The last zero before each time point is a running maximum, found by doubling: each pass looks twice as far.
    """
    n = above.shape[-1]
    small = torch.int16 if n < 2**15 else torch.int32  # half the memory, half the time
    steps = torch.arange(1, n + 1, dtype=small)
    last = scratch("last", small)(above.shape).copy_(above).sub_(1).mul_(-steps)
    other = scratch("other", small)(above.shape)
    reach = 1
    while reach < n:
        other[..., :reach] = last[..., :reach]
        torch.maximum(last[..., reach:], last[..., :-reach], out=other[..., reach:])
        last, other = other, last
        reach *= 2
    return torch.sub(steps, last, out=other)


def _spread(local: Tensor, part: Part, seen: Tensor) -> Tensor:
    """(q, v, b, t) at the middle of kernels -> (q, b, c, t) on the values (b, c, t) that they have seen.

    Of the values under a kernel's taps each gets a share as large as it is: how far from the training mean, 0.
    """
    t = local.shape[3]
    reach = TAPS // 2 * part.dilation
    taps = [slice(tap * part.dilation, tap * part.dilation + t) for tap in range(TAPS)]
    mixture = part.mixture.to(local.dtype)
    size = seen.abs().to(local.dtype)
    padded = F.pad(torch.einsum("bct,vc->vbt", size, mixture), (reach, reach))
    local = local / torch.stack([padded[..., tap] for tap in taps]).sum(dim=0).clamp_min(1e-30)
    spread = local.new_zeros(*local.shape[:3], t + 2 * reach)
    for tap in taps:
        spread[..., tap] += local
    found = torch.einsum("qvbt,vc->qbct", spread[..., reach : reach + t], mixture) * size
    if part.difference and t > 1:  # half of a difference is the value before it
        half = found[..., 1:] / 2.0
        found[..., 1:] -= half
        found[..., :-1] += half
    return found


def _part(
    generator: torch.Generator, n_channels: int, n_views: int, n_groups: int, *, difference: bool, dilation: int
) -> Part:
    rivals = torch.randn(n_views, RIVALS * n_groups, TAPS, generator=generator)
    rivals -= rivals.mean(dim=2, keepdim=True)
    rivals /= rivals.abs().sum(dim=2, keepdim=True)
    kernels = two_valued_kernels()
    if n_channels == 1:
        return Part(difference, dilation, torch.ones(1, 1), rivals, kernels[None])
    order = torch.cat([torch.randperm(len(kernels), generator=generator) for _ in range(2)])[:N_SHARED]
    pooled = kernels[order].view(n_views, -1, TAPS)
    return Part(difference, dilation, _mixtures(generator, n_views, n_channels), rivals, pooled)


def _mixtures(generator: torch.Generator, n_views: int, n_channels: int) -> Tensor:
    """(v, n_channels): few channels more often than many, nine at most, of the same power together."""
    mixture = torch.zeros(n_views, n_channels)
    for row in mixture:
        size = int(2.0 ** (float(torch.rand(1, generator=generator)) * math.log2(min(n_channels, TAPS) + 1)))
        row[torch.randperm(n_channels, generator=generator)[:size]] = size**-0.5
    return mixture


def two_valued_kernels() -> Tensor:
    """(84, 9): every kernel with three weights of 2 and six of -1."""
    chosen: Sequence[tuple[int, ...]] = list(combinations(range(TAPS), 3))
    kernels = torch.full((len(chosen), TAPS), -1.0)
    for row, taps in zip(kernels, chosen, strict=True):
        row[list(taps)] = 2.0
    return kernels


def lengths_of(x: Tensor, mask: Tensor | None) -> Tensor:
    """(b,) time points inside each series."""
    return torch.full((len(x),), float(x.shape[2])) if mask is None else mask.sum(dim=1).to(x.dtype)
