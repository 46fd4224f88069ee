"""Writes the published accuracies that ship with the package, from a folder of long tables.

    python benchmarks/make_published.py FOLDER

FOLDER holds reference_ucr_default_split.csv and reference_uea_default_split.csv (dataset, method, accuracy,
protocol, source) and the paper's tables as printed, paper_ucr.csv and paper_uea.csv. Written are, per archive, one
wide table of accuracies and one of printed values, and one list of sources with the standing of each.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "pdftime" / "bench" / "published"
ARCHIVES = ("ucr", "uea")
# The first pattern that a protocol matches decides; none: it may be compared with ours as an equal.
STANDINGS = (
    (r"on TEST", "selects on test"),
    (r"30 resamples", "other split"),
    (r"not verifiable|not stated|collected|as published|as quoted|as printed", "not verifiable"),
)


def standing_of(protocol: str) -> str:
    """Whether rows of this protocol may be compared with ours as equals, or why not."""
    return next((name for pattern, name in STANDINGS if re.search(pattern, protocol)), "equal")


def split_name(method: str) -> tuple[str, str]:
    """A method's family and where the figures come from: 'ROCKET (authors)' is ROCKET by its authors."""
    found = re.fullmatch(r"(.+?) \((.+)\)", method)
    return (found[1], found[2]) if found else (method, "tsml-eval")


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (TARGET / name).open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sources: list[list[object]] = []
    for archive in ARCHIVES:
        rows = read(folder / f"reference_{archive}_default_split.csv")
        methods = list(dict.fromkeys(row["method"] for row in rows))
        cells = {(row["dataset"], row["method"]): row["accuracy"] for row in rows}
        if len(cells) != len(rows):
            raise SystemExit(f"error: {archive} has several rows for one dataset and method")
        datasets = sorted({row["dataset"] for row in rows}, key=str.lower)
        write(
            f"{archive}.csv",
            ["dataset", *methods],
            ([name, *(cells.get((name, method), "") for method in methods)] for name in datasets),
        )
        for method in methods:
            own = [row for row in rows if row["method"] == method]
            parts = [row["protocol"].partition("; preprocessed variant ") for row in own]
            protocols, places = {part[0] for part in parts}, {row["source"] for row in own}
            if len(protocols) > 1 or len(places) > 1:
                raise SystemExit(f"error: {method} mixes protocols or sources: {protocols} {places}")
            (protocol,), (source,) = protocols, places
            variants = [row["dataset"] for row, part in zip(own, parts, strict=True) if part[2]]
            family, origin = split_name(method)
            if origin == "tsml-eval" and not source.startswith("tsml-eval"):
                origin = source.partition("@")[0].rpartition("/")[2]
            sources.append(
                [
                    archive,
                    method,
                    family,
                    origin,
                    standing_of(protocol),
                    protocol,
                    source.partition(", stored text")[0],
                    " ".join(sorted(variants)),
                ]
            )
        printed = read(folder / f"paper_{archive}.csv")
        columns = [name for name in printed[0] if name != "tex_line" and not name.endswith("_colour")]
        write(f"printed_{archive}.csv", columns, ([row[name] for name in columns] for row in printed))
    header = ["archive", "method", "family", "origin", "standing", "protocol", "source", "variants"]
    write("sources.csv", header, sources)


if __name__ == "__main__":
    main()
