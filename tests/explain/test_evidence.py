"""Evidence adds up to what it explains, lies where the series lies, and says so in words."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pdftime.config import preset
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError
from pdftime.explain.evidence import _on_own_axis, densest_segment, explain, integrated_gradients, token_evidence
from pdftime.fitted import FittedModel
from pdftime.fitting import FitOptions, LabelledCases, fit_model

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 5),
    "n_inception_layers": 2,
    "n_heads": 2,
    "max_tokens": 8,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warm_epochs": 1,
    "active_epochs": 2,
    "max_epochs": 25,
}
CLASSES = np.array(["up", "down"])


def bumps(n: int, lengths: tuple[int, int], seed: int = 0) -> tuple[SeriesSet, NDArray[np.int64]]:
    """A bump up or down on the second of two channels, the first is noise."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    series = []
    for code in codes:
        length = int(rng.integers(lengths[0], lengths[1] + 1))
        x = 0.3 * rng.normal(size=(2, length))
        start = int(rng.integers(0, length - 6))
        x[1, start : start + 6] += 3.0 - 6.0 * code
        series.append(x)
    return check_series(series, channel_names=["idle", "busy"]), codes


def fitted(span: tuple[int, int] = (24, 24), n_members: int = 1, **changes: Any) -> FittedModel:
    cases, codes = bumps(24, span)
    configured = preset("default").but(**{**TINY, **changes})
    data = LabelledCases(cases, codes, np.ones(24))
    return fit_model(data, CLASSES, configured, FitOptions(n_members=n_members))


@pytest.fixture(scope="module")
def models() -> dict[str, FittedModel]:
    return {
        "equal": fitted(),
        "padded": fitted((12, 30), lengths="pad"),
        "resampled": fitted((12, 30), lengths="resample", n_members=2),
    }


LENGTHS = {"equal": (24, 24), "padded": (8, 40), "resampled": (8, 40)}
EACH_KIND = pytest.mark.parametrize("kind", list(LENGTHS))


# Tokens


@EACH_KIND
def test_token_evidence_and_entropy_add_up_to_the_score(models: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = models[kind], bumps(10, LENGTHS[kind], seed=1)
    for number, member in enumerate(model.members):
        for _, x, mask in model.batches(cases):
            output = member.network(x, mask)
            for code in (0, 1):
                target = torch.full((len(x),), code)
                evidence, entropy, score = token_evidence(model, number, x, mask, target)
                torch.testing.assert_close(evidence.sum(dim=1) + entropy, score, atol=1e-5, rtol=1e-5)
                torch.testing.assert_close(score.float(), output.scores[-1][:, code], atol=1e-4, rtol=1e-4)
                if output.inside is not None:
                    assert not output.inside.all()
                    assert (evidence[~output.inside] == 0.0).all()


def test_token_evidence_is_each_tokens_share_of_each_cosine(models: dict[str, FittedModel]) -> None:
    """e[t, k] = token_t . p_k / (n |z| |p_k|), weighted by r_k = softmax_k(cos / T), over T; token by token."""
    model, (cases, _) = models["padded"], bumps(5, (12, 30), seed=1)
    network = model.members[0].network
    head = network.head
    ((_, x, mask),) = model.batches(cases)
    output = network(x, mask)
    with torch.no_grad():
        evidence, entropy, _ = token_evidence(model, 0, x, mask, torch.ones(5, dtype=torch.long))
    for case in range(5):
        z = output.z[case].detach().double()
        prototypes = head.levels[-1][1].double()
        cosines = [float(z @ p / (z.norm() * p.norm())) for p in prototypes]
        shares = [math.exp(cosine / head.temperature) for cosine in cosines]
        r = [share / sum(shares) for share in shares]
        assert float(entropy[case]) == pytest.approx(-sum(each * math.log(each) for each in r), abs=1e-6)
        inside = output.inside[case]
        for place in range(len(inside)):
            expected = 0.0
            if inside[place]:
                token = output.tokens[case, place].detach().double()
                for k, p in enumerate(prototypes):
                    e = float(token @ p / (inside.sum() * z.norm() * p.norm()))
                    expected += r[k] * e / head.temperature
            assert float(evidence[case, place]) == pytest.approx(expected, abs=1e-6)


# The map on the input axis


@EACH_KIND
def test_integrated_gradients_add_up_to_the_rise_of_the_score_over_the_training_mean(
    models: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, _) = models[kind], bumps(8, LENGTHS[kind], seed=1)
    for _, x, mask in model.batches(cases):
        for code in (0, 1):
            target = torch.full((len(x),), code)
            rise = torch.zeros(len(x), dtype=torch.float64)
            with torch.no_grad():
                for member in model.members:
                    here, base = (member.network(at, mask).scores[-1][:, code] for at in (x, torch.zeros_like(x)))
                    rise += (here - base).double() / len(model.members)
            total = integrated_gradients(model, x, mask, target).sum(axis=(1, 2))
            assert np.abs(rise.numpy()).max() > 1.0
            np.testing.assert_allclose(total, rise.numpy(), atol=0.05 * float(rise.abs().max()))


def test_steps_behind_the_end_get_exactly_nothing(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["padded"], bumps(8, (8, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    assert mask is not None
    maps = integrated_gradients(model, x, mask, torch.zeros(8, dtype=torch.long))
    outside = ~mask[:, None, :].expand(x.shape).numpy()
    assert outside.any()
    assert (maps[outside] == 0.0).all()
    assert (maps[~outside] != 0.0).all()


@settings(max_examples=30, deadline=None)
@given(
    prepared=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=st.floats(-10, 10)),
    length=st.integers(1, 60),
)
def test_a_resampled_map_keeps_its_sum_and_comes_on_the_original_length(
    prepared: NDArray[np.float64], length: int
) -> None:
    own = _on_own_axis(prepared, length, padded=False)
    assert own.shape == (len(prepared), length)
    np.testing.assert_allclose(own.sum(axis=1), prepared.sum(axis=1), atol=1e-9)


def test_a_resampled_map_keeps_its_places() -> None:
    narrow = np.zeros((1, 10))
    narrow[0, 7] = 1.0
    wide = _on_own_axis(narrow, 20, padded=False)
    np.testing.assert_allclose(wide[0, 14:16], 0.5)
    assert np.delete(wide[0], [14, 15]).tolist() == [0.0] * 18
    np.testing.assert_allclose(_on_own_axis(wide, 10, padded=False), narrow, atol=1e-12)


@EACH_KIND
def test_a_map_comes_on_the_axis_of_its_own_series(models: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = models[kind], bumps(8, LENGTHS[kind], seed=1)
    row = 0
    explanations = explain(model, cases)
    for part, x, mask in model.batches(cases):
        target = torch.from_numpy(model.probabilities(part).argmax(axis=1))
        maps = integrated_gradients(model, x, mask, target)
        for each in maps:
            found = explanations[row].input_map
            assert found.shape == (2, cases.lengths[row])
            np.testing.assert_allclose(found.sum(axis=1), each.sum(axis=1), atol=1e-5)
            row += 1
    assert row == 8


def test_the_map_of_an_ensemble_is_the_mean_of_its_members(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["resampled"], bumps(4, (12, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    target = torch.zeros(4, dtype=torch.long)
    each = []
    for member in model.members:
        alone = FittedModel(model.settings, model.classes, model.channel_names, model.preparation, [member])
        each.append(integrated_gradients(alone, x, mask, target))
    np.testing.assert_allclose(integrated_gradients(model, x, mask, target), np.mean(each, axis=0), atol=1e-5)


@EACH_KIND
def test_where_a_series_scores_more_than_the_training_mean_the_map_finds_the_bump(
    models: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, codes) = models[kind], bumps(12, (24, 30) if kind != "equal" else (24, 24), seed=1)
    found = []
    for index, explanation in enumerate(explain(model, cases)):
        assert explanation.predicted == CLASSES[codes[index]]
        if explanation.input_map.sum() > 2.0:  # the mean may be of the same class, and then there is nothing to find
            bump = np.flatnonzero(np.abs(cases.series(index)[1]) > 1.8)
            first, last = explanation.segment
            found.append(explanation.channel == "busy" and first <= bump.max() and last >= bump.min())
    assert len(found) >= 4
    assert np.mean(found) >= 0.8


# Segments


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.integers(1, 14), elements=st.floats(-5, 5).map(lambda value: round(value, 3))))
def test_the_densest_segment_is_the_best_of_all_segments(evidence: NDArray[np.float64]) -> None:
    first, last = densest_segment(evidence)
    assert 0 <= first <= last < len(evidence)
    excess = evidence - evidence.mean()
    sums = [excess[i : j + 1].sum() for i in range(len(excess)) for j in range(i, len(excess))]
    assert excess[first : last + 1].sum() == pytest.approx(max(sums), abs=1e-9)


def test_a_segment_covers_what_stands_out() -> None:
    assert densest_segment(np.array([0.0, 0.0, 5.0, 4.0, 6.0, 0.0, 0.0])) == (2, 4)
    assert densest_segment(np.array([3.0])) == (0, 0)


# The explanation as a whole


@EACH_KIND
def test_an_explanation_agrees_with_the_prediction(models: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = models[kind], bumps(6, LENGTHS[kind], seed=1)
    probabilities = model.probabilities(cases)
    for row, each in zip(probabilities, explain(model, cases), strict=True):
        assert each.predicted == CLASSES[row.argmax()]
        assert each.runner_up == CLASSES[row.argmin()]
        assert each.probability == pytest.approx(row.max(), abs=1e-5)
        assert each.runner_up_probability == pytest.approx(row.min(), abs=1e-5)
        assert each.token_evidence.sum() + each.entropy == pytest.approx(each.score, abs=1e-5)


@EACH_KIND
def test_matches_are_cosines_and_shares_with_the_series_behind_them(
    models: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, codes) = models[kind], bumps(24, (24, 24) if kind == "equal" else (12, 30))  # the training cases
    z = model.embeddings(cases).reshape(24, len(model.members), 8)
    for case, each in enumerate(explain(model, cases.take(slice(0, 4)))):
        code = CLASSES.tolist().index(each.predicted)
        assert len(each.matches) == 5 * len(model.members)
        shares: dict[tuple[int, int], float] = {}
        for match in each.matches:
            prototype = model.members[match.member].network.head.levels[match.level][code, match.number].numpy()
            vectors = z[:, match.member]
            cosines = vectors @ prototype / np.linalg.norm(vectors, axis=1)
            assert match.similarity == pytest.approx(cosines[case], abs=1e-5)
            key = (match.member, match.level)
            shares[key] = shares.get(key, 0.0) + match.responsibility
            for neighbour in match.neighbours:
                assert neighbour.label == each.predicted
                assert codes[neighbour.index] == code
                assert neighbour.similarity == pytest.approx(cosines[neighbour.index], abs=1e-5)
            assert match.neighbours[0].similarity == pytest.approx(cosines[codes == code].max(), abs=1e-5)
        assert all(total == pytest.approx(1.0, abs=1e-5) for total in shares.values())
        deciding = [match for match in each.matches if match.level == 1]
        assert each.best_match in deciding
        assert each.best_match.responsibility == max(match.responsibility for match in deciding)


def test_the_summary_names_class_series_span_and_channel(models: dict[str, FittedModel]) -> None:
    cases, _ = bumps(3, (24, 24), seed=1)
    for each in explain(models["equal"], cases):
        text = each.summary()
        assert f"This series is {each.predicted!r} with probability {each.probability:.2f}" in text
        assert f"the runner-up is {each.runner_up!r}" in text
        twins = [str(neighbour.index) for neighbour in each.best_match.neighbours[:3]]
        assert f"stand the training series {', '.join(twins)}." in text
        assert f"between time points {each.segment[0]} and {each.segment[1]} of {each.channel}." in text
        assert each.channel in ("idle", "busy")


def test_an_explanation_is_ready_for_json(models: dict[str, FittedModel]) -> None:
    cases, _ = bumps(2, (24, 24), seed=1)
    (each, _) = explain(models["equal"], cases)
    state = json.loads(json.dumps(each.to_dict()))
    assert state["summary"] == each.summary()
    np.testing.assert_allclose(state["input_map"], each.input_map)
    assert state["matches"][0]["neighbours"][0]["index"] == each.matches[0].neighbours[0].index
    assert state["segment"] == list(each.segment)


def test_explaining_in_parts_is_as_at_once(models: dict[str, FittedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    model, (cases, _) = models["padded"], bumps(7, (12, 30), seed=1)
    at_once = explain(model, cases)
    monkeypatch.setattr("pdftime.fitted.BATCH_POINTS", 65)
    for one, other in zip(explain(model, cases), at_once, strict=True):
        np.testing.assert_allclose(one.input_map, other.input_map, atol=1e-4)
        assert one.predicted == other.predicted


def test_explaining_leaves_no_trace(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["equal"], bumps(2, (24, 24), seed=1)
    network = model.members[0].network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.zero_grad()
    explain(model, cases)
    assert torch.is_grad_enabled()
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head": "linear"}, "this model has head='linear', pooling='mean'"),
        ({"pooling": "token"}, "this model has head='prototypes', pooling='token'"),
    ],
)
def test_a_model_without_prototypes_or_mean_pooling_is_refused(changes: dict[str, Any], words: str) -> None:
    model = fitted(max_epochs=1, **changes)
    with pytest.raises(DataError, match=f"explain needs a prototype head and mean pooling; {words}"):
        explain(model, bumps(2, (24, 24))[0])
