"""check(): an explanation put to the test. What happens when what it names is taken away, or chance decides?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.data.batches import generator_for, seed_for
from pdftime.explain.deletion import SHARES, probability_of, without
from pdftime.explain.explanation import Check, Checks, Curve, Explanation, Floats
from pdftime.explain.maps import EXACT, baseline_of, on_own_axis, score_maps
from pdftime.explain.untrained import untrained
from pdftime.fitted import FittedModel

N_ORDERS = 3
N_STEPS, N_CONTEXTS = 10, 4  # of maps that are compared with one another
NOISE = 0.05  # of each channel's standard deviation

ADDITIVITY, COMPLETENESS, UNTRAINED, STABILITY = 1e-5, 0.01, 0.5, 0.8


class _Prepared(NamedTuple):
    """The series of an explanation as its model sees it."""

    x: Tensor
    """(1, c, t)"""
    mask: Tensor | None
    baseline: Tensor
    inside: NDArray[np.bool_]
    """(t,)"""


class _Compared(NamedTuple):
    """Brief maps (c, t) of one series: by a model that has learned nothing, by its own, and with a little noise."""

    foreign: Floats
    calm: Floats
    noisy: Floats


def check(explanation: Explanation) -> Checks:
    """Every check of one explanation; always the same for the same explanation."""
    return check_together([explanation])[0]


def check_together(explanations: Sequence[Explanation]) -> list[Checks]:
    """The checks of explanations by one model; maps of several series together cost less than one after the other."""
    prepared = [_prepared(each) for each in explanations]
    compared: dict[int, _Compared] = {}
    for exact in (True, False):
        rows = [row for row, each in enumerate(explanations) if (each.where.method == EXACT) == exact]
        if rows:
            own = [explanations[row] for row in rows]
            compared |= zip(rows, _compared(own, [prepared[row] for row in rows], exact), strict=True)
    return [_check(each, prepared[row], compared[row]) for row, each in enumerate(explanations)]


def _prepared(explanation: Explanation) -> _Prepared:
    model = explanation.source.model
    ((_, x, mask),) = model.batches(explanation.source.case)
    inside = np.ones(x.shape[2], bool) if mask is None else mask[0].numpy()
    return _Prepared(x, mask, baseline_of(model, x, mask)[0], inside)


def _compared(explanations: list[Explanation], prepared: list[_Prepared], exact: bool) -> list[_Compared]:
    model = explanations[0].source.model
    brief = partial(score_maps, n_steps=N_STEPS, n_contexts=N_CONTEXTS, exact=exact)
    x, baseline = (torch.cat(each) for each in zip(*((one.x, one.baseline) for one in prepared), strict=True))
    masks = [one.mask for one in prepared if one.mask is not None]
    mask = torch.cat(masks) if masks else None
    target = torch.tensor([each.source.target for each in explanations])
    foreign, calm = brief([untrained(model), model], x, mask, baseline, target)
    (noisy,) = brief([model], torch.cat([_with_noise(one.x, one.inside) for one in prepared]), mask, baseline, target)
    return [_Compared(*each) for each in zip(foreign, calm, noisy, strict=True)]


def _check(explanation: Explanation, prepared: _Prepared, compared: _Compared) -> Checks:
    source, inside = explanation.source, prepared.inside
    values = on_prepared_axis(explanation.where.values, inside)
    deletion, insertion = curves(source.model, *prepared[:3], values, source.target)
    rest = deletion.by_map[0] - insertion.by_map  # what is lost if only so much is kept
    random_rest = deletion.by_map[0] - insertion.by_chance
    lost, random_lost = deletion.by_map[0] - deletion.by_map, deletion.by_map[0] - deletion.by_chance
    checks = [
        Check("additivity error", explanation.tokens.additivity_error, ADDITIVITY, False, MEANINGS["additivity"]),
        Check("completeness gap", explanation.where.completeness_gap, COMPLETENESS, False, MEANINGS["completeness"]),
        Check(
            "completeness gap of the margin",
            explanation.why_not.completeness_gap,
            COMPLETENESS,
            False,
            MEANINGS["completeness"],
        ),
    ]
    for place in (1, 2):
        at, bar = f"at {SHARES[place]:.0%}", float(random_lost[:, place].mean())
        checks.append(Check(f"comprehensiveness {at}", float(lost[place]), bar, True, MEANINGS["comprehensiveness"]))
    for place in (1, 2):
        at, bar = f"at {SHARES[place]:.0%}", float(random_rest[:, place].mean())
        checks.append(Check(f"sufficiency {at}", float(rest[place]), bar, False, MEANINGS["sufficiency"]))
    chance = float(random_lost[:, 1:-1].mean())
    checks.append(Check("AOPC", float(lost[1:-1].mean()), chance, True, MEANINGS["AOPC"]))
    checks.append(
        Check(
            "likeness to an untrained network",
            rank_correlation(np.abs(values[:, inside]), np.abs(compared.foreign[:, inside])),
            UNTRAINED,
            False,
            MEANINGS["untrained"],
        )
    )
    checks.append(
        Check(
            "stability",
            correlation(compared.calm[:, inside], compared.noisy[:, inside]),
            STABILITY,
            True,
            MEANINGS["stability"],
        )
    )
    failed = tuple(_in_words(each) for each in checks if not each.passed)
    return Checks(tuple(checks), deletion, insertion, (*failed, *explanation.warnings))


MEANINGS = {
    "additivity": "How far token evidence is from adding up to the score.",
    "completeness": "How far the map is from adding up to what the series adds to the baseline, as a share.",
    "comprehensiveness": "What the probability loses when the part that the map ranks first is replaced by the "
    "baseline; the bar is what random parts of that size do.",
    "sufficiency": "What the probability loses when only the part that the map ranks first is kept; the bar is "
    "what random parts of that size do.",
    "AOPC": "What the probability loses on average while more and more is replaced, in the order of the map; the "
    "bar is what random orders do.",
    "untrained": "Rank correlation of the map's sizes with those of a network that has learned nothing.",
    "stability": "Correlation of the map with that of the same series under small noise.",
}


def curves(
    model: FittedModel, x: Tensor, mask: Tensor | None, baseline: Tensor, values: Floats, target: int
) -> tuple[Curve, Curve]:
    """Deletion and insertion of one series (1, c, t) in the order of `values` (c, t), beside random orders."""
    inside = np.ones(values.shape, bool) if mask is None else np.broadcast_to(mask[0].numpy(), values.shape)
    rng = np.random.default_rng(seed_for("checks", "orders", values.size))
    orders = [values, *(rng.random(values.shape) for _ in range(N_ORDERS))]
    kept = [without(each, inside) for each in orders] + [~without(values, inside)]
    everything = np.ones((1, *values.shape), bool)
    keep = torch.from_numpy(np.concatenate([everything, ~everything, *kept]))
    found = probability_of(model, torch.where(keep, x, baseline), mask, target)
    whole, nothing, rows = found[0], found[1], found[2:].reshape(len(kept), -1)
    deleted = np.pad(rows[:-1], ((0, 0), (1, 1)), constant_values=((0, 0), (whole, nothing)))
    inserted = np.pad(rows[-1], 1, constant_values=(nothing, whole))
    # what is left when a random order has lost a share s is a random part of size 1 - s
    return Curve(SHARES, deleted[0], deleted[1:]), Curve(SHARES, inserted, deleted[1:, ::-1])


def on_prepared_axis(values: Floats, inside: NDArray[np.bool_]) -> Floats:
    """A map on its own axis brought to where the network sees it."""
    if inside.all():
        return on_own_axis(values, len(inside), padded=False)
    return np.pad(values, ((0, 0), (0, len(inside) - values.shape[1])))


def _with_noise(x: Tensor, inside: NDArray[np.bool_]) -> Tensor:
    """The series (1, c, t) with a little white noise, always the same."""
    spread = x[:, :, torch.from_numpy(inside)].std(dim=2, keepdim=True, correction=0)
    noise = torch.randn(x.shape, generator=generator_for("checks", "noise"))
    return x + NOISE * spread * noise * torch.from_numpy(inside)


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's: the correlation of ranks; equal values share a rank.

    >>> import numpy as np
    >>> rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([0.0, 5.0, 6.0]))
    1.0
    """
    return correlation(_shared_ranks(one), _shared_ranks(other))


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's; 0 where one of them is constant."""
    a, b = (each.ravel() - each.mean() for each in (one, other))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(np.clip(a @ b / size, -1.0, 1.0)) if size > 1e-300 else 0.0


def _shared_ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = (last - (counts - 1) / 2.0)[place.ravel()]
    return ranks


def _in_words(check: Check) -> str:
    """What a failed check means for the reader."""
    return f"{SENTENCES[check.name.partition(' at ')[0]]} ({check.name} is {check.value:.2g}, bar {check.bar:.2g})."


SENTENCES = {
    "additivity error": "Token evidence does not quite add up to the score",
    "completeness gap": "The map of the score does not quite add up",
    "completeness gap of the margin": "The map of the margin does not quite add up",
    "comprehensiveness": "Taking away what the map names changes the prediction no more than chance does",
    "sufficiency": "What the map names does not make the prediction better than random parts of the series do",
    "AOPC": "Taken away in the order of the map, the series keeps its class as long as in random orders",
    "likeness to an untrained network": "The map resembles that of a network that has learned nothing",
    "stability": "A little noise on the series changes the map",
}
