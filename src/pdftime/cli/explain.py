"""pdftime explain: why cases are predicted as they are, in words and on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime.cli.labels import UNKNOWN, as_classes, codes_by_text, names_of, plain
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
    places_of,
    read,
)
from pdftime.cli.screen import console, say, suggest, write_json
from pdftime.cli.sparkline import marks, sparkline
from pdftime.data.label_text import text_of
from pdftime.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pdftime.explain.explanation import Explanation

EXAMPLES = (
    "pdftime explain model.pdftime new.csv",
    "pdftime explain model.pdftime new.csv --case 3 --case 7 --check",
    "pdftime explain model.pdftime new.csv --case 3 --target slow --contrast quick",
    "pdftime explain model.pdftime new.csv --case 3 --json",
)
SHOWN_CASES = 3
SHOWN_CHANNELS = 3
LONGEST_NAME = 12


def run(
    model: ModelFile,
    data: DataFile,
    case: CaseNumbers = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The class to explain.", show_default="the predicted one"),
    ] = None,
    contrast: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The class to compare it with.", show_default="the most probable other"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Put each explanation to the test; takes about as long again.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
    label_column: LabelColumn = "label",
    case_column: CaseColumn = "case",
    time_column: TimeColumn = "time",
    form: FormOption = None,
    part: PartOption = None,
) -> None:
    """Say why series are predicted as they are.

    Three sentences a case: the decision, the training series that it resembles, and the moments that count. Below,
    the channels that matter as lines, with a mark under the moments that speak most for the class. Without --case
    the first cases are explained. --json gives every number.
    """
    cases = read(data, label_column, case_column, time_column, form, part)
    places = places_of(case, len(cases), data) or list(range(min(SHOWN_CASES, len(cases))))

    from pdftime.estimator import load

    classifier = load(model)
    classifier.n_threads = threads
    classes = classifier.classes_
    pair = {"target": _class_of(target, classes), "contrast": _class_of(contrast, classes)}
    explanations = classifier.explain(cases.take(places), **pair)
    if as_json:
        write_json(
            [
                {"case": place, **explanation.to_dict(checks=check)}
                for place, explanation in zip(places, explanations, strict=True)
            ]
        )
        return
    labels = None if cases.y is None else as_classes(cases.y[places], classes)
    for order, (place, explanation) in enumerate(zip(places, explanations, strict=True)):
        label = "" if labels is None else f", which is {text_of(plain(labels[order]))}"
        say(f"Case {place}{label}", style="bold")
        _print(explanation, check=check)
        say()
    if case is None and len(cases) > len(places):
        say(f"These are the first {len(places)} of {len(cases)} cases.")
    suggest([f"pdftime report {model} {data} -o report.html"])


def _class_of(name: str | None, classes: NDArray[Any]) -> Any:
    """The class of this text."""
    if name is None:
        return None
    import numpy as np

    code = int(codes_by_text(np.array([name]), classes)[0])
    if code == UNKNOWN:
        raise DataError(f"{name!r} is no class of the model; expected one of {', '.join(names_of(classes))}.")
    return classes.tolist()[code]


def _print(explanation: Explanation, *, check: bool) -> None:
    say(explanation.summary())
    _draw(explanation)
    for warning in explanation.warnings:
        say(f"  Note: {warning}")
    if check:
        checks = explanation.check()
        failed = [each for each in checks.checks if not each.passed]
        say(f"  {len(checks.checks) - len(failed)} of {len(checks.checks)} checks passed.")
        for each in failed:
            bar = f"{'at least' if each.at_least else 'at most'} {each.bar:.3f}"
            say(f"  Failed: {each.name}, {each.value:.3f} where {bar} was demanded. {each.meaning}")


def _draw(explanation: Explanation) -> None:
    """The channels whose moments speak most for the class as lines, those moments marked."""
    screen = console()
    segments = explanation.where.segments
    channels = list(dict.fromkeys(each.channel for each in segments))[:SHOWN_CHANNELS]
    names = [explanation.channel_names[channel][:LONGEST_NAME] for channel in channels]
    width = max(map(len, names), default=0)
    for channel, name in zip(channels, names, strict=True):
        line = sparkline(explanation.series[channel], ascii_only=screen.options.ascii_only)
        spans = [(each.start, each.end) for each in segments if each.channel == channel]
        below = marks(spans, explanation.series.shape[1])
        screen.print(f"  {name:{width}}  {line}".rstrip(), style="cyan", soft_wrap=True)
        screen.print(f"  {'':{width}}  {below}".rstrip(), style="bold", soft_wrap=True)
