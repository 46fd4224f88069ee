"""Figures: made without warnings for every shape, and what is drawn is what was given."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from pdftime.data.times import time_axis_of
from pdftime.errors import ConfigError, DataError, PDFTimeError
from pdftime.explain.explanation import (
    AttributionMap,
    Check,
    Checks,
    Curve,
    Explanation,
    Neighbour,
    PrototypeMatch,
    ScoreSheet,
    Segment,
    TokenEvidence,
)
from pdftime.explain.figures import (
    COLUMN,
    PAGE,
    assign_members,
    draw_cosines,
    draw_curves,
    draw_evolution,
    draw_gallery,
    draw_heat_map,
    draw_matched,
    draw_matches,
    draw_members,
    draw_score_sheet,
    draw_series,
    draw_space,
    draw_spectrum,
    draw_stability,
    evolution_plane,
    flatten,
    match_prototypes,
    profiles_of,
    save_figure,
)
from pdftime.explain.figures.matches import bars_of, top_matches
from pdftime.explain.figures.stability import Stability
from pdftime.explain.figures.traces import runs, telling_channels, thinned
from pdftime.explain.gallery import Evolution, GalleryEntry, LevelView, ModelExplanation

ODD = "a_$b$"
LONG = "a class with a rather long name, longer than any column"


def unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float64)


def class_names(n_classes: int) -> tuple[Any, ...]:
    return (ODD, "_under", LONG, *(f"class {number}" for number in range(3, n_classes)))[:n_classes]


def made_map(series: NDArray[np.float64], names: tuple[str, ...], quantity: str, seed: int = 0) -> AttributionMap:
    """Evidence around a third of the series in the first channel, noise elsewhere."""
    n_channels, length = series.shape
    rng = np.random.default_rng(seed)
    values = rng.normal(0.0, 0.02, series.shape)
    start, end = length // 3, max(length // 3, length // 2)
    values[0, start : end + 1] += np.hanning(end - start + 3)[1:-1]
    frequencies = np.fft.rfftfreq(length)
    split = rng.normal(0.0, 1.0, (n_channels, len(frequencies)))
    split += (values.sum() - split.sum()) / split.size
    segments = [Segment(0, names[0], start, end, 0.8)]
    if n_channels > 1:
        segments.append(Segment(n_channels - 1, names[-1], 0, min(2, length - 1), 0.1))
    return AttributionMap(
        quantity,
        values,
        "the training mean",
        0.1,
        0.1 + float(values.sum()),
        0.0,
        frequencies,
        split,
        tuple(segments),
    )


def made_match(label: Any, number: int, share: float, similarity: float, decides: bool = True) -> PrototypeMatch:
    near = tuple(Neighbour(10 * number + place, label, 0.95 - 0.01 * place) for place in range(5))
    return PrototypeMatch(
        member=0,
        level=int(decides),
        number=number,
        label=label,
        similarity=similarity,
        responsibility=share,
        contribution=share * similarity / 0.2,
        decides=decides,
        weight=1.0,
        usage=0.4,
        purity=0.9,
        gap=0.05,
        relative_gap=1.1,
        neighbours=near,
        wrong=Neighbour(99, "other", 0.3),
    )


def made_sheet(label: Any, k: int, best: float, probability: float) -> ScoreSheet:
    cosines = best - 0.1 * np.arange(k)
    shares = np.exp(cosines / 0.2) / np.exp(cosines / 0.2).sum()
    entropy = float(-(shares * np.log(shares)).sum())
    matches = tuple(made_match(label, j, float(shares[j]), float(cosines[j])) for j in range(k))
    score = float(np.log(np.exp(cosines / 0.2).sum()))
    early = made_match(label, 0, 1.0, 0.5, decides=False)
    return ScoreSheet(label, score, probability, (early, *matches), entropy, ((0.0, entropy),), 0.0)


def made_series(n_channels: int, length: int, missing: bool, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    times = np.arange(length)
    series = np.stack([np.sin(times / max(length, 8) * (3 + c) + c) * 10.0 ** (c % 4) for c in range(n_channels)])
    series += rng.normal(0.0, 0.1, series.shape) * np.abs(series).max(axis=1, keepdims=True)
    if missing:
        series[0, length // 4 : length // 4 + max(1, length // 10)] = np.nan
        series[-1, ::7] = np.nan
        if n_channels > 2:
            series[1] = np.nan
    return series


def made_explanation(
    n_channels: int = 1, length: int = 24, n_classes: int = 3, k: int = 3, missing: bool = False
) -> Explanation:
    names = (ODD, *(f"channel_{number}" for number in range(1, n_channels)))
    classes = class_names(n_classes)
    series = made_series(n_channels, length, missing)
    other = classes[min(1, n_classes - 1)]
    tokens = TokenEvidence(np.zeros(length), 0.0, 0.0, 0.0, np.arange(length + 1.0), 0.9, True)
    return Explanation(
        predicted=classes[0],
        runner_up=other,
        classes=classes,
        scores=np.linspace(5.0, 1.0, n_classes),
        probabilities=np.linspace(0.9, 0.0, n_classes),
        opinions=(),
        target=made_sheet(classes[0], k, 0.95, 0.9),
        contrast=made_sheet(other, k, 0.4, 0.05),
        tokens=tokens,
        where=made_map(series, names, f"score of {classes[0]}"),
        why_not=made_map(series, names, f"score of {classes[0]} less that of {other}", seed=1),
        series=series,
        missing=np.isnan(series),
        channel_names=names,
        warnings=(),
        source=None,  # type: ignore[arg-type]
    )


def made_training(
    n_channels: int, length: int, *, unequal: bool = False, missing: bool = False
) -> dict[int, NDArray[np.float64]]:
    lengths = [length + (7 * place) % 11 * unequal for place in range(100)]
    return {place: made_series(n_channels, own, missing, seed=place) for place, own in enumerate(lengths)}


def made_checks() -> Checks:
    shares = np.linspace(0.0, 1.0, 11)
    rng = np.random.default_rng(0)
    chance = np.clip(1.0 - shares + rng.normal(0.0, 0.08, (8, 11)), 0.0, 1.0)
    fall = Curve(shares, np.exp(-6 * shares), chance)
    rise = Curve(shares, 1.0 - np.exp(-6 * shares), 1.0 - chance)
    return Checks((Check("comprehensiveness at 10%", 0.5, 0.1, True, "falls by half"),), fall, rise, ())


def made_view(n_classes: int = 3, k: int = 3, n_channels: int = 1) -> ModelExplanation:
    classes = class_names(n_classes)
    rng = np.random.default_rng(0)
    entries = [
        GalleryEntry(
            member=0,
            level=1,
            number=number,
            label=label,
            decides=True,
            neighbours=tuple(Neighbour((17 * code + 5 * number + place) % 100, label, 0.9) for place in range(5)),
            wrong=None,
            usage=0.6 / (number + 1),
            coverage=0.3,
            purity=0.95,
            gap=0.04,
            relative_gap=1.2,
            dead=number == 3,
            duplicate_of=0 if number == 4 else None,
        )
        for code, label in enumerate(classes)
        for number in range(k)
    ]
    prototypes = unit(rng.normal(size=(n_classes, k, 8)))
    flat = prototypes.reshape(-1, 8)
    level = LevelView(0, 1, prototypes, flat @ flat.T, 0.3 if k > 1 else float("nan"), 0.02, None)
    path = unit(np.cumsum(rng.normal(size=(6, n_classes, k, 8)), axis=0))
    return ModelExplanation(
        classes=classes,
        channel_names=(ODD, *(f"channel_{number}" for number in range(1, n_channels))),
        gallery=tuple(entries),
        levels=(level,),
        agreement=0.98,
        data="training cases",
        confusion=None,
        mistakes=(),
        calibration_edges=np.linspace(0.0, 1.0, 11),
        calibration_counts=None,
        calibration_confidence=None,
        calibration_accuracy=None,
        calibration_error=None,
        evolution=(Evolution(0, 1, np.arange(6) * 20, path),),
        warnings=(),
    )


def made_stability(n_classes: int, k: int, n_runs: int = 3) -> Stability:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(n_classes), 10)
    base = rng.normal(size=(n_classes, k, len(codes)))
    return match_prototypes(base + 0.4 * rng.normal(size=(n_runs, *base.shape)), codes)


def visible_texts(figure: Figure) -> list[Text]:
    """What can be read: titles, labels, legends, and the labels of ticks inside their axes."""
    figure.draw_without_rendering()
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes._right_title, *axes.texts]  # type: ignore[attr-defined]
        for axis in (axes.xaxis, axes.yaxis):
            texts += [axis.label, axis.offsetText]
            low, high = sorted(axis.get_view_interval())
            texts += [
                tick.label1
                for tick in axis.get_major_ticks()
                if axes.axison and tick.label1.get_visible() and low <= tick.get_loc() <= high
            ]
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


def assert_readable(figure: Figure) -> None:
    """No text leaves the figure or lies on another, and none is smaller than 5 points."""
    texts = visible_texts(figure)
    boxes = [text.get_window_extent() for text in texts]
    width, height = figure.bbox.size
    for text, box in zip(texts, boxes, strict=True):
        assert text.get_fontsize() >= 5.0, text.get_text()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (text.get_text(), box, figure.bbox)
    for (one, a), (two, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(across, along) <= 1.5, (one.get_text(), two.get_text())


def all_texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in visible_texts(figure))


def lines_of(axes: Any) -> list[NDArray[np.float64]]:
    return [np.asarray(line.get_ydata(), np.float64) for line in axes.lines]


def test_texts_that_lie_on_each_other_or_leave_the_figure_are_found() -> None:
    for places in ([0.5, 0.52], [0.1, 0.99]):
        figure = Figure(figsize=(3, 2))
        for place in places:
            figure.text(place, 0.5, "a text")
        with pytest.raises(AssertionError, match="a text"):
            assert_readable(figure)


# Every figure, every shape

SHAPES = [
    pytest.param(1, 1, False, COLUMN, id="one value"),
    pytest.param(1, 24, True, COLUMN, id="1 channel"),
    pytest.param(1, 2000, True, PAGE, id="1 long channel"),
    pytest.param(6, 24, True, COLUMN, id="6 channels in a column"),
    pytest.param(6, 2000, False, PAGE, id="6 long channels on a page"),
    pytest.param(60, 24, False, PAGE, id="60 channels on a page"),
    pytest.param(60, 2000, True, COLUMN, id="60 long channels in a column"),
]


@pytest.mark.parametrize(("n_channels", "length", "missing", "width"), SHAPES)
def test_figures_of_a_case_are_readable(n_channels: int, length: int, missing: bool, width: float) -> None:
    explanation = made_explanation(n_channels, length, missing=missing)
    training = made_training(n_channels, length, unequal=missing, missing=missing)
    assert_readable(draw_series(explanation, width=width))
    assert_readable(draw_heat_map(explanation, explanation.why_not, width=width))
    assert_readable(draw_spectrum(explanation, width=width))
    maps = [explanation.where] * (2 if missing else 0)
    assert_readable(draw_matches(explanation, training, maps=maps, stretch=length > 24, width=width))


STAMPS = {
    "numbers": (0.0, 0.02),
    "on one day": (np.datetime64("2024-05-01T08:00:00"), np.timedelta64(10, "s")),
    "days": (np.datetime64("2024-05-01"), np.timedelta64(1, "D")),
    "long texts": (np.datetime64("2024-05-01T08:00:00.125"), np.timedelta64(7_654_321, "ms")),
}


@pytest.mark.parametrize("kind", list(STAMPS))
@pytest.mark.parametrize(("n_channels", "length", "missing", "width"), [SHAPES[place] for place in (0, 3, 4)])
def test_time_stamps_mark_the_axis_and_are_readable(
    n_channels: int, length: int, missing: bool, width: float, kind: str
) -> None:
    start, step = STAMPS[kind]
    stamped = replace(made_explanation(n_channels, length, missing=missing), times=start + np.arange(length) * step)
    assert stamped.times is not None
    axis = time_axis_of(stamped.times)
    training = made_training(n_channels, length, unequal=missing)
    for figure in (
        draw_series(stamped, width=width),
        draw_heat_map(stamped, width=width),
        draw_matches(stamped, training, stretch=False, width=width),
    ):
        assert_readable(figure)
        named = [axes for axes in figure.axes if axes.get_xlabel().startswith(axis.name)]
        assert named
        assert "time point" not in [axes.get_xlabel() for axes in figure.axes]
        for axes in named:
            for tick in axes.xaxis.get_major_ticks():
                if 0 <= tick.get_loc() < length:
                    assert tick.label1.get_text() == axis.texts[round(tick.get_loc())].replace(" ", "\n")


MODELS = [
    pytest.param(1, 1, 1, COLUMN, id="1 class"),
    pytest.param(3, 5, 6, COLUMN, id="3 classes, 6 channels"),
    pytest.param(10, 3, 1, COLUMN, id="10 classes in a column"),
    pytest.param(12, 5, 60, PAGE, id="12 classes, 60 channels"),
]


@pytest.mark.parametrize(("n_classes", "k", "n_channels", "width"), MODELS)
def test_figures_of_a_model_are_readable(n_classes: int, k: int, n_channels: int, width: float) -> None:
    view = made_view(n_classes, k, n_channels)
    training = made_training(n_channels, 40, unequal=True, missing=n_channels == 6)
    evolution, stability = view.evolution[0], made_stability(n_classes, k)
    members = {0: [training[place] for place in range(70)]}
    shown = {(run, number): [training[7 * run + number]] for run in range(3) for number in range(k)}
    embeddings = np.random.default_rng(0).normal(size=(5 * n_classes, 8))
    codes = np.repeat(np.arange(n_classes), 5)
    maps = [flatten(embeddings, view.levels[0].prototypes, "pca"), flatten(embeddings, np.zeros((n_classes, 0, 8)))]
    assert_readable(draw_gallery(view, training, width=width))
    assert_readable(draw_cosines(view.levels[0], view.classes, width=width))
    assert_readable(draw_members(view, training, members, view.classes[-1], width=width))
    assert_readable(draw_evolution(evolution, evolution_plane(evolution), view.classes, width=width))
    assert_readable(draw_stability(stability, view.classes, width=width))
    assert_readable(draw_matched(stability, view.classes, view.classes[-1], shown, width=width))
    assert_readable(draw_space(maps, codes, view.classes, ["prototype head", "linear head"], width=width))


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_sheets_and_curves_are_readable(k: int, width: float) -> None:
    long = made_sheet(LONG, k, 0.9, 0.5)
    assert_readable(draw_score_sheet(replace(made_explanation(k=k), target=long), width=width))
    assert_readable(draw_curves(made_checks(), LONG, width=width))


# What is drawn is what was given


def test_series_map_and_boxes_are_those_of_the_explanation() -> None:
    explanation = made_explanation(3, 24, missing=True)
    figure = draw_series(explanation)
    panels = figure.axes[:3]
    for channel, axes in enumerate(panels):
        np.testing.assert_array_equal(lines_of(axes)[0], explanation.series[channel])
        np.testing.assert_array_equal(axes.images[0].get_array(), explanation.where.values[channel : channel + 1])
        boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        edges = [(box.get_x(), box.get_x() + box.get_width()) for box in boxes]
        own = [each for each in explanation.where.segments if each.channel == channel]
        assert edges == [(each.start - 0.5, each.end + 0.5) for each in own]
        bars = [path.get_extents() for path in axes.collections[0].get_paths()]
        assert [(box.x0, box.width) for box in bars] == runs(explanation.missing[channel])
    assert "all missing" in all_texts(figure)
    limits = {image.get_clim() for axes in panels for image in axes.images}
    biggest = np.abs(explanation.where.values).max()
    assert limits == {(-biggest, biggest)}


def test_another_map_is_drawn_where_asked_for() -> None:
    explanation = made_explanation()
    figure = draw_series(explanation, explanation.why_not)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), explanation.why_not.values)
    assert explanation.why_not.quantity in all_texts(figure).replace("\n", " ")


def test_of_many_channels_those_with_most_evidence_are_drawn() -> None:
    explanation = made_explanation(60, 24)
    strength = np.abs(explanation.where.values).sum(axis=1)
    best = set(np.argsort(-strength)[:6].tolist())
    titles = {axes.get_title(loc="left") for axes in draw_series(explanation).axes[:6]}
    assert titles == {explanation.channel_names[channel] for channel in best}
    assert "6 of 60 channels" in all_texts(draw_series(explanation)).replace("\n", " ")


def test_heat_map_holds_the_map_and_its_marginals() -> None:
    explanation = made_explanation(6, 24)
    main, top, side = draw_heat_map(explanation).axes[:3]
    where = explanation.where
    np.testing.assert_array_equal(main.images[0].get_array(), where.values)
    steps = [patch.get_data() for patch in top.patches if isinstance(patch, StepPatch)]
    np.testing.assert_allclose(sum(each.values for each in steps), where.values.sum(axis=0))
    np.testing.assert_array_equal(steps[0].edges, np.arange(25) - 0.5)
    widths = [patch.get_width() for patch in side.patches if isinstance(patch, Rectangle)]
    np.testing.assert_allclose(widths, where.values.sum(axis=1))
    boxes = [patch for patch in main.patches if isinstance(patch, Rectangle)]
    assert [(box.get_x(), box.get_y()) for box in boxes] == [
        (each.start - 0.5, each.channel - 0.5) for each in where.segments
    ]
    assert [label.get_text() for label in main.get_yticklabels()] == list(explanation.channel_names)


def test_spectrum_adds_up_to_the_map() -> None:
    explanation = made_explanation(2, 24)
    axes = draw_spectrum(explanation).axes[0]
    steps = [patch.get_data() for patch in axes.patches if isinstance(patch, StepPatch)]
    drawn = sum(each.values for each in steps)
    np.testing.assert_allclose(drawn, explanation.where.frequency_values.sum(axis=0))
    assert drawn.sum() == pytest.approx(explanation.where.values.sum())
    middles = (steps[0].edges[1:] + steps[0].edges[:-1]) / 2
    np.testing.assert_allclose(middles, explanation.where.frequencies, atol=1e-12)


def test_a_peak_of_one_time_point_stays_visible_in_a_long_map() -> None:
    values = np.zeros((2, 5000))
    values[0, 1234], values[1, 77] = 3.0, -2.0
    drawn = thinned(values)
    assert drawn.shape[1] <= 1000
    assert (drawn[0].max(), drawn[1].min()) == (3.0, -2.0)
    assert drawn[0].argmax() / drawn.shape[1] == pytest.approx(1234 / 5000, abs=0.002)


def test_matches_lay_the_series_over_its_neighbours() -> None:
    explanation = made_explanation(1, 24, k=3)
    training = made_training(1, 24)
    panels = [axes for axes in draw_matches(explanation, training).axes if axes.axison]
    nearest = [match.neighbours[0].index for match in explanation.target.deciding]
    assert len(panels) == 4
    assert explanation.contrast.best_match is not None
    nearest.append(explanation.contrast.best_match.neighbours[0].index)
    for axes, index in zip(panels, nearest, strict=True):
        theirs, query = lines_of(axes)
        np.testing.assert_array_equal(theirs, training[index][0])
        np.testing.assert_array_equal(query, explanation.series[0])
    colours = [axes.lines[0].get_color() for axes in panels]
    assert colours[0] == colours[1] == colours[2] != colours[3]


def test_matches_are_different_and_alive() -> None:
    explanation = made_explanation(k=4)
    first, second, third, fourth = explanation.target.deciding
    twin = replace(second, neighbours=first.neighbours)
    sheet = replace(explanation.target, matches=(first, twin, replace(third, usage=0.0), fourth))
    shown = top_matches(replace(explanation, target=sheet), 3)
    assert shown == [first, fourth, explanation.contrast.best_match]
    unused = tuple(replace(match, usage=0.0) for match in explanation.target.deciding)
    all_dead = replace(explanation, target=replace(explanation.target, matches=unused))
    assert top_matches(all_dead, 2)[:2] == list(unused[:2])


def test_a_neighbour_of_another_length_is_stretched_or_left_as_it_is() -> None:
    explanation = made_explanation(1, 24, k=1)
    training = {0: np.linspace(0.0, 1.0, 47)[None, :]}
    stretched = next(axes for axes in draw_matches(explanation, training).axes if axes.axison)
    np.testing.assert_allclose(lines_of(stretched)[0], np.linspace(0.0, 1.0, 24))
    own = draw_matches(explanation, training, stretch=False)
    axes = next(axes for axes in own.axes if axes.axison)
    np.testing.assert_array_equal(lines_of(axes)[0], training[0][0])
    assert axes.get_xlim() == (-0.5, 46.5)
    assert "47 points" in all_texts(own).replace("\n", " ")


def test_neighbours_that_are_not_kept_are_said_to_be_missing() -> None:
    assert "are not kept" in all_texts(draw_matches(made_explanation(), {})).replace("\n", " ")


def test_a_linear_head_has_a_sheet_but_no_matches() -> None:
    bare = replace(made_sheet("up", 1, 0.9, 0.9), matches=(), entropy=0.0, offset=0.3, score=2.0)
    explanation = replace(made_explanation(), target=bare, contrast=replace(bare, label="down", score=-1.0))
    with pytest.raises(DataError, match="no prototypes"):
        draw_matches(explanation, {})
    assert [(bar.name, round(bar.value, 6)) for bar in bars_of(bare)] == [
        ("weights times embedding", 1.7),
        ("offset", 0.3),
    ]
    assert_readable(draw_score_sheet(explanation))


@pytest.mark.parametrize("k", [1, 3, 12])
def test_bars_add_up_to_the_score(k: int) -> None:
    explanation = made_explanation(k=k)
    for axes, sheet in zip(
        draw_score_sheet(explanation).axes, (explanation.target, explanation.contrast), strict=True
    ):
        bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        parts, total = bars[:-1], bars[-1]
        assert sum(bar.get_width() for bar in parts) == pytest.approx(sheet.score)
        assert total.get_width() == pytest.approx(sheet.score)
        for before, after in itertools.pairwise(parts):
            assert after.get_x() == pytest.approx(before.get_x() + before.get_width())
        assert len(parts) <= 9


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_bars_of_an_ensemble_are_averaged_over_its_members(share: float) -> None:
    one = made_sheet("up", 3, 0.9, 0.9)
    first = tuple(replace(match, weight=1.0 - share) for match in one.matches)
    second = tuple(replace(match, member=1, weight=share) for match in one.matches)
    both = replace(one, matches=(*first, *second), level_entropies=one.level_entropies * 2)
    bars = bars_of(both, n_shown=20)
    assert sum(bar.value for bar in bars) == pytest.approx(one.score)
    assert {bar.name for bar in bars} >= {"prototype 1 of member 1", "prototype 1 of member 2"}
    by_name = {bar.name: bar.value for bar in bars}
    alone = {bar.name: bar.value for bar in bars_of(one, n_shown=20)}
    assert by_name["prototype 1 of member 2"] == pytest.approx(share * alone["prototype 1"])


def test_a_sheet_that_does_not_add_up_says_so() -> None:
    sheet = replace(made_sheet("up", 3, 0.9, 0.9), score=9.0)
    assert [bar.name for bar in bars_of(sheet)][-1] == "not accounted for"
    assert sum(bar.value for bar in bars_of(sheet)) == pytest.approx(9.0)


def test_curves_are_those_of_the_checks() -> None:
    checks = made_checks()
    for axes, curve in zip(draw_curves(checks, "up").axes, (checks.deletion, checks.insertion), strict=True):
        chance, by_map = lines_of(axes)
        np.testing.assert_allclose(chance, curve.by_chance.mean(axis=0))
        np.testing.assert_array_equal(by_map, curve.by_map)
        np.testing.assert_allclose(axes.lines[1].get_xdata(), 100 * curve.shares)
        drawn = axes.collections[0].get_paths()[0].vertices[:, 1]  # type: ignore[index]
        assert drawn.min() == curve.by_chance.min()


def test_gallery_shows_the_nearest_series_and_neither_dead_nor_duplicate_prototypes() -> None:
    view, training = made_view(2, 5), made_training(1, 30)
    figure = draw_gallery(view, training)
    cells = [axes for axes in figure.axes if axes.lines]
    assert len(cells) == 2 * 3  # of five, number 3 is dead and number 4 a duplicate
    entries = [each for each in view.gallery if each.shown]
    for axes, entry in zip(cells, entries, strict=True):
        np.testing.assert_array_equal(lines_of(axes)[-1], training[entry.neighbours[0].index][0])
        assert f"{entry.number + 1}: used" in axes.get_title(loc="left")
    assert "3 of 5" in figure.axes[0].get_ylabel()


def test_gallery_of_many_classes_has_pages() -> None:
    view, training = made_view(12, 1), made_training(1, 30)
    first, second = (draw_gallery(view, training, page=page) for page in (0, 1))
    assert (len(first.axes), len(second.axes)) == (10, 2)
    assert "Classes 11 to 12 of 12" in all_texts(second).replace("\n", " ")
    with pytest.raises(DataError, match="expected 0 to 1"):
        draw_gallery(view, training, page=2)


def test_gallery_of_one_channel_of_several() -> None:
    view, training = made_view(2, 1, 3), made_training(3, 30)
    axes = draw_gallery(view, training, channel=2).axes[0]
    entry = view.gallery[0]
    np.testing.assert_array_equal(lines_of(axes)[-1], training[entry.neighbours[0].index][2])


def test_cosine_matrix_is_the_one_given() -> None:
    view = made_view(3, 2)
    axes = draw_cosines(view.levels[0], view.classes).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), view.levels[0].cosines)
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == [ODD, "_under"]
    assert axes.get_yticks().tolist() == [0.5, 2.5, 4.5]
    assert {text.get_text() for text in axes.texts} == {f"{each:.1f}" for each in view.levels[0].cosines.ravel()}


def test_members_are_drawn_around_the_most_used_prototype() -> None:
    view, training = made_view(2, 3), made_training(1, 30)
    members = {0: [training[place] for place in (50, 51, 52)], 1: [training[60]]}
    left, right = draw_members(view, training, members, view.classes[0]).axes
    entries = view.gallery[:3]
    for drawn, entry in zip(lines_of(left), entries, strict=True):
        np.testing.assert_array_equal(drawn, training[entry.neighbours[0].index][0])
    *company, chosen = lines_of(right)
    np.testing.assert_array_equal(chosen, training[entries[0].neighbours[0].index][0])
    for drawn, place in zip(company, (50, 51, 52), strict=True):
        np.testing.assert_array_equal(drawn, training[place][0])
    with pytest.raises(DataError, match="'stranger' is no class"):
        draw_members(view, training, members, "stranger")


def test_channels_that_differ_are_the_telling_ones() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(5, 20))
    other = base.copy()
    other[1] = -other[1]
    other[3] += 5.0
    assert telling_channels([base, other], 2) == [1, 3]
    with_gap = other.copy()
    with_gap[0, :3] = np.nan
    with_gap[4] = np.nan
    assert telling_channels([base, with_gap], 2) == [1, 3]
    assert telling_channels([base + 1e4, with_gap + 1e4], 2) == [1, 3]


def test_members_belong_to_the_nearest_prototype_of_their_class() -> None:
    rng = np.random.default_rng(0)
    embeddings, prototypes = rng.normal(size=(30, 4)), rng.normal(size=(3, 2, 4))
    codes = rng.integers(-1, 3, 30)
    numbers = assign_members(embeddings, codes, prototypes)
    for z, code, number in zip(embeddings, codes, numbers, strict=True):
        if code < 0:
            assert number == -1
        else:
            own = [z @ p / np.linalg.norm(p) for p in prototypes[code]]
            assert number == int(np.argmax(own))


def test_evolution_draws_paths_and_steps() -> None:
    view = made_view(2, 3)
    evolution = view.evolution[0]
    plane = evolution_plane(evolution)
    paths, steps = draw_evolution(evolution, plane, view.classes).axes
    np.testing.assert_array_equal(paths.lines[0].get_xydata(), plane.points[:, 0, 0])
    np.testing.assert_array_equal(paths.lines[2].get_xydata(), plane.points[-1:, 0, 0])
    cosines = (evolution.prototypes[1:, 1] * evolution.prototypes[:-1, 1]).sum(axis=-1)
    np.testing.assert_allclose(lines_of(steps)[1], 1.0 - cosines.mean(axis=1))
    np.testing.assert_array_equal(steps.lines[1].get_xdata(), [20, 40, 60, 80, 100])
    once = Evolution(0, 0, evolution.epochs[:1], evolution.prototypes[:1])
    with pytest.raises(DataError, match="at least 2"):
        draw_evolution(once, plane, view.classes)


def test_the_plane_is_that_of_principal_components() -> None:
    evolution = made_view(3, 2).evolution[0]
    plane = evolution_plane(evolution)
    reference = PCA(2).fit(evolution.prototypes.reshape(-1, 8))
    expected = reference.transform(evolution.prototypes.reshape(-1, 8))
    flat = plane.points.reshape(-1, 2)
    np.testing.assert_allclose(np.abs(flat), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(plane.shares, reference.explained_variance_ratio_, atol=1e-9)


def test_space_draws_cases_as_dots_and_prototypes_as_crosses() -> None:
    rng = np.random.default_rng(0)
    prototypes = unit(rng.normal(size=(2, 3, 8)))
    codes = np.array([0, 0, 1, -1, 1])
    space = flatten(rng.normal(size=(5, 8)), prototypes, "pca")
    figure = draw_space([space], codes, (ODD, "_under"), ["prototype head"])
    (axes,) = figure.axes
    dots = [each for each in axes.collections if isinstance(each, PathCollection)]
    drawn = [np.asarray(each.get_offsets()) for each in dots]
    np.testing.assert_allclose(drawn[0], space.points[codes == -1])
    np.testing.assert_allclose(drawn[1], space.points[codes == 0])
    np.testing.assert_allclose(drawn[2], space.points[codes == 1])
    np.testing.assert_allclose(drawn[3], space.prototypes[0])
    np.testing.assert_allclose(drawn[4], space.prototypes[1])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [ODD, "_under", "no label", "prototype"]


def test_flattening_keeps_groups_together_and_is_repeatable() -> None:
    rng = np.random.default_rng(0)
    centres = unit(rng.normal(size=(3, 1, 8)))
    codes = np.repeat(np.arange(3), 20)
    embeddings = 7.0 * (centres[codes, 0] + 0.05 * rng.normal(size=(60, 8)))
    for method in ("tsne", "pca"):
        space = flatten(embeddings, centres, method)
        again = flatten(embeddings, centres, method)
        np.testing.assert_array_equal(space.points, again.points)
        distance = np.linalg.norm(space.points[:, None] - space.prototypes[:, 0], axis=2)
        assert (distance.argmin(axis=1) == codes).all()


def test_flattening_by_components_sees_unit_vectors() -> None:
    rng = np.random.default_rng(0)
    embeddings, prototypes = rng.normal(size=(20, 5)), rng.normal(size=(2, 2, 5))
    space = flatten(embeddings, prototypes, "pca")
    together = unit(np.concatenate([embeddings, prototypes.reshape(-1, 5)]))
    expected = PCA(2).fit_transform(together)
    np.testing.assert_allclose(np.abs(space.points), np.abs(expected[:20]), atol=1e-9)
    np.testing.assert_allclose(np.abs(space.prototypes.reshape(-1, 2)), np.abs(expected[20:]), atol=1e-9)


@pytest.mark.parametrize("n_cases", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_few_cases_can_be_flattened(n_cases: int, d: int) -> None:
    embeddings = np.random.default_rng(0).normal(size=(n_cases, d))
    for method in ("tsne", "pca"):
        space = flatten(embeddings, np.ones((1, 1, d)), method)
        assert space.points.shape == (n_cases, 2)
        assert np.isfinite(space.points).all()
        assert_readable(draw_space([space], np.zeros(n_cases, np.int64), ["up"], ["a"]))
    with pytest.raises(ConfigError, match="umap"):
        flatten(embeddings, np.ones((1, 1, d)), "umap")


# Stability


@settings(max_examples=25, deadline=None)
@given(k=st.integers(1, 5), n_classes=st.integers(1, 3), seed=st.integers(0, 1000))
def test_shuffled_prototypes_are_found_again(k: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), 12)
    first = rng.normal(size=(n_classes, k, len(codes)))
    orders = np.stack([rng.permutation(k) for _ in range(n_classes)])
    second = np.stack([own[order] for own, order in zip(first, orders, strict=True)])
    stability = match_prototypes(np.stack([first, 3.0 * second + 1.0]), codes)
    found = np.take_along_axis(orders, stability.order[1], axis=1)
    np.testing.assert_array_equal(found, np.tile(np.arange(k), (n_classes, 1)))
    np.testing.assert_allclose(stability.correlations, 1.0)
    assert stability.correlation == pytest.approx(1.0)


def test_matching_is_the_best_of_all_pairings() -> None:
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1], 15)
    profiles = rng.normal(size=(2, 2, 4, 30))
    stability = match_prototypes(profiles, codes)
    for code in range(2):
        a, b = (profiles[run, code][:, codes == code] for run in (0, 1))
        table = np.corrcoef(a, b)[:4, 4:]
        best = max(sum(table[i, p[i]] for i in range(4)) for p in itertools.permutations(range(4)))
        assert stability.correlations[1, code].sum() == pytest.approx(best)
    everything = [np.corrcoef(*(profiles[run, code][:, codes == code] for run in (0, 1)))[:4, 4:] for code in (0, 1)]
    assert stability.correlation_by_chance == pytest.approx(np.mean(everything))


def test_unrelated_runs_agree_no_more_than_chance() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 200)
    stability = match_prototypes(rng.normal(size=(3, 4, 3, 800)), codes)
    assert abs(stability.membership - stability.membership_by_chance) < 0.05
    assert abs(stability.correlation) < 0.15


def test_membership_counts_cases_whose_prototypes_match() -> None:
    first = np.array([[[1.0, 1.0, 0.0, 0.0, 0.9, 0.1], [0.0, 0.1, 1.0, 0.9, 0.2, 0.8]]])
    second = first[:, ::-1].copy()
    second[0, :, 4] = second[0, ::-1, 4]  # one case of six changes sides
    stability = match_prototypes(np.stack([first, second]), np.zeros(6, np.int64))
    assert stability.membership == pytest.approx(5 / 6)
    assert stability.order[1, 0].tolist() == [1, 0]


def test_profiles_do_not_depend_on_the_space_of_a_run() -> None:
    rng = np.random.default_rng(0)
    z, prototypes = rng.normal(size=(20, 6)), rng.normal(size=(2, 3, 6))
    turned = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    profiles = profiles_of([z, 2.0 * z @ turned], [prototypes, prototypes @ turned])
    np.testing.assert_allclose(profiles[0], profiles[1], atol=1e-12)
    expected = z[4] @ prototypes[1, 2] / np.linalg.norm(z[4]) / np.linalg.norm(prototypes[1, 2])
    assert profiles[0, 1, 2, 4] == pytest.approx(expected)
    with pytest.raises(DataError, match="same settings"):
        profiles_of([z, z], [prototypes, prototypes[:, :2]])


def test_what_cannot_be_compared_is_refused() -> None:
    codes = np.array([0, 0, 0, 1])
    with pytest.raises(DataError, match="at least 2, fitted with different seeds"):
        match_prototypes(np.ones((1, 2, 2, 4)), codes)
    with pytest.raises(DataError, match=r"Class 1 .* has 1 case"):
        match_prototypes(np.ones((2, 2, 2, 4)), codes)


def test_stability_is_drawn_with_its_number() -> None:
    stability = made_stability(3, 2)
    figure = draw_stability(stability, class_names(3))
    dots = [np.asarray(each.get_offsets())[:, 0] for each in figure.axes[0].collections]
    np.testing.assert_allclose(dots[0], stability.correlations[1].ravel())
    assert f"{stability.correlation:.2f} (chance {stability.correlation_by_chance:.2f})" in all_texts(figure)


def test_matched_prototypes_stand_in_a_column() -> None:
    stability = made_stability(2, 3)
    training = made_training(1, 30)
    series = {(run, number): [training[10 * run + number]] for run in range(3) for number in range(3)}
    with pytest.raises(DataError, match="'stranger' is no class"):
        draw_matched(stability, class_names(2), "stranger", series)
    panels = draw_matched(stability, class_names(2), "_under", series).axes
    for place, axes in enumerate(panels):
        run, column = divmod(place, 3)
        expected = training[10 * run + stability.order[run, 1, column]][0]
        np.testing.assert_array_equal(lines_of(axes)[0], expected)


# Text, files, state


def test_names_are_shown_as_they_are() -> None:
    explanation, view = made_explanation(2, 24), made_view(3, 2, 2)
    training = made_training(2, 24)
    for figure in (
        draw_series(explanation),
        draw_heat_map(explanation),
        draw_matches(explanation, training),
        draw_score_sheet(explanation),
        draw_gallery(view, training),
        draw_cosines(view.levels[0], view.classes),
        draw_members(view, training, {}, ODD),
    ):
        texts = [text for text in visible_texts(figure) if ODD in text.get_text()]
        assert texts
        assert not any(text.get_parse_math() for text in figure.findobj(Text))  # type: ignore[attr-defined]


def test_a_name_that_would_be_a_broken_formula_is_saved(tmp_path: Path) -> None:
    explanation = replace(made_explanation(), channel_names=("$\\frac{$ \n<&",))
    for suffix in ("png", "svg", "pdf"):
        save_figure(draw_series(explanation), tmp_path / f"figure.{suffix}", dpi=50)
    assert r"$\frac{$ &lt;&amp;" in (tmp_path / "figure.svg").read_text()


def test_figures_are_written_by_suffix_and_alike_each_time(tmp_path: Path) -> None:
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for suffix, start in starts.items():
        files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for path in files:
            save_figure(draw_curves(made_checks(), "up"), path, dpi=50)
        a, b = (path.read_bytes() for path in files)
        assert a.startswith(start)
        assert a == b
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{n}.{s}" for n in "ab" for s in starts)


def test_other_suffixes_are_refused_with_those_that_work(tmp_path: Path) -> None:
    figure = draw_curves(made_checks(), "up")
    with pytest.raises(ConfigError, match=r"'\.jpg'; a figure is written as one of \.png, \.svg, \.pdf"):
        save_figure(figure, tmp_path / "figure.jpg")
    with pytest.raises(PDFTimeError, match="could not be written"):
        save_figure(figure, tmp_path / "absent" / "figure.png")
    assert not list(tmp_path.iterdir())


def test_drawing_leaves_no_trace_in_matplotlib() -> None:
    before = dict(matplotlib.rcParams)
    draw_curves(made_checks(), "up")
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys; import pdftime.explain.figures; assert 'matplotlib' not in sys.modules\n"
        "from pdftime.explain.figures import draw_space, flatten; import numpy as np\n"
        "draw_space([flatten(np.eye(3), np.ones((1, 1, 3)), 'pca')], np.zeros(3, int), ['up'], ['a'])\n"
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"^Figures need matplotlib: pip install 'pdftime\[figures\]'\.$"):
        draw_curves(made_checks(), "up")


def test_a_width_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"A column of text is 3\.4 wide, a page 7"):
        draw_curves(made_checks(), "up", width=0.5)
