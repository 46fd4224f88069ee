"""album(): all figures of a model and some cases, one after the other; what cannot be drawn says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet
from pdftime.errors import ConfigError, DataError
from pdftime.explain.evidence import explain
from pdftime.explain.explanation import Explanation, Floats
from pdftime.explain.figures.checks import draw_curves
from pdftime.explain.figures.evolution import draw_evolution, evolution_plane
from pdftime.explain.figures.matches import draw_matches, draw_score_sheet, top_matches
from pdftime.explain.figures.prototypes import (
    assign_members,
    deciding_entries,
    draw_cosines,
    draw_gallery,
    draw_members,
    n_pages,
)
from pdftime.explain.figures.series import draw_heat_map, draw_series, draw_spectrum
from pdftime.explain.figures.space import METHODS, draw_space, flatten
from pdftime.explain.figures.stability import draw_matched, draw_stability, match_prototypes, profiles_of
from pdftime.explain.figures.style import COLUMN, name_of
from pdftime.explain.gallery import ModelExplanation, explain_model
from pdftime.fitted import FittedModel
from pdftime.model.prototypes import PrototypeHead

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named: TypeAlias = "Iterator[tuple[str, Figure]]"
"""Figures, each with what its name ends in."""
MAX_POINTS = 1500
"""Cases on a map of the space; of more, so many are taken at even distances."""


class Picture(NamedTuple):
    """A figure with a name that can be a file's, or the reason why there is none."""

    kind: str
    name: str
    figure: Figure | None
    reason: str = ""


@dataclass(frozen=True)
class Material:
    """What figures are made of."""

    model: FittedModel
    cases: SeriesSet
    codes: NDArray[np.int64]
    """(n_cases,) the place of each case's label among the model's classes, -1 where it is not known."""
    others: Sequence[FittedModel] = ()
    """Models of the same problem to compare with: another head, or other seeds."""
    width: float = COLUMN

    def __post_init__(self) -> None:
        for other in self.others:
            if other.classes.tolist() != self.model.classes.tolist():
                raise DataError(
                    f"A model to compare with has the classes {other.classes.tolist()!r:.200}; expected those of "
                    f"the first, {self.model.classes.tolist()!r:.200}."
                )

    @property
    def classes(self) -> list[Any]:
        labels: list[Any] = self.model.classes.tolist()
        return labels

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """(n_cases,) the class of each case: by its label, or by prediction where no case has a known label."""
        return self.codes if (self.codes >= 0).any() else self.model.probabilities(self.cases).argmax(axis=1)

    @cached_property
    def view(self) -> ModelExplanation:
        return explain_model(self.model)

    @cached_property
    def training(self) -> dict[int, NDArray[Any]]:
        return kept_series(self.model)


class NotDrawnError(Exception):
    """A figure has no sense for this model; the message says why."""


def kept_series(model: FittedModel) -> dict[int, NDArray[Any]]:
    """The training series that a model keeps, by their places in the training data."""
    if model.exemplars is None:
        return {}
    return {int(n): model.exemplars.cases.series(place) for place, n in enumerate(model.exemplars.numbers)}


def album(material: Material, kinds: Sequence[str], places: Sequence[int] = (0,)) -> Iterator[Picture]:
    """Figures of these kinds: those of cases for the cases at these places, then those of the model.

    All kinds are in `KINDS`. A figure that has no sense for the model comes as a reason instead.
    """
    strange = [kind for kind in kinds if kind not in KINDS]
    if strange:
        raise ConfigError(f"{strange[0]!r} is no kind of figure; expected some of {', '.join(KINDS)}.")
    outside = [place for place in places if not 0 <= place < len(material.cases)]
    if outside:
        raise DataError(f"Case {outside[0]} is not there; expected 0 to {len(material.cases) - 1}.")
    return _pictures(material, [kind for kind in KINDS if kind in kinds], places)


def _pictures(material: Material, wanted: Sequence[str], places: Sequence[int]) -> Iterator[Picture]:
    of_cases = [kind for kind in wanted if kind in CASE_KINDS]
    for place in places if of_cases else ():
        (explanation,) = explain(material.model, material.cases.take(slice(place, place + 1)))
        for kind in of_cases:
            yield from _tried(kind, _one(CASE_KINDS[kind], material, explanation), f"case-{place}-")
    for kind in wanted:
        if kind in MODEL_KINDS:
            yield from _tried(kind, MODEL_KINDS[kind](material))


def _one(draw: Callable[[Material, Explanation], Figure], material: Material, explanation: Explanation) -> Named:
    yield "", draw(material, explanation)


def _tried(kind: str, figures: Named, before: str = "") -> Iterator[Picture]:
    try:
        for suffix, figure in figures:
            yield Picture(kind, f"{before}{kind}{suffix}", figure)
    except NotDrawnError as reason:
        yield Picture(kind, f"{before}{kind}", None, str(reason))


# Of a case


def _series(material: Material, explanation: Explanation) -> Figure:
    return draw_series(explanation, width=material.width)


def _why_not(material: Material, explanation: Explanation) -> Figure:
    return draw_series(explanation, explanation.why_not, width=material.width)


def _heat_map(material: Material, explanation: Explanation) -> Figure:
    return draw_heat_map(explanation, width=material.width)


def _spectrum(material: Material, explanation: Explanation) -> Figure:
    return draw_spectrum(explanation, width=material.width)


def _matches(material: Material, explanation: Explanation) -> Figure:
    _need_prototypes(material.model)
    n = 3
    maps = [explanation.prototype_map(match) for match in top_matches(explanation, n)]
    stretch = material.model.settings.prepare.lengths == "resample"
    return draw_matches(
        explanation, material.training, n_prototypes=n, maps=maps, stretch=stretch, width=material.width
    )


def _scores(material: Material, explanation: Explanation) -> Figure:
    return draw_score_sheet(explanation, width=material.width)


def _checks(material: Material, explanation: Explanation) -> Figure:
    return draw_curves(explanation.check(), explanation.target.label, width=material.width)


# Of the model


def _gallery(material: Material) -> Named:
    _need_prototypes(material.model)
    pages = n_pages(material.view)
    for page in range(pages):
        figure = draw_gallery(material.view, material.training, page=page, width=material.width)
        yield (f"-{page + 1}" if pages > 1 else ""), figure


def _cosines(material: Material) -> Named:
    _need_prototypes(material.model)
    for level in material.view.levels:
        if level.member == 0:
            yield f"-level-{level.level + 1}", draw_cosines(level, material.view.classes, width=material.width)


def _members(material: Material) -> Named:
    """Prototypes of each class against the cases of that class."""
    _need_prototypes(material.model)
    (z,), (prototypes,) = _spaces(material.model, material.cases, n_members=1)
    numbers = assign_members(z, material.groups, prototypes)
    for code, label in enumerate(material.classes):
        company = {
            entry.number: [
                material.cases.series(int(place))
                for place in np.flatnonzero((material.groups == code) & (numbers == entry.number))
            ]
            for entry in deciding_entries(material.view)
        }
        figure = draw_members(material.view, material.training, company, label, width=material.width)
        yield f"-{code}-{_as_name(label)}", figure


def _evolution(material: Material) -> Named:
    _need_prototypes(material.model)
    kept = [each for each in material.view.evolution if each.member == 0 and len(each.epochs) > 1]
    if not kept:
        raise NotDrawnError("the model was fitted without keep_prototypes, so how its prototypes moved is not known")
    last = max(kept, key=lambda each: each.level)
    yield "", draw_evolution(last, evolution_plane(last), material.view.classes, width=material.width)


def _space(material: Material) -> Named:
    """Embeddings of the first network of every model, by each method."""
    step = -(-len(material.cases) // MAX_POINTS)
    cases, groups = material.cases.take(slice(None, None, step)), material.groups[::step]
    models = [material.model, *material.others]
    parts = [_spaces(each, cases, n_members=1) for each in models]
    heads = [f"{'prototype' if _has_prototypes(each) else 'linear'} head" for each in models]
    alike = len(set(heads)) < len(heads)
    titles = [f"{head}, model {place + 1}" if alike else head for place, head in enumerate(heads)]
    wide = material.width if len(models) == 1 else max(material.width, COLUMN * 2)
    for method in METHODS:
        maps = [flatten(z, prototypes, method) for (z,), (prototypes,) in parts]
        yield f"-{method}", draw_space(maps, groups, material.classes, titles, width=wide)


def _stability(material: Material) -> Named:
    """All networks of all models as runs."""
    models = [each for each in (material.model, *material.others) if _has_prototypes(each)]
    spaces = [_spaces(each, material.cases) for each in models]
    embeddings = [z for zs, _ in spaces for z in zs]
    prototypes = [own for _, some in spaces for own in some]
    if len(embeddings) < 2:
        raise NotDrawnError("it needs several runs: a model of several members, or others to compare with")
    counts = np.bincount(material.groups[material.groups >= 0], minlength=len(material.classes))
    if counts.min() < 2:
        raise NotDrawnError(
            f"it needs two cases of every class, and {name_of(material.classes[int(counts.argmin())])} has fewer"
        )
    stability = match_prototypes(profiles_of(embeddings, prototypes), material.groups)
    yield "", draw_stability(stability, material.classes, width=material.width)
    near = [(each, member) for each in models for member in range(len(each.members))]
    for code, label in enumerate(material.classes):
        series = {
            (run, number): _behind(model, member, code, number)
            for run, (model, member) in enumerate(near)
            for number in range(prototypes[run].shape[1])
        }
        figure = draw_matched(stability, material.classes, label, series, width=material.width)
        yield f"-{code}-{_as_name(label)}", figure


def _behind(model: FittedModel, member: int, code: int, number: int) -> list[NDArray[Any]]:
    """The training series nearest to a prototype of the deciding level, each once."""
    assert model.exemplars is not None  # it has prototypes
    places = model.exemplars.nearest[member][-1].position[code, number]
    return [model.exemplars.cases.series(place) for place in dict.fromkeys(places.tolist())]


def _spaces(model: FittedModel, cases: SeriesSet, n_members: int | None = None) -> tuple[list[Floats], list[Floats]]:
    """Per member the embeddings (n_cases, d) and the deciding prototypes (n_classes, k, d); k is 0 without any."""
    z = model.split_by_member(np.asarray(model.embeddings(cases), np.float64))
    prototypes = []
    for member in model.members[:n_members]:
        head = member.network.head
        if isinstance(head, PrototypeHead):
            prototypes.append(head.levels[-1].detach().double().numpy())
        else:
            prototypes.append(np.zeros((len(model.classes), 0, member.network.d_model)))
    return z[: len(prototypes)], prototypes


def _has_prototypes(model: FittedModel) -> bool:
    return model.exemplars is not None


def _need_prototypes(model: FittedModel) -> None:
    if not _has_prototypes(model):
        raise NotDrawnError("the model has a linear head and no prototypes")


def _as_name(label: Any) -> str:
    """A label as part of a file's name.

    >>> _as_name("a/b c"), _as_name("...")
    ('a-b-c', 'class')
    """
    return re.sub(r"[^\w-]+", "-", name_of(label), flags=re.ASCII)[:30].strip("-") or "class"


CASE_KINDS: dict[str, Callable[[Material, Explanation], Figure]] = {
    "series": _series,
    "why-not": _why_not,
    "heat-map": _heat_map,
    "spectrum": _spectrum,
    "matches": _matches,
    "scores": _scores,
    "checks": _checks,
}
"""Figures of one case."""
MODEL_KINDS: dict[str, Callable[[Material], Named]] = {
    "gallery": _gallery,
    "cosines": _cosines,
    "members": _members,
    "evolution": _evolution,
    "space": _space,
    "stability": _stability,
}
"""Figures of the model as a whole."""
KINDS = (*CASE_KINDS, *MODEL_KINDS)
