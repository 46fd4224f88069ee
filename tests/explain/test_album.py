"""All figures of a model: from fitted models to files, in Python and on the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_figures import assert_readable
from typer.testing import CliRunner

from pdftime import PDFTimeClassifier, check_series, write_series
from pdftime.cli import app
from pdftime.cli.figures import Kind
from pdftime.data.series import SeriesSet
from pdftime.data.synthetic import make_problem
from pdftime.errors import ConfigError, DataError
from pdftime.explain.figures.album import CASE_KINDS, KINDS, MODEL_KINDS, Material, Picture, album, kept_series
from pdftime.explain.figures.style import PAGE
from pdftime.fitted import FittedModel

TINY = {"d_model": 8, "branch_width": 2, "n_inception_layers": 1, "max_epochs": 2, "n_prototypes": (1, 2)}


def fitted(cases: SeriesSet, **options: object) -> FittedModel:
    settings = {**TINY, **options.pop("settings", {})}  # type: ignore[dict-item]
    model = PDFTimeClassifier(preset="network", settings=settings, n_threads=1, **options)  # type: ignore[arg-type]
    return model.fit(cases, cases.y).model_


@pytest.fixture(scope="module")
def cases() -> SeriesSet:
    """Two channels, unequal lengths, gaps; a class name that is no file name."""
    problem = make_problem("frequency", n_cases=18, n_timepoints=60).train
    X = [np.concatenate([row[:, : 60 - place % 5]] * 2) for place, row in enumerate(problem.X)]
    X[0][1, 3:6] = np.nan
    names = {"slow": "a/b $c_d$", "medium": "medium", "quick": "quick"}
    return check_series(X, [names[label] for label in problem.y.tolist()])  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def model(cases: SeriesSet) -> FittedModel:
    return fitted(cases, keep_prototypes=1, n_members=2)


@pytest.fixture(scope="module")
def linear(cases: SeriesSet) -> FittedModel:
    return fitted(cases, settings={"head": "linear"})


def codes_of(cases: SeriesSet, model: FittedModel) -> np.ndarray:  # type: ignore[type-arg]
    return np.searchsorted(model.classes, cases.y)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pictures(cases: SeriesSet, model: FittedModel, linear: FittedModel) -> dict[str, Picture]:
    material = Material(model, cases, codes_of(cases, model), [linear])
    return {each.name: each for each in album(material, KINDS)}


def test_every_kind_is_drawn(pictures: dict[str, Picture]) -> None:
    assert {each.kind for each in pictures.values()} == set(KINDS)
    assert all(isinstance(each.figure, Figure) for each in pictures.values())
    assert {f"case-0-{kind}" for kind in CASE_KINDS} <= set(pictures)
    assert {"gallery", "evolution", "space-tsne", "space-pca", "stability", "members-0-a-b-c_d"} <= set(pictures)
    assert {"cosines-level-1", "cosines-level-2"} <= set(pictures)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_readable(pictures: dict[str, Picture], kind: str) -> None:
    own = [each for each in pictures.values() if each.kind == kind]
    assert own[0].figure is not None
    assert_readable(own[0].figure)


def test_prototype_head_stands_beside_linear_head(pictures: dict[str, Picture]) -> None:
    figure = pictures["space-tsne"].figure
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["prototype head", "linear head"]
    assert len(figure.axes[0].collections) == 6  # the dots and the crosses of three classes
    assert [len(each.get_offsets()) for each in figure.axes[1].collections] == [6, 6, 6, 0, 0, 0]


def test_series_behind_prototypes_are_those_the_model_keeps(model: FittedModel) -> None:
    kept = kept_series(model)
    assert model.exemplars is not None
    assert set(kept) == set(model.exemplars.numbers.tolist())
    for index, series in kept.items():
        np.testing.assert_array_equal(series, model.training_series(index))


def test_what_a_linear_head_cannot_show_has_a_reason(cases: SeriesSet, linear: FittedModel) -> None:
    material = Material(linear, cases, codes_of(cases, linear))
    drawn = {each.kind: each for each in album(material, ["scores", "matches", *MODEL_KINDS])}
    missing = {kind for kind, each in drawn.items() if each.figure is None}
    assert missing == {"matches", "gallery", "cosines", "members", "evolution", "stability"}
    assert drawn["gallery"].reason == "the model has a linear head and no prototypes"


def test_cases_without_labels_are_grouped_by_prediction(cases: SeriesSet, model: FittedModel) -> None:
    bare = replace(cases, y=None)
    material = Material(model, bare, np.full(len(cases), -1))
    np.testing.assert_array_equal(material.groups, model.probabilities(bare).argmax(axis=1))


def test_what_makes_no_sense_is_refused(cases: SeriesSet, model: FittedModel) -> None:
    material = Material(model, cases, codes_of(cases, model))
    with pytest.raises(ConfigError, match="'pie' is no kind of figure; expected some of series, why-not"):
        album(material, ["pie"])
    with pytest.raises(DataError, match="Case 18 is not there; expected 0 to 17"):
        album(material, ["series"], [18])
    other = replace(model, classes=np.array(["x", "y", "z"]))
    with pytest.raises(DataError, match="expected those of the first"):
        Material(model, cases, codes_of(cases, model), [other])


# On the command line


@pytest.fixture
def folder(tmp_path: Path, cases: SeriesSet, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_series(cases, tmp_path / "train.npz")
    PDFTimeClassifier(preset="network", settings=TINY, n_threads=1).fit(cases, cases.y).save(
        tmp_path / "model.pdftime"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["figures", "model.pdftime", "train.npz", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_the_command_knows_every_kind() -> None:
    assert tuple(each.value for each in Kind) == KINDS


def test_the_command_writes_and_names_files(folder: Path) -> None:
    told = json.loads(
        invoke("-o", "a/b", "--kind", "scores", "--kind", "series", "--case", "2", "--case", "0", "--json")
    )
    names = [each["file"] for each in told["figures"]]
    assert names == [f"a/b/case-{case}-{kind}.png" for case in (2, 0) for kind in ("series", "scores")]
    assert sorted(path.name for path in (folder / "a" / "b").iterdir()) == sorted(Path(name).name for name in names)
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_the_command_obeys_format_and_width(folder: Path) -> None:
    invoke("-o", "out", "--kind", "cosines", "--kind", "checks", "--format", "svg", "--width", "page")
    text = (folder / "out" / "case-0-checks.svg").read_text()
    assert f'width="{72 * PAGE:g}pt"' in text


def test_what_cannot_be_drawn_is_told_or_refused(folder: Path) -> None:
    said = invoke("-o", "out", "--kind", "evolution", code=1)
    assert said.startswith("error: evolution cannot be drawn: the model was fitted without keep_prototypes")
    assert "it needs several runs" in invoke("-o", "out", "--kind", "stability", code=1)
    assert "Case 18 is not there" in invoke("-o", "out", "--kind", "series", "--case", "18", code=1)
    assert "cannot be made a folder" in invoke("-o", "train.npz", "--kind", "series", code=1)


def test_runs_are_compared_with_other_models(folder: Path) -> None:
    (folder / "other.pdftime").write_bytes((folder / "model.pdftime").read_bytes())
    told = invoke("-o", "out", "--kind", "stability", "--against", "other.pdftime", "--format", "svg")
    assert "Wrote 4 figures to out:" in told
    assert "Correlation of matched prototypes 1.00" in (folder / "out" / "stability.svg").read_text()


def test_without_matplotlib_the_command_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = invoke("-o", "out", "--kind", "series", code=2)
    assert said == "error: Figures need matplotlib: pip install 'pdftime[figures]'.\n"
    assert not Path("out").exists()
