"""Tables as data, and as Markdown, CSV, LaTeX and HTML text."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

Cell = str | int | float | None

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1a1a}"
    "table{border-collapse:collapse;margin:1.5rem 0 .5rem}"
    "caption{text-align:left;font-weight:600;margin-bottom:.4rem}"
    "th,td{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:left}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}p{margin:.2rem 0;color:#444}"
)


@dataclass(frozen=True)
class Column:
    """A column's heading, and how its numbers are written; without a form it holds text."""

    name: str
    form: str = ""
    """As in `format`: '.4f', 'd', '+.3f'."""

    @property
    def is_number(self) -> bool:
        return bool(self.form)

    def text(self, value: Cell) -> str:
        """
        >>> Column("mean", ".3f").text(0.25), Column("mean", ".3f").text(None), Column("name").text("ROCKET")
        ('0.250', '', 'ROCKET')
        """
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return format(value, self.form) if self.is_number and not isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Table:
    """Rows under named columns, with what has to be said about them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    strong: frozenset[tuple[int, int]] = field(default=frozenset())
    """Cells to bring out, as (row, column)."""

    def texts(self) -> list[list[str]]:
        """Every cell as it is read."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]


def best_of_each_row(rows: Sequence[Sequence[Cell]], columns: Sequence[int]) -> frozenset[tuple[int, int]]:
    """The cells that hold the highest number of their row, to four decimals, among these columns."""
    found: set[tuple[int, int]] = set()
    for place, row in enumerate(rows):
        numbers = {column: round(value, 4) for column in columns if isinstance(value := row[column], (int, float))}
        found |= {(place, column) for column, value in numbers.items() if value == max(numbers.values())}
    return frozenset(found)


def markdown(table: Table) -> str:
    """A pipe table under its title, its notes below."""
    lines = [f"**{_in_markdown(table.title)}**", ""]
    lines.append("| " + " | ".join(_in_markdown(column.name) for column in table.columns) + " |")
    lines.append("|" + "|".join("---:" if column.is_number else "---" for column in table.columns) + "|")
    for place, row in enumerate(table.texts()):
        cells = [_in_markdown(text) for text in row]
        cells = [
            f"**{cell}**" if cell and (place, column) in table.strong else cell for column, cell in enumerate(cells)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if table.notes:
        lines += ["", " ".join(_in_markdown(note) for note in table.notes)]
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """The values themselves, unrounded, under their headings; nothing else, so that a program can read it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows(table.rows)
    return text.getvalue()


def latex(table: Table) -> str:
    """A table for LaTeX with booktabs."""
    alignment = "".join("r" if column.is_number else "l" for column in table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_in_latex(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    lines += [" & ".join(_in_latex(column.name) for column in table.columns) + r" \\", r"\midrule"]
    for place, row in enumerate(table.texts()):
        cells = [
            rf"\textbf{{{_in_latex(text)}}}" if text and (place, column) in table.strong else _in_latex(text)
            for column, text in enumerate(row)
        ]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines += [r"\par\smallskip\footnotesize", *(_in_latex(note) for note in table.notes)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def as_html(table: Table) -> str:
    """A table element with its notes as paragraphs."""
    head = "".join(f'<th scope="col"{_class(column)}>{html.escape(column.name)}</th>' for column in table.columns)
    lines = [
        "<table>",
        f"<caption>{html.escape(table.title)}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for place, row in enumerate(table.texts()):
        cells = []
        for number, (column, text) in enumerate(zip(table.columns, row, strict=True)):
            shown = html.escape(text)
            if (place, number) in table.strong:
                shown = f"<strong>{shown}</strong>"
            cells.append(f"<td{_class(column)}>{shown}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += ["</tbody>", "</table>", *(f"<p>{html.escape(note)}</p>" for note in table.notes)]
    return "\n".join(lines) + "\n"


def html_page(tables: Sequence[Table], title: str) -> str:
    """One page that needs nothing else."""
    head = f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    body = "".join(as_html(table) for table in tables)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">{head}</head>\n<body>\n{body}</body></html>\n'
    )


def render(tables: Sequence[Table], form: str) -> str:
    """All tables as one text: 'markdown', 'csv', 'latex' or 'html'."""
    if form == "html":
        return html_page(tables, tables[0].title if tables else "pdftime bench")
    writers = {"markdown": markdown, "csv": comma_separated, "latex": latex}
    return "\n".join(writers[form](table) for table in tables)


def _class(column: Column) -> str:
    return ' class="n"' if column.is_number else ""


def _in_markdown(text: str) -> str:
    r"""
    >>> _in_markdown("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|*`\[\]])", r"\\\1", text)


def _in_latex(text: str) -> str:
    r"""
    >>> _in_latex("50% of a_b")
    '50\\% of a\\_b'
    """
    return "".join(LATEX.get(mark, mark) for mark in text)
