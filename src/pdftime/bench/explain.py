"""Explanations put to the test: do maps find known moments, and does taking away what they name change decisions?"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdftime.bench.archives import Dataset
from pdftime.bench.explain_rows import Row
from pdftime.bench.localisation import Localisation, localisation
from pdftime.data.batches import seed_for
from pdftime.data.series import SeriesSet
from pdftime.data.synthetic import PROBLEMS, make_problem
from pdftime.errors import ConfigError
from pdftime.estimator import PDFTimeClassifier
from pdftime.explain.checks import on_prepared_axis
from pdftime.explain.deletion import probability_of, without
from pdftime.explain.evidence import explain
from pdftime.explain.explanation import Explanation
from pdftime.explain.gallery import explain_model
from pdftime.explain.maps import baseline_of, score_maps
from pdftime.explain.untrained import untrained
from pdftime.fitted import FittedModel

CAPTUM_STEPS = 50

Floats = NDArray[np.float64]


class Maps(NamedTuple):
    """Maps of several cases by name, (n, c, t) each, on the prepared axis, and what they are about."""

    values: dict[str, Floats]
    x: Tensor
    mask: Tensor | None
    baseline: Tensor
    target: NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """How models are fitted and how many cases are explained."""

    encoder: str = "attention"
    """Of the network; 'bank' for a bank of convolutions in its place."""
    seed: int = 0
    n_explained: int = 100
    n_cases: int | None = None
    """Training cases of a generated problem; None: as many as it has by itself."""
    max_time: float | None = None
    """Seconds for a fit."""
    models: Path | None = None
    """A folder where fitted models are kept, and taken from where they are there."""

    def fitted(self, name: str, cases: SeriesSet) -> PDFTimeClassifier:
        """A classifier for these cases, from the folder if it is there."""
        path = None if self.models is None else self.models / f"{name}-{self.encoder}-{self.seed}.pdftime"
        if path is not None and path.exists():
            return PDFTimeClassifier.load(path)
        kind = {"preset": "fast"} if self.encoder == "bank" else {"preset": "network", "encoder": self.encoder}
        classifier = PDFTimeClassifier(**kind, random_state=self.seed, max_time_s=self.max_time)  # type: ignore[arg-type]
        classifier.fit(cases, cases.y)
        if path is not None:
            classifier.save(path)
        return classifier


def known_moments(problem: str, plan: Plan) -> list[Row]:
    """Every map on one generated problem: fitted on its training cases, judged on fresh ones."""
    check_problem(problem)
    options = {} if plan.n_cases is None else {"n_cases": plan.n_cases}
    made = make_problem(problem, seed=plan.seed, **options)
    classifier = plan.fitted(problem, made.train)
    truth = made.fresh_moments
    usable = np.flatnonzero(truth.any(axis=(1, 2)) & ~truth.all(axis=(1, 2)))[: plan.n_explained]
    maps, explanations = all_maps(classifier.model_, made.fresh.take(usable), plan.seed)
    common = _common(plan, classifier, made.fresh, explanations)
    rows = []
    for name, values in maps.values.items():
        each = [localisation(value, true) for value, true in zip(values, truth[usable], strict=True)]
        means = Localisation(*np.mean(each, axis=0).tolist())
        rows.append(Row(data=problem, kind="moments", map=name, **common, **means._asdict()))
    return rows


def check_problem(name: str) -> None:
    """Refuse a name that is no problem with moments to be found."""
    known = [each for each in PROBLEMS if each not in ("frequency", "noise")]
    if name not in known:
        raise ConfigError(f"There is no problem {name!r} with known moments; choose one of {', '.join(known)}.")


def deletion(dataset: Dataset, plan: Plan) -> list[Row]:
    """Every map on one dataset: fitted on its training part, judged by what deleting does on test cases."""
    train, test = dataset.train(), dataset.test()
    classifier = plan.fitted(dataset.name, train)
    chosen = np.unique(np.linspace(0, len(test) - 1, min(plan.n_explained, len(test))).astype(np.int64))
    maps, explanations = all_maps(classifier.model_, test.take(chosen), plan.seed)
    labelled = SeriesSet(test.X, test.lengths, dataset.test_labels(), test.channel_names, test.name)
    common = _common(plan, classifier, labelled, explanations)
    return [
        Row(data=dataset.name, kind="deletion", map=name, aopc=mean_loss(classifier.model_, maps, values), **common)
        for name, values in maps.values.items()
    ]


def _common(
    plan: Plan, classifier: PDFTimeClassifier, cases: SeriesSet, explanations: Sequence[Explanation]
) -> dict[str, Any]:
    """What is the same for every map of a model."""
    view = explain_model(classifier.model_, cases)
    purities = [entry.purity for entry in view.gallery if entry.decides and entry.shown and entry.purity is not None]
    return {
        "encoder": plan.encoder,
        "seed": plan.seed,
        "accuracy": view.accuracy,
        "n_cases": len(explanations),
        "agreement": view.agreement,
        "purity": float(np.median(purities)) if purities else None,
        "gap": max(each.where.completeness_gap for each in explanations),
        "locality": float(np.mean([each.tokens.locality for each in explanations])),
    }


def all_maps(model: FittedModel, cases: SeriesSet, seed: int) -> tuple[Maps, list[Explanation]]:
    """Our maps of the predicted class and those that they must beat."""
    explanations = explain(model, cases)
    prepared = model.preparation(cases)
    x = torch.from_numpy(prepared.x)
    mask = None if prepared.mask is None else torch.from_numpy(prepared.mask)
    inside = np.ones((len(x), x.shape[2]), bool) if prepared.mask is None else prepared.mask
    baseline, _ = baseline_of(model, x, mask)
    target = np.array([each.source.target for each in explanations])
    codes = torch.from_numpy(target)
    rng = np.random.default_rng(seed_for(seed, "explain", "random"))
    pairs = list(zip(explanations, inside, strict=True))
    values = {
        "score map": np.stack([on_prepared_axis(each.input_map, own) for each, own in pairs]),
        "margin map": np.stack([on_prepared_axis(each.margin_map, own) for each, own in pairs]),
        "token evidence": np.stack([_tokens(each, own) for each, own in pairs]),
        "untrained network": score_maps([untrained(model, seed)], x, mask, baseline, codes)[0],
        "|x - median|": _from_median(prepared.x.astype(np.float64), inside),
        "random": rng.random(x.shape),
    }
    evidence = [each.evidence for each in explanations]
    if evidence[0] is not None:
        pairs_of = zip(evidence, inside, strict=True)
        values["evidence map"] = np.stack([on_prepared_axis(each.values, own) for each, own in pairs_of if each])
    has_gradients = all(member.view == "network" for member in model.members)
    if has_gradients and importlib.util.find_spec("captum") is not None:
        values["captum's integrated gradients"] = captum_map(model, x, mask, baseline, codes)
    return Maps(values, x, mask, baseline, target), explanations


def captum_map(model: FittedModel, x: Tensor, mask: Tensor | None, baseline: Tensor, target: Tensor) -> Floats:
    """(n, c, t) integrated gradients of the score as captum computes them, averaged over members."""
    from captum.attr import IntegratedGradients

    each = []
    for member in model.members:

        def score(points: Tensor, inside: Tensor | None, member: Any = member) -> Tensor:
            scores: Tensor = member.network(points, inside).scores[-1]
            return scores

        method = IntegratedGradients(score)
        rows = [
            method.attribute(
                x[row : row + 1],
                baseline[row : row + 1],
                target=int(target[row]),
                additional_forward_args=(None if mask is None else mask[row : row + 1],),
                n_steps=CAPTUM_STEPS,
            )
            for row in range(len(x))
        ]
        each.append(torch.cat(rows).detach().double())
    found: Floats = torch.stack(each).mean(dim=0).numpy()
    return found


def mean_loss(model: FittedModel, maps: Maps, values: Floats) -> float:
    """AOPC: what the target's probability loses on average while 10% to 90% are replaced by the baseline."""
    losses = []
    for row, target in enumerate(maps.target):
        x, baseline = maps.x[row : row + 1], maps.baseline[row : row + 1]
        mask = None if maps.mask is None else maps.mask[row : row + 1]
        inside = np.broadcast_to(True if mask is None else mask.numpy(), values[row].shape)
        keep = torch.from_numpy(np.concatenate([np.ones((1, *inside.shape), bool), without(values[row], inside)]))
        found = probability_of(model, torch.where(keep, x, baseline), mask, int(target))
        losses.append(float((found[0] - found[1:]).mean()))
    return float(np.mean(losses))


def _tokens(explanation: Explanation, inside: NDArray[np.bool_]) -> Floats:
    """Signed token evidence on the input axis; it knows no channels, so all get the same."""
    n_channels, length = explanation.series.shape
    return np.tile(on_prepared_axis(explanation.tokens.on_input_axis(length)[None], inside), (n_channels, 1))


def _from_median(x: Floats, inside: NDArray[np.bool_]) -> Floats:
    """|x - median| per channel: what stands out, without any model."""
    masked = np.where(inside[:, None, :], x, np.nan)
    distance: Floats = np.nan_to_num(np.abs(masked - np.nanmedian(masked, axis=2, keepdims=True)))
    return distance
