"""The model as a whole: prototypes and their company, mistakes, calibration, evolution; each by hand as well."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from small_models import CLASSES, TINY, bumps, fitted
from typer.testing import CliRunner

from pdftime import PDFTimeClassifier, load
from pdftime.cli import app
from pdftime.data.files import write_series
from pdftime.data.series import SeriesSet
from pdftime.errors import ConfigError, DataError
from pdftime.explain.gallery import explain_model
from pdftime.explain.review import agreement_of, review_of
from pdftime.fitted import FittedModel

V1 = Path(__file__).parent.parent / "data_files" / "model_v1.pdftime"
SMALL = {name: TINY[name] for name in ("branch_width", "kernel_sizes", "n_heads")} | {"n_inception_layers": 1}


def labelled(cases: SeriesSet, codes: NDArray[Any]) -> SeriesSet:
    return replace(cases, y=CLASSES[codes])


def classifier(**keywords: Any) -> PDFTimeClassifier:
    return PDFTimeClassifier(**{"preset": "network", "d_model": 8, "max_epochs": 4, "settings": SMALL, **keywords})


# Prototypes


def test_the_gallery_shows_every_prototype_and_what_lies_around_it(models: dict[str, FittedModel]) -> None:
    model, (cases, codes) = models["resampled"], bumps(24, (12, 30))
    view = explain_model(model)
    z = model.embeddings(cases).reshape(24, 2, 8)
    z = z / np.linalg.norm(z, axis=2, keepdims=True)
    assert len(view.gallery) == 2 * 2 * (2 + 3)
    assert [(each.member, each.level) for each in view.levels] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for entry in view.gallery:
        head: Any = model.members[entry.member].network.head
        prototypes = head.levels[entry.level].numpy()
        code = CLASSES.tolist().index(entry.label)
        own = codes == code
        all_of_them = np.einsum("nd,ckd->nck", z[:, entry.member], prototypes).reshape(24, -1)
        best = all_of_them.argmax(axis=1)
        place = code * prototypes.shape[1] + entry.number
        assert entry.coverage == pytest.approx((best[own] == place).mean(), abs=1e-6)
        assert entry.usage is not None
        assert entry.coverage <= entry.usage + 1e-6
        assert entry.dead == (entry.usage == 0.0)
        assert entry.decides == (entry.level == 1)
        assert entry.shown == (not entry.dead and entry.duplicate_of is None)
        assert entry.neighbours[0].similarity == pytest.approx(all_of_them[own, place].max(), abs=1e-5)


def test_cosines_within_and_between_classes_and_the_effective_number(models: dict[str, FittedModel]) -> None:
    model = models["equal"]
    view = explain_model(model)
    for level in view.levels:
        prototypes = level.prototypes
        n_classes, k, _ = prototypes.shape
        within, between = [], []
        for a in range(n_classes * k):
            for b in range(n_classes * k):
                cosine = float(prototypes[a // k, a % k] @ prototypes[b // k, b % k])
                assert level.cosines[a, b] == pytest.approx(cosine, abs=1e-6)
                if a // k != b // k:
                    between.append(cosine)
                elif a != b:
                    within.append(cosine)
        assert level.within == pytest.approx(np.mean(within), abs=1e-6)
        assert level.between == pytest.approx(np.mean(between), abs=1e-6)
        assert level.effective_numbers is not None
        for code in range(n_classes):
            label = CLASSES[code]
            usage = [e.usage for e in view.gallery if (e.level, e.label) == (level.level, label)]
            expected = math.exp(-sum(each * math.log(each) for each in usage if each))
            assert level.effective_numbers[code] == pytest.approx(expected, rel=1e-5)
            assert 1.0 - 1e-6 <= level.effective_numbers[code] <= k + 1e-6


def test_duplicates_are_found_and_not_shown() -> None:
    model = fitted(max_epochs=1)
    head: Any = model.members[0].network.head
    head.level_1[0, 2] = head.level_1[0, 0]
    view = explain_model(model)
    twins = [entry for entry in view.gallery if entry.duplicate_of is not None]
    assert [(each.level, each.label, each.number, each.duplicate_of) for each in twins] == [(1, "up", 2, 0)]
    assert not twins[0].shown
    assert any("1 are nearly the same" in each for each in view.warnings)


def test_prototypes_replaced_by_real_series_are_asked_again(models: dict[str, FittedModel]) -> None:
    model, (cases, _) = models["equal"], bumps(30, (24, 24), seed=3)
    exemplars = model.exemplars
    assert exemplars is not None
    network = model.members[0].network
    ((_, x, _),) = model.batches(cases)
    with torch.no_grad():
        z = torch.nn.functional.normalize(network(x).z, dim=1)
        real = torch.nn.functional.normalize(network(next(model.batches(exemplars.cases))[1]).z, dim=1)
    replaced = real[torch.from_numpy(exemplars.nearest[0][1].position[:, :, 0])]
    scores = torch.logsumexp(torch.einsum("bd,ckd->bck", z, replaced) / network.head.temperature, dim=2)
    same = scores.argmax(dim=1).numpy() == model.probabilities(cases).argmax(axis=1)
    assert agreement_of(model, cases) == pytest.approx(same.mean())
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    agreement_of(model, cases)
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


def test_a_linear_head_has_no_gallery(every: dict[str, FittedModel]) -> None:
    view = explain_model(every["linear head"])
    assert view.gallery == view.levels == view.evolution == ()
    assert view.agreement is None
    assert view.confusion is not None


# Mistakes and calibration


def test_a_review_counts_what_it_should() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([0.5] * 3, 200)
    codes, index = rng.integers(0, 3, 200), np.arange(1000, 1200)
    review = review_of("given", probabilities, codes, index, 0.5)
    predicted = probabilities.argmax(axis=1)
    np.testing.assert_array_equal(review.confusion, confusion_matrix(codes, predicted))
    wrong = np.flatnonzero(predicted != codes)
    assert len(review.mistakes) == min(100, len(wrong))
    for (place, true, said), sure in zip(review.mistakes, review.mistake_confidence, strict=True):
        row = place - 1000
        assert (codes[row], predicted[row], probabilities[row].max()) == (true, said, sure)
        assert true != said
    assert (np.diff(review.mistake_confidence) <= 0.0).all()
    for place in range(10):
        confidence = probabilities.max(axis=1)
        here = (confidence >= place / 10) & (confidence < (place + 1) / 10 + (place == 9))
        assert review.bin_counts[place] == here.sum()
        assert review.bin_confidence[place] == pytest.approx(confidence[here].sum())
        assert review.bin_right[place] == (predicted == codes)[here].sum()


def test_given_cases_are_judged_and_strange_labels_left_out(models: dict[str, FittedModel]) -> None:
    model, (cases, codes) = models["padded"], bumps(20, (12, 29), seed=5)
    codes = codes.copy()
    codes[:3] = 1 - codes[:3]  # three labels are wrong
    view = explain_model(model, labelled(cases, codes))
    predicted = CLASSES[model.probabilities(cases).argmax(axis=1)]
    assert view.confusion is not None
    assert view.accuracy == pytest.approx((predicted == CLASSES[codes]).mean())
    assert {each.index for each in view.mistakes} == set(np.flatnonzero(predicted != CLASSES[codes]))
    assert all(each.label != each.predicted for each in view.mistakes)
    assert view.calibration_counts is not None
    assert view.calibration_counts.sum() == 20
    assert view.data == "the cases that were given"
    strange = CLASSES[codes].astype(object)
    strange[5] = "sideways"
    assert explain_model(model, replace(cases, y=strange)).confusion.sum() == 19  # type: ignore[union-attr]
    with pytest.raises(DataError, match="None of the labels is a class of the model"):
        explain_model(model, replace(cases, y=np.full(20, "x")))
    with pytest.raises(DataError, match="have no labels"):
        explain_model(model, cases)


def test_without_cases_it_is_what_training_kept() -> None:
    cases, codes = bumps(30, (24, 24))
    alone = classifier().fit(cases, CLASSES[codes])
    view = alone.explain_model()
    assert "the training cases themselves" in view.data
    assert view.confusion is not None
    assert view.confusion.sum() == 30
    split = classifier(validation_fraction=0.4, n_members=2).fit(cases, CLASSES[codes])
    view = split.explain_model()
    assert view.data.startswith("training cases that were kept for validation")
    assert view.confusion is not None
    assert 12 <= view.confusion.sum() <= 24
    given = classifier().fit(cases, CLASSES[codes], X_val=cases.X[:8], y_val=CLASSES[codes[:8]])
    view = given.explain_model()
    assert view.confusion is not None
    assert view.confusion.sum() == 8
    assert view.data == "the validation cases that were given for training"
    assert view.calibration_error is not None
    with pytest.raises(DataError, match="X and y belong together"):
        given.explain_model(cases)


def test_mistakes_are_numbered_as_the_training_data_were() -> None:
    cases, codes = bumps(30, (24, 24))
    weight = np.ones(30)
    weight[:10] = 0.0
    rng = np.random.default_rng(0)
    y = CLASSES[rng.permutation(codes)]  # nothing to learn, so there are mistakes
    model = classifier(max_epochs=1).fit(cases, y, sample_weight=weight)
    view = model.explain_model()
    assert view.mistakes
    predicted = model.predict(cases)
    for each in view.mistakes:
        assert each.index >= 10
        assert (y[each.index], predicted[each.index]) == (each.label, each.predicted)


# Evolution


def test_prototypes_are_kept_every_n_epochs_on_request(tmp_path: Path) -> None:
    cases, codes = bumps(24, (24, 24))
    seen: list[Any] = []

    def look(run: Any) -> None:
        seen.append((run.epoch, run.network.head.levels[1].clone()))

    model = classifier(max_epochs=5, keep_prototypes=2, n_members=2, callbacks=[look]).fit(cases, CLASSES[codes])
    for view in (model.explain_model(), reloaded(model, tmp_path).explain_model()):
        assert [(each.member, each.level) for each in view.evolution] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        for each in view.evolution:
            assert each.epochs.tolist() == [0, 2, 4]
            np.testing.assert_allclose(np.linalg.norm(each.prototypes, axis=-1), 1.0, atol=1e-5)
        kept = view.evolution[1].prototypes
        for place, epoch in ((1, 2), (2, 4)):
            np.testing.assert_allclose(kept[place], seen[epoch - 1][1].numpy(), atol=1e-6)
        moved = 1.0 - (kept[2] * kept[1]).sum(axis=-1)
        np.testing.assert_allclose(view.evolution[1].steps[1], moved)
    assert classifier(max_epochs=1).fit(cases, CLASSES[codes]).explain_model().evolution == ()
    linear = classifier(max_epochs=2, keep_prototypes=1, settings={**SMALL, "head": "linear"})
    assert linear.fit(cases, CLASSES[codes]).explain_model().evolution == ()
    with pytest.raises(ConfigError, match="keep_prototypes is 0; expected a whole number from 1 or None"):
        classifier(keep_prototypes=0).fit(cases, CLASSES[codes])


def test_prototypes_are_kept_from_the_command_line(tmp_path: Path) -> None:
    cases, codes = bumps(12, (24, 24))
    write_series(replace(cases, y=CLASSES[codes]), tmp_path / "train.ts")
    output = tmp_path / "model.pdftime"
    small = [
        "--preset",
        "network",
        "--max-epochs",
        "2",
        "--d-model",
        "8",
        "--set",
        "branch_width=2",
        "--set",
        "n_inception_layers=1",
    ]
    command = ["fit", str(tmp_path / "train.ts"), "-o", str(output), "-q", "--keep-prototypes", "2", *small]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert load(output).explain_model().evolution[0].epochs.tolist() == [0, 2]


def test_a_resumed_run_keeps_the_prototypes_of_an_uninterrupted_one(tmp_path: Path) -> None:
    cases, codes = bumps(24, (24, 24))
    whole = classifier(max_epochs=6, keep_prototypes=2).fit(cases, CLASSES[codes])

    def stop(run: Any) -> bool:
        return bool(run.epoch == 3)

    options = {"max_epochs": 6, "keep_prototypes": 2, "checkpoint": tmp_path / "run.pdftime"}
    monkey = pytest.MonkeyPatch()
    monkey.setattr("pdftime.training.checkpoint.EVERY_S", 0.0)
    classifier(**options, callbacks=[stop]).fit(cases, CLASSES[codes])
    resumed = classifier(**options, resume=True).fit(cases, CLASSES[codes])
    monkey.undo()
    for one, other in zip(whole.explain_model().evolution, resumed.explain_model().evolution, strict=True):
        assert one.epochs.tolist() == other.epochs.tolist() == [0, 2, 4, 6]
        np.testing.assert_array_equal(one.prototypes, other.prototypes)


def reloaded(model: PDFTimeClassifier, folder: Path) -> PDFTimeClassifier:
    model.save(folder / "model.pdftime")
    return load(folder / "model.pdftime")


# Files


def test_a_view_is_ready_for_json_and_comes_back_from_a_file(tmp_path: Path) -> None:
    cases, codes = bumps(24, (24, 24))
    model = classifier(n_members=2, keep_prototypes=2).fit(cases, CLASSES[codes])
    text = model.explain_model().to_json()
    assert reloaded(model, tmp_path).explain_model().to_json() == text
    state = json.loads(text)
    assert len(state["gallery"]) == 20
    assert state["calibration_accuracy"].count(None) == (model.model_.review.bin_counts == 0).sum()  # type: ignore[union-attr]


def test_a_model_of_format_1_says_what_it_did_not_keep(tmp_path: Path) -> None:
    old = load(V1)
    for model in (old, reloaded(old, tmp_path)):
        view = model.explain_model()
        assert len(view.gallery) == 20
        assert all(entry.usage is entry.purity is entry.coverage is entry.wrong is None for entry in view.gallery)
        assert not any(entry.dead for entry in view.gallery)
        assert view.levels[0].effective_numbers is None
        assert view.confusion is view.agreement is view.accuracy is None
        assert "format 1" in view.data
        json.loads(view.to_json())
