"""The command line: parse, call one function, print. Nothing below this package prints.

Exit codes: 0 well; 1 data, a model or training failed; 2 the command or a setting is wrong; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pdftime import __version__
from pdftime.cli import bench, convert, demo, evaluate, explain, figures, fit, info, predict, report
from pdftime.cli.commands import new_app, register
from pdftime.errors import ConfigError, PDFTimeError


class _Commands(TyperGroup):
    """The commands, with the library's errors as one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PDFTimeError as error:
            raise _failure(error, str(error), code=2 if isinstance(error, ConfigError) else 1) from error
        except KeyboardInterrupt as stop:
            typer.echo(f"\n{str(stop) or 'Interrupted; no output was written.'}", err=True)
            raise typer.Exit(130) from stop


app = new_app(
    "pdftime",
    help="Time series classification by learned prototypes.",
    cls=_Commands,
    epilog="Begin with: pdftime demo",
)


def main() -> None:
    """What `pdftime` on the command line runs."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a label that the terminal cannot show is no reason to stop
    try:
        app(prog_name="pdftime")
    except Exception as error:
        text = f"unexpected {type(error).__name__}: {error}. Set PDFTIME_DEBUG=1 to see where, and report it."
        sys.exit(_failure(error, text, code=1).exit_code)


def _failure(error: Exception, text: str, *, code: int) -> typer.Exit:
    """Says on one line what went wrong; with PDFTIME_DEBUG=1 shows the traceback instead of hiding it."""
    if os.environ.get("PDFTIME_DEBUG") == "1":
        raise error
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(" ".join(text.split()), err=True)
    return typer.Exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pdftime {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Time series classification by learned prototypes."""


register(app, (demo, fit, predict, explain, report, figures, evaluate, info, convert))
app.add_typer(bench.app)
