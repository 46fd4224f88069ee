"""A fitted model says the same in parts as at once, and names the training series that stand behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pdftime import fitted
from pdftime.config import Settings, TrainConfig, preset
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError
from pdftime.fitted import N_NEAREST, FittedModel
from pdftime.fitting import FitOptions, LabelledCases, fit_model, validation_split

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3, 5),
    "n_inception_layers": 2,
    "n_heads": 2,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warm_epochs": 0,
    "active_epochs": 1,
    "max_epochs": 4,
    "lengths": "pad",
}
CODES = np.array([0] * 9 + [1] * 8 + [2] * 3)  # the last class has fewer cases than stand behind a prototype


def tiny(**changes: Any) -> Settings:
    return preset("network").but(**{**TINY, **changes})


def waves(codes: NDArray[Any], seed: int = 0) -> SeriesSet:
    rng = np.random.default_rng(seed)
    series = []
    for code in codes:
        length = int(rng.integers(8, 17))
        wave = np.sin(np.arange(length) * (0.4 + 0.5 * code) + rng.uniform(0, 6, (2, 1)))
        series.append(wave + 0.3 * rng.normal(size=(2, length)))
    return check_series(series)


def fit(n_members: int = 1, **changes: Any) -> FittedModel:
    data = LabelledCases(waves(CODES), CODES, np.ones(len(CODES)))
    return fit_model(data, np.array(["a", "b", "c"]), tiny(**changes), FitOptions(n_members=n_members))


@pytest.fixture(scope="module")
def model() -> FittedModel:
    return fit(n_members=2, validation_fraction=0.3)


def embeddings(model: FittedModel, member: int, cases: SeriesSet) -> NDArray[np.float32]:
    """Unit embeddings of a member, each case by itself."""
    rows = []
    for index in range(len(cases)):
        prepared = model.preparation(cases.take([index]))
        with torch.no_grad():
            z = model.members[member].network(torch.from_numpy(prepared.x), torch.from_numpy(prepared.mask)).z
        rows.append(torch.nn.functional.normalize(z, dim=1)[0].numpy())
    return np.stack(rows)


# What stands behind a prototype


def test_the_series_behind_a_prototype_are_the_nearest_of_its_class(model: FittedModel) -> None:
    cases, exemplars = waves(CODES), model.exemplars
    assert exemplars is not None
    for number, member in enumerate(model.members):
        z = embeddings(model, number, cases)
        for prototypes, nearest in zip(member.network.head.levels, exemplars.nearest[number], strict=True):
            for code in range(3):
                own = np.flatnonzero(code == CODES)
                for k, prototype in enumerate(prototypes[code].detach().numpy()):
                    cosines = {case: float(z[case] @ prototype) for case in own}
                    best = sorted(own, key=lambda case: -cosines[case])[:N_NEAREST]
                    best += [best[-1]] * (N_NEAREST - len(best))
                    expected = [cosines[case] for case in best]
                    numbers = exemplars.numbers[nearest.position[code, k]]
                    np.testing.assert_allclose(nearest.similarity[code, k], expected, atol=1e-5)
                    np.testing.assert_allclose([cosines[case] for case in numbers], expected, atol=1e-5)
                    assert set(CODES[numbers]) == {code}


def test_the_series_behind_prototypes_are_kept_as_they_were_each_once(model: FittedModel) -> None:
    cases, exemplars = waves(CODES), model.exemplars
    assert exemplars is not None
    assert sorted(set(exemplars.numbers)) == exemplars.numbers.tolist()
    for place, number in enumerate(exemplars.numbers):
        np.testing.assert_array_equal(exemplars.cases.series(place), cases.series(number))
        assert exemplars.cases.y is not None
        assert exemplars.cases.y[place] == CODES[number]
    assert exemplars.company is not None
    used = {int(p) for levels in exemplars.nearest for level in levels for p in level.position.ravel()}
    used |= {int(p) for levels in exemplars.company for level in levels for p in level.wrong_position.ravel()}
    assert used == set(range(len(exemplars.cases)))


def test_a_linear_head_has_no_series_behind_it() -> None:
    assert fit(head="linear").exemplars is None


# Scoring


def test_in_parts_it_says_what_it_says_at_once(model: FittedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = waves(np.arange(23) % 3, seed=1)
    at_once = (model.probabilities(cases), model.embeddings(cases))
    assert len(list(model.batches(cases))) == 1
    monkeypatch.setattr(fitted, "BATCH_POINTS", 60)
    parts = [len(part) for part, _, _ in model.batches(cases)]
    assert len(parts) > 5
    assert sum(parts) == 23
    np.testing.assert_allclose(model.probabilities(cases), at_once[0], atol=1e-5)
    np.testing.assert_allclose(model.embeddings(cases), at_once[1], atol=1e-5)


def test_parts_are_counted_at_the_length_the_network_sees(
    model: FittedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitted, "BATCH_POINTS", 160)
    short = check_series(np.random.default_rng(0).normal(size=(40, 2, 3)))
    for _, x, _ in model.batches(short):
        assert len(x) * x.shape[2] <= 160


def test_a_prediction_does_not_depend_on_the_cases_beside_it(model: FittedModel) -> None:
    cases = waves(np.arange(7) % 3, seed=1)
    together = model.probabilities(cases)
    for index in range(7):
        np.testing.assert_allclose(model.probabilities(cases.take([index]))[0], together[index], atol=1e-5)


def test_members_are_averaged_as_calibrated_scores(model: FittedModel) -> None:
    cases = waves(np.arange(6) % 3, seed=1)
    (_, x, mask), *_ = model.batches(cases)
    expected = np.zeros((6, 3))
    for member in model.members:
        expected += member.network(x, mask).scores[-1].detach().double().numpy() / member.temperature / 2
    chances = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.probabilities(cases), chances, atol=1e-9)
    np.testing.assert_allclose(model.probabilities(cases).sum(axis=1), 1.0, atol=1e-12)
    weights = [member.network.norm.weight for member in model.members]
    assert not torch.equal(*weights)
    assert all(member.temperature != 1.0 for member in model.members)


def test_a_model_of_an_older_file_averages_probabilities(model: FittedModel) -> None:
    cases = waves(np.arange(6) % 3, seed=1)
    older = replace(model, averaged=True)
    each = [replace(model, members=[member]).probabilities(cases) for member in model.members]
    np.testing.assert_allclose(older.probabilities(cases), np.mean(each, axis=0), atol=1e-12)
    assert older.weights == older.shares == [0.5, 0.5]


def test_embeddings_of_members_stand_side_by_side(model: FittedModel) -> None:
    cases = waves(np.arange(4) % 3, seed=1)
    z = model.embeddings(cases)
    assert z.shape == (4, 16)
    unit = z.reshape(4, 2, 8) / np.linalg.norm(z.reshape(4, 2, 8), axis=2, keepdims=True)
    for member in range(2):
        np.testing.assert_allclose(unit[:, member], embeddings(model, member, cases), atol=1e-5)


def test_scoring_leaves_no_trace(model: FittedModel) -> None:
    cases = waves(np.arange(4) % 3, seed=1)
    before = [{k: v.clone() for k, v in member.network.state_dict().items()} for member in model.members]
    first, again = model.probabilities(cases), model.probabilities(cases)
    np.testing.assert_array_equal(first, again)
    for state, member in zip(before, model.members, strict=True):
        assert all(torch.equal(state[name], tensor) for name, tensor in member.network.state_dict().items())
    assert not next(model.outputs(cases, 0)).z.requires_grad


def test_a_prediction_broken_off_half_way_leaves_autograd_on(model: FittedModel) -> None:
    cases = waves(np.arange(4) % 3, seed=1)
    half_way = [model.batches(cases), model.outputs(cases, 0)]
    for each in half_way:
        next(each)  # type: ignore[call-overload]
        assert torch.is_grad_enabled()


def test_cases_that_do_not_fit_are_refused_before_any_work(model: FittedModel) -> None:
    with pytest.raises(DataError, match="X has 3 channels; the model was trained on 2"):
        model.probabilities(check_series(np.zeros((2, 3, 9))))


# Which cases are kept for validation


@pytest.mark.parametrize(
    ("n_cases", "fraction", "expected"),
    [(99, None, 0), (100, None, 20), (999, None, 200), (1000, None, 100), (50, 0.5, 25), (1000, 0.0, 0)],
)
def test_small_sets_spare_no_validation_cases_unless_asked(
    n_cases: int, fraction: float | None, expected: int
) -> None:
    codes = np.arange(n_cases) % 2
    rows, kept = validation_split(codes, TrainConfig(validation_fraction=fraction), seed=0)
    assert len(kept) == expected
    assert sorted([*rows, *kept]) == list(range(n_cases))


def test_members_are_validated_on_parts_of_their_own(model: FittedModel) -> None:
    assert [each["n_validation"] for each in model.metrics["members"]] == [6, 6]
    assert [len(member.history) for member in model.members] == [4, 4]
    assert fit().metrics["members"][0]["n_validation"] == 0
    assert fit().members[0].temperature == 1.0
