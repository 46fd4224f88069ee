"""Explanations of banks and of two views: exact, complete, zero behind the end, and about real training series."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_models import CLASSES, VIEWS, bumps, fitted, span_of

from pdftime.data.series import check_series
from pdftime.explain.evidence import explain
from pdftime.explain.gallery import explain_model
from pdftime.explain.maps import make_maps, score_and_margin
from pdftime.explain.review import agreement_of
from pdftime.explain.split import parts_of_score, read_out, split_over_tokens
from pdftime.explain.untrained import untrained
from pdftime.fitted import FittedModel, LeftOut
from pdftime.model.bank_network import BankNetwork, Scaling
from pdftime.model.prototypes import FixedPrototypes

BANKS = ["bank", "padded bank"]


def with_more_prototypes(model: FittedModel) -> FittedModel:
    """A bank whose first class has three prototypes with masses of their own, and its second class one."""
    (member,) = model.members
    network: Any = member.network
    d = network.d_model
    found = torch.nn.functional.normalize(torch.randn(2, 3, d, generator=torch.Generator().manual_seed(3)), dim=2)
    found[1, 1:] = found[1, 0]
    mass = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    head = FixedPrototypes(found, mass, network.head.temperature)
    scaling = Scaling(network.centre, network.inverse)
    other = BankNetwork(network.bank, 0, scaling, network.projection, network.offset, head)
    return replace(model, members=[member._replace(network=other.eval())], exemplars=None)


@pytest.mark.parametrize("kind", VIEWS)
def test_maps_and_tokens_are_exact_to_their_bounds(every: dict[str, FittedModel], kind: str) -> None:
    for each in explain(every[kind], bumps(6, span_of(kind), seed=4)[0]):
        assert each.tokens.additivity_error <= 1e-5
        for found in (each.where, each.why_not):
            assert found.completeness_gap <= (1e-5 if kind in BANKS else 0.01)
            assert abs(found.total - (found.stop - found.start)) <= 0.01 * max(1.0, abs(found.stop - found.start))


@pytest.mark.parametrize("kind", ["padded bank", "padded both"])
def test_what_stands_behind_the_end_of_a_series_changes_nothing_and_gets_nothing(
    every: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, _) = every[kind], bumps(6, (10, 30), seed=1)
    ((_, x, mask),) = model.batches(cases)
    assert mask is not None
    dirty = torch.where(mask[:, None, :], x, 7.0)
    target = torch.arange(6) % 2
    for network in (member.network for member in model.members):
        with torch.no_grad():
            clean, other = network(x, mask), network(dirty, mask)
        torch.testing.assert_close(clean.scores[-1], other.scores[-1], atol=1e-5, rtol=0)
        split = split_over_tokens(network, x, mask, clean, target)
        outside = split.edges[:-1] >= mask.sum(dim=1)[:, None]
        assert outside.any()
        assert (split.tokens[outside] == 0.0).all()


@pytest.mark.parametrize("kind", BANKS)
def test_a_banks_evidence_is_the_change_of_z_from_that_of_average_features(
    every: dict[str, FittedModel], kind: str
) -> None:
    """Any direction, not only that of a score: summed over time and channels it is direction . (z - start)."""
    model, (cases, _) = every[kind], bumps(5, span_of(kind), seed=1)
    network: Any = model.members[0].network
    ((_, x, mask),) = model.batches(cases)
    direction = torch.randn(3, 5, network.d_model, generator=torch.Generator().manual_seed(0)).double()
    evidence = network.evidence(x, mask, direction)
    rise = (direction * (network(x, mask).z.double() - network.start.double())).sum(dim=2)
    torch.testing.assert_close(evidence.values.sum(dim=(2, 3)), rise, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(evidence.frequency_values.sum(dim=3), evidence.values.sum(dim=3), atol=1e-4, rtol=1e-4)


def test_masses_take_away_what_they_should(every: dict[str, FittedModel]) -> None:
    """s = log sum_k m_k exp(cos_k / T), by hand, is what contributions, entropy and masses add up to."""
    model, (cases, _) = with_more_prototypes(every["bank"]), bumps(5, (24, 24), seed=1)
    network: Any = model.members[0].network
    ((_, x, mask),) = model.batches(cases)
    output = network(x, mask)
    unit = (output.z / output.z.norm(dim=1, keepdim=True)).double().numpy()
    temperature = float(network.head.temperature)
    for code, k in ((0, 3), (1, 1)):
        cosines = unit @ network.head.level_0[code, :k].double().numpy().T
        masses = network.head.mass[code, :k].double().numpy()
        expected = np.log((masses * np.exp(cosines / temperature)).sum(axis=1))
        np.testing.assert_allclose(output.scores[-1][:, code], expected, atol=1e-4)
        target = torch.full((5,), code)
        parts = parts_of_score(network.head, output.z, target, -1)
        assert not parts.responsibility[:, k:].any()
        total = parts.contribution.sum(dim=1) + parts.entropy + parts.mass
        np.testing.assert_allclose(total, expected, atol=1e-5)
        assert (parts.mass <= 1e-12).all()
        found = read_out(network, output, target)
        again = (found.direction * output.z.double()).sum(dim=1) + found.entropy + found.offset
        np.testing.assert_allclose(again, expected, atol=1e-5)
        split = split_over_tokens(network, x, mask, output, target)
        whole = split.tokens.sum(dim=1) + split.class_token + split.entropy + split.offset + split.start
        np.testing.assert_allclose(whole, output.scores[-1][:, code].double(), atol=1e-5)


def test_the_map_of_two_views_is_the_average_of_theirs_by_weight(every: dict[str, FittedModel]) -> None:
    model, (cases, _) = every["both"], bumps(4, (24, 24), seed=1)
    ((_, x, mask),) = model.batches(cases)
    target = torch.zeros(4, dtype=torch.long)
    quantity, baseline = score_and_margin(target, 1 - target), torch.zeros_like(x)
    bank, network = model.members
    assert bank.weight != network.weight
    assert bank.temperature != network.temperature
    cool = bank.weight / bank.temperature, network.weight / network.temperature
    share = cool[0] / sum(cool)
    one, other = (make_maps([each.network], x, mask, baseline, quantity)[0] for each in (bank, network))
    both, _ = make_maps([bank.network, network.network], x, mask, baseline, quantity, weights=model.weights)
    for name in ("values", "frequency_values", "start", "stop"):
        mean = share * getattr(one, name) + (1.0 - share) * getattr(other, name)
        np.testing.assert_allclose(getattr(both, name), mean, atol=1e-9)


@pytest.mark.parametrize("kind", [*VIEWS, "equal"])
def test_the_scores_that_are_explained_are_those_that_decide(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(5, span_of(kind), seed=1)
    expected = model.probabilities(cases)
    for each, chances in zip(explain(model, cases), expected, strict=True):
        logits = each.scores / model.temperature
        np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(), chances, atol=1e-6)
        assert each.classes.index(each.predicted) == each.scores.argmax()
        margin = each.target.score - each.contrast.score
        assert margin / model.temperature == pytest.approx(
            np.log(each.target.probability / each.contrast.probability)
        )


@pytest.mark.parametrize("kind", VIEWS)
def test_the_baseline_says_what_each_view_is_compared_with(every: dict[str, FittedModel], kind: str) -> None:
    (each,) = explain(every[kind], bumps(1, span_of(kind), seed=1)[0])
    mean, average = (
        "the mean of the training series, per channel",
        "a case with the average features of the training series",
    )
    expected = average if each.where.method == "exact evidence" else mean
    assert each.where.baseline == each.why_not.baseline == expected
    assert each.where.method == each.why_not.method
    assert each.evidence is not None
    assert each.evidence.baseline == average
    for match in (each.target.matches[0], each.target.matches[-1]):
        assert each.prototype_map(match).baseline == mean


@pytest.mark.parametrize("kind", VIEWS)
def test_the_evidence_of_a_bank_is_exact_and_laid_on_values(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(3, span_of(kind), seed=1)
    banks = [member.network for member in model.members if member.view == "bank"]
    ((_, x, mask),) = model.batches(cases)
    for row, each in enumerate(explain(model, cases)):
        found, target = each.evidence, each.source.target
        assert found is not None
        assert found.values.shape == each.series.shape
        starts = [float(bank.head(bank.start[None])[-1][0, target]) for bank in banks]  # banks count alike
        stops = [float(bank(x, mask).scores[-1][row, target]) for bank in banks]
        assert found.start == pytest.approx(np.mean(starts), abs=1e-5)
        assert found.stop == pytest.approx(np.mean(stops), abs=1e-5)
        assert abs(found.total - (found.stop - found.start)) <= 1e-5 * max(1.0, abs(found.stop))
        assert found.completeness_gap <= 0.01


def test_a_network_alone_has_no_exact_evidence_on_values(every: dict[str, FittedModel]) -> None:
    (each,) = explain(every["equal"], bumps(1, span_of("equal"), seed=1)[0])
    assert each.evidence is None
    assert each.to_dict()["evidence"] is None


@pytest.mark.parametrize("kind", VIEWS)
def test_a_prototypes_map_adds_up_whatever_the_view(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(2, span_of(kind), seed=1)
    z = model.split_by_member(model.embeddings(cases))
    for row, each in enumerate(explain(model, cases)):
        for match in (*each.target.deciding, *each.contrast.deciding):
            prototype: Any = model.members[match.member].network.head.levels[match.level]
            vector = prototype[CLASSES.tolist().index(match.label), match.number].numpy()
            own = z[match.member][row]
            assert match.similarity == pytest.approx(own @ vector / np.linalg.norm(own), abs=1e-5)
            found = each.prototype_map(match)
            assert found.stop == pytest.approx(match.similarity, abs=1e-5)
            assert abs(found.total - (found.stop - found.start)) <= found.completeness_gap + 1e-6
            assert found.completeness_gap <= 0.03


@pytest.mark.parametrize("kind", VIEWS)
def test_neighbours_are_training_series_of_the_class_and_can_be_looked_at(
    every: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, codes) = every[kind], bumps(24, span_of(kind))  # the training cases
    for each in explain(model, cases.take([0, 1])):
        for match in (*each.target.matches, *each.contrast.matches):
            code = CLASSES.tolist().index(match.label)
            assert match.wrong is not None
            assert codes[match.wrong.index] != code
            assert 0.0 <= match.usage <= 1.0  # type: ignore[operator]
            for neighbour in match.neighbours:
                assert codes[neighbour.index] == code
                assert -1.0 <= neighbour.similarity <= 1.0 + 1e-6
                np.testing.assert_allclose(model.training_series(neighbour.index), cases.series(neighbour.index))
            assert [n.similarity for n in match.neighbours] == sorted(
                (n.similarity for n in match.neighbours), reverse=True
            )


def test_the_best_match_is_that_of_the_member_that_counts_more(every: dict[str, FittedModel]) -> None:
    (each,) = explain(every["both"], bumps(1, (24, 24), seed=1)[0])
    bank, network = ([m for m in each.target.deciding if m.member == number] for number in (0, 1))
    for heavy, light in ((bank, network), (network, bank)):
        matches = tuple(
            replace(match, weight=0.99 if match in heavy else 0.01)
            for match in (*heavy, *light, *each.target.matches)
        )
        best = replace(each.target, matches=matches).best_match
        assert best is not None
        assert best.member == heavy[0].member
        assert best.responsibility == max(match.responsibility for match in heavy)


@pytest.mark.parametrize("kind", VIEWS)
def test_missing_values_and_series_of_one_value_are_explained(every: dict[str, FittedModel], kind: str) -> None:
    model = every[kind]
    if kind.startswith("padded"):
        series = [bumps(1, (20, 20), seed=1)[0].X[0], np.full((2, 1), 0.5), np.full((2, 30), 1.0)]
        series[0][0, 3:9] = np.nan
        cases = check_series(series)
    else:
        X = bumps(2, (24, 24), seed=1)[0].X.copy()
        X[0, 0, 3:9] = np.nan
        X[1] = 0.5
        cases = check_series(X)
    for row, each in enumerate(explain(model, cases)):
        assert each.series.shape == each.input_map.shape == (2, cases.lengths[row])
        assert np.isfinite(each.input_map).all()
        assert np.isfinite(each.where.frequency_values).all()
        assert each.tokens.additivity_error <= 1e-5
        assert each.where.completeness_gap <= 0.01
        assert np.isfinite([check.value for check in each.check().checks]).all()
        assert 0.0 <= each.tokens.locality <= 1.0


@pytest.mark.parametrize("kind", VIEWS)
def test_explaining_a_bank_leaves_no_trace_and_says_the_same_again(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, _) = every[kind], bumps(2, span_of(kind), seed=1)
    before = [{k: v.clone() for k, v in member.network.state_dict().items()} for member in model.members]
    state = torch.random.get_rng_state()
    first = [each.to_json(checks=True) for each in explain(model, cases)]
    assert first == [each.to_json(checks=True) for each in explain(model, cases)]
    assert torch.is_grad_enabled()
    assert torch.equal(torch.random.get_rng_state(), state)
    for kept, member in zip(before, model.members, strict=True):
        assert all(torch.equal(kept[name], tensor) for name, tensor in member.network.state_dict().items())


@pytest.mark.parametrize("kind", ["bank", "both"])
def test_an_untrained_model_has_one_member_of_each_view_that_knows_nothing(
    every: dict[str, FittedModel], kind: str
) -> None:
    model, (cases, _) = every[kind], bumps(4, span_of(kind), seed=1)
    found, again, other = untrained(model), untrained(model), untrained(model, 1)
    assert [member.view for member in found.members] == list(dict.fromkeys(m.view for m in model.members))
    assert model.exemplars is not None
    np.testing.assert_array_equal(found.probabilities(cases), again.probabilities(cases))
    assert not np.array_equal(found.probabilities(cases), other.probabilities(cases))
    for own, learned in zip(found.members, model.members, strict=False):
        if isinstance(own.network, BankNetwork):
            assert isinstance(learned.network, BankNetwork)
            assert not torch.equal(own.network.projection, learned.network.projection)
            torch.testing.assert_close(own.network.projection.sum(0), learned.network.projection.sum(0))
            assert torch.equal(own.network.centre, learned.network.centre)


# The model as a whole


def test_a_bank_where_classes_have_different_numbers_of_prototypes_shows_each_once() -> None:
    model = fitted(views="bank")
    changed = with_more_prototypes(model)
    head: Any = changed.members[0].network.head
    prototypes = head.level_0.double().numpy()
    view = explain_model(replace(changed, review=None, exemplars=surrounded(model, k=3)))
    assert [(each.label, each.number) for each in view.gallery] == [("up", 0), ("up", 1), ("up", 2), ("down", 0)]
    assert all(each.decides and each.duplicate_of is None for each in view.gallery)
    (level,) = view.levels
    within = [prototypes[0, a] @ prototypes[0, b] for a, b in ((0, 1), (0, 2), (1, 2))]
    between = [prototypes[0, a] @ prototypes[1, 0] for a in range(3)]
    assert level.within == pytest.approx(np.mean(within), abs=1e-6)
    assert level.between == pytest.approx(np.mean(between), abs=1e-6)


def surrounded(model: FittedModel, k: int) -> Any:
    """The training series around the first prototype of each class, said of k of them."""
    exemplars = model.exemplars
    assert exemplars is not None
    assert exemplars.company is not None
    near, around = exemplars.nearest[0][0], exemplars.company[0][0]
    nearest = type(near)(*(np.repeat(each[:, :1], k, axis=1) for each in near))
    company = type(around)(*(np.repeat(each[:, :1], k, axis=1) for each in around[:-1]), around.gaps)
    return exemplars._replace(nearest=[[nearest]], company=[[company]])


@pytest.mark.parametrize("kind", VIEWS)
def test_the_gallery_of_every_view_is_shown(every: dict[str, FittedModel], kind: str) -> None:
    model, (cases, codes) = every[kind], bumps(20, span_of(kind), seed=5)
    kept, view = explain_model(model), explain_model(model, replace(cases, y=CLASSES[codes]))
    expected = 0
    for member in model.members:
        head: Any = member.network.head
        expected += sum(int((mass > 0.0).sum()) for mass in head.masses)
        decides = [each.decides for each in view.gallery if model.members[each.member] is member]
        assert sum(decides) == int((head.masses[-1] > 0.0).sum())
    assert len(view.gallery) == len(kept.gallery) == expected
    assert {each.member for each in view.levels} == set(range(len(model.members)))
    predicted = CLASSES[model.probabilities(cases).argmax(axis=1)]
    assert view.accuracy == pytest.approx((predicted == CLASSES[codes]).mean())
    assert kept.data.startswith("training cases that were kept for validation")
    assert view.agreement == agreement_of(model, cases)
    assert view.to_json()


def test_agreement_on_known_embeddings_is_what_replacing_prototypes_by_hand_does(
    every: dict[str, FittedModel],
) -> None:
    model, exemplars = every["bank"], every["bank"].exemplars
    assert exemplars is not None
    head: Any = model.members[0].network.head
    n_cases = int(exemplars.numbers.max()) + 1
    z = np.random.default_rng(0).standard_normal((n_cases, head.level_0.shape[2])).astype(np.float32)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    nearest = exemplars.numbers[exemplars.nearest[0][0].position[:, :, 0]]  # (n_classes, k) training cases
    same = np.zeros(n_cases)
    for number, case in enumerate(unit):
        decisions = []
        for prototypes in (head.level_0.numpy(), unit[nearest]):
            terms = head.mass.numpy() * np.exp(prototypes @ case / float(head.temperature))
            decisions.append(int(terms.sum(axis=1).argmax()))
        same[number] = decisions[0] == decisions[1]
    every_case = np.arange(n_cases)
    sample = np.union1d(exemplars.numbers, every_case[::2])  # it holds the series behind prototypes
    for rows in (every_case, sample):
        assert agreement_of(model, [LeftOut(rows, z[rows])]) == pytest.approx(same[rows].mean())
