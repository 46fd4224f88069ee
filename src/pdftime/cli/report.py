"""pdftime report: predictions with their reasons and checks as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdftime.cli.labels import as_classes
from pdftime.cli.options import (
    CaseColumn,
    CaseNumbers,
    DataFile,
    FormOption,
    Json,
    LabelColumn,
    ModelFile,
    PartOption,
    Threads,
    TimeColumn,
    check_writable,
    places_of,
    read,
)
from pdftime.cli.screen import progress_bar, say, size_text, write_json
from pdftime.errors import SeriesFileError

EXAMPLES = (
    "pdftime report model.pdftime fresh.csv -o report.html --max-cases 3",
    "pdftime report model.pdftime new.csv -o report.html --case 3 --case 7",
    "pdftime report model.pdftime archive.npz --part test --max-cases 2 --json",
)


def run(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write, an .html file.")
    ] = Path("report.html"),
    case: CaseNumbers = None,
    max_cases: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many cases to show where none are chosen.")
    ] = 50,
    threads: Threads = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Write one HTML page with predictions, their reasons, and how far to trust them.

    The page is a single file that opens in any browser and fetches nothing. It shows the chosen cases, or cases
    spread evenly over DATA. Labels, if DATA has them, say which predictions are right; they are compared by text.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise SeriesFileError(f"{output} is no name for a report; it is an HTML page, such as report.html.")
    check_writable(output, model, data)
    cases = read(data, label_column, case_column, time_column, form, part)
    places = places_of(case, len(cases), data)

    from pdftime.estimator import load
    from pdftime.explain.report import Names

    classifier = load(model)
    classifier.n_threads = threads
    with progress_bar("explaining", "cases", enabled=not as_json) as progress:
        report = classifier.report(
            cases,
            None if cases.y is None else as_classes(cases.y, classifier.classes_),
            output,
            chosen=places,
            max_cases=max_cases,
            names=Names(model.name, data.name),
            progress=progress,
        )
    if as_json:
        write_json(
            {
                "output": str(output),
                "bytes": report.n_bytes,
                "n_cases": len(cases),
                "cases": report.cases,
                "n_passed": report.n_passed,
            }
        )
        return
    all_of = "" if len(report.cases) == len(cases) else f" of {len(cases)}"
    say(
        f"Wrote {output} ({size_text(report.n_bytes)}): {len(report.cases)}{all_of} "
        f"{'case' if len(cases) == 1 else 'cases'}, of which {report.n_passed} passed every check of the explanation."
    )
    say("Open it in a browser; it is one file and fetches nothing.")
