"""What several commands ask for: files, tables, threads, settings; each option is declared once."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime import config
from pdftime.config import value_of
from pdftime.errors import ConfigError, SeriesFileError

if TYPE_CHECKING:
    from pdftime.data.series import SeriesSet

TABLES = "Tables and archives"


class Form(str, Enum):
    """How a table is laid out."""

    wide = "wide"
    long = "long"


class Part(str, Enum):
    """A half of a benchmark archive."""

    train = "train"
    test = "test"


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `pdftime fit` saved.")]
DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="Series: .ts .tsv .txt .arff .csv .parquet .npz, texts also as .gz.")
]
LabelColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column of a table that holds the labels.", rich_help_panel=TABLES)
]
CaseColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column of a long table that tells cases apart.", rich_help_panel=TABLES)
]
TimeColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column of a long table that orders a case.", rich_help_panel=TABLES)
]
FormOption = Annotated[
    Form | None,
    typer.Option(
        metavar="wide|long",
        help="A row is a case (wide) or a time point (long); found out from the columns where not said.",
        rich_help_panel=TABLES,
    ),
]
PartOption = Annotated[
    Part | None,
    typer.Option(metavar="train|test", help="The part of an .npz benchmark archive.", rich_help_panel=TABLES),
]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Threads to compute with.", show_default="as torch decides"),
]
CaseNumbers = Annotated[
    list[int] | None,
    typer.Option("--case", metavar="N", min=0, help="A case by its number, from 0; may be given several times."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.")]


def read(
    path: Path,
    label_column: str,
    case_column: str,
    time_column: str,
    form: Form | None = None,
    part: Part | None = None,
) -> SeriesSet:
    """The series of a file; what cannot be read is said in the words of the command line."""
    from pdftime.data.files import read_series

    try:
        return read_series(
            path,
            part=None if part is None else part.value,
            form=None if form is None else form.value,
            label_column=label_column,
            case_column=case_column,
            time_column=time_column,
        )
    except SeriesFileError as error:
        raise SeriesFileError(in_flags(str(error))) from error


def in_flags(message: str) -> str:
    """Arguments that a message names, as the flags that they are here.

    >>> in_flags("say form='wide', or name it with label_column=.")
    'say --form wide, or name it with --label-column.'
    """
    names = "label_column|case_column|time_column|form|part"
    return re.sub(
        rf"\b({names})=(?:'(\w*)')?",
        lambda found: "--" + found[1].replace("_", "-") + (f" {found[2]}" if found[2] else ""),
        message,
    )


def labels_of(cases: SeriesSet, path: Path) -> Any:
    """The labels of a set that must have them."""
    if cases.y is None:
        raise SeriesFileError(
            f"{path} has no labels. Name their column with --label-column, or give labelled series."
        )
    return cases.y


def places_of(numbers: list[int] | None, n_cases: int, path: Path) -> list[int] | None:
    """The numbers of cases that were given, each once and in order; None where none were."""
    if not numbers:
        return None
    if max(numbers) >= n_cases:
        raise SeriesFileError(f"{path} has no case {max(numbers)}; its cases are numbered from 0 to {n_cases - 1}.")
    return sorted(set(numbers))


def check_writable(path: Path, *inputs: Path | None, error: type[Exception] = SeriesFileError) -> None:
    """Refuse a place that cannot be written, before any work is done for it."""
    import tempfile

    target = path.resolve()
    reason = ""
    if any(each is not None and each.resolve() == target for each in inputs):
        reason = "it is also an input, and would be lost"
    elif target.exists() and not target.is_file():
        reason = "it is a folder or a device"
    elif not target.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    else:
        try:
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        except OSError as cause:
            reason = cause.strerror or str(cause)
    if reason:
        raise error(f"{path} cannot be written: {reason}. Choose another place.")


def changes_of(pairs: list[str], flags: dict[str, Any]) -> dict[str, Any]:
    """Settings by name, from `--set name=value` and from the flags that were given."""
    changes = {name: value for name, value in flags.items() if value is not None}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise ConfigError(f"--set {pair!r} is no setting; write name=value, as in --set dropout=0.1.")
        if name in changes:
            raise ConfigError(f"{name} is given twice; say it once.")
        changes[name] = value_of(text.strip())
    return changes


def _sentences() -> dict[str, str]:
    """The sentence under each setting in `pdftime.config`."""
    classes = [node for node in ast.parse(inspect.getsource(config)).body if isinstance(node, ast.ClassDef)]
    return {
        field.target.id: str(sentence.value.value)
        for node in classes
        for field, sentence in pairwise(node.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(sentence, ast.Expr)
        and isinstance(sentence.value, ast.Constant)
    }


SENTENCES = _sentences()
"""What every setting means."""
DEFAULTS = {
    each.name: getattr(getattr(config.preset("network"), part.name), each.name)
    for part in fields(config.Settings)
    for each in fields(getattr(config.preset("network"), part.name))
}
"""Every setting's value in the preset `network`."""


def default_text(name: str) -> str:
    """A setting's default as one would write it on the command line."""
    value = DEFAULTS[name]
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return str(value)


def setting(name: str, panel: str) -> Any:
    """The option of a setting: its name with dashes, its sentence, its default."""
    rules = {**config.PrepareConfig.RULES, **config.ModelConfig.RULES, **config.TrainConfig.RULES}
    rule = rules[name]
    metavar = "|".join(rule.choices) or {"wholes": "N,N", "number": "X"}.get(rule.kind, "N")
    return typer.Option(
        f"--{name.replace('_', '-')}",
        help=SENTENCES[name],
        metavar=metavar,
        show_default=default_text(name),
        rich_help_panel=panel,
    )
