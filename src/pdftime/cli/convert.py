"""pdftime convert: series from any supported file type to any other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pdftime.cli.facts import facts_of, in_words
from pdftime.cli.options import (
    CaseColumn,
    DataFile,
    Form,
    FormOption,
    Json,
    LabelColumn,
    PartOption,
    TimeColumn,
    check_writable,
    in_flags,
    read,
)
from pdftime.cli.screen import say, write_json
from pdftime.errors import SeriesFileError

EXAMPLES = (
    "pdftime convert train.ts train.parquet",
    "pdftime convert train.csv long.csv --out-form long",
    "pdftime convert archive.npz fresh.ts.gz --part test",
)


def run(
    data: DataFile,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; its suffix says how.")],
    out_form: Annotated[
        Form | None, typer.Option(metavar="wide|long", help="The form of a table that is written.")
    ] = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Write the series of a file in another format.

    What a format cannot give back (several channels in .tsv, a label with a space in .ts) is refused. Tables are
    written with the column names label, case and time.
    """
    from pdftime.data.files import write_series

    check_writable(output)
    cases = read(data, label_column, case_column, time_column, form, part)
    try:
        write_series(cases, output, form=None if out_form is None else out_form.value)
    except SeriesFileError as error:
        raise SeriesFileError(in_flags(str(error)).replace("--form", "--out-form")) from error
    facts = facts_of(cases, data)
    if as_json:
        write_json({"output": str(output), **facts})
    else:
        say(f"Wrote {in_words(facts)} to {output}.")
