"""Command lines that the documentation shows can be typed as they stand: `dppp` parses each."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dppp.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```\w*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
COMMAND_LINE = re.compile(r"^(?:\$ )?dppp +(.+)$", flags=re.MULTILINE)
DPPP: Any = typer.main.get_command(app)
NOT_HERE = re.compile(r"does not exist|is a directory|is a file|not readable")
"""What a parser says of a file that the reader would have."""


def lines_of(text: str) -> Iterator[str]:
    """What follows `dppp` at the beginning of a line in a block, continued lines joined."""
    for block in BLOCK.findall(text):
        yield from COMMAND_LINE.findall(re.sub(r"\\\n\s*", " ", block))


def words_of(line: str) -> list[str]:
    """As a shell would split it, up to a pipe, a redirection or a second command."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    words: list[str] = []
    for word in reader:
        if set(word) <= set("|&;<>"):
            break
        words.append(word)
    return words


def problem_with(line: str) -> str | None:
    """What `dppp` says against this line; nothing is run."""
    words = words_of(line)
    command = DPPP
    context = None
    try:
        while hasattr(command, "commands"):
            if not words:
                return None  # the help of a group
            if words[0].startswith("-"):
                command.make_context("dppp", words, parent=context)
                return None
            name = words.pop(0)
            if name not in command.commands:
                return f"No such command: {name}"
            command = command.commands[name]
        command.make_context("dppp", words, parent=context)
    except typer.Exit:
        return None  # --help
    except typer.TyperException as error:
        message = error.format_message()
        return None if NOT_HERE.search(message) else message
    return None


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CHANGELOG.md"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_command_lines_of_a_page_parse(page: Path) -> None:
    found = {line: problem_with(line) for line in lines_of(page.read_text(encoding="utf-8"))}
    assert not {line: problem for line, problem in found.items() if problem}


def test_there_are_many_command_lines() -> None:
    shown = [line for page in PAGES for line in lines_of(page.read_text(encoding="utf-8"))]
    assert len(shown) > 40


@pytest.mark.parametrize(
    "line",
    [
        "simulate --data a.csv",  # no --label
        "simulate --data a.csv --label x --teacher 20",
        "simulate --data a.csv --label x --teachers many",
        "simulate --data a.csv --label x y",
        "simulation",
        "teacher go",
    ],
)
def test_a_line_that_cannot_be_typed_is_found(line: str) -> None:
    assert problem_with(line)
