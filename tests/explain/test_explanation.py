"""An explanation in words and as plain data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_models import LENGTHS, bumps, span_of

from pdftime import PDFTimeClassifier
from pdftime.data.series import check_series
from pdftime.data.times import span_text, time_text
from pdftime.explain.evidence import explain
from pdftime.explain.explanation import Check, plain
from pdftime.fitted import FittedModel
from pdftime.model.bank_network import BankNetwork


def test_the_summary_names_class_series_span_and_channel(models: dict[str, FittedModel]) -> None:
    for each in explain(models["equal"], bumps(3, (24, 24), seed=1)[0]):
        text = each.summary()
        assert f"This series is {each.predicted!r} with probability {each.probabilities.max():.2f}" in text
        assert f"the runner-up is {each.runner_up!r} with {each.probabilities.min():.2f}" in text
        assert each.best_match is not None
        twins = [str(neighbour.index) for neighbour in each.best_match.neighbours[:3]]
        assert f"stand the training series {', '.join(twins)}." in text
        first = each.where.segments[0]
        assert f"between time points {first.start} and {first.end} of {first.channel_name}." in text
        assert text.count(". ") == 2
        (other,) = explain(models["equal"], each.source.case, target=each.runner_up)
        assert f"why it could be {each.runner_up!r}" in other.summary()
        assert f"This series is {each.predicted!r};" in other.summary()
        nothing = replace(each, where=replace(each.where, segments=()))
        assert "No part of it speaks for the class" in nothing.summary()


@pytest.mark.parametrize("kind", ["equal", "bank", "both", "padded both"])
def test_the_summary_names_the_view_that_carried_the_decision_where_there_are_two(
    every: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, _) = every[kind], bumps(5, span_of(kind), seed=1)
    ((_, x, mask),) = model.batches(cases)
    with torch.no_grad():
        said = [torch.softmax(m.network(x, mask).scores[-1] / m.temperature, dim=1) for m in model.members]
    total = sum(member.weight for member in model.members)
    for row, each in enumerate(explain(model, cases)):
        assert sum(opinion.weight for opinion in each.opinions) == pytest.approx(1.0)
        for opinion, member, probabilities in zip(each.opinions, model.members, said, strict=True):
            assert opinion.view == ("bank" if isinstance(member.network, BankNetwork) else "network")
            assert opinion.weight == pytest.approx(member.weight / total)
            np.testing.assert_allclose(opinion.probabilities, probabilities[row], atol=1e-5)
            assert opinion.predicted == each.classes[int(probabilities[row].argmax())]
        words = "Of its two views, the "
        assert (words in each.summary()) == ("both" in kind)
        assert each.summary().count(". ") == (3 if "both" in kind else 2)
        if "both" not in kind:
            assert each.carried_by is None
            continue
        target, contrast = (each.classes.index(sheet.label) for sheet in (each.target, each.contrast))
        leads = {"bank": 0.0, "network": 0.0}
        for member, probabilities in zip(model.members, said, strict=True):
            leads[member.view] += member.weight * float(
                (probabilities[row, target] / probabilities[row, contrast]).log()
            )
        assert each.carried_by == max(leads, key=lambda view: leads[view])
        assert f"{words}{each.carried_by} carried the decision" in each.summary()
        assert ("the other agrees" in each.summary()) == (len({str(o.predicted) for o in each.opinions}) == 1)


@pytest.mark.parametrize("kind", list(LENGTHS))
def test_an_explanation_is_ready_for_json(models: dict[str, FittedModel], kind: str) -> None:
    cases, _ = bumps(2, LENGTHS[kind], seed=1)
    X = cases.X.copy()
    X[0, 0, 2] = np.nan
    (each, _) = explain(models[kind], check_series(X, lengths=cases.lengths))
    state = json.loads(each.to_json(checks=True))
    assert state["summary"] == each.summary()
    np.testing.assert_allclose(state["where"]["values"], each.input_map)
    assert state["series"][0][2] is None
    assert state["missing"][0][2] is True
    first = state["target"]["matches"][0]["neighbours"][0]
    assert first["index"] == each.target.matches[0].neighbours[0].index
    assert state["where"]["segments"][0]["start"] == each.where.segments[0].start
    assert "source" not in state
    assert [check["passed"] for check in state["checks"]["checks"]] == [c.passed for c in each.check().checks]
    assert "checks" not in each.to_dict()


@pytest.mark.parametrize("first", [0.5, np.datetime64("2024-05-01T12:00:00")])
def test_spans_are_said_in_time_stamps(models: dict[str, FittedModel], first: Any) -> None:
    cases, _ = bumps(2, (24, 24), seed=1)
    for each in explain(models["equal"], check_series(cases, times=first + np.arange(24))):
        assert each.times is not None
        largest = each.where.segments[0]
        words = span_text(each.times[largest.start], each.times[largest.end])
        assert each.span_of(largest) == words
        assert f"between time points {largest.start} and {largest.end} ({words}) of busy." in each.summary()
        state = json.loads(each.to_json())
        texts = [time_text(time) for time in each.times]
        assert state["times"] == (texts if each.times.dtype.kind == "M" else each.times.tolist())
        for name in ("where", "why_not"):
            for segment in state[name]["segments"]:
                assert segment["start_time"] == state["times"][segment["start"]]
                assert segment["end_time"] == state["times"][segment["end"]]
    (plain,) = explain(models["equal"], cases.take([0]))
    assert plain.span_of(plain.where.segments[0]) is None
    assert plain.to_dict()["times"] is None
    assert "start_time" not in plain.to_dict()["where"]["segments"][0]


def test_labels_of_every_kind_become_text_or_numbers() -> None:
    X = np.random.default_rng(0).normal(size=(8, 1, 12))
    for y in ([b"a", b"\xff"], [True, False], [1, 2], [3.0, 1.0], ["ä", "<b>"]):
        labels = np.array(y * 4)
        model = PDFTimeClassifier(
            preset="network", d_model=4, max_epochs=1, settings={"branch_width": 2, "n_inception_layers": 1}
        )
        (each,) = model.fit(X, labels).explain(X[:1])
        json.loads(each.to_json())
        assert each.predicted in labels.tolist()
    assert plain({1: (np.float64("nan"), b"x", None, np.array([np.inf, 1.0]))}) == {
        "1": [None, "b'x'", None, [None, 1.0]]
    }


def test_a_check_passes_on_the_right_side_of_its_bar() -> None:
    assert Check("a", 0.5, 0.5, True, "").passed
    assert Check("a", 0.5, 0.5, False, "").passed
    assert not Check("a", 0.4, 0.5, True, "").passed
    assert not Check("a", 0.6, 0.5, False, "").passed
