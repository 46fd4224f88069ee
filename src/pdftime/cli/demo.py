"""pdftime demo: a generated problem, learned, scored and explained within a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdftime.cli.options import Json
from pdftime.cli.screen import console, count, say, suggest, write_json
from pdftime.errors import SeriesFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pdftime.data.synthetic import Problem
    from pdftime.estimator import PDFTimeClassifier
    from pdftime.explain.explanation import Explanation

EXAMPLES = (
    "pdftime demo",
    "pdftime demo -o tour --seed 1",
    "pdftime demo --json",
)
PROBLEM = "motifs"
N_EXPLAINED = 40
N_REPORTED = 12
WIDTH, HEIGHT = 64, 5  # of the drawing, in characters
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # what each dot adds to U+2800


def run(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the model and the data are saved.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Another seed, another problem.")] = 0,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, help="Threads to compute with; so small a problem needs one.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Learn a small generated problem, score it on fresh cases, explain one prediction and write a report.

    It is known where in each series the class is made, so the explanation can be checked. Takes less than a minute.
    """
    files = {
        "model": output / "model.pdftime",
        "train": output / "train.ts",
        "fresh": output / "fresh.ts",
        "report": output / "report.html",
    }
    _make_folder(output, files)

    from pdftime.data.files import write_series
    from pdftime.data.synthetic import make_problem
    from pdftime.estimator import PDFTimeClassifier
    from pdftime.explain.report import Names

    problem = make_problem(PROBLEM, noise_level=0.5, seed=seed)
    train, fresh = problem.train, problem.fresh
    if not as_json:
        _heading("1. The problem")
        say(
            f"{len(train)} generated series of {train.n_timepoints} time points in three classes. "
            f"{problem.description}"
        )
        _heading("2. Training")
        say("Prototypes in closed form; every series is also predicted by a model that was found without it.")
    model = PDFTimeClassifier(random_state=seed, n_threads=threads, verbose=1)
    model.fit(train, train.y)
    accuracy = float(model.score(fresh, fresh.y))
    explanations = model.explain(fresh.take(slice(N_EXPLAINED)))
    hits = sum(_hits(each, problem, case) for case, each in enumerate(explanations))
    write_series(train, files["train"])
    write_series(fresh, files["fresh"])
    model.save(files["model"])
    names = Names(files["model"].name, files["fresh"].name)
    report = model.report(fresh, path=files["report"], max_cases=N_REPORTED, names=names)
    truth = _span(problem.fresh_moments[0, 0])
    if as_json:
        write_json(
            {
                "seconds": model.metrics_["seconds"],
                "n_fresh": len(fresh),
                "accuracy": accuracy,
                "explained": {
                    "case": 0,
                    "label": str(fresh.y[0]),  # type: ignore[index]
                    "summary": explanations[0].summary(),
                    "segment": list(_named(explanations[0])),
                    "truth": list(truth),
                },
                "n_explained": len(explanations),
                "n_on_the_motif": hits,
                "n_reported": len(report.cases),
                "n_passed": report.n_passed,
                "files": {name: str(path) for name, path in files.items()},
            }
        )
        return
    _report_training(model)
    _heading("3. Fresh cases")
    say(f"{count(len(fresh), 'series', 'series')} that the model has never seen: accuracy {accuracy:.3f}.")
    _heading("4. Why")
    _draw(fresh.series(0)[0], {"truth": truth, "model": _named(explanations[0])})
    say(f"The first fresh series, which is {str(fresh.y[0])!r}. {explanations[0].summary()}")  # type: ignore[index]
    say(
        f"What makes its class was planted at the time points {truth[0]} to {truth[1]}. In {hits} of the first "
        f"{len(explanations)} fresh series, most of the span that the model names lies on the planted motif."
    )
    say(
        f"The report shows {len(report.cases)} fresh series with their reasons; {report.n_passed} of these "
        "explanations passed every check."
    )
    _heading("5. Saved")
    for path in files.values():
        say(f"  {path}")
    say(f"Open {files['report']} in a browser: what each prediction rests on, and how far to trust that.")
    suggest(
        [
            f"pdftime info {files['model']}",
            f"pdftime evaluate {files['model']} {files['fresh']}",
            f"pdftime explain {files['model']} {files['fresh']} --case 7 --check",
            f"pdftime fit {files['train']} -o {output / 'own.pdftime'} --preset network",
        ]
    )


def _make_folder(output: Path, files: dict[str, Path]) -> None:
    """The folder, where an earlier demo may be replaced and nothing else."""
    taken = [path for path in files.values() if path.exists()]
    if taken and not _is_demo(files["train"]):
        raise SeriesFileError(f"{taken[0]} is there already, and is not of a demo. Choose another folder with -o.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise SeriesFileError(f"{output} cannot be made a folder: {cause.strerror}. Choose another place.") from cause


def _is_demo(train: Path) -> bool:
    from pdftime.data.files import read_series

    try:
        return read_series(train).name == PROBLEM
    except SeriesFileError:
        return False


def _heading(text: str) -> None:
    say()
    say(text, style="bold")


def _report_training(model: PDFTimeClassifier) -> None:
    measured = model.metrics_["members"][0]
    prototypes = count(sum(measured["n_prototypes"]), "prototype")
    say(
        f"{prototypes} for {count(len(model.classes_), 'class', 'classes')} in "
        f"{model.metrics_['seconds']:.1f} s; accuracy {measured['validation_accuracy']:.3f} on the "
        f"{count(measured['n_validation'], 'series', 'series')}, each left out in its turn."
    )


def _span(moments: NDArray[np.bool_]) -> tuple[int, int]:
    """First and last true place."""
    places = moments.nonzero()[0]
    return int(places[0]), int(places[-1])


def _named(explanation: Explanation) -> tuple[int, int]:
    """First and last time point of the span with the largest share of what speaks for the class."""
    largest = explanation.where.segments[0]
    return largest.start, largest.end


def _hits(explanation: Explanation, problem: Problem, case: int) -> bool:
    """Whether most of the span that the model names is where the class is made."""
    first, last = _named(explanation)
    return bool(problem.fresh_moments[case, 0, first : last + 1].mean() > 0.5)


def _draw(values: NDArray[Any], spans: dict[str, tuple[int, int]]) -> None:
    """A series as a line, with spans of it marked below."""
    screen = console()
    for line in line_drawing(values, ascii_only=screen.options.ascii_only):
        screen.print(f"        {line}".rstrip(), style="cyan", soft_wrap=True)
    scale = WIDTH / len(values)
    for name, (first, last) in spans.items():
        start, stop = round(first * scale), round((last + 1) * scale)
        screen.print(f"  {name:6}{' ' * start}{'=' * max(stop - start, 1)}", style="bold", soft_wrap=True)


def line_drawing(values: NDArray[Any], *, ascii_only: bool = False) -> list[str]:
    """HEIGHT lines of WIDTH characters, highest values first; a Braille character is 2 by 4 dots.

    >>> import numpy as np
    >>> line_drawing(np.array([0.0, 1.0]), ascii_only=True)[0].strip()
    '************'
    """
    import numpy as np

    from pdftime.data.prepare import resample

    level = resample(values, 2 * WIDTH)
    level = level.max() - level
    level = (level / max(float(level.max()), 1e-12) * (4 * HEIGHT - 1)).round().astype(int)
    before = np.append(level[:1], level[:-1])
    rows = np.arange(4 * HEIGHT)[:, None]
    dots = (rows >= np.minimum(level, before)) & (rows <= np.maximum(level, before))
    cells = dots.reshape(HEIGHT, 4, WIDTH, 2).transpose(0, 2, 1, 3)  # (row, column, dot row, dot column)
    codes = (cells * BRAILLE).sum(axis=(2, 3))
    return ["".join(" " if not code else "*" if ascii_only else chr(0x2800 + code) for code in row) for row in codes]
