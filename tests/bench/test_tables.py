"""Tables come out whole in every form, with what needs it escaped."""

from __future__ import annotations

import csv
import html.parser
import io

import pytest

from pdftime.bench.tables import Column, Table, best_of_each_row, comma_separated, latex, markdown, render

NASTY = "a|b_c & <d> 50% #1 {x} \\ ~ ^ $ *e*"
TABLE = Table(
    title="Means, 2 datasets",
    columns=(Column("method & more"), Column("mean", ".3f"), Column("n", "d")),
    rows=((NASTY, 0.98765, 3), ("plain", None, 12)),
    notes=("First | note.", "Second note."),
    strong=frozenset({(0, 1)}),
)


def test_markdown_has_as_many_cells_in_every_line() -> None:
    lines = [line for line in markdown(TABLE).splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}
    assert lines[1] == "|---|---:|---:|"
    assert "**0.988**" in lines[2]
    assert "&lt;d&gt;" in lines[2]
    assert lines[3] == "| plain |  | 12 |"
    assert "First \\| note. Second note." in markdown(TABLE)


def test_csv_gives_back_the_values() -> None:
    rows = list(csv.reader(io.StringIO(comma_separated(TABLE))))
    assert rows == [["method & more", "mean", "n"], [NASTY, "0.98765", "3"], ["plain", "", "12"]]


def test_latex_escapes_every_special_mark() -> None:
    text = latex(TABLE)
    cell = text.splitlines()[7]
    assert cell.startswith(
        r"a|b\_c \& \textless{}d\textgreater{} 50\% \#1 \{x\} \textbackslash{} "
        r"\textasciitilde{} \textasciicircum{} \$ *e* & \textbf{0.988} & 3 \\"
    )
    assert r"\begin{tabular}{lrr}" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


class _Cells(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data


def test_html_is_balanced_and_shows_the_text_as_it_is() -> None:
    reader = _Cells()
    text = render([TABLE, TABLE], "html")
    reader.feed(text)
    assert not reader.open
    assert reader.cells == 2 * [NASTY, "0.988", "3", "plain", "", "12"]
    assert "<strong>0.988</strong>" in text
    assert "http" not in text  # needs nothing from elsewhere


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "html"])
def test_every_form_holds_every_table(form: str) -> None:
    other = Table("Other", (Column("dataset"),), (("GunPoint",),))
    text = render([TABLE, other], form)
    assert "plain" in text
    assert "GunPoint" in text


def test_equal_to_four_decimals_is_equally_best() -> None:
    rows = [("A", 0.66667, 2 / 3, 0.1), ("B", None, 0.5, 0.2)]
    assert best_of_each_row(rows, [1, 2, 3]) == {(0, 1), (0, 2), (1, 2)}
