"""pdftime info: what a model file or a file of series holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pdftime.cli.facts import classes_in_words, facts_of, in_words
from pdftime.cli.labels import plain
from pdftime.cli.options import (
    CaseColumn,
    FormOption,
    Json,
    LabelColumn,
    PartOption,
    TimeColumn,
    read,
)
from pdftime.cli.screen import SHOWN_CLASSES, count, say, show, size_text, table_of, write_json
from pdftime.config import preset
from pdftime.data.label_text import text_of
from pdftime.errors import ModelFileError

EXAMPLES = (
    "pdftime info model.pdftime",
    "pdftime info train.csv",
    "pdftime info archive.npz --part train --json",
)
MEASURED = (
    "epochs",
    "best_epoch",
    "n_validation",
    "validation_accuracy",
    "validation_log_loss",
    "validation_calibration_error",
)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file or a file of series.")],
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Say what is in a model file or in a file of series; the suffix tells which it is."""
    from pdftime.data.files import SUFFIXES

    if Path(file.name.lower().removesuffix(".gz")).suffix in SUFFIXES:
        facts = facts_of(read(file, label_column, case_column, time_column, form, part), file)
        report = _report_series
    else:
        facts = model_facts(file)
        report = _report_model
    if as_json:
        write_json(facts)
    else:
        report(facts)


def model_facts(path: Path) -> dict[str, Any]:
    """What a model file holds, ready for JSON."""
    from safetensors import safe_open

    from pdftime.estimator import load

    try:
        model = load(path).model_
    except ModelFileError as error:
        if path.is_file() and path.suffix != ".pdftime":
            raise ModelFileError(f"{error} Nor has it the suffix of a data file.") from error
        raise
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format_version": int(metadata["format_version"]),
        "library_version": metadata["library_version"],
        "classes": [plain(label) for label in model.classes.tolist()],
        "channel_names": list(model.channel_names),
        "n_timepoints": model.preparation.n_timepoints,
        "equal_length": model.preparation.equal_length,
        "n_members": len(model.members),
        "n_parameters": sum(
            weight.numel() for member in model.members for weight in member.network.state_dict().values()
        ),
        "changed_settings": {
            name: value
            for part, values in model.settings.in_use().items()
            for name, value in values.items()
            if value != preset("default").to_json()[part][name]
        },
        "metrics": model.metrics,
    }


def _report_series(facts: dict[str, Any]) -> None:
    say(f"{facts['file']}: {in_words(facts)}.")
    table = table_of(["fact", "value"], right_from=2)
    table.add_row("name", facts["name"])
    table.add_row("channels", ", ".join(facts["channel_names"][:SHOWN_CLASSES]))
    table.add_row("numbers", facts["dtype"])
    table.add_row("classes", classes_in_words(facts["classes"]))
    show(table)


def _report_model(facts: dict[str, Any]) -> None:
    say(
        f"{facts['file']}: a model of {count(len(facts['classes']), 'class', 'classes')}, "
        f"{count(len(facts['channel_names']), 'channel')}, {count(facts['n_timepoints'], 'time point')}"
        f"{'' if facts['equal_length'] else ' at most'}."
    )
    table = table_of(["fact", "value"], right_from=2)
    table.add_row("classes", ", ".join(text_of(label) for label in facts["classes"][:SHOWN_CLASSES]))
    table.add_row("channels", ", ".join(facts["channel_names"][:SHOWN_CLASSES]))
    table.add_row("members", str(facts["n_members"]))
    table.add_row("parameters", f"{facts['n_parameters']:,}")
    table.add_row("size", size_text(facts["bytes"]))
    table.add_row("written by", f"pdftime {facts['library_version']}, format {facts['format_version']}")
    table.add_row("trained on", count(facts["metrics"]["n_cases"], "case"))
    for number, measured in enumerate(facts["metrics"]["members"]):
        whose = f"member {number + 1}, " if facts["n_members"] > 1 else ""
        for name in (name for name in MEASURED if name in measured):
            value = measured[name]
            text = f"{value:.4f}" if isinstance(value, float) else str(value)
            table.add_row(whose + name.removeprefix("n_").replace("_", " "), text)
    for name, value in facts["changed_settings"].items():
        table.add_row(f"--set {name}", ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    show(table)
