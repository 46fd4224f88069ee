"""The ridge is scikit-learn's, and what it says of a left-out case is what a regression without that case says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from torch import Tensor

from pdftime.data.batches import generator_for
from pdftime.training import ridge as module
from pdftime.training.ridge import STRENGTHS, DualRidge, FactoredRidge, PrimalRidge, by_cases, products

KINDS = ["plain", "a constant feature", "duplicate cases", "duplicate features"]
WAYS: list[type[DualRidge | FactoredRidge]] = [DualRidge, FactoredRidge]
SHAPES = [(12, 4), (12, 11), (12, 12), (6, 30), (3, 1), (2, 5)]


def problem(n: int, p: int, kind: str = "plain", seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features (n, p) about 3, targets (n, 2) that follow them in part, and uneven weights, all double."""
    generator = generator_for("ridge", seed)
    features = torch.randn(n, p, generator=generator).double() + 3.0
    if kind == "a constant feature":
        features[:, 0] = 0.1
    if kind == "duplicate cases":
        features[n // 2 :] = features[: n - n // 2].clone()
    if kind == "duplicate features":
        features[:, p // 2 :] = features[:, : p - p // 2].clone()
    targets = features[:, :1] * torch.tensor([1.0, -0.5]) + torch.randn(n, 2, generator=generator).double()
    return features, targets, torch.rand(n, generator=generator).double() * 4.0 + 0.2


def reference(features: Tensor, targets: Tensor, weight: Tensor, strength: float) -> Ridge:
    return Ridge(alpha=strength).fit(features.numpy(), targets.numpy(), sample_weight=weight.numpy())


def refitted(features: Tensor, targets: Tensor, weight: Tensor, strength: float) -> Tensor:
    """(n, d) predictions, each by a regression that has really not seen its case."""
    weight = weight / weight.mean()
    found = []
    for case in range(len(features)):
        others = torch.arange(len(features)) != case
        model = reference(features[others], targets[others], weight[others], strength)
        found.append(torch.from_numpy(model.predict(features[case : case + 1].numpy())[0]))
    return torch.stack(found)


def shrunk(
    features: Tensor, weight: Tensor, share: float, way: type[DualRidge | FactoredRidge] = DualRidge
) -> DualRidge | FactoredRidge:
    made = way(features, weight)
    made.shrink_(share)
    return made


def primal(features: Tensor, targets: Tensor, weight: Tensor, sizes: list[int] | None = None) -> PrimalRidge:
    made = PrimalRidge(features.shape[1], targets.shape[1], float(weight.sum()), features.mean(dim=0) + 0.1)
    for rows in torch.arange(len(features)).split(sizes or [len(features)]):
        made.add_(features[rows], targets[rows], weight[rows])
    return made


# By cases


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1e-3, 1.0])
@pytest.mark.parametrize("way", WAYS)
def test_the_ridge_by_cases_is_scikit_learns(
    n: int, p: int, kind: str, weighted: bool, share: float, way: type[DualRidge | FactoredRidge]
) -> None:
    features, targets, weight = problem(n, p, kind)
    weight = weight if weighted else torch.ones(n).double()
    model = shrunk(features, weight, share, way)
    projection, offset = model.solve(targets)
    expected = reference(features, targets, weight / weight.mean(), model.strength)
    torch.testing.assert_close(projection, torch.from_numpy(expected.coef_.T.copy()), atol=1e-7, rtol=1e-6)
    torch.testing.assert_close(offset, torch.from_numpy(expected.intercept_), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1e-3, 1.0])
@pytest.mark.parametrize("way", WAYS)
def test_left_out_predictions_are_those_of_regressions_without_the_case(
    n: int, p: int, kind: str, weighted: bool, share: float, way: type[DualRidge | FactoredRidge]
) -> None:
    features, targets, weight = problem(n, p, kind)
    weight = weight if weighted else torch.ones(n).double()
    model = shrunk(features, weight, share, way)
    expected = refitted(features, targets, weight, model.strength)
    torch.testing.assert_close(model.left_out(targets), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(3, 14), p=st.integers(1, 40), share=st.sampled_from([1e-4, 0.1, 100.0]), seed=st.integers(0, 1000)
)
@example(n=10, p=3000, share=1e-4, seed=0)
def test_features_in_single_precision_give_the_same_within_rounding(
    n: int, p: int, share: float, seed: int, way: type[DualRidge | FactoredRidge]
) -> None:
    features, targets, weight = problem(n, p, seed=seed)
    features = features.float().double()
    single, double = (shrunk(each, weight, share, way) for each in (features.float(), features))
    scale = float(targets.abs().max()) / min(1.0, 10.0 * share)
    assert single.solve(targets).projection.dtype == torch.float32
    assert single.left_out(targets).dtype == torch.float64
    made = [
        features @ solution.projection.double() + solution.offset
        for solution in (single.solve(targets), double.solve(targets))
    ]
    assert (made[0] - made[1]).abs().max() < 1e-4 * scale
    assert (single.left_out(targets) - double.left_out(targets)).abs().max() < 1e-3 * scale


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_no_feature_varies_the_mean_of_the_others_is_the_prediction(
    dtype: torch.dtype, way: type[DualRidge | FactoredRidge]
) -> None:
    _, targets, weight = problem(6, 1)
    features = torch.full((6, 3), 0.1, dtype=dtype)
    model = way(features, weight)
    model.choose_(targets)
    projection, offset = model.solve(targets)
    assert projection.isfinite().all()
    made = features @ projection + offset
    torch.testing.assert_close(made.double(), (weight @ targets / weight.sum()).expand(6, 2), atol=1e-5, rtol=1e-5)
    for case in range(6):
        others = torch.arange(6) != case
        mean = weight[others] @ targets[others] / weight[others].sum()
        torch.testing.assert_close(model.left_out(targets)[case], mean)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "p"), [(10, 3), (7, 30)])
@pytest.mark.parametrize("way", WAYS)
def test_the_strength_is_that_of_the_smallest_left_out_error(
    n: int, p: int, seed: int, way: type[DualRidge | FactoredRidge], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_CASES", 4)  # a factored one sets out from what these say
    features, targets, weight = problem(n, p, seed=seed)
    model = way(features, weight)
    errors = []
    for share in STRENGTHS.tolist():
        gap = targets - refitted(features, targets, weight, share * model.mean_value)
        errors.append(float((weight[:, None] * gap.square()).sum()))
    best = STRENGTHS[int(np.argmin(errors))].item()
    assert model.choose_(targets) == best
    assert model.strength == pytest.approx(best * model.mean_value)
    expected = refitted(features, targets, weight, model.strength)
    torch.testing.assert_close(model.left_out(targets), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("n", "p"), [(300, 40), (300, 700)])
def test_factored_products_give_what_decomposed_ones_give(n: int, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features, targets, weight = problem(n, p)
    monkeypatch.setattr(module, "COLUMNS", 64)
    monkeypatch.setattr(module, "START_CASES", 50)
    expected = by_cases(features.float(), weight)
    monkeypatch.setattr(module, "FEW_CASES", 200)
    found = by_cases(features.float(), weight)
    assert isinstance(expected, DualRidge)
    assert isinstance(found, FactoredRidge)
    assert found.choose_(targets) == expected.choose_(targets)
    other = targets.roll(1, dims=0)  # a strength serves targets that did not choose it
    torch.testing.assert_close(found.left_out(other), expected.left_out(other), atol=1e-4, rtol=1e-4)
    for one, same in zip(found.solve(other), expected.solve(other), strict=True):
        torch.testing.assert_close(one, same, atol=1e-5, rtol=1e-4)


def test_the_mean_eigenvalue_is_the_power_of_the_centred_features_per_case() -> None:
    features, _, _ = problem(9, 4)
    centred = features - features.mean(dim=0)
    assert DualRidge(features, torch.ones(9)).mean_value == pytest.approx(float(centred.square().sum()) / 9)


def test_only_the_ratio_of_weights_matters() -> None:
    features, targets, weight = problem(9, 4)
    one, other = (shrunk(features, each, 0.1) for each in (weight, 1000.0 * weight))
    torch.testing.assert_close(one.left_out(targets), other.left_out(targets))
    torch.testing.assert_close(one.solve(targets).projection, other.solve(targets).projection)


def test_products_of_rows_are_those_of_all_features_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = problem(5, 23)[0]
    monkeypatch.setattr(module, "BLOCK", 4)
    monkeypatch.setattr(module, "FEW_CASES", 2)
    assert torch.equal(products(rows), products(rows).T)
    torch.testing.assert_close(products(rows.float()), rows @ rows.T, atol=1e-3, rtol=1e-5)


# By features


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "p"), [(12, 4), (12, 12), (6, 30), (3, 2)])
@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_the_ridge_by_features_is_the_ridge_by_cases(
    n: int, p: int, kind: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, targets, weight = problem(n, p, kind)
    expected = shrunk(features, weight, share)
    monkeypatch.setattr(module, "STRENGTHS", torch.tensor([share], dtype=torch.float64))
    solution, left_out = primal(features, targets, weight).choose_(features, targets, weight, start=share)
    torch.testing.assert_close(solution.projection.double(), expected.solve(targets).projection, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(solution.offset.double(), expected.solve(targets).offset, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(left_out, expected.left_out(targets), atol=1e-6, rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(data=st.data(), n=st.integers(3, 20))
def test_batches_add_up_in_any_split(data: st.DataObject, n: int) -> None:
    features, targets, weight = problem(n, 5)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1))))
    sizes = np.diff([0, *cuts, n]).tolist()
    one, other = (primal(features, targets, weight, each) for each in (None, sizes))
    assert one.n_cases == other.n_cases == n
    for name in ("squares", "cross", "sums", "target_sums"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name))
    for a, b in zip(*(each.choose_(features, targets, weight, start=0.1) for each in (one, other)), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("seed", range(2))
def test_the_ridge_by_features_chooses_by_the_cases_that_it_is_shown(seed: int) -> None:
    features, targets, weight = problem(14, 5, seed=seed)
    mean_value = DualRidge(features, weight).mean_value
    shown = slice(0, 9)
    left_out = {share: refitted(features, targets, weight, share * mean_value)[shown] for share in STRENGTHS.tolist()}
    errors = {
        share: float((weight[shown, None] * (targets[shown] - each).square()).sum())
        for share, each in left_out.items()
    }
    for start in STRENGTHS.tolist():  # from wherever it begins, the way is downhill
        _, found = primal(features, targets, weight).choose_(features[shown], targets[shown], weight[shown], start)
        best = min(errors, key=lambda share: errors[share])
        torch.testing.assert_close(found, left_out[best], atol=1e-6, rtol=1e-5)


def test_by_features_too_the_mean_is_the_prediction_where_nothing_varies() -> None:
    _, targets, weight = problem(6, 1)
    features = torch.full((6, 3), 0.1)
    model = PrimalRidge(3, 2, float(weight.sum()), features.mean(dim=0))
    model.add_(features, targets, weight)
    (projection, offset), left_out = model.choose_(features, targets, weight, start=0.1)
    assert projection.isfinite().all()
    mean = (weight @ targets / weight.sum()).float()
    torch.testing.assert_close(features @ projection + offset, mean.expand(6, 2), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(left_out, DualRidge(features, weight).left_out(targets), atol=1e-4, rtol=1e-4)
