"""pdftime predict: labels, probabilities and reasons for the series of a file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime.cli.labels import names_of, plain
from pdftime.cli.options import (
    CaseColumn,
    DataFile,
    FormOption,
    Json,
    LabelColumn,
    ModelFile,
    PartOption,
    Threads,
    TimeColumn,
    check_writable,
    read,
)
from pdftime.cli.screen import count, say, show, suggest, table_of, write_json
from pdftime.errors import SeriesFileError

if TYPE_CHECKING:
    from pdftime.data.series import SeriesSet
    from pdftime.estimator import PDFTimeClassifier

EXAMPLES = (
    "pdftime predict model.pdftime new.csv",
    "pdftime predict model.pdftime new.csv --explain -o predictions.csv",
    "pdftime predict model.pdftime new.ts -o predictions.parquet",
    "pdftime predict model.pdftime new.csv --json",
)
SUFFIXES = (".csv", ".parquet", ".json")
SHOWN_ROWS = 10
SHOWN_PROBABILITIES = 6

Rows = list[dict[str, Any]]


def run(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all predictions: .csv, .parquet or .json."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say for each case what the prediction rests on.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Label the series of a file.

    A row per case: its number from 0, its label, a probability for every class (p_ and the class), and with
    --explain a summary in words. Without -o the first rows are printed. Labels in DATA are not looked at.
    """
    if output is not None:
        if output.suffix.lower() not in SUFFIXES:
            raise SeriesFileError(f"{output} is of no known file type; predictions go to {', '.join(SUFFIXES)}.")
        check_writable(output, model, data)
    cases = read(data, label_column, case_column, time_column, form, part)

    from pdftime.estimator import load

    classifier = load(model)
    classifier.n_threads = threads
    everything = as_json or output is not None
    shown = cases if everything else cases.take(slice(SHOWN_ROWS))
    rows = rows_of(classifier, shown, explain)
    if output is not None:
        _write(rows, output)
    if as_json:
        write_json(rows if output is None else {"output": str(output), "n_cases": len(rows)})
    elif output is not None:
        say(f"Wrote {count(len(rows), 'prediction')} to {output}.")
    else:
        _print(rows, n_cases=len(cases), example=f"pdftime predict {model} {data} -o predictions.csv")


def rows_of(classifier: PDFTimeClassifier, cases: SeriesSet, explain: bool) -> Rows:
    """A row per case, as every output has it."""
    probabilities = classifier.predict_proba(cases)
    names = [f"p_{name}" for name in names_of(classifier.classes_)]
    labels = classifier.classes_.tolist()
    rows: Rows = [
        {"case": case, "label": plain(labels[code]), **dict(zip(names, row, strict=True))}
        for case, (code, row) in enumerate(
            zip(probabilities.argmax(axis=1).tolist(), probabilities.tolist(), strict=True)
        )
    ]
    if explain:
        for row, explanation in zip(rows, classifier.explain(cases), strict=True):
            row["summary"] = explanation.summary()
    return rows


def _write(rows: Rows, path: Path) -> None:
    """All rows in one file, there entirely or not at all."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from pdftime.container import write_atomically

    buffer = io.BytesIO()
    if path.suffix.lower() == ".json":
        buffer.write(json.dumps(rows, indent=2).encode())
    else:
        if len({type(row["label"]) for row in rows}) > 1:  # a column has one type
            rows = [{**row, "label": str(row["label"])} for row in rows]
        table = pa.Table.from_pylist(rows)
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, buffer)
        else:
            pyarrow.parquet.write_table(table, buffer)
    write_atomically(path, buffer.getvalue(), SeriesFileError)


def _print(rows: Rows, n_cases: int, example: str) -> None:
    names = [name for name in rows[0] if name.startswith("p_")]
    few = len(names) <= SHOWN_PROBABILITIES
    table = table_of(["case", "label", *(names if few else ["probability"])], right_from=2)
    for row in rows:
        chances = [row[name] for name in names]
        shown = chances if few else [max(chances)]
        table.add_row(str(row["case"]), str(row["label"]), *(f"{chance:.3f}" for chance in shown))
    show(table)
    for row in rows:
        if "summary" in row:
            say(f"Case {row['case']}. {row['summary']}")
    if n_cases > len(rows):
        say(f"These are the first {len(rows)} of {n_cases} cases.")
        suggest([example])
