"""The report as a file: small, whole, free of anything from outside, and true to the numbers it is made of."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pdftime import PDFTimeClassifier, check_series
from pdftime.data.synthetic import make_problem
from pdftime.errors import ConfigError, DataError
from pdftime.explain import report as report_module
from pdftime.explain.gallery import ModelExplanation
from pdftime.explain.report import Names, choose
from pdftime.explain.report.case_content import Shown
from pdftime.explain.report.content import About, page_content
from pdftime.explain.report.packing import MISSING, pack, step_within, summed, thinned
from pdftime.explain.report.page import html_page, json_text

TINY = {"max_epochs": 2, "d_model": 8, "branch_width": 2, "n_inception_layers": 1}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def problem() -> Any:
    return make_problem("channels", n_cases=30, n_timepoints=60, n_fresh=12, n_channels=3)


@pytest.fixture(scope="module")
def model(problem: Any) -> PDFTimeClassifier:
    return PDFTimeClassifier(preset="network", settings=TINY).fit(problem.train, problem.train.y)


@pytest.fixture(scope="module")
def written(model: PDFTimeClassifier, problem: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(problem.fresh, path=path, chosen=[0, 5, 11], names=Names("m.pdftime", "fresh.ts"))
    return path


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag in ("script", "style"):
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in self.texts:
            self.texts[self.inside][-1] += data


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Page(path.read_text()).texts["script"][0])
    return content


def unpack(packed: dict[str, Any]) -> np.ndarray[Any, Any]:
    steps = np.frombuffer(base64.b64decode(packed["data"]), "<i2").reshape(packed["rows"], -1)
    return np.where(steps == MISSING, np.nan, packed["middle"] + steps * packed["scale"])


# The numbers


def test_numbers_are_those_of_the_explanation(model: PDFTimeClassifier, problem: Any, written: Path) -> None:
    content = content_of(written)
    for case, place in zip(content["cases"], (0, 5, 11), strict=True):
        explanation = model.explain(problem.fresh.take([place]))[0]
        classes = list(explanation.classes)
        assert case["number"] == place
        assert case["label"] == problem.fresh.y[place]
        assert case["right"] == (explanation.predicted == problem.fresh.y[place])
        assert content["classes"][case["predicted"]] == explanation.predicted
        assert content["classes"][case["runner_up"]] == explanation.runner_up
        assert case["summary"] == explanation.summary()
        assert case["probabilities"] == pytest.approx(explanation.probabilities, rel=1e-5)
        for side in ("target", "contrast"):
            sheet = getattr(explanation, side)
            assert classes[case[side]["class"]] == sheet.label
            assert case[side]["score"] == pytest.approx(sheet.score, rel=1e-5)
            deciding = [match for match in case[side]["matches"] if content["gallery"][match[0]]["decides"]]
            whole = sum(match[3] for match in deciding) + case[side]["entropy"] + case[side]["offset"]
            assert whole == pytest.approx(sheet.score, abs=1e-4)
        for name in ("where", "why_not"):
            own = getattr(explanation, name)
            assert (case[name]["method"], case[name]["baseline"]) == (own.method, own.baseline)
            limit = np.abs(own.values).max() / 32767
            assert np.abs(unpack(case[name]["values"]) - own.values).max() <= limit
            assert case[name]["by_channel"] == pytest.approx(own.by_channel, rel=1e-4, abs=1e-6)
            assert case[name]["by_frequency"] == pytest.approx(own.by_frequency, rel=1e-4, abs=1e-6)
            assert case[name]["others"] == pytest.approx(0.0, abs=1e-6)
        checks = explanation.check()
        assert [each["name"] for each in case["checks"]] == [each.name for each in checks.checks]
        assert [each["passed"] for each in case["checks"]] == [each.passed for each in checks.checks]
        assert case["deletion"]["by_map"] == pytest.approx(checks.deletion.by_map, rel=1e-4, abs=1e-6)
        assert set(checks.warnings) <= set(case["warnings"])
        np.testing.assert_allclose(unpack(case["series"]["values"]), explanation.series, atol=1e-3)


def test_training_series_are_those_of_the_training_data(problem: Any, written: Path) -> None:
    content = content_of(written)
    assert content["series"]
    for index, series in content["series"].items():
        np.testing.assert_allclose(unpack(series["values"]), problem.train.X[int(index)], atol=1e-3)
    deciding = [entry for entry in content["gallery"] if entry["decides"] and not entry["dead"]]
    assert all(str(entry["neighbours"][0][0]) in content["series"] for entry in deciding)


def test_the_model_is_measured_on_all_labelled_cases(model: PDFTimeClassifier, problem: Any, written: Path) -> None:
    view = content_of(written)["overview"]
    assert np.sum(view["confusion"]) == sum(view["counts"]) == 12
    assert view["accuracy"] == pytest.approx(model.score(problem.fresh, problem.fresh.y), rel=1e-5)


def test_time_stamps_are_on_the_page(model: PDFTimeClassifier, problem: Any, written: Path, tmp_path: Path) -> None:
    assert all(case["times"] is None for case in content_of(written)["cases"])
    stamps = np.datetime64("2024-05-01T08:00:00") + 45 * np.arange(60)
    cases = check_series(problem.fresh, times=stamps)
    model.report(cases, path=tmp_path / "report.html", chosen=[2])
    (case,) = content_of(tmp_path / "report.html")["cases"]
    (explanation,) = model.explain(cases.take([2]))
    assert case["times"]["name"] == "time on 2024-05-01"
    assert case["times"]["every"] == 1
    assert case["times"]["texts"][:3] == ["08:00", "08:00:45", "08:01:30"]
    assert len(case["times"]["texts"]) == 60
    assert case["summary"] == explanation.summary()
    for name in ("where", "why_not"):
        found = [segment[5] for segment in case[name]["segments"]]
        assert found == [explanation.span_of(each) for each in getattr(explanation, name).segments[: len(found)]]


# Nothing from outside, nothing from data as markup


def test_the_page_refers_to_nothing_outside_itself(written: Path) -> None:
    text = written.read_text()
    page = Page(text)
    assert all("src" not in attributes for _, attributes in page.elements)
    links = [attributes["href"] for tag, attributes in page.elements if "href" in attributes]
    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    assert set(re.findall(r"https?://[^\"'\s<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page.texts["style"][0]
    assert "@import" not in page.texts["style"][0]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttp"):
        assert word not in page.texts["script"][1]


def test_the_policy_allows_exactly_this_script_and_style(written: Path) -> None:
    page = Page(written.read_text())
    policy = next(each["content"] for _, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, text in (("script-src", page.texts["script"][1]), ("style-src", page.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_nothing_that_comes_from_data_becomes_markup(problem: Any, tmp_path: Path) -> None:
    names = [f"{EVIL}{number}" for number in range(3)]
    train = check_series(problem.train.X, [f"{EVIL}{label}" for label in problem.train.y], channel_names=names)
    model = PDFTimeClassifier(preset="network", settings=TINY).fit(train, train.y)
    path = tmp_path / "report.html"
    labels = np.array([f"{EVIL}other", *train.y[1:3]])
    model.report(train.take([0, 1, 2]), labels, path, names=Names(f"{EVIL}.pdftime", f"{EVIL}.ts"))
    text = path.read_text()
    plain = tmp_path / "plain.html"
    model.report(train.take([0, 1, 2]), path=plain)
    assert [tag for tag, _ in Page(text).elements] == [tag for tag, _ in Page(plain.read_text()).elements]
    content = json.loads(Page(text).texts["script"][0])
    assert "<" not in Page(text).texts["script"][0]
    assert content["names"] == {"model": f"{EVIL}.pdftime", "data": f"{EVIL}.ts"}
    assert content["channels"] == names
    assert content["cases"][0]["label"] == f"{EVIL}other"
    assert content["cases"][0]["right"] is False
    assert content["classes"] == sorted({f"{EVIL}{label}" for label in problem.train.y})


@settings(deadline=None, max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists))
def test_json_in_the_page_is_the_same_data_without_markup(data: Any) -> None:
    text = json_text(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")


def test_placeholders_in_data_stay_what_they_are() -> None:
    assert "{{policy}}" in Page(html_page({"label": "{{policy}}"})).texts["script"][0]


# Size and drawing


@settings(deadline=None)
@given(
    npst.arrays(
        np.float64,
        npst.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.floats(-1e9, 1e9) | st.just(np.nan),
    ),
    st.booleans(),
)
def test_packed_numbers_come_back(values: np.ndarray[Any, Any], signed: bool) -> None:
    packed = pack(values, signed=signed)
    back = unpack(packed)
    assert (np.isnan(back) == np.isnan(values)).all()
    span = np.nanmax(np.abs(values), initial=0.0) * 2
    np.testing.assert_allclose(back, values, atol=span / 32767 + 1e-12)
    if signed:
        assert (back[values == 0.0] == 0.0).all()


@settings(deadline=None)
@given(
    npst.arrays(
        np.float64,
        npst.array_shapes(min_dims=2, max_dims=2, max_side=20),
        elements=st.floats(-10, 10) | st.just(np.nan),
    ),
    st.integers(1, 6),
)
def test_thinning_keeps_extremes_and_sums(values: np.ndarray[Any, Any], step: int) -> None:
    thin = thinned(values, step)
    n_bins = -(-values.shape[1] // step)
    assert thin.shape == (len(values), values.shape[1] if step == 1 else 2 * n_bins)
    for row, full in zip(thin, values, strict=True):
        if not np.isnan(full).all():
            assert np.nanmax(row) == np.nanmax(full)
            assert np.nanmin(row) == np.nanmin(full)
    known = np.nan_to_num(values)
    sums = summed(known, step)
    assert sums.shape == (len(values), n_bins if step > 1 else values.shape[1])
    np.testing.assert_allclose(sums.sum(axis=1), known.sum(axis=1), atol=1e-9)


@given(st.integers(1, 10**6), st.floats(1.0, 10**6))
def test_a_step_keeps_within_what_is_allowed(n_values: int, allowed: float) -> None:
    step = step_within(n_values, allowed)
    assert n_values / step <= allowed
    assert step == 1 or n_values / (step - 1) > allowed


@pytest.mark.parametrize(("n_channels", "length"), [(1, 200_000), (60, 1000), (300, 2000)])
def test_fifty_cases_of_any_size_take_at_most_five_megabytes(
    model: PDFTimeClassifier, problem: Any, monkeypatch: pytest.MonkeyPatch, n_channels: int, length: int
) -> None:
    explanation = model.explain(problem.fresh.take([0]))[0]
    explanation.check()
    noise = np.random.default_rng(0).normal(size=(n_channels, length))
    names = tuple(f"channel {number}" for number in range(n_channels))
    n_frequencies = length // 2 + 1

    def enlarged(attribution: Any) -> Any:
        return replace(
            attribution,
            values=noise,
            frequencies=np.arange(n_frequencies) / length,
            frequency_values=noise[:, :n_frequencies],
        )

    big = replace(
        explanation,
        series=noise,
        missing=np.zeros(noise.shape, bool),
        channel_names=names,
        where=enlarged(explanation.where),
        why_not=enlarged(explanation.why_not),
        times=np.datetime64("2024-05-01T08:00:00.125") + 7_654_321 * np.arange(length),
    )
    monkeypatch.setattr(type(explanation), "check", lambda _: explanation._checks)
    overview: ModelExplanation = replace(report_module.explain_model(model.model_), channel_names=names)
    monkeypatch.setattr(type(model.model_), "training_series", lambda _, index: noise)
    content = page_content(model.model_, overview, [Shown(0, "bump", big)] * 50, About(Names(), 50, chosen=False))
    assert len(html_page(content).encode()) <= 5_000_000
    case = content["cases"][0]
    assert case["step"] > 1
    assert unpack(case["where"]["values"]).shape[0] == min(n_channels, 64)
    total = unpack(case["where"]["values"]).sum() + case["where"]["others"]
    assert total == pytest.approx(noise.sum(), abs=np.abs(noise).sum() * 1e-3)


# What models and data there are


def test_models_of_every_kind_have_a_page(problem: Any, tmp_path: Path) -> None:
    uneven = make_problem("lengths", n_cases=24, n_timepoints=60, missing=0.05)
    for kind, cases in (
        ({"head": "linear"}, problem.train),
        ({"pooling": "token"}, problem.train),
        ({"n_prototypes": 1}, problem.train),
        ({"lengths": "pad"}, uneven.train),
        ({"scaling": "series"}, uneven.train),
        ({"encoder": "none"}, problem.train),
    ):
        model = PDFTimeClassifier(preset="network", settings={**TINY, **kind}).fit(cases, cases.y)
        path = tmp_path / "report.html"
        model.report(cases, path=path, max_cases=2)
        content = content_of(path)
        assert len(content["cases"]) == 2
        assert bool(content["gallery"]) == (kind != {"head": "linear"})


def test_the_members_of_an_ensemble_share_a_score(problem: Any, tmp_path: Path) -> None:
    model = PDFTimeClassifier(preset="network", settings=TINY, n_members=2).fit(problem.train, problem.train.y)
    model.report(problem.fresh.X, path=tmp_path / "report.html", max_cases=2)
    content = content_of(tmp_path / "report.html")
    for case in content["cases"]:
        deciding = [match for match in case["target"]["matches"] if content["gallery"][match[0]]["decides"]]
        whole = sum(match[3] for match in deciding) + case["target"]["entropy"]
        assert whole == pytest.approx(case["target"]["score"], abs=1e-4)


def test_without_labels_nothing_is_called_right_or_wrong(
    model: PDFTimeClassifier, problem: Any, tmp_path: Path
) -> None:
    model.report(problem.fresh.X, path=tmp_path / "report.html", max_cases=2)
    content = content_of(tmp_path / "report.html")
    assert content["labelled"] is False
    assert all(case["label"] is None and case["right"] is None for case in content["cases"])


def test_labels_that_the_model_does_not_know_are_wrong_and_not_measured(
    model: PDFTimeClassifier, problem: Any, tmp_path: Path
) -> None:
    labels = ["zigzag", *problem.fresh.y[1:]]
    model.report(problem.fresh.X, labels, tmp_path / "report.html", chosen=[0])
    content = content_of(tmp_path / "report.html")
    assert content["cases"][0]["label"] == "zigzag"
    assert content["cases"][0]["right"] is False
    assert np.sum(content["overview"]["confusion"]) == 11


def test_how_prototypes_moved_is_told_where_it_was_kept(problem: Any, tmp_path: Path) -> None:
    kept = PDFTimeClassifier(preset="network", settings=TINY, keep_prototypes=1).fit(problem.train, problem.train.y)
    kept.report(problem.fresh.X, path=tmp_path / "report.html", max_cases=1)
    levels = content_of(tmp_path / "report.html")["evolution"]
    assert [level["level"] for level in levels] == [0, 1]
    assert all(len(level["moved"]) == len(level["epochs"]) - 1 for level in levels)


# The file


def test_the_same_report_is_the_same_file(
    model: PDFTimeClassifier, problem: Any, written: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.html"
    report = model.report(problem.fresh, path=again, chosen=[11, 5, 0, 5], names=Names("m.pdftime", "fresh.ts"))
    assert again.read_bytes() == written.read_bytes()
    assert report.path == again
    assert report.n_bytes == len(written.read_bytes())
    assert report.cases == [0, 5, 11]


def test_an_old_report_stays_if_writing_fails(
    model: PDFTimeClassifier, problem: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left"):
        model.report(problem.fresh, path=path, max_cases=1)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "report.pdf"}, "no name for a report"),
        ({"path": "absent/report.html"}, "there is no folder absent"),
        ({"path": "folder.html"}, "it is a folder"),
        ({"chosen": []}, "at least one"),
        ({"chosen": [12]}, "from 0 to 11"),
        ({"chosen": [-1]}, "from 0 to 11"),
        ({"chosen": [1.5]}, "from 0 to 11"),
        ({"max_cases": 0}, "max_cases is 0"),
        ({"max_cases": "all"}, "max_cases is 'all'"),
        ({"y": ["bump"]}, "12 cases"),
        ({"y": ["zigzag"] * 12}, "None of the labels is a class of the model"),
    ],
)
def test_what_cannot_work_is_said_before_any_work(
    model: PDFTimeClassifier,
    problem: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    words: str,
) -> None:
    def work(*_: Any) -> None:
        raise AssertionError("work was done")

    monkeypatch.chdir(tmp_path)
    Path("folder.html").mkdir()
    monkeypatch.setattr(report_module, "explain", work)
    with pytest.raises((DataError, ConfigError), match=words):
        model.report(problem.fresh, **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


@given(st.integers(1, 500), st.integers(1, 60))
def test_cases_are_spread_evenly(n_cases: int, max_cases: int) -> None:
    places = choose(n_cases, None, max_cases)
    assert len(places) == min(n_cases, max_cases)
    assert places[0] == 0
    assert len(places) == 1 or places[-1] == n_cases - 1
    steps = np.diff(places)
    assert len(steps) == 0 or steps.max() - steps.min() <= 1


def test_progress_is_told(model: PDFTimeClassifier, problem: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    model.report(
        problem.fresh,
        path=tmp_path / "report.html",
        max_cases=3,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
