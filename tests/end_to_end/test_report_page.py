"""The report in a browser: it opens by itself, shows the numbers of the explanation, and is used by mouse or keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from pdftime import PDFTimeClassifier, check_series
from pdftime.data.synthetic import make_problem
from pdftime.explain.explanation import Explanation
from pdftime.explain.report import Names

sync_api = pytest.importorskip("playwright.sync_api", reason="the page tests need playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="the page tests need a chromium browser"),
]
TINY = {"max_epochs": 2, "d_model": 8, "branch_width": 2, "n_inception_layers": 1}
EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


class Written(NamedTuple):
    """A report, and what it should say."""

    path: Path
    explanations: list[Explanation]
    places: list[int]
    labels: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Six channels, labels, some values missing."""
    problem = make_problem("channels", n_cases=30, n_timepoints=60, n_fresh=20, n_channels=6, missing=0.02)
    return _write(tmp_path_factory.mktemp("page"), problem.train, problem.fresh, list(range(0, 20, 4)))


def _write(folder: Path, train: Any, fresh: Any, places: list[int], **settings: Any) -> Written:
    model = PDFTimeClassifier(preset="network", settings={**TINY, **settings}).fit(train, train.y)
    path = folder / "report.html"
    model.report(fresh, path=path, chosen=places, names=Names("model.pdftime", "fresh.ts"))
    return Written(path, model.explain(fresh.take(places)), places, [str(fresh.y[place]) for place in places])


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens a page; afterwards there must have been no request, no message and no error."""
    contexts, heard, requests = [], [], []

    def opened(path: Path, wait: bool = True, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        if wait:
            page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    assert heard == []
    assert len(requests) == len(contexts)  # the page itself, and nothing else
    for context in contexts:
        context.close()


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").rstrip("%"))


def _rows(page: Any, table: str) -> list[list[str]]:
    rows: list[list[str]] = page.eval_on_selector_all(
        f"{table} tbody tr", "rows => rows.map(row => [...row.children].map(cell => cell.innerText.trim()))"
    )
    return rows


def test_numbers_on_the_page_are_those_of_the_explanation(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    assert "model.pdftime" in page.title()
    page.focus("#list")
    for place, explanation, label in zip(written.places, written.explanations, written.labels, strict=True):
        right = explanation.predicted == label
        assert page.url.endswith(f"#case-{place}")
        assert page.inner_text("#verdict-title") == explanation.predicted
        assert page.inner_text("#verdict .truth").startswith("✓ right" if right else "✕ wrong")
        assert page.inner_text("#verdict .summary") == explanation.summary()
        chances = [number(text) for text in page.locator("#verdict .chances .n").all_inner_texts()]
        assert chances == pytest.approx(sorted(explanation.probabilities, reverse=True), abs=6e-4)
        for sheet, table in zip(
            (explanation.target, explanation.contrast),
            ("#why .pair > :nth-child(1)", "#why .pair > :nth-child(2)"),
            strict=True,
        ):
            assert page.inner_text(f"{table} caption").startswith(f"{sheet.label}: score")
            rows = _rows(page, table)
            assert number(rows[-1][-1]) == pytest.approx(sheet.score, abs=6e-3)
            adds = [match.contribution for match in sheet.deciding] + [sheet.entropy]
            assert [number(row[-1]) for row in rows[:-1]] == pytest.approx(adds, abs=6e-3)
            assert [number(row[1]) for row in rows[:-2]] == pytest.approx(
                [match.similarity for match in sheet.deciding], abs=6e-3
            )
        checks = explanation.check()
        rows = _rows(page, "#trust .checks-table")
        for row, check in zip(rows, checks.checks, strict=True):
            assert row[0].endswith("pass" if check.passed else "fail")
            assert check.name in row[1]
            assert check.meaning in row[1]
            assert number(row[2].split()[0]) == pytest.approx(check.value, abs=6e-4)
            assert number(row[2].split()[2]) == pytest.approx(check.bar, abs=6e-4)
        assert page.locator("#verdict .light.fail").count() == sum(not check.passed for check in checks.checks)
        for warning in (*explanation.warnings, *checks.warnings):
            assert warning in page.inner_text("#trust .warnings")
        adds = {row[0]: number(row[-1]) for row in _rows(page, "#where .sheet")}
        expected = dict(zip(explanation.channel_names, explanation.where.by_channel, strict=True))
        assert adds == pytest.approx(expected, abs=6e-4)
        page.keyboard.press("ArrowDown")


def test_sections_are_those_that_were_promised(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    assert page.locator("main section h2").all_inner_texts()[1:] == [
        "Why this class and not the other",
        "What it looks like",
        "Where",
        "How far to trust it",
        "The model’s prototypes",
        "Calibration",
        "Data and settings",
        "What this page cannot tell you",
    ]


def test_cases_are_found_filtered_and_chosen(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    right = [str(each.predicted) == label for each, label in zip(written.explanations, written.labels, strict=True)]
    assert page.locator("#list li").count() == 5
    page.select_option("#state-filter", "wrong")
    assert page.locator("#list li").count() == right.count(False)
    page.select_option("#state-filter", "")
    page.fill("#search", "12")
    assert page.locator("#list li").count() == 1
    page.keyboard.press("ArrowDown")
    assert page.url.endswith("#case-12")
    page.fill("#search", "")
    page.select_option("#class-filter", label=str(written.explanations[0].predicted))
    same = [each for each in written.explanations if each.predicted == written.explanations[0].predicted]
    assert page.locator("#list li").count() == len(same)
    page.select_option("#class-filter", "")
    page.locator("#list li").nth(1).click()
    assert page.url.endswith("#case-4")
    page.get_by_role("button", name="Next case").click()
    assert page.url.endswith("#case-8")
    page.focus("#list")
    for key, place in (("ArrowUp", 4), ("Home", 0), ("ArrowUp", 0), ("End", 16), ("ArrowDown", 16)):
        page.keyboard.press(key)
        assert page.url.endswith(f"#case-{place}")
        assert page.locator("#list [aria-selected=true] .number").inner_text() == str(place)


def test_a_link_opens_its_case(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    page.evaluate("location.hash = '#case-12'")
    page.wait_for_selector("#option-3[aria-selected=true]")


def test_time_is_zoomed_by_keys_buttons_and_dragging(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    span = page.locator("#where .span").first
    frame = page.locator("#where .timeline").first
    frame.focus()
    seen = []
    for key in ("+", "ArrowRight", "-", "+", "0"):
        page.keyboard.press(key)
        seen.append(span.inner_text())
    assert seen == [
        "Time points 15 to 44 of 60",
        "Time points 22 to 52 of 60",
        "Time points 0 to 59 of 60",
        "Time points 15 to 44 of 60",
        "Time points 0 to 59 of 60",
    ]
    page.locator("#where").get_by_role("button", name="Zoom in").first.click()
    assert span.inner_text() == page.locator("#why .span").inner_text() == "Time points 15 to 44 of 60"
    page.locator("#where").get_by_role("button", name="Show the whole series").first.click()
    frame.scroll_into_view_if_needed()
    drawing = frame.locator("svg.drawing").first
    place = drawing.bounding_box()
    left, right = place["x"] + 56, place["x"] + place["width"] - 12
    middle = place["y"] + place["height"] / 2
    page.mouse.move(left + (right - left) * 0.25, middle)
    page.mouse.down()
    page.mouse.move(left + (right - left) * 0.4, middle)
    page.mouse.move(left + (right - left) * 0.5, middle)
    page.mouse.up()
    first, last = [int(word) for word in span.inner_text().split() if word.isdigit()][:2]
    assert abs(first - 15) <= 1
    assert abs(last - 29) <= 1
    page.mouse.move((left + right) / 2, middle)
    assert "Time point 22" in page.locator("#where .readout").first.inner_text()


def test_prototypes_and_training_series_are_picked(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    choices = page.locator("#likeness input[name=prototype]")
    if choices.count() > 1:
        before = page.inner_html("#likeness .drawings")
        choices.nth(1).check()
        assert page.inner_html("#likeness .drawings") != before
    neighbours = page.locator("#likeness input[name=neighbour]")
    assert neighbours.count() >= 2
    before = page.inner_html("#likeness .drawings")
    neighbours.nth(0).focus()
    page.keyboard.press("ArrowDown")
    assert neighbours.nth(1).is_checked()
    assert page.inner_html("#likeness .drawings") != before
    card = page.locator("#prototypes .card").first
    card.locator("summary").focus()
    page.keyboard.press("Enter")
    card.locator("table").nth(1).wait_for(state="attached")  # the browser tells of the opening a moment later
    assert card.locator("table").count() == 2


def test_channels_are_drawn_as_ticked(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    drawn = page.locator("#where .timeline").first.locator("svg.drawing")
    assert drawn.count() == 2
    page.locator("#where input[type=checkbox]:not(:checked)").first.check()
    assert drawn.count() == page.locator("#why .timeline svg.drawing").count() == 3


def test_every_drawing_has_a_name_and_every_control_can_be_reached(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    assert page.locator("svg.drawing:not([aria-label])").count() == 0
    nameless = page.eval_on_selector_all(
        "button, input, select",
        "all => all.filter(each => !each.innerText && !each.labels?.length && !each.ariaLabel).length",
    )
    assert nameless == 0
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(
            """() => {
                const now = document.activeElement;
                const frame = now.closest('.pick label') || now;  // there the label around it is outlined
                return [now.id || now.className, getComputedStyle(frame).outlineStyle !== 'none'];
            }"""
        )
        reached.add(name)
        assert outlined, name
    assert {"theme", "search", "class-filter", "state-filter", "list", "timeline"} <= reached


def test_dark_follows_the_system_and_the_switch(written: Written, open_page: Any) -> None:
    def paper(page: Any) -> int:
        rgb = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in rgb[4:-1].split(","))

    page = open_page(written.path, color_scheme="dark")
    assert paper(page) < 150
    page.click("#theme")
    assert paper(page) > 600
    page.emulate_media(color_scheme="light")
    assert paper(page) > 600
    page.click("#theme")
    assert paper(page) < 150
    page.emulate_media(media="print")
    assert paper(page) > 600  # ink is dear


def contrast_ratio(first: str, second: str) -> float:
    """WCAG's, of two colours as 'rgb(r, g, b)'."""

    def luminance(colour: str) -> float:
        parts = np.array([int(part) for part in colour[4:-1].split(",")]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_paper(written: Written, open_page: Any, scheme: str) -> None:
    page = open_page(written.path, color_scheme=scheme)
    colours = page.evaluate(
        """() => ['ink', 'faint', 'for', 'against', 'pass', 'fail', 'paper', 'card'].map((name) => {
            const probe = document.createElement('span');
            probe.style.color = `var(--${name})`;
            document.body.append(probe);
            const colour = getComputedStyle(probe).color;
            probe.remove();
            return colour;
        })"""
    )
    *texts, paper, card = colours
    assert all(contrast_ratio(text, paper) >= 4.5 for text in texts)
    assert all(contrast_ratio(text, card) >= 4.5 for text in texts)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("n_channels", [1, 6, 60])
def test_any_number_of_channels_fits_any_screen(tmp_path: Path, open_page: Any, n_channels: int, width: int) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 8)
    X = rng.normal(size=(16, n_channels, 40)) + (y == "b")[:, None, None] * np.sin(np.arange(40))
    cases = check_series(X, y)
    report = _write(tmp_path, cases, cases, [0, 9])
    page = open_page(report.path, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heat = page.get_by_role("img", name="by channel and time")
    assert heat.count() == (n_channels > 1)
    over = page.eval_on_selector_all(
        "svg.drawing",
        """drawings => drawings.filter(drawing => {
            const frame = drawing.getBoundingClientRect();
            return [...drawing.querySelectorAll('text')].some(text => {
                const box = text.getBoundingClientRect();
                return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
            });
        }).map(drawing => drawing.getAttribute('aria-label'))""",
    )
    assert over == []


@pytest.mark.parametrize("width", [360, 1200])
def test_time_stamps_mark_every_axis(tmp_path: Path, open_page: Any, width: int) -> None:
    problem = make_problem("channels", n_cases=30, n_timepoints=60, n_fresh=4, n_channels=3)
    fresh = check_series(problem.fresh, times=np.datetime64("2024-05-01T08:00:00") + 45 * np.arange(60))
    report = _write(tmp_path, problem.train, fresh, [0])
    page = open_page(report.path, viewport={"width": width, "height": 900})
    assert page.inner_text("#verdict .summary") == report.explanations[0].summary()
    assert "(2024-05-01 08:" in page.inner_text("#verdict .summary")
    largest = report.explanations[0].where.segments[0]
    assert report.explanations[0].span_of(largest) in page.inner_text("#where .body")
    assert page.inner_text("#where .span >> nth=0") == "Time points 0 to 59 of 60 (08:00 to 08:44:15)"
    marked = page.eval_on_selector_all(
        "svg.drawing",
        "all => all.filter(one => one.textContent.includes('time on 2024-05-01')).map(one => one.textContent)",
    )
    assert len(marked) >= 3
    assert all("08:15" in text or "08:00" in text for text in marked)
    page.focus("#where .timeline")
    page.keyboard.press("+")
    assert page.inner_text("#where .span >> nth=0") == "Time points 15 to 44 of 60 (08:11:15 to 08:33)"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints(written: Written, open_page: Any) -> None:
    page = open_page(written.path, color_scheme="dark")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/") <= 20
    page.emulate_media(media="print")
    assert not page.locator("#list").is_visible()
    assert page.locator("#verdict-title").is_visible()


def test_what_comes_from_data_is_only_ever_text(tmp_path: Path, open_page: Any) -> None:
    problem = make_problem("channels", n_cases=18, n_timepoints=60, n_fresh=6, n_channels=2, channel=0)
    names = [f"{EVIL}0", f"{EVIL}1"]
    train = check_series(problem.train.X, [f"{EVIL}{label}" for label in problem.train.y], channel_names=names)
    model = PDFTimeClassifier(preset="network", settings=TINY).fit(train, train.y)
    path = tmp_path / "report.html"
    labels = [f"{EVIL}other", *train.y[1:3].tolist()]
    model.report(train.take([0, 1, 2]), labels, path, names=Names(f"{EVIL}.pdftime", f"{EVIL}.ts"))
    page = open_page(path)
    page.locator("#prototypes .card summary").first.click()
    page.locator("#list li").nth(1).click()
    page.locator("#list li").nth(0).click()
    assert page.title().startswith(f"{EVIL}.pdftime")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.inner_text("#verdict-title").startswith(EVIL[:8])
    assert f"{EVIL}other" in page.inner_text("#verdict .truth")
    assert f"{EVIL}.ts" in page.inner_text("#data")
    assert f"{EVIL}0" in page.inner_text("#where")


def test_words_for_what_is_not_there_never_show(written: Written, open_page: Any) -> None:
    page = open_page(written.path)
    page.locator("#prototypes .card summary").first.click()
    text = page.inner_text("main")
    for word in ("undefined", "NaN", "null", "false", "[object", "Infinity"):
        assert word not in text, word


def test_a_page_inside_another_page_works(written: Written, open_page: Any, tmp_path: Path) -> None:
    outer = tmp_path / "outer.html"
    text = written.path.read_text().replace("&", "&amp;").replace('"', "&quot;")
    outer.write_text(f'<iframe sandbox="allow-scripts" width="1200" height="800" srcdoc="{text}"></iframe>')
    page = open_page(outer, wait=False)
    frame = page.frame_locator("iframe")
    frame.locator("#list li").nth(1).click()
    assert frame.locator("#verdict-title").inner_text() == written.explanations[1].predicted


def test_without_labels_nothing_is_right_or_wrong(tmp_path: Path, open_page: Any) -> None:
    problem = make_problem("frequency", n_cases=18, n_timepoints=60, n_fresh=6)
    model = PDFTimeClassifier(preset="network", settings=TINY).fit(problem.train, problem.train.y)
    model.report(problem.fresh.X, path=tmp_path / "report.html", max_cases=3)
    page = open_page(tmp_path / "report.html")
    assert page.inner_text("#verdict .truth") == "no label is known"
    assert "wrong" not in page.inner_text("#state-filter")
    assert page.locator("#calibration a").count() == 0  # mistakes are those of training cases


def test_a_model_without_prototypes_says_so(tmp_path: Path, open_page: Any) -> None:
    problem = make_problem("frequency", n_cases=18, n_timepoints=60, n_fresh=6)
    report = _write(tmp_path, problem.train, problem.fresh, [0, 1], head="linear")
    page = open_page(report.path)
    assert "linear head" in page.inner_text("#likeness")
    assert "no prototypes" in page.inner_text("#prototypes")
    assert "false" not in page.inner_text("main")
    rows = _rows(page, "#why .pair > :nth-child(1)")
    assert number(rows[-1][-1]) == pytest.approx(report.explanations[0].target.score, abs=6e-3)
