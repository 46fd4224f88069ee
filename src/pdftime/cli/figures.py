"""pdftime figures: pictures of a model and of its reasons."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdftime.cli.labels import codes_by_text
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
    read,
)
from pdftime.cli.screen import count, say, write_json
from pdftime.errors import DataError, PDFTimeError

if TYPE_CHECKING:
    from pdftime.data.series import SeriesSet
    from pdftime.explain.figures.album import Material

EXAMPLES = (
    "pdftime figures model.pdftime fresh.csv -o figures",
    "pdftime figures model.pdftime fresh.csv -o figures --kind series --case 3",
    "pdftime figures model.pdftime train.csv -o figures --kind gallery --width page",
    "pdftime figures model.pdftime train.csv -o figures --kind scores --format svg",
)


class Kind(str, Enum):
    """What can be drawn; the first seven are of a case, the others of the model."""

    series = "series"
    why_not = "why-not"
    heat_map = "heat-map"
    spectrum = "spectrum"
    matches = "matches"
    scores = "scores"
    checks = "checks"
    gallery = "gallery"
    cosines = "cosines"
    members = "members"
    evolution = "evolution"
    space = "space"
    stability = "stability"


class Format(str, Enum):
    """How a figure is written."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


class Width(str, Enum):
    """How wide a figure is: 3.4 or 7 inches."""

    column = "column"
    page = "page"


def run(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the figures go; made if it is not there.")
    ],
    kind: Annotated[
        list[Kind],
        typer.Option(
            metavar="KIND",
            help="What to draw, may be given several times: " + ", ".join(each.value for each in Kind) + ".",
            show_default="all",
        ),
    ] = [],  # noqa: B006
    case: Annotated[
        list[int],
        typer.Option(
            metavar="N",
            min=0,
            help="The case to explain, counted from 0; may be given several times.",
            show_default="0",
        ),
    ] = [0],  # noqa: B006
    against: Annotated[
        list[Path],
        typer.Option(
            metavar="MODEL",
            help="Another model of the same problem, for space (a linear head) and stability (other seeds).",
        ),
    ] = [],  # noqa: B006
    width: Annotated[
        Width,
        typer.Option(
            metavar="column|page",
            help="For a column of text (3.4 inches) or a page (7 inches).",
            show_default="column",
        ),
    ] = Width.column,
    format: Annotated[
        Format, typer.Option(metavar="png|svg|pdf", help="How the figures are written.", show_default="png")
    ] = Format.png,
    threads: Threads = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Draw what a model has learned and why it decides as it does.

    Figures of a case explain one prediction; figures of the model show its prototypes, best on the series it was
    trained on. What cannot be drawn for a model is left out with a reason; asked for by name, it is an error.
    """
    from pdftime.explain.figures.album import KINDS, album
    from pdftime.explain.figures.files import save_figure
    from pdftime.explain.figures.style import need_matplotlib

    need_matplotlib()
    cases = read(data, label_column, case_column, time_column, form, part)
    material = _material(model, against, cases, width, threads)
    pictures = album(material, [each.value for each in kind] or KINDS, case)
    _make_folder(output)
    written, left_out = [], []
    for picture in pictures:
        if picture.figure is None:
            if kind:
                raise DataError(f"{picture.kind} cannot be drawn: {picture.reason}.")
            left_out.append({"kind": picture.kind, "reason": picture.reason})
            continue
        path = output / f"{picture.name}.{format.value}"
        save_figure(picture.figure, path)
        written.append({"kind": picture.kind, "file": str(path)})
    if as_json:
        write_json({"output": str(output), "figures": written, "left_out": left_out})
        return
    say(f"Wrote {count(len(written), 'figure')} to {output}:")
    for each in written:
        say(f"  {each['file']}")
    for each in left_out:
        say(f"Left out {each['kind']}: {each['reason']}.")


def _material(model: Path, against: list[Path], cases: SeriesSet, width: Width, threads: int | None) -> Material:
    import numpy as np
    import torch

    from pdftime.explain.figures.album import Material
    from pdftime.explain.figures.style import COLUMN, PAGE
    from pdftime.storage import read_model

    if threads is not None:
        torch.set_num_threads(threads)
    fitted = read_model(model)
    codes = np.full(len(cases), -1) if cases.y is None else codes_by_text(cases.y, fitted.classes)
    others = [read_model(each) for each in against]
    return Material(fitted, cases, codes, others, PAGE if width is Width.page else COLUMN)


def _make_folder(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise PDFTimeError(f"{output} cannot be made a folder: {cause.strerror}. Choose another place.") from cause
