"""Explanation: the evidence for one prediction, as numbers; every claim with what is needed to check it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet
from pdftime.data.times import span_text, time_text
from pdftime.fitted import FittedModel

Floats = NDArray[np.float64]
LEAST = 1e-12  # probability that counts as such where logarithms are compared


@dataclass(frozen=True)
class Neighbour:
    """A training series near a prototype."""

    index: int
    """Its place in the training data; `FittedModel.training_series(index)` is the series itself."""
    label: Any
    similarity: float
    """Cosine to the prototype."""


@dataclass(frozen=True)
class PrototypeMatch:
    """One prototype and its part in the score of its class."""

    member: int
    """Which network of an ensemble; 0 where there is one."""
    level: int
    number: int
    """Its place among the prototypes of its class and level, from 0."""
    label: Any
    """The class it stands for."""
    similarity: float
    """Cosine of the case to the prototype, -1 to 1."""
    responsibility: float
    """Its share among the prototypes of the class; they sum to 1 within a member and level."""
    contribution: float
    """responsibility * similarity / T. Those of a level, with `entropy` of that level, sum to its score."""
    decides: bool
    """Whether its level is the last, the one that decides."""
    weight: float
    """What its member counts among the members."""
    usage: float | None
    """Share of the class's training series that are nearest to this one of the class's prototypes."""
    purity: float | None
    """Share of the ten training series nearest to it, of any class, that are of its class."""
    gap: float
    """1 - cosine between the prototype and the nearest training series of its class."""
    relative_gap: float | None
    """`gap` over the class's usual one, the median of 1 - cosine between a series and its nearest prototype."""
    neighbours: tuple[Neighbour, ...]
    """The nearest training series of its class, nearest first, at most five, each once."""
    wrong: Neighbour | None
    """The nearest training series of any other class. Like usage and purity, None in files of format 1."""


@dataclass(frozen=True, eq=False)
class Opinion:
    """What one member makes of the case."""

    view: str
    """'bank' or 'network'."""
    weight: float
    """Its share in the decision; those of all members sum to 1."""
    probabilities: Floats
    """(n_classes,) calibrated."""
    predicted: Any


@dataclass(frozen=True)
class ScoreSheet:
    """What the score of one class is made of: deciding contributions by weight of members, entropy and offset."""

    label: Any
    score: float
    """The deciding level's score, averaged over members by their weights."""
    probability: float
    """Calibrated, of all members together."""
    matches: tuple[PrototypeMatch, ...]
    """Prototypes of the class, of every member and level; none with a linear head."""
    entropy: float
    """H(r) of the deciding level, averaged over members: what several prototypes add by agreeing."""
    level_entropies: tuple[tuple[float, ...], ...]
    """H(r) per member and level."""
    offset: float
    """The bias of a linear head, or what masses of a bank's prototypes take away; averaged over members."""

    @property
    def deciding(self) -> tuple[PrototypeMatch, ...]:
        """The matches that decide, largest contribution first."""
        return tuple(sorted((m for m in self.matches if m.decides), key=lambda match: -match.contribution))

    @property
    def best_match(self) -> PrototypeMatch | None:
        """The deciding prototype with the largest weighted responsibility; None with a linear head."""
        return max(self.deciding, key=lambda match: match.weight * match.responsibility, default=None)


@dataclass(frozen=True, eq=False)
class TokenEvidence:
    """The exact split of the target's score over tokens, averaged over members."""

    values: Floats
    """(n_tokens,) what each token on the time axis adds to the score."""
    class_token: float
    """What the class token adds: with pooling='token' everything, and `values` are 0; otherwise 0."""
    rest: float
    """Entropy, offset and, of a bank, what a case with average features has: what is not split over tokens."""
    additivity_error: float
    """|sum of values + class_token + rest - score|, the score as the network computes it."""
    edges: Floats
    """(n_tokens + 1,) where tokens begin and end on the series' own axis, in time points."""
    locality: float
    """0 to 1: how much of a token's evidence depends on the series near the token, measured by occlusion."""
    drawable: bool
    """Whether `locality` is high enough to draw the values on the input axis."""

    def on_input_axis(self, length: int) -> Floats:
        """(length,) each token's evidence spread evenly over its time points; the sum stays."""
        running = np.concatenate([[0.0], self.values.cumsum()])
        return np.diff(np.interp(np.arange(length + 1), self.edges, running))


@dataclass(frozen=True)
class Segment:
    """A span of one channel that carries positive evidence."""

    channel: int
    channel_name: str
    start: int
    """First time point."""
    end: int
    """Last time point, inside the segment."""
    share: float
    """Its share of the map's positive mass."""


@dataclass(frozen=True, eq=False)
class AttributionMap:
    """What values of a series add to one quantity, on its own axis, members averaged; exactly 0 where padded.

    `method` says how they were found.
    """

    quantity: str
    """What is explained, in words: a score, a margin, a similarity."""
    values: Floats
    """(n_channels, its own length): what each value of the series adds to the quantity."""
    baseline: str
    """What the series is compared with, in words."""
    start: float
    """The quantity at the baseline."""
    stop: float
    """The quantity at the series; the values sum to stop - start but for the gap."""
    completeness_gap: float
    """|sum of values - (stop - start)| as a share of the largest of |start|, |stop|, |stop - start| and 1."""
    frequencies: Floats
    """(n_frequencies,) in cycles per time point of the series' own axis."""
    frequency_values: Floats
    """(n_channels, n_frequencies): the same sum split by frequency, through the frequency mask."""
    segments: tuple[Segment, ...]
    """Spans that together hold 80% of the positive mass, the largest share first."""
    neighbours: int = 1
    """Time points (of the unified length) that `values` are averaged over; sums per channel are as without."""
    method: str = "integrated gradients"
    """How it was found: 'integrated gradients' of a network, 'Shapley values' or 'exact evidence' of a bank; of both
    views together the first two with an 'and'."""

    @property
    def total(self) -> float:
        return float(self.values.sum())

    @property
    def by_time(self) -> Floats:
        """(its own length,), sums to the total."""
        marginal: Floats = self.values.sum(axis=0)
        return marginal

    @property
    def by_channel(self) -> Floats:
        """(n_channels,), sums to the total."""
        marginal: Floats = self.values.sum(axis=1)
        return marginal

    @property
    def by_frequency(self) -> Floats:
        """(n_frequencies,), sums to the total."""
        marginal: Floats = self.frequency_values.sum(axis=0)
        return marginal


@dataclass(frozen=True)
class Check:
    """One test of an explanation: what was measured, what was demanded, whether it holds."""

    name: str
    """A short name that stays the same, for tables: 'comprehensiveness at 10%'."""
    value: float
    bar: float
    at_least: bool
    """Whether the value must reach the bar; otherwise it must not exceed it."""
    meaning: str
    """What the value says, in a sentence."""

    @property
    def passed(self) -> bool:
        return bool(self.value >= self.bar if self.at_least else self.value <= self.bar)


@dataclass(frozen=True, eq=False)
class Curve:
    """The target's probability as more and more of the series is taken away (or given back)."""

    shares: Floats
    """(n,) shares of the series taken away (given back), 0 to 1."""
    by_map: Floats
    """(n,) probability, in the order of the map, what speaks most for the class first."""
    by_chance: Floats
    """(n_orders, n) probability, in random orders."""


@dataclass(frozen=True, eq=False)
class Checks:
    """Every check of one explanation."""

    checks: tuple[Check, ...]
    deletion: Curve
    """The series loses what the map ranks first."""
    insertion: Curve
    """The baseline gets what the map ranks first."""
    warnings: tuple[str, ...]
    """In plain words: what failed, and what the explanation itself warns of."""

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        return {check.name: check for check in self.checks}[name]


@dataclass(frozen=True)
class Source:
    """What an explanation was made of, kept so that it can be checked."""

    model: FittedModel
    case: SeriesSet
    """The one series."""
    target: int
    contrast: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one series is predicted as it is: what it looks like, where, why not another class, and the checks."""

    predicted: Any
    """The class with the highest probability."""
    runner_up: Any
    """The class with the second highest."""
    classes: tuple[Any, ...]
    """All classes, in the order of `scores` and `probabilities`."""
    scores: Floats
    """(n_classes,) averaged over members by their weights."""
    probabilities: Floats
    """(n_classes,) calibrated, from `scores`; the class of the highest is predicted."""
    opinions: tuple[Opinion, ...]
    """Of each member."""
    target: ScoreSheet
    """The class that is explained: the predicted one unless another was asked for."""
    contrast: ScoreSheet
    """The class it is compared with: the most probable other one unless another was asked for."""
    tokens: TokenEvidence
    where: AttributionMap
    """Of the target's score: where."""
    why_not: AttributionMap
    """Of the target's score less the contrast's: why not the other class."""
    series: Floats
    """(n_channels, its own length) as it came, NaN where a value is missing."""
    missing: NDArray[np.bool_]
    """(n_channels, its own length), true where a value is missing; a map is about the filled-in one there."""
    channel_names: tuple[str, ...]
    warnings: tuple[str, ...]
    """What should be known before believing it, in plain words; empty if nothing."""
    source: Source = field(repr=False)
    """For `check` and `prototype_map`; not part of `to_dict`."""
    times: NDArray[Any] | None = None
    """(its own length,) the time stamps that the series came with, float64 or datetime64; None without."""
    evidence: AttributionMap | None = None
    """Of a bank: its exact evidence for the target, from average features on, laid on the values that its kernels
    looked at: what speaks for the class. `where` is this map where the decision misses what it names more than what
    Shapley values name."""

    @property
    def input_map(self) -> Floats:
        """(n_channels, its own length): the values of `where`."""
        return self.where.values

    @property
    def margin_map(self) -> Floats:
        """(n_channels, its own length): the values of `why_not`."""
        return self.why_not.values

    @property
    def token_evidence(self) -> Floats:
        """(n_tokens,): the values of `tokens`."""
        return self.tokens.values

    @property
    def best_match(self) -> PrototypeMatch | None:
        """The target's deciding prototype with the largest responsibility; None with a linear head."""
        return self.target.best_match

    def span_of(self, segment: Segment) -> str | None:
        """A segment's time stamps in words, first to last; None where the series has none."""
        return None if self.times is None else span_text(self.times[segment.start], self.times[segment.end])

    @property
    def carried_by(self) -> str | None:
        """The view that did most to put the target above the contrast; None in a model of one view."""
        places = [self.classes.index(sheet.label) for sheet in (self.target, self.contrast)]
        leads: dict[str, float] = {}
        for opinion in self.opinions:
            target, contrast = np.log(np.maximum(opinion.probabilities[places], LEAST))
            lead = opinion.weight * float(target - contrast)
            leads[opinion.view] = leads.get(opinion.view, 0.0) + lead
        return max(leads, key=lambda view: leads[view]) if len(leads) > 1 else None

    def check(self) -> Checks:
        """Put the explanation to the test; costs about as much as the explanation, once."""
        return self._checks

    def keep_checks_(self, checks: Checks) -> None:
        """Checks that were found together with those of other explanations; `check` gives them from now on."""
        self.__dict__["_checks"] = checks

    @cached_property
    def _checks(self) -> Checks:
        from pdftime.explain.checks import check

        return check(self)

    def prototype_map(self, match: PrototypeMatch) -> AttributionMap:
        """Where the series resembles this prototype: a map of their cosine."""
        from pdftime.explain.maps import prototype_map

        return prototype_map(self.source, match, self.channel_names)

    def summary(self) -> str:
        """Three plain sentences: the decision, what it looks like, and where; one more if there are two views."""
        best, other = self.target, self.contrast
        decision = (
            f"This series is {self.predicted!r} with probability {self.probabilities.max():.2f}; "
            f"the runner-up is {self.runner_up!r} with {np.sort(self.probabilities)[-2]:.2f}."
        )
        if (best.label, other.label) != (self.predicted, self.runner_up):
            decision = (
                f"This series is {self.predicted!r}; what follows is why it could be {best.label!r}, probability "
                f"{best.probability:.2f}, rather than {other.label!r}, probability {other.probability:.2f}."
            )
        return " ".join([decision, *self._carried(), self._looks_like(), self._lies_in()])

    def _carried(self) -> list[str]:
        if self.carried_by is None:
            return []
        views: dict[str, Floats] = {}
        for opinion in self.opinions:
            views[opinion.view] = views.get(opinion.view, 0.0) + opinion.weight * opinion.probabilities
        agree = len({int(each.argmax()) for each in views.values()}) == 1
        other = "agrees" if agree else "does not agree"
        return [f"Of its two views, the {self.carried_by} carried the decision, and the other {other}."]

    def _looks_like(self) -> str:
        match = self.best_match
        if match is None:
            return "The model decides by a linear map, so there are no prototypes to compare it with."
        twins = ", ".join(str(neighbour.index) for neighbour in match.neighbours[:3])
        of = "its class" if match.label == self.predicted else repr(match.label)
        return (
            f"It matches prototype {match.number + 1} of {of} with similarity {match.similarity:.2f}, "
            f"behind which stand the training series {twins}."
        )

    def _lies_in(self) -> str:
        if not self.where.segments:
            return "No part of it speaks for the class more than the baseline does."
        first = self.where.segments[0]
        span = self.span_of(first)
        stamps = "" if span is None else f" ({span})"
        return (
            f"What speaks most for it lies between time points {first.start} and {first.end}{stamps} "
            f"of {first.channel_name}."
        )

    def to_dict(self, *, checks: bool = False) -> dict[str, Any]:
        """Plain data, ready for JSON: labels as text or numbers, None for NaN; with `checks`, those too.

        Dates are texts. With time stamps every segment has those of its ends as `start_time` and `end_time`.
        """
        state: dict[str, Any] = plain(self)
        del state["source"]
        if self.times is not None:
            for name in ("where", "why_not", "evidence"):
                for segment in (state[name] or {}).get("segments", ()):
                    segment["start_time"] = state["times"][segment["start"]]
                    segment["end_time"] = state["times"][segment["end"]]
        state["summary"] = self.summary()
        if checks:
            state["checks"] = plain(self.check())
        return state

    def to_json(self, *, checks: bool = False) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(checks=checks), allow_nan=False)


def plain(value: Any) -> Any:
    """Dataclasses, arrays and labels as what JSON knows."""
    if isinstance(value, Source):
        return None
    if isinstance(value, Check):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)} | {"passed": value.passed}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray):
        return [time_text(time) for time in value] if value.dtype.kind == "M" else plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
