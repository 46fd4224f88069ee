"""pdftime bench audit: duplicates across the split, and methods that look at what they must not see."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pdftime.cli.bench.options import Datasets, Sources, names_of
from pdftime.cli.bench.run import chosen_methods
from pdftime.cli.options import Json
from pdftime.cli.screen import count, say, show, table_of, write_json

if TYPE_CHECKING:
    from pdftime.bench.audit import Verdict
    from pdftime.bench.duplicates import Duplicates

EXAMPLES = (
    "pdftime bench audit archives",
    "pdftime bench audit archives -m network:n_steps=5 --json",
)


def run(
    sources: Sources,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "-m", metavar="METHOD", help="A method to audit as well; may be repeated."),
    ] = None,
    datasets: Datasets = None,
    near: Annotated[
        float, typer.Option(metavar="X", min=0.0, help="Normalised distance up to which cases are near duplicates.")
    ] = 0.01,
    cheapest: Annotated[
        int, typer.Option(metavar="N", min=1, help="Audit methods on so many datasets, the smallest ones.")
    ] = 1,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=1.0, help="Time for each of an audit's runs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for leaks: cases that stand in both parts of a dataset, and methods that use what they must not see.

    A method learns and predicts on copies of a dataset with other test labels and other test series. Nothing that
    it says of training cases may change, nor of test cases by their labels, nor of a case by those beside it. Exit
    code 1 if a method is caught.
    """
    from pdftime.bench.archives import find_datasets
    from pdftime.bench.audit import audit_method
    from pdftime.bench.duplicates import find_duplicates

    chosen = chosen_methods(methods) if methods else []
    found = find_datasets(sources, names_of(datasets))
    doubles = [find_duplicates(dataset, near) for dataset in found]
    if not as_json:
        _report_duplicates(doubles, near)
    smallest = sorted(found, key=lambda dataset: dataset.cost())[:cheapest]
    verdicts = []
    for method in chosen:
        for dataset in smallest:
            verdicts.append(audit_method(method, dataset, limit=max_time))
            if not as_json:
                _report_verdict(verdicts[-1])
    caught = [verdict for verdict in verdicts if verdict.status == "caught"]
    if as_json:
        write_json({"duplicates": [asdict(each) for each in doubles], "methods": [asdict(each) for each in verdicts]})
    if caught:
        raise typer.Exit(1)


def _report_duplicates(doubles: list[Duplicates], near: float) -> None:
    affected = [each for each in doubles if each.n_exact or each.n_near]
    say(
        f"{count(len(affected), 'dataset')} of {len(doubles)} with test cases that are training cases too, "
        f"or nearly (normalised distance up to {near:g})."
    )
    if not affected:
        return
    table = table_of(["dataset", "train", "test", "exact", "near", "share", "example"])
    for each in affected:
        case, place, _ = each.pairs[0]
        share = (each.n_exact + each.n_near) / each.n_test
        numbers = [str(number) for number in (each.n_train, each.n_test, each.n_exact, each.n_near)]
        table.add_row(each.dataset, *numbers, f"{share:.1%}", f"test {case} = train {place}")
    show(table)


def _report_verdict(verdict: Verdict) -> None:
    words = {
        "honest": "honest",
        "caught": "CAUGHT",
        "unsure": "cannot be judged",
        "failed": "did not run",
    }
    say(f"{verdict.method} on {verdict.dataset}: {words[verdict.status]}.")
    for finding in verdict.findings:
        say(f"  {finding[0].upper()}{finding[1:].rstrip('.')}.")
