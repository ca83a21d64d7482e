"""The page of the command line: every command and option with its default, from `dppp` itself."""

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import PurePath
from typing import Any

import typer

from dppp.cli.main import app

_INTRODUCTION = """# The command line

Every command has `--help`. Exit code 0 means done, 2 bad input, 1 refused or failed. What went
wrong is on one line of standard error, and what to do about it on the next; with `--json` both are
in one object. This page is made from the commands themselves.
"""


def page() -> str:
    """Markdown, one section per command."""
    parts = [_INTRODUCTION]
    for words, command in _commands("dppp", typer.main.get_command(app)):
        parts.append(_section(words, command))
    return "\n".join(parts)


def _commands(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command and all below it, in the order of `dppp --help`."""
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands(f"{words} {name}", each)


def _section(words: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    options = [each for each in options if not each.hidden and each.name != "help"]
    usage = " ".join([words, *(_argument(each) for each in arguments)])
    parts = [f"## {words}", "", f"```\n{usage}{' [OPTIONS]' if options else ''}\n```", ""]
    parts += [inspect.cleandoc(command.help or ""), ""]
    rows = [_row(f"`{_argument(each)}`", each) for each in arguments]
    rows += [_row(_names(each), each) for each in options]
    if rows:
        parts += ["| option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _argument(parameter: Any) -> str:
    many = "..." if parameter.nargs == -1 else ""
    name = f"{parameter.name.upper()}{many}"
    return name if parameter.required else f"[{name}]"


def _names(parameter: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _row(names: str, parameter: Any) -> str:
    cells = (names, _default(parameter), in_a_cell(parameter.help or ""))
    return f"| {' | '.join(cells)} |"


def _default(parameter: Any) -> str:
    default = parameter.default
    if parameter.required:
        return "*required*"
    if isinstance(default, Enum):
        default = default.value
    if default is None or default is False or default in ("", ()):
        return ""
    if default is True:
        return f"`{parameter.opts[0]}`"
    if isinstance(default, tuple | list):
        default = ",".join(str(each) for each in default)
    return f"`{default.as_posix() if isinstance(default, PurePath) else default}`"


def in_a_cell(text: str) -> str:
    """One line, without what would end a cell."""
    return " ".join(text.split()).replace("|", "\\|")
