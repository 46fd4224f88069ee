"""pdftime bench: the commands of the benchmark harness, one module each."""

from __future__ import annotations

from pdftime.cli.bench import audit, explain, export, methods, paper, run, table
from pdftime.cli.commands import new_app, register

app = new_app("bench", help="Compare methods on benchmark archives: run, resume, check for leaks, read the results.")
register(app, (run, table, paper, audit, explain, methods, export))
