"""An explanation agrees with the prediction, names real training series, and covers the pair that was asked for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import CLASSES, LENGTHS, TINY, VIEWS, bumps, fitted, span_of

from pdftime import PDFTimeClassifier
from pdftime.data.series import check_series
from pdftime.errors import DataError
from pdftime.explain.evidence import explain
from pdftime.fitted import FittedModel

EACH_KIND = pytest.mark.parametrize("kind", list(LENGTHS))
ALL_KINDS = [*LENGTHS, "linear head", "class token", "no encoder", "window", "by gradient", "unscaled", "each scaled"]


# The decision


@pytest.mark.parametrize("kind", [*ALL_KINDS, "linear embedding", "padded token", "padded linear", *VIEWS])
def test_an_explanation_agrees_with_the_prediction(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(6, span_of(kind), seed=1)
    probabilities = model.probabilities(cases)
    ((_, x, mask),) = model.batches(cases)
    with torch.no_grad():
        each_score = torch.stack([member.network(x, mask).scores[-1].double() for member in model.members])
    weights = torch.tensor([member.weight / member.temperature for member in model.members]).double()
    scores = (each_score * (weights / weights.sum())[:, None, None]).sum(dim=0)
    for row, each in enumerate(explain(model, cases)):
        assert each.classes == ("up", "down")
        assert each.predicted == each.target.label == CLASSES[probabilities[row].argmax()]
        assert each.runner_up == each.contrast.label == CLASSES[probabilities[row].argmin()]
        np.testing.assert_allclose(each.probabilities, probabilities[row], atol=1e-6)
        np.testing.assert_allclose(each.scores, scores[row].numpy(), atol=1e-5)
        for sheet in (each.target, each.contrast):
            place = each.classes.index(sheet.label)
            assert sheet.probability == each.probabilities[place]
            assert sheet.score == each.scores[place]
            if sheet.matches:
                total = sum(match.contribution * match.weight for match in sheet.deciding)
                assert total + sheet.entropy + sheet.offset == pytest.approx(sheet.score, abs=1e-5)
        tokens = each.tokens
        assert tokens.values.sum() + tokens.class_token + tokens.rest == pytest.approx(each.target.score, abs=1e-5)
        assert tokens.additivity_error <= 1e-5
        assert each.where.stop == pytest.approx(each.target.score, abs=1e-5)
        assert each.why_not.stop == pytest.approx(each.target.score - each.contrast.score, abs=1e-5)
        assert 0.0 <= tokens.locality <= 1.0


def test_any_pair_of_classes_can_be_asked_for() -> None:
    rng = np.random.default_rng(0)
    y = np.array([3, 1, 2] * 6)
    X = rng.normal(size=(18, 1, 20)) + y[:, None, None]
    settings = {"branch_width": 2, "n_inception_layers": 1, "kernel_sizes": (3,)}
    model = PDFTimeClassifier(preset="network", d_model=8, max_epochs=3, settings=settings).fit(X, y)
    (plain,) = model.explain(X[:1])
    order = model.classes_[np.argsort(-plain.probabilities)].tolist()
    for target in (1, 2, 3):
        for contrast in (1, 2, 3):
            if target != contrast:
                (each,) = model.explain(X[:1], target=target, contrast=contrast)
                assert (each.target.label, each.contrast.label) == (target, contrast)
                assert (each.predicted, each.runner_up) == (plain.predicted, plain.runner_up)
                assert each.why_not.stop == pytest.approx(each.target.score - each.contrast.score, abs=1e-5)
                back = model.explain(X[:1], contrast, target)[0]
                np.testing.assert_allclose(
                    back.margin_map, -each.margin_map, atol=0.1 * np.abs(each.margin_map).max()
                )
                assert ("is not what is predicted" in " ".join(each.warnings)) == (target != plain.predicted)
        (alone,) = model.explain(X[:1], target=target)
        assert alone.contrast.label == next(label for label in order if label != target)
        (against,) = model.explain(X[:1], contrast=target)
        assert against.target.label == next(label for label in order if label != target)
    assert model.explain(X[:1], np.int64(2), 3.0)[0].target.label == 2


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ({"target": "sideways"}, r"target is 'sideways'; expected one of the classes \['up', 'down'\]"),
        ({"contrast": 1}, "contrast is 1; expected one of the classes"),
        ({"target": ["up", "up"]}, r"target is \['up', 'up'\]"),
        ({"target": "up", "contrast": "up"}, "target and contrast are both 'up'; expected two different classes"),
    ],
)
def test_a_pair_that_makes_no_sense_is_refused(
    models: dict[str, FittedModel], pair: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        explain(models["equal"], bumps(2, (24, 24))[0], **pair)


# Prototypes and the series around them


@pytest.mark.parametrize("kind", [*LENGTHS, "by gradient"])
def test_matches_are_cosines_and_shares_with_the_series_around_them(every: dict[str, FittedModel], kind: str) -> None:
    span = (12, 30) if kind in ("padded", "resampled") else (24, 24)
    model, (cases, codes) = every[kind], bumps(24, span)  # the training cases
    z = model.embeddings(cases).reshape(24, len(model.members), 8)
    for case, each in enumerate(explain(model, cases.take(slice(0, 4)))):
        shares: dict[tuple[int, int, str], float] = {}
        for match in (*each.target.matches, *each.contrast.matches):
            code = CLASSES.tolist().index(match.label)
            head: Any = model.members[match.member].network.head
            prototypes = head.levels[match.level].detach().numpy()
            vectors = z[:, match.member] / np.linalg.norm(z[:, match.member], axis=1, keepdims=True)
            cosines = vectors @ prototypes[code, match.number]
            assert match.similarity == pytest.approx(cosines[case], abs=1e-5)
            expected = match.responsibility * match.similarity / head.temperature
            assert match.contribution == pytest.approx(expected, abs=1e-6)
            assert match.decides == (match.level == 1)
            key = (match.member, match.level, match.label)
            shares[key] = shares.get(key, 0.0) + match.responsibility
            own, others = np.flatnonzero(codes == code), np.flatnonzero(codes != code)
            nearest = own[np.argsort(-cosines[own])[:5]]
            np.testing.assert_allclose([n.similarity for n in match.neighbours], cosines[nearest], atol=1e-5)
            for neighbour in match.neighbours:
                assert neighbour.label == match.label
                assert neighbour.similarity == pytest.approx(cosines[neighbour.index], abs=1e-5)
                np.testing.assert_allclose(model.training_series(neighbour.index), cases.series(neighbour.index))
            assert match.gap == pytest.approx(1.0 - cosines[own].max(), abs=1e-5)
            assert match.wrong is not None
            assert match.wrong.label != match.label
            assert match.wrong.similarity == pytest.approx(cosines[others].max(), abs=1e-5)
            assert cosines[match.wrong.index] == pytest.approx(cosines[others].max(), abs=1e-5)
            among = vectors[own] @ prototypes[code].T
            assert match.usage == pytest.approx((among.argmax(axis=1) == match.number).mean(), abs=1e-6)
            ten = np.argsort(-cosines, kind="stable")[:10]
            assert match.purity == pytest.approx((codes[ten] == code).mean(), abs=1e-6)
            usual = np.median(1.0 - among.max(axis=1))
            assert match.relative_gap == pytest.approx(match.gap / usual, rel=1e-2)
        assert all(total == pytest.approx(1.0, abs=1e-5) for total in shares.values())
        assert len(shares) == 4 * len(model.members)
        best = each.best_match
        assert best is not None
        assert best in each.target.deciding
        assert best.responsibility == max(match.responsibility for match in each.target.deciding)


def test_a_class_of_few_series_names_each_once() -> None:
    cases, codes = bumps(24, (24, 24))
    few = np.flatnonzero((codes == 0) | (np.arange(24) < 6))
    model = PDFTimeClassifier(
        preset="network", d_model=8, max_epochs=1, settings={"branch_width": 2, "n_inception_layers": 1}
    )
    model.fit(cases.X[few], CLASSES[codes[few]])
    (each,) = model.explain(cases.X[:1], target="down")
    for match in each.target.matches:
        assert len(match.neighbours) == len({neighbour.index for neighbour in match.neighbours}) == 3


def test_a_series_that_is_not_kept_is_refused(models: dict[str, FittedModel]) -> None:
    with pytest.raises(DataError, match="Training series 999 is not kept in the model"):
        models["equal"].training_series(999)


def test_a_linear_head_is_explained_without_prototypes(every: dict[str, FittedModel]) -> None:
    (each,) = explain(every["linear head"], bumps(1, (24, 24), seed=1)[0])
    assert each.best_match is None
    assert each.target.matches == ()
    assert each.target.offset != 0.0
    assert each.token_evidence.any()
    assert "decides by a linear map" in each.summary()
    with pytest.raises(DataError, match="is not kept"):
        every["linear head"].training_series(0)


def test_a_class_token_takes_all_evidence_and_is_not_drawn(every: dict[str, FittedModel]) -> None:
    (each,) = explain(every["class token"], bumps(1, (24, 24), seed=1)[0])
    assert not each.token_evidence.any()
    assert len(each.token_evidence) == 8
    assert each.tokens.class_token + each.tokens.rest == pytest.approx(each.target.score, abs=1e-5)
    assert each.tokens.locality == 0.0
    assert not each.tokens.drawable


# What came in comes back


def test_missing_values_are_marked_and_names_and_lengths_come_back(models: dict[str, FittedModel]) -> None:
    cases, _ = bumps(4, (12, 30), seed=1)
    X = cases.X.copy()
    X[1, 0, 3:6] = np.nan
    holed = check_series(X, lengths=cases.lengths, channel_names=["Ä", "<b>"])
    for kind in ("padded", "resampled"):
        for row, each in enumerate(explain(models[kind], holed)):
            length = cases.lengths[row]
            assert each.series.shape == each.missing.shape == each.input_map.shape == (2, length)
            np.testing.assert_array_equal(each.series, holed.series(row))
            np.testing.assert_array_equal(each.missing, np.isnan(holed.series(row)))
            assert each.missing.sum() == (3 if row == 1 else 0)
            assert each.channel_names == ("Ä", "<b>")
            assert np.isfinite(each.input_map).all()
    (nameless,) = explain(models["equal"], check_series(bumps(1, (24, 24))[0].X))
    assert nameless.channel_names == ("idle", "busy")


@pytest.mark.parametrize("kind", list(LENGTHS))
def test_time_stamps_come_back_and_change_nothing_else(models: dict[str, FittedModel], kind: str) -> None:
    cases, _ = bumps(4, LENGTHS[kind], seed=1)
    stamps = [np.cumsum(np.arange(1.0, length + 1)) for length in cases.lengths]
    stamped = check_series(cases, times=stamps)
    for own, each, plain in zip(stamps, explain(models[kind], stamped), explain(models[kind], cases), strict=True):
        assert plain.times is None
        np.testing.assert_array_equal(each.times, own)
        np.testing.assert_array_equal(each.input_map, plain.input_map)
        np.testing.assert_array_equal(each.source.case.times_of(0), own)


def test_training_series_may_have_time_stamps(tmp_path: Path) -> None:
    cases, codes = bumps(12, (24, 24))
    weight = np.r_[0.0, np.ones(11)]
    found = []
    for times in (None, np.arange(24) * 0.5):
        model = PDFTimeClassifier(preset="network", settings=TINY | {"max_epochs": 2}).fit(
            check_series(cases, times=times), codes, weight
        )
        model.save(tmp_path / "x.pdftime")
        found.append(PDFTimeClassifier.load(tmp_path / "x.pdftime").predict_proba(cases))
    np.testing.assert_array_equal(*found)


@EACH_KIND
def test_tokens_lie_on_the_axis_of_the_series(models: dict[str, FittedModel], kind: str) -> None:
    for each in explain(models[kind], bumps(8, LENGTHS[kind], seed=2)[0]):
        length = each.series.shape[1]
        edges = each.tokens.edges
        assert len(edges) == len(each.token_evidence) + 1
        assert edges[0] == 0.0
        assert edges[-1] == pytest.approx(length)
        assert (np.diff(edges) > 0.0).all()
        spread = each.tokens.on_input_axis(length)
        assert spread.shape == (length,)
        assert spread.sum() == pytest.approx(each.token_evidence.sum(), abs=1e-9)


# Cost and order


def test_explaining_in_parts_is_as_at_once(models: dict[str, FittedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    model, (cases, _) = models["padded"], bumps(7, (12, 30), seed=1)
    at_once = explain(model, cases)
    monkeypatch.setattr("pdftime.fitted.BATCH_POINTS", 200)
    for one, other in zip(explain(model, cases), at_once, strict=True):
        np.testing.assert_allclose(one.input_map, other.input_map, atol=1e-3)
        assert one.predicted == other.predicted


@pytest.mark.parametrize("kind", ["equal", "padded", "class token"])
def test_explaining_leaves_no_trace_and_says_the_same_again(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(2, span_of(kind), seed=1)
    network = model.members[0].network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.zero_grad()
    state = torch.random.get_rng_state()
    first = [each.to_json(checks=True) for each in explain(model, cases)]
    assert first == [each.to_json(checks=True) for each in explain(model, cases)]
    assert torch.is_grad_enabled()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not network.training
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_maps_and_checks_cost_a_bounded_number_of_network_passes(
    models: dict[str, FittedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, (cases, _) = models["equal"], bumps(1, (24, 24), seed=1)
    passes = 0
    forward = type(model.members[0].network).forward

    def counted(network: Any, x: torch.Tensor, *rest: Any) -> Any:
        nonlocal passes
        passes += len(x)
        return forward(network, x, *rest)

    monkeypatch.setattr(type(model.members[0].network), "forward", counted)
    (each,) = explain(model, cases)
    assert 40 < passes <= 75
    passes = 0
    with monkeypatch.context() as never_complete:
        never_complete.setattr("pdftime.explain.gradients.COMPLETE", 0.0)
        explain(model, cases)
    assert passes <= 75 + 2 * 45 + 4 * 45
    passes = 0
    each.check()
    assert 40 < passes <= 80
    passes = 0
    each.check()
    assert passes == 0


@pytest.mark.slow
def test_a_series_of_500_time_points_is_explained_within_a_second() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1, 500))
    model = PDFTimeClassifier(preset="network", max_epochs=1, n_threads=1).fit(X, np.arange(12) % 2)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        model.explain(X[:1])
        seconds.append(time.process_time() - began)
    assert min(seconds) < 1.0


def test_a_backbone_of_yours_is_explained() -> None:
    backbone = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
    model = fitted(options={"backbone": backbone}, max_epochs=2)
    (each,) = explain(model, bumps(1, (24, 24), seed=1)[0])
    assert each.tokens.additivity_error <= 1e-5
    assert -1.0 <= each.check()["likeness to an untrained network"].value <= 1.0
