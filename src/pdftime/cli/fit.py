"""pdftime fit: from a file of labelled series to a model file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime.cli.facts import classes_in_words, facts_of, in_words
from pdftime.cli.options import (
    CaseColumn,
    Form,
    FormOption,
    Json,
    LabelColumn,
    PartOption,
    Threads,
    TimeColumn,
    changes_of,
    check_writable,
    labels_of,
    read,
    setting,
)
from pdftime.cli.screen import count, say, size_text, suggest, write_json
from pdftime.config import PRESETS, chosen, value_of
from pdftime.errors import ConfigError, ModelFileError

if TYPE_CHECKING:
    from pdftime.estimator import PDFTimeClassifier

EXAMPLES = (
    "pdftime fit train.csv -o model.pdftime",
    "pdftime fit train.ts -o model.pdftime --validation valid.ts --max-time 60",
    "pdftime fit train.csv -o m.pdftime --preset network --checkpoint run --resume",
    "pdftime fit log.parquet -o model.pdftime --form long --case-column id",
    "pdftime fit train.csv -o m.pdftime --preset network --set dropout=0.1",
)
NETWORK = "Settings of the network (defaults: --preset network)"
TRAINING = "Settings of the training (defaults: --preset network)"
RUN = "The run"


def run(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="Labelled series; the suffix says how to read them.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write.")],
    validation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled series to stop and calibrate on; without it, a part of TRAIN where it can be spared.",
        ),
    ] = None,
    preset_name: Annotated[
        str, typer.Option("--preset", metavar="|".join(PRESETS), help="Settings to start from.")
    ] = "default",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting by its name; may be repeated."),
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Same seed, same model.", rich_help_panel=RUN)] = 0,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time to train for, at most.", rich_help_panel=RUN)
    ] = None,
    members: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Networks to train and average.", rich_help_panel=RUN),
    ] = 1,
    threads: Threads = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to keep the run, every few seconds.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint if it is there.", rich_help_panel=RUN)
    ] = False,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="balanced", help="Give every class the same weight.", rich_help_panel=RUN),
    ] = None,
    keep_prototypes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep the prototypes of every Nth epoch.", rich_help_panel=RUN),
    ] = None,
    max_epochs: Annotated[int | None, setting("max_epochs", TRAINING)] = None,
    patience: Annotated[int | None, setting("patience", TRAINING)] = None,
    batch_size: Annotated[int | None, setting("batch_size", TRAINING)] = None,
    learning_rate: Annotated[float | None, setting("learning_rate", TRAINING)] = None,
    d_model: Annotated[int | None, setting("d_model", NETWORK)] = None,
    n_layers: Annotated[int | None, setting("n_layers", NETWORK)] = None,
    n_prototypes: Annotated[str | None, setting("n_prototypes", NETWORK)] = None,
    encoder: Annotated[str | None, setting("encoder", NETWORK)] = None,
    scaling: Annotated[str | None, setting("scaling", NETWORK)] = None,
    lengths: Annotated[str | None, setting("lengths", NETWORK)] = None,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Train a model on labelled series and save it as one file.

    Output, settings and data are checked before training begins. Labels of the validation file may be of another
    kind (1 and '1'): they are compared by their text.
    """
    flags = {
        "max_epochs": max_epochs,
        "patience": patience,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "d_model": d_model,
        "n_layers": n_layers,
        "n_prototypes": None if n_prototypes is None else value_of(n_prototypes),
        "encoder": encoder,
        "scaling": scaling,
        "lengths": lengths,
    }
    changes = changes_of(set_ or [], flags)
    chosen(preset_name, changes)
    _check_outputs(output, checkpoint, resume, train, validation)
    columns = (label_column, case_column, time_column)
    cases = read(train, *columns, form, part)
    facts: dict[str, Any] = {"train": facts_of(cases, train), "validation": None}
    y = labels_of(cases, train)
    kept, y_kept = None, None
    if validation is not None:
        kept = read(validation, *columns, _form_for(validation, form))
        facts["validation"] = facts_of(kept, validation)
        y_kept = _known_labels(labels_of(kept, validation), y)
    talk = not (quiet or as_json)
    if talk:
        for each in filter(None, facts.values()):
            say(f"Read {each['file']}: {in_words(each)}.")
            say(f"  {count(len(each['classes']), 'class', 'classes')}: {classes_in_words(each['classes'])}.")
        if checkpoint is not None and resume:
            there = "Going on from" if checkpoint.exists() else "Starting from the beginning: there is no"
            say(f"{there} {checkpoint}.")

    from pdftime.estimator import PDFTimeClassifier

    model = PDFTimeClassifier(
        preset=preset_name,
        settings=changes,
        class_weight=class_weight,
        max_time_s=max_time,
        random_state=seed,
        n_members=members,
        n_threads=threads,
        checkpoint=checkpoint,
        resume=resume,
        keep_prototypes=keep_prototypes,
        verbose=0 if quiet else 1,
    )
    try:
        model.fit(cases, y, X_val=kept, y_val=y_kept)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(_interrupted(checkpoint)) from stop
    _save(model, output)
    if as_json:
        write_json({"model": str(output), **facts, "metrics": model.metrics_})
    if talk:
        _report(model, output, checkpoint)


def _check_outputs(output: Path, checkpoint: Path | None, resume: bool, train: Path, validation: Path | None) -> None:
    """What would spoil the run at its end, said at its beginning."""
    from pdftime.data.files import SUFFIXES

    if output.suffix.lower() in (*SUFFIXES, ".gz"):
        raise ModelFileError(f"{output} would look like a data file. Call the model, say, {output.stem}.pdftime.")
    check_writable(output, train, validation, checkpoint, error=ModelFileError)
    if checkpoint is None:
        if resume:
            raise ConfigError("--resume needs --checkpoint FILE, the file to go on from.")
        return
    check_writable(checkpoint, train, validation, error=ModelFileError)
    if checkpoint.exists() and not resume:
        raise ModelFileError(f"{checkpoint} is there already. Add --resume to go on from it, or delete it.")


def _form_for(validation: Path, form: Form | None) -> Form | None:
    """The form is that of tables; validation series may come in another format."""
    from pdftime.data.files import TABLES

    return form if Path(validation.name.lower().removesuffix(".gz")).suffix in TABLES else None


def _known_labels(y_kept: Any, y: Any) -> list[Any]:
    from pdftime.cli.labels import as_classes
    from pdftime.data.labels import encode

    return as_classes(y_kept, encode(y).classes)


def _interrupted(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "Interrupted; nothing was saved. With --checkpoint FILE the run could be resumed."
    if not checkpoint.exists():
        return f"Interrupted before anything was in {checkpoint}; nothing was saved."
    return f"Interrupted; the run is in {checkpoint}. Give the same command with --resume to go on."


def _save(model: PDFTimeClassifier, output: Path) -> None:
    """A full disk must not cost the model: it goes to the folder for temporary files instead."""
    try:
        model.save(output)
    except ModelFileError as error:
        refuge = Path(tempfile.mkdtemp(prefix="pdftime-")) / output.name
        model.save(refuge)
        raise ModelFileError(f"{error} The trained model is safe in {refuge}.") from error


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _report(model: PDFTimeClassifier, output: Path, checkpoint: Path | None) -> None:
    members = model.metrics_["members"]
    for number, measured in enumerate(members, 1):
        who = f"Member {number}: " if len(members) > 1 else ""
        if measured["view"] == "bank":
            say(_sentence(f"{who}found {count(sum(measured['n_prototypes']), 'prototype')} in closed form."))
            say(f"  Judged by {count(measured['n_validation'], 'case')}, each by what was found without it.")
        else:
            say(_sentence(f"{who}trained for {count(measured['epochs'], 'epoch')}."))
            if measured["n_validation"]:
                say(
                    f"  The best on {count(measured['n_validation'], 'validation case')} was "
                    f"epoch {measured['best_epoch']}."
                )
        if measured["n_validation"]:
            say(
                f"  Validation: accuracy {measured['validation_accuracy']:.3f}, "
                f"log loss {measured['validation_log_loss']:.3f}, "
                f"calibration error {measured['validation_calibration_error']:.3f}."
            )
    if not any(measured["n_validation"] for measured in members):
        say("  All cases were needed for training, so nothing was validated; give --validation FILE.")
    say(f"Saved {output} ({size_text(output.stat().st_size)}) after {model.metrics_['seconds']:.1f} s of training.")
    if checkpoint is not None:
        say(f"The checkpoint {checkpoint} has done its work and may be deleted.")
    suggest(
        [
            f"pdftime evaluate {output} DATA",
            f"pdftime predict {output} DATA --explain",
            f"pdftime info {output}",
        ]
    )
