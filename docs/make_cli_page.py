"""Writes docs/cli.md from the commands themselves: `python docs/make_cli_page.py`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from typer.main import get_command

from pdftime.cli import app
from pdftime.cli.commands import commands_of
from pdftime.cli.options import SENTENCES, default_text

PAGE = Path(__file__).with_name("cli.md")
OPENING = """\
# Command line

<!-- Made by docs/make_cli_page.py; change the commands in src/pdftime/cli, then run it. -->

`pdftime demo` is the place to begin: it learns a small problem, explains itself, and leaves files to play with.
`pdftime COMMAND --help` says what stands on this page.

- **JSON.** With `--json` a command prints one JSON document on standard output and nothing else there.
- **Progress** goes to standard error, and only to a terminal.
- **Errors** are one line on standard error. `PDFTIME_DEBUG=1` in the environment shows the traceback.
- **Exit codes.** 0: well. 1: data, a model file or training failed. 2: the command or a setting is wrong.
  130: interrupted.
- **Files** are written beside their target and then renamed: they are there entirely or not at all.
- **Labels** from different file types are compared by their text: 1 in a `.csv` is '1' in a `.ts`. Only where a
  model knows both as classes of their own are they kept apart.
- **Cases** are counted from 0.

The file types and the forms of tables are described in [data formats](data-formats.md).
"""
SETTINGS = """\
## Settings

Settings without a flag of their own are given to `pdftime fit` by name: `--set dropout=0.1`,
`--set kernel_sizes=5,11`, `--set max_tokens=null`. Defaults are those of the preset `default`.
"""


def page() -> str:
    """The whole page."""
    commands = commands_of(get_command(app))
    parts = [OPENING, *(_command(name, command) for name, command in commands.items()), SETTINGS + "\n" + _settings()]
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:
    examples = command.epilog.split("\n\n")[1:]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    usage = " ".join(["pdftime", name, *(each.metavar for each in arguments)])
    return "\n".join(
        [
            f"## {usage}",
            "",
            _wrapped(command.help),
            "",
            "```sh",
            *examples,
            "```",
            "",
            *_table("Argument or option", [_row(each) for each in (*arguments, *options)]),
        ]
    )


def _row(param: Any) -> tuple[str, str, str]:
    """What to write, what it means, and its default."""
    if param.param_type_name == "argument":
        return f"`{param.metavar}`", param.help, "required"
    names = ", ".join(f"`{name}`" for name in param.opts)
    value = "" if param.is_flag else f" `{param.metavar}`"
    if param.required:
        default = "required"
    elif isinstance(param.show_default, str):
        default = param.show_default
    elif param.is_flag or param.default in (None, []):
        default = ""
    else:
        default = str(getattr(param.default, "value", param.default))
    return names + value, param.help, default


def _settings() -> str:
    return "\n".join(
        _table("Setting", [(f"`{name}`", sentence, default_text(name)) for name, sentence in SENTENCES.items()])
    )


def _table(first: str, rows: list[tuple[str, str, str]]) -> list[str]:
    lines = [f"| {first} | Meaning | Default |", "|---|---|---|"]
    for row in rows:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return [*lines, ""]


def _wrapped(text: str) -> str:
    return "\n\n".join(textwrap.fill(paragraph, 118) for paragraph in text.split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
