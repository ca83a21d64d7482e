"""The documentation is held to the code: the walk and the commands exist, lines are short."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from dppp.cli.main import app

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dppp"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HOPS = re.findall(r"`([\w/]+\.py):(\w+)`", ARCHITECTURE)
COMMAND = re.compile(r"\bdppp (?!import)([a-z][^`#|\n]*)")
LONGEST_LINE = 100


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def prose_of(page: Path) -> list[tuple[int, str]]:
    """The numbered lines of a page outside code, formulas (indented) and tables."""
    found, is_code = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith("|") and not line.startswith("    "):
            found.append((number, line))
    return found


def commands_of(page: Path) -> list[str]:
    """What a page tells its reader to type after `dppp`, in blocks of code and in backticks."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    shown = re.findall(r"```\w*\n(.*?)```|`([^`]*)`", text, flags=re.DOTALL)
    return [words for block, inline in shown for words in COMMAND.findall(block or inline)]


def unknown_in(words: str) -> str | None:
    """The first command or option that `dppp` does not have."""
    command: Any = typer.main.get_command(app)
    rest = words.split()
    while rest and hasattr(command, "commands") and re.fullmatch("[a-z-]+", rest[0]):
        if rest[0] not in command.commands:
            return rest[0]
        command = command.commands[rest.pop(0)]
    known = {name for each in command.params for name in each.opts}
    return next((word for word in rest if word.startswith("--") and word not in known), None)


def test_every_hop_of_the_walk_exists() -> None:
    assert len(HOPS) > 30
    wrong = [
        f"{file}:{name}"
        for file, name in HOPS
        if not (SOURCE / file).is_file() or name not in functions_of(SOURCE / file)
    ]
    assert not wrong


def test_every_room_is_in_the_tables() -> None:
    rooms = [init.parent.relative_to(SOURCE) for init in SOURCE.glob("*/**/__init__.py")]
    named = {f"{room.name}`" in ARCHITECTURE for room in rooms}
    assert named == {True}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_a_page_are_short(page: Path) -> None:
    assert not [number for number, line in prose_of(page) if len(line) > LONGEST_LINE]


@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_commands_of_a_page_exist(page: Path) -> None:
    assert not [words for words in commands_of(page) if unknown_in(words)]
