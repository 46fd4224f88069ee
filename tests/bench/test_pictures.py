"""Pictures show what the numbers say, inside their frame, and are the same for the same numbers."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pdftime.bench.pictures import (
    accuracy_against_time,
    against,
    critical_difference,
    digest,
    numbers_of,
    save,
)
from pdftime.bench.statistics import Scores, cliques, standings
from pdftime.errors import ConfigError

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(3)
BASE = RNG.uniform(0.4, 0.95, 40)
METHODS = ("pdftime default", "ROCKET (authors)", "HIVE-COTE 2.0 (aeon, MambaSL repo)", "ResNet (LITE repo)")
SCORES = Scores(
    tuple(f"Dataset{number}" for number in range(40)),
    METHODS,
    np.stack([BASE + shift + RNG.normal(0, 0.02, 40) for shift in (0.02, 0.02, 0.05, -0.1)], axis=1).clip(0, 1),
)
SECONDS = {method: dict.fromkeys(SCORES.datasets, 10.0**place) for place, method in enumerate(METHODS[:2])}


def texts_of(figure: Any) -> list[Any]:
    """All texts that are drawn, laid out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    unseen = [
        label
        for axes in figure.axes
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        if not axes.axison or not min(limits) <= place <= max(limits)
    ]
    return [each for each in figure.findobj(Text) if each.get_text() and each.get_visible() and each not in unseen]


def drawings() -> dict[str, Any]:
    return {
        "ranks": critical_difference(SCORES, METHODS[:1]),
        "one against one": against(SCORES, METHODS[0], METHODS[1]),
        "time": accuracy_against_time(SCORES, SECONDS, METHODS[:1]),
    }


@pytest.mark.parametrize("name", ["ranks", "one against one", "time"])
def test_every_text_is_inside_the_frame(name: str) -> None:
    figure = drawings()[name]
    frame = figure.bbox
    for text in texts_of(figure):
        box = text.get_window_extent()
        assert box.x0 >= 0, text.get_text()
        assert box.y0 >= 0, text.get_text()
        assert box.x1 <= frame.x1, text.get_text()
        assert box.y1 <= frame.y1, text.get_text()


def test_names_of_a_diagram_do_not_overlap() -> None:
    boxes = [
        text.get_window_extent()
        for text in texts_of(critical_difference(SCORES))
        if any(text.get_text().find(name) >= 0 for name in ("pdftime", "ROCKET", "HIVE", "ResNet"))
    ]
    assert len(boxes) == 4
    for place, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[place + 1 :])


def test_names_of_points_beside_each_other_do_not_overlap() -> None:
    names = ("HandMovementDirection", "Handwriting", "StandWalkJump", "AtrialFibrillation")
    values = np.array([[0.5135, 0.365], [0.5148, 0.5353], [0.6, 0.667], [0.2, 0.067], [0.545, 0.55], [0.99, 0.98]])
    scores = Scores((*names, "One", "Other"), ("ours", "theirs"), values)
    texts = texts_of(against(scores, *scores.methods))
    boxes = [text.get_window_extent() for text in texts if text.get_text() in names]
    assert len(boxes) == 4
    for place, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[place + 1 :])


def test_diagram_names_ranks_and_joins_what_does_not_differ() -> None:
    figure = critical_difference(SCORES)
    shown = [text.get_text() for text in texts_of(figure)]
    for each in standings(SCORES):
        assert any(f"{each.mean_rank:.2f}" in text and each.method.split(" (")[0] in text for text in shown)
    assert any("40 datasets" in text for text in shown)
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() == 3]
    assert len(bars) == len(cliques(SCORES)) == 1


def test_one_against_one_puts_every_dataset_on_its_side() -> None:
    figure = against(SCORES, METHODS[0], METHODS[1])
    clouds = [collection.get_offsets() for collection in figure.axes[0].collections]
    better, equal, worse = clouds
    assert len(better) + len(equal) + len(worse) == 40
    assert (better[:, 1] > better[:, 0]).all()
    assert (worse[:, 1] < worse[:, 0]).all()
    counts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert counts == [f"better: {len(better)}", f"equal: {len(equal)}", f"worse: {len(worse)}"]


def test_time_counts_only_methods_and_datasets_that_were_run() -> None:
    partly = {METHODS[0]: {"Dataset0": 5.0, "Dataset1": 15.0}, METHODS[1]: dict.fromkeys(SCORES.datasets, 2.0)}
    figure = accuracy_against_time(SCORES, partly)
    points = [tuple(collection.get_offsets()[0]) for collection in figure.axes[0].collections]
    assert points[0] == pytest.approx((10.0, SCORES.values[:2, 0].mean()))
    assert points[1] == pytest.approx((2.0, SCORES.values[:2, 1].mean()))
    assert "2 datasets" in figure.axes[0].get_ylabel()
    with pytest.raises(ConfigError, match="fit time"):
        accuracy_against_time(SCORES, {})


def test_same_numbers_give_the_same_file_and_carry_their_fingerprint(tmp_path: Path) -> None:
    fingerprint = digest(numbers_of(SCORES))
    for name in ("one.svg", "two.svg"):
        save(critical_difference(SCORES), tmp_path / name, fingerprint)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert fingerprint in (tmp_path / "one.svg").read_text()
    changed = Scores(SCORES.datasets, SCORES.methods, SCORES.values - 0.001)
    assert digest(numbers_of(changed)) != fingerprint


def test_png_and_svg_are_written_and_others_refused(tmp_path: Path) -> None:
    figure = against(SCORES, METHODS[0], METHODS[1])
    save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(ConfigError, match=r"\.gif"):
        save(figure, tmp_path / "a.gif")


def test_global_state_of_matplotlib_stays_as_it_was() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    drawings()
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match=r"pdftime\[bench\]"):
        critical_difference(SCORES)
