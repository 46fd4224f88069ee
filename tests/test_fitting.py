"""Members of two views are weighed by cases that taught neither, and judged by cases that they did not learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from pdftime.config import preset
from pdftime.data.batches import seed_for
from pdftime.data.prepare import Preparation
from pdftime.data.series import SeriesSet, check_series
from pdftime.fitted import FittedModel, Member
from pdftime.fitting import (
    FOLDED_CASES,
    PRIOR_CASES,
    PRIOR_SHARE,
    UNJUDGED_SHARE,
    FitOptions,
    LabelledCases,
    MemberFit,
    _examples,
    _held_out,
    fit_model,
    splits_of,
    validation_split,
    view_share,
)
from pdftime.training import closed_form
from pdftime.training.loop import Run, planned_epochs

TINY: dict[str, Any] = {
    "d_model": 8,
    "branch_width": 4,
    "kernel_sizes": (3,),
    "n_inception_layers": 1,
    "n_heads": 2,
    "max_epochs": 3,
    "n_groups": 2,
    "n_biases": 1,
}
CLASSES = np.array(["a", "b"])
CODES = np.arange(30) % 2


def waves(codes: NDArray[Any], seed: int = 0) -> SeriesSet:
    """Slow waves and fast ones in noise, so strong that mistakes are made."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 6, (len(codes), 1, 1))
    wave = np.sin(np.arange(16) * (0.4 + 0.6 * codes[:, None, None]) + phase)
    return check_series(wave + 0.8 * rng.normal(size=wave.shape))


def fit(validation: LabelledCases | None = None, n_members: int = 1, seed: int = 0, **changes: Any) -> FittedModel:
    data = LabelledCases(waves(CODES), CODES, np.ones(len(CODES)))
    options = FitOptions(seed=seed, n_members=n_members)
    return fit_model(data, CLASSES, preset("network").but(**{**TINY, **changes}), options, validation)


def made(
    members: list[Member], rows: list[list[int]], probabilities: list[Any]
) -> tuple[FittedModel, list[MemberFit]]:
    """A model of these members, and what each said of the cases at its rows."""
    fits = [
        MemberFit(0, member, {}, np.array(places, np.int64), torch.tensor(said).double().view(-1, 2))
        for member, places, said in zip(members, rows, probabilities, strict=True)
    ]
    prepared = Preparation.fit(waves(CODES), preset("network").prepare)
    return FittedModel(preset("network"), CLASSES, ("x",), prepared, members), fits


@pytest.fixture(scope="module")
def both() -> FittedModel:
    return fit(views="both", validation_fraction=0.4, n_members=2)


# What each view counts


def test_equal_views_and_no_cases_at_all_leave_the_share_as_it_was_thought() -> None:
    for n_cases in (0, 50):
        said, y = torch.tensor([[0.7, 0.3]] * n_cases).view(-1, 2), torch.zeros(n_cases, dtype=torch.long)
        assert view_share(said, said, y) == pytest.approx(PRIOR_SHARE)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), seed=st.integers(0, 100), better=st.floats(-2.0, 2.0))
def test_the_share_is_the_most_likely_one(n: int, seed: int, better: float) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    true = np.eye(3)[y]
    bank, network = (softmax(rng.normal(0.0, 1.5, (n, 3)) + gain * true, axis=1) for gain in (1.0 + better, 1.0))

    def loss(share: float) -> float:
        mixed = bank**share * network ** (1.0 - share)
        likely = np.log((mixed * true).sum(axis=1) / mixed.sum(axis=1)).sum()
        prior = PRIOR_CASES * (PRIOR_SHARE * np.log(share) + (1.0 - PRIOR_SHARE) * np.log(1.0 - share))
        return float(-likely - prior)

    best = minimize_scalar(loss, bounds=(1e-4, 1.0 - 1e-4), method="bounded").x
    found = view_share(torch.from_numpy(bank), torch.from_numpy(network), torch.from_numpy(y))
    assert abs(found - np.clip(best, 0.01, 0.99)) <= 0.011


def test_a_view_that_is_surely_wrong_still_has_a_finite_share() -> None:
    y = torch.zeros(1000, dtype=torch.long)
    wrong, right = torch.tensor([[0.0, 1.0]] * 1000), torch.tensor([[1.0, 0.0]] * 1000)
    assert 0.01 <= view_share(wrong, right, y) <= 0.5
    assert 0.5 <= view_share(right, wrong, y) <= 0.99


def test_members_of_one_view_count_alike_beside_another_view(both: FittedModel) -> None:
    bank, network = both.members[:2]
    assert [member.view for member in both.members] == ["bank", "network"] * 2
    assert bank.weight == both.members[2].weight
    assert network.weight == both.members[3].weight
    assert bank.weight + network.weight == pytest.approx(1.0)
    assert bank.weight not in (0.5, UNJUDGED_SHARE)
    assert [sum(both.shares), sum(both.weights)] == pytest.approx([1.0, 1.0])


def test_given_validation_cases_weigh_the_views() -> None:
    codes = np.arange(40) % 2
    cases = waves(codes, seed=1)
    weights = {}
    for name, labels in (("right", codes), ("wrong", 1 - codes)):
        validation = LabelledCases(cases, labels, np.ones(40))
        model = fit(validation, views="both")
        bank, network = (torch.from_numpy(model.of_view(view).probabilities(cases)) for view in ("bank", "network"))
        assert model.members[0].weight == pytest.approx(view_share(bank, network, torch.from_numpy(labels)))
        assert [each["n_validation"] for each in model.metrics["members"]] == [40, 40]
        weights[name] = model.members[0].weight
        assert model.review is not None
        assert model.review.source == "validation"
        assert model.review.confusion.sum() == 40
    assert weights["right"] != weights["wrong"]


def test_a_network_without_validation_cases_shares_alike() -> None:
    model = fit(views="both")
    assert [member.weight for member in model.members] == [UNJUDGED_SHARE, 1.0 - UNJUDGED_SHARE]


@pytest.mark.parametrize("views", ["network", "bank"])
def test_members_of_one_view_count_alike(views: str) -> None:
    model = fit(views=views, n_members=3, max_epochs=1)
    assert model.weights == pytest.approx([1 / 3] * 3)
    assert {member.view for member in model.members} == {views}
    np.testing.assert_allclose(model.probabilities(waves(CODES)).sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_the_members_of_both_views_are_those_of_each_view_alone(both: FittedModel) -> None:
    for views, number in (("bank", 0), ("network", 1)):
        alone = fit(views=views, validation_fraction=0.4).members[0]
        for name, tensor in alone.network.state_dict().items():
            assert torch.equal(tensor, both.members[number].network.state_dict()[name])
        assert alone.temperature == both.members[number].temperature


# Folds


def test_every_case_judges_the_one_network_of_a_member_that_was_fitted_without_it() -> None:
    model = fit(views="both", n_folds=3, n_members=2)
    assert [each.view for each in model.members] == ["bank", "network", "network", "network"] * 2
    cases, of_banks, of_networks, labels = waves(CODES), [], [], []
    examples = _examples(LabelledCases(cases, CODES, np.ones(30)), model.preparation)
    for number in (0, 1):
        seed = seed_for(0, "member", number)
        splits = splits_of(CODES, model.settings.training, seed)
        assert sorted(np.concatenate([judging for _, judging in splits])) == list(range(30))
        left_out = closed_form.fit_bank(examples, 2, model.settings.bank, seed)
        said = torch.softmax(left_out.network.head(left_out.z.float())[-1].double(), dim=1)
        for place, (fitting, judging) in enumerate(splits):
            assert not set(fitting) & set(judging)
            each = model.members[4 * number + 1 + place]
            alone = FittedModel(model.settings, CLASSES, ("x",), model.preparation, [each])
            own = alone.probabilities(cases.take(judging))
            of_networks.append(own)
            of_banks.append(said[judging].numpy())
            labels.append(CODES[judging])
            assert model.metrics["members"][4 * number + 1 + place]["n_validation"] == len(judging)
    share = view_share(*(torch.from_numpy(np.concatenate(each)) for each in (of_banks, of_networks, labels)))
    assert [each.weight for each in model.members] == pytest.approx([share, *[(1.0 - share) / 3] * 3] * 2)
    temperatures = [each.temperature for each in model.members]
    assert temperatures[1] == temperatures[2] == temperatures[3] != 1.0
    assert model.review is not None
    assert model.review.source == "held out"
    assert model.review.confusion.sum() == 30


def test_networks_of_folds_start_and_end_apart_and_the_same_again() -> None:
    one, again = (fit(n_folds=3) for _ in range(2))
    weights = [each.network.embedding.layers[0].projection.weight for each in one.members]
    assert not any(torch.equal(weights[0], other) for other in weights[1:])
    for each, other in zip(one.members, again.members, strict=True):
        for name, tensor in each.network.state_dict().items():
            assert torch.equal(tensor, other.network.state_dict()[name])


def test_networks_of_folds_share_the_steps_of_one() -> None:
    model = fit(n_folds=3, max_epochs=None, n_steps=240, batch_size=20)
    expected = planned_epochs(20, replace(model.settings.training, n_steps=80))
    assert expected == 80
    assert [len(each.history) for each in model.members] == [expected] * 3


def test_folds_go_on_after_a_crash_to_the_same_model(tmp_path: Path) -> None:
    data = LabelledCases(waves(CODES), CODES, np.ones(30))
    folds = preset("network").but(**TINY, n_folds=3)
    epochs: list[int] = []

    def crash(run: Run) -> None:
        epochs.append(run.epoch)
        if len(epochs) == 5:  # in the midst of the second of three networks
            raise KeyboardInterrupt

    options = FitOptions(checkpoint=tmp_path / "run.ckpt")
    with pytest.raises(KeyboardInterrupt):
        fit_model(data, CLASSES, folds, replace(options, callbacks=[crash]))
    resumed = fit_model(data, CLASSES, folds, replace(options, resume=True, callbacks=[crash]))
    assert epochs[5:][-3:] == [1, 2, 3]
    assert len(epochs) < 5 + 9  # what was done is not done again
    np.testing.assert_array_equal(
        resumed.probabilities(waves(CODES, seed=2)), fit(n_folds=3).probabilities(waves(CODES, seed=2))
    )


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"n_folds": 1}, CODES),
        ({"n_folds": 3, "validation_fraction": 0.2}, CODES),
        ({"n_folds": 3}, np.arange(FOLDED_CASES) % 2),
        ({"n_folds": 3}, np.arange(5)),  # each class has one case, which must be learned from
        ({"n_folds": 40}, CODES),  # some parts would be empty
    ],
)
def test_there_is_one_network_where_there_are_no_folds(changes: dict[str, Any], codes: NDArray[Any]) -> None:
    config = replace(preset("network").training, **changes)
    ((fitting, kept),) = splits_of(codes, config, seed=0)
    expected = validation_split(codes, config, seed=0)
    assert np.array_equal(fitting, expected[0])
    assert np.array_equal(kept, expected[1])


def test_given_validation_cases_judge_one_network_in_place_of_folds() -> None:
    codes = np.arange(40) % 2
    model = fit(LabelledCases(waves(codes, seed=1), codes, np.ones(40)), n_folds=3)
    assert len(model.members) == 1
    assert model.metrics["members"][0]["n_validation"] == 40


# Cases that were held out


def member(view: str, both: FittedModel, weight: float = 1.0) -> Member:
    return next(each for each in both.members if each.view == view)._replace(weight=weight)


def together(*said: tuple[float, Any]) -> Any:
    """Probabilities of which each share counts as a power."""
    product = np.prod([each**share for share, each in said], axis=0)
    return product / product.sum(axis=-1, keepdims=True)


def test_held_out_cases_are_judged_by_the_members_that_did_not_learn_from_them(both: FittedModel) -> None:
    rng = np.random.default_rng(0)
    said = rng.dirichlet([1.0, 1.0], (2, 2))
    model, fits = made([member("network", both)] * 2, [[0, 2], [2, 5]], [said[0], said[1]])
    found, index = _held_out(model, fits, 6)
    assert index.tolist() == [0, 2, 5]
    np.testing.assert_allclose(
        found, [said[0][0], together((0.5, said[0][1]), (0.5, said[1][0])), said[1][1]], atol=1e-12
    )


def test_with_two_views_only_cases_that_taught_neither_are_judged_by_weight(both: FittedModel) -> None:
    rng = np.random.default_rng(1)
    bank, network = rng.dirichlet([1.0, 1.0], 6), rng.dirichlet([1.0, 1.0], 2)
    members = [member("bank", both, 0.3), member("network", both, 0.7)]
    model, fits = made(members, [list(range(6)), [1, 4]], [bank, network])
    found, index = _held_out(model, fits, 6)
    assert index.tolist() == [1, 4]
    np.testing.assert_allclose(found, together((0.3, bank[[1, 4]]), (0.7, network)), atol=1e-12)
    model, fits = made(members, [list(range(6)), []], [bank, np.zeros((0, 2))])
    found, index = _held_out(model, fits, 6)
    assert index.tolist() == list(range(6))
    np.testing.assert_allclose(found, bank, atol=1e-12)
    members = [member("bank", both, 0.4), *[member("network", both, 0.2)] * 3]  # of folds each case has met one
    said = rng.dirichlet([1.0, 1.0], 6)
    model, fits = made(members, [list(range(6)), [0, 3], [1, 4], [2, 5]], [bank, said[0::3], said[1::3], said[2::3]])
    found, index = _held_out(model, fits, 6)
    assert index.tolist() == list(range(6))
    np.testing.assert_allclose(found, together((0.4, bank), (0.6, said)), atol=1e-12)


def test_the_review_of_kept_cases_is_by_members_that_had_not_seen_them() -> None:
    """Each network by itself says again what it said of its own validation cases."""
    model = fit(n_members=2, validation_fraction=0.4)
    cases, total, count = waves(CODES), np.zeros((30, 2)), np.zeros(30)
    for number, each in enumerate(model.members):
        _, kept = validation_split(CODES, model.settings.training, seed_for(0, "member", number))
        alone = FittedModel(model.settings, CLASSES, ("x",), model.preparation, [each])
        total[kept] += np.log(alone.probabilities(cases.take(kept)))
        count[kept] += 1.0
    index = np.flatnonzero(count)
    predicted = (total[index] / count[index, None]).argmax(axis=1)
    expected = np.zeros((2, 2), np.int64)
    np.add.at(expected, (CODES[index], predicted), 1)
    assert model.review is not None
    assert model.review.source == "held out"
    np.testing.assert_array_equal(model.review.confusion, expected)


def test_a_bank_is_reviewed_by_all_training_cases_each_left_out_in_turn() -> None:
    model = fit(views="bank")
    assert model.review is not None
    assert model.review.source == "held out"
    assert model.review.confusion.sum() == 30
    accuracy = np.trace(model.review.confusion) / 30
    assert model.metrics["members"][0]["validation_accuracy"] == pytest.approx(accuracy)
    learned = (model.probabilities(waves(CODES)).argmax(axis=1) == CODES).mean()
    assert accuracy <= learned


def test_of_many_cases_the_series_behind_prototypes_are_found_among_those_that_were_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closed_form, "EXACT_CASES", 12)
    data = LabelledCases(waves(CODES), CODES, np.ones(len(CODES)))
    embedded: list[int] = []
    monkeypatch.setattr(FittedModel, "embeddings", lambda self, cases: embedded.append(len(cases)))
    model = fit_model(data, CLASSES, preset("fast").but(n_groups=2, n_biases=1), FitOptions(seed=0))
    rows = closed_form._sample(CODES, seed_for(0, "member", 0))
    assert len(rows) == 12
    assert model.exemplars is not None
    assert set(model.exemplars.numbers) <= set(rows)
    assert not embedded  # no case goes through the bank a second time
    np.testing.assert_array_equal(model.exemplars.cases.y, CODES[model.exemplars.numbers])
    nearest, company = model.exemplars.nearest[0][0], model.exemplars.company[0][0]
    for code in (0, 1):
        assert (model.exemplars.cases.y[nearest.position[code]] == code).all()
        assert (model.exemplars.cases.y[company.wrong_position[code]] != code).all()
    assert model.review is not None
    assert model.review.agreement is not None
