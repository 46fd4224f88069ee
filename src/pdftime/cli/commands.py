"""How commands are put on the command line: a module with `run` and `EXAMPLES` each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer


def new_app(name: str, *, help: str, **options: Any) -> typer.Typer:
    """An empty set of commands in the manner of all of ours."""
    return typer.Typer(
        name=name,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def register(app: typer.Typer, modules: Iterable[Any]) -> None:
    """Each module's `run` as the command of the module's name."""
    for module in modules:
        app.command(
            module.__name__.rpartition(".")[2],
            help=_paragraphs(module.run.__doc__),
            epilog="\n\n".join(["Examples:", *module.EXAMPLES]),
        )(module.run)


def commands_of(group: Any, *path: str) -> dict[str, Any]:
    """Every command below a click group by its full name, those of groups inside it included."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands_of(command, *path, name)
        else:
            found[" ".join([*path, name])] = command
    return found


def _paragraphs(docstring: str | None) -> str:
    """A docstring with one line a paragraph, to be wrapped where it is shown."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (docstring or "").split("\n\n"))
