"""pdftime bench methods: what can be compared."""

from __future__ import annotations

from pdftime.cli.options import Json
from pdftime.cli.screen import say, show, table_of, write_json
from pdftime.config import PRESETS

EXAMPLES = ("pdftime bench methods", "pdftime bench methods --json")


def run(as_json: Json = False) -> None:
    """List the methods that have a name: presets, ablations of the paper, peers.

    A preset takes settings behind a colon (network:dropout=0.1,n_members=3) and ablations behind a plus
    (paper+linear-head). A peer takes arguments as JSON (rocket{"n_kernels": 500}). Any other class with fit and
    predict is named by its module (sklearn.dummy:DummyClassifier{"strategy": "prior"}).
    """
    from pdftime.bench.ablations import ABLATIONS
    from pdftime.bench.methods import method_of, missing_extra
    from pdftime.bench.peers import PEERS

    kinds = {"preset": list(PRESETS), "ablation": list(ABLATIONS), "peer": list(PEERS)}
    facts = []
    for kind, names in kinds.items():
        for name in names:
            method = method_of(name)
            extra = missing_extra(method)
            facts.append(
                {
                    "method": name,
                    "kind": kind,
                    "class": method.class_path,
                    "settings": {
                        key: value for key, value in method.summary.items() if key not in ("class", "preset")
                    },
                    "installed": extra is None,
                    "install": None if extra is None else f"pdftime[{extra}]",
                }
            )
    if as_json:
        write_json(facts)
        return
    table = table_of(["method", "kind", "settings", "installed"], right_from=4)
    for each in facts:
        settings = ", ".join(f"{key}={value}" for key, value in each["settings"].items())  # type: ignore[attr-defined]
        there = "yes" if each["installed"] else f"no: {each['install']}"
        table.add_row(str(each["method"]), str(each["kind"]), settings, there)
    show(table)
    say('Any other class: package.module:Class{"argument": 1}.')
