"""pdftime explain and pdftime report: what they say, write and refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from pdftime import PDFTimeClassifier, check_series, load, read_series, write_series
from pdftime.cli import app
from pdftime.cli.options import places_of
from pdftime.cli.sparkline import ASCII_BLOCKS, BLOCKS, marks, sparkline
from pdftime.data.synthetic import make_problem
from pdftime.errors import SeriesFileError
from pdftime.explain import report as report_module

SETTINGS = {"max_epochs": 2, "d_model": 8, "branch_width": 2, "n_inception_layers": 1}


def invoke(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    problem = make_problem("frequency", n_cases=30, n_timepoints=60, n_fresh=9)
    PDFTimeClassifier(preset="network", settings=SETTINGS, n_threads=1).fit(problem.train, problem.train.y).save(
        folder / "m.pdftime"
    )
    write_series(problem.fresh, folder / "fresh.csv")
    write_series(check_series(problem.fresh.X), folder / "new.csv")
    return folder


@pytest.fixture
def here(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(shelf, folder)
    monkeypatch.chdir(folder)
    return folder


# explain


def test_explain_says_draws_and_marks_the_chosen_cases(here: Path) -> None:
    said = invoke("explain", "m.pdftime", "fresh.csv", "--case", "7", "--case", "2").stdout
    model, fresh = load("m.pdftime"), read_series("fresh.csv")
    first, second = model.explain(fresh.take([2, 7]))
    assert said.index(f"Case 2, which is {fresh.y[2]}") < said.index(f"Case 7, which is {fresh.y[7]}")  # type: ignore[index]
    assert first.summary() in said
    assert second.summary() in said
    assert sparkline(first.series[0]) in said
    spans = [(each.start, each.end) for each in first.where.segments]
    assert marks(spans, 60) in said
    assert "pdftime report m.pdftime fresh.csv" in said


def test_explain_begins_with_the_first_cases(here: Path) -> None:
    said = invoke("explain", "m.pdftime", "new.csv").stdout
    assert "These are the first 3 of 9 cases." in said
    assert said.count("This series is") == 3
    assert "Case 0\n" in said  # no label is known


def test_explain_names_the_time_stamps_of_the_file(here: Path) -> None:
    cases = read_series("new.csv")
    times = np.datetime64("2024-05-01T08:00:00") + 45 * np.arange(cases.n_timepoints)
    write_series(check_series(cases, times=times), "stamped.csv")
    told = invoke("explain", "m.pdftime", "stamped.csv", "--case", "1").stdout
    (explanation,) = load("m.pdftime").explain(read_series("stamped.csv").take([1]))
    span = explanation.span_of(explanation.where.segments[0])
    assert span is not None
    assert span.startswith("2024-05-01 08:")
    assert f"({span})" in " ".join(told.split())


def test_explain_puts_explanations_to_the_test(here: Path) -> None:
    said = invoke("explain", "m.pdftime", "new.csv", "--case", "1", "--check").stdout
    checks = load("m.pdftime").explain(read_series("new.csv").take([1]))[0].check()
    failed = [each for each in checks.checks if not each.passed]
    assert f"{len(checks.checks) - len(failed)} of {len(checks.checks)} checks passed." in said
    assert said.count("Failed: ") == len(failed)
    assert all(each.name in said for each in failed)


def test_explain_compares_the_classes_asked_for(here: Path) -> None:
    arguments = ["--case", "0", "--target", "slow", "--contrast", "quick", "--json"]
    told = json.loads(invoke("explain", "m.pdftime", "new.csv", *arguments).stdout)
    assert [each["case"] for each in told] == [0]
    assert told[0]["target"]["label"] == "slow"
    assert told[0]["contrast"]["label"] == "quick"
    assert "checks" not in told[0]


def test_explain_json_holds_what_the_explanation_holds(here: Path) -> None:
    told = json.loads(invoke("explain", "m.pdftime", "new.csv", "--case", "3", "--check", "--json").stdout)
    own = load("m.pdftime").explain(read_series("new.csv").take([3]))[0].to_json(checks=True)
    assert told == [{"case": 3, **json.loads(own)}]


# report


def test_report_writes_a_page_and_says_so(here: Path) -> None:
    said = invoke("report", "m.pdftime", "fresh.csv", "-o", "page.html", "--max-cases", "2").stdout
    assert "Wrote page.html" in said
    assert "2 of 9 cases" in said
    assert "fetches nothing" in said
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_report_json_tells_what_was_written(here: Path) -> None:
    told = json.loads(invoke("report", "m.pdftime", "new.csv", "--case", "4", "--case", "1", "--json").stdout)
    assert told["output"] == "report.html"
    assert told["bytes"] == Path("report.html").stat().st_size
    assert told["n_cases"] == 9
    assert told["cases"] == [1, 4]
    assert 0 <= told["n_passed"] <= 2


def test_report_compares_labels_by_text(here: Path) -> None:
    fresh = read_series("fresh.csv")
    codes = np.unique(fresh.y, return_inverse=True)[1]  # type: ignore[arg-type]
    PDFTimeClassifier(preset="network", settings=SETTINGS, n_threads=1).fit(fresh.X, codes).save("numbers.pdftime")
    write_series(check_series(fresh.X, codes.astype(str)), "texts.ts")
    invoke("report", "numbers.pdftime", "texts.ts", "--max-cases", "2")
    text = Path("report.html").read_text()
    content = json.loads(text.split('id="content">')[1].split("</script>")[0])
    assert sum(map(sum, content["overview"]["confusion"])) == 9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("report m.pdftime fresh.csv -o page.pdf", "no name for a report"),
        ("report m.pdftime fresh.csv -o absent/page.html", "there is no folder absent"),
        ("report m.pdftime fresh.csv --case 9", "fresh.csv has no case 9; its cases are numbered from 0 to 8"),
        ("report absent.pdftime fresh.csv", "absent.pdftime could not be read"),
        ("report m.pdftime absent.csv", "absent.csv cannot be read"),
        ("explain m.pdftime new.csv --case 99", "no case 99"),
        ("explain m.pdftime new.csv --target brisk", "'brisk' is no class of the model"),
        ("explain m.pdftime new.csv --target slow --contrast slow", "two different classes"),
    ],
)
def test_what_cannot_work_is_said_before_any_work(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, words: str
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("work was done")

    monkeypatch.setattr(report_module, "explain", work)
    before = sorted(path.name for path in here.iterdir())
    result = invoke(*arguments.split(), code=1)
    assert result.stdout == ""
    assert words in result.stderr
    assert sorted(path.name for path in here.iterdir()) == before


# Lines of text


def test_a_sparkline_follows_the_series() -> None:
    rising = sparkline(np.linspace(0, 1, 640))
    assert len(rising) == 64
    assert rising[0] == BLOCKS[0]
    assert rising[-1] == BLOCKS[-1]
    assert [BLOCKS.index(each) for each in rising] == sorted(BLOCKS.index(each) for each in rising)
    assert sparkline(np.zeros(5), ascii_only=True) == ASCII_BLOCKS[0] * 5
    assert sparkline(np.full(3, np.nan)) == "   "


def test_marks_stand_under_their_values() -> None:
    values = np.zeros(1000)
    values[500:520] = 1.0
    line, below = sparkline(values), marks([(500, 519)], 1000)
    high = [place for place, each in enumerate(line) if each != BLOCKS[0]]
    assert [place for place, each in enumerate(below) if each == "^"] == high
    assert marks([], 10) == ""


def test_case_numbers_are_sorted_and_checked() -> None:
    assert places_of([3, 1, 3], 4, Path("x.csv")) == [1, 3]
    assert places_of(None, 4, Path("x.csv")) is None
    with pytest.raises(SeriesFileError, match="from 0 to 3"):
        places_of([4], 4, Path("x.csv"))
