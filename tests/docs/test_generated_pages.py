"""Pages that are made from the code leave nothing out of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.hooks import command_line, configuration, http_interface, notebooks, python_interface

import dppp
from dppp.cli.main import app
from dppp.service.process.config import AggregatorConfig, ChatModel, Section, TeacherConfig

ROOT = Path(__file__).parents[2]
FORMATS = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


def commands_below(command: Any, words: str) -> dict[str, Any]:
    found = {words: command}
    for name, each in getattr(command, "commands", {}).items():
        found |= commands_below(each, f"{words} {name}")
    return found


COMMANDS = commands_below(typer.main.get_command(app), "dppp")


@pytest.fixture(scope="module")
def command_page() -> str:
    return command_line.page()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_of_a_command_is_on_its_page(words: str, command_page: str) -> None:
    section = re.split(rf"^## {words}$", command_page, flags=re.MULTILINE)[1].split("\n## ")[0]
    names = {name for each in COMMANDS[words].params for name in each.opts if "-" in name}
    assert not {name for name in names - {"--help", "-h"} if f"`{name}`" not in section}


def test_defaults_are_those_of_the_command(command_page: str) -> None:
    simulate = command_page.split("\n## dppp simulate\n")[1].split("\n## ", maxsplit=1)[0]
    assert "| `--teachers` | `20` |" in simulate
    assert "| `--data` | *required* |" in simulate
    assert "| `--cryptography`, `--no-cryptography` | `--cryptography` |" in simulate


@pytest.mark.parametrize("model", [TeacherConfig, AggregatorConfig, ChatModel])
def test_every_configuration_key_is_on_the_page(model: type[Section]) -> None:
    page = configuration.page()
    for key in configuration.keys_of(model):
        assert f"| `{key}` |" in page or f"[{key}]" in page
    assert "| `examples` | whole number, at least 1, at most 1,000 | `8` |" in page


def test_every_path_and_object_of_the_gateway_is_on_the_page() -> None:
    document = http_interface.description()
    page = http_interface.page(document)
    assert len(document["paths"]) > 12
    for path, verbs in document["paths"].items():
        for verb in verbs:
            assert f"\n## {verb.upper()} {path}\n" in page
    for name in document["components"]["schemas"]:
        assert f"\n### {name}\n" in page


def test_every_public_name_is_on_the_page_with_its_example() -> None:
    page = python_interface.page()
    for name in set(dppp.__all__) - {"__version__"}:
        is_error = dppp._HOMES[name] == "dppp.errors"
        assert (f"| `{name}` |" if is_error else f"\n### {name}\n") in page
    assert page.count("```") % 2 == 0
    assert "-> ArrayLike" not in page
    assert "numpy._typing" not in page


def test_a_notebook_becomes_words_code_and_what_it_printed(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# First\n", "words"]},
        {"cell_type": "code", "source": "print('```')", "outputs": [{"text": ["```\n"]}]},
        {"cell_type": "code", "source": "1", "outputs": [{"data": {"image/png": "AA\nBB"}}]},
        {"cell_type": "code", "source": " ", "outputs": []},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    page = notebooks.page_of(path)
    assert notebooks.title_of(page, path) == "First"
    assert "````python\nprint('```')\n````\n\n````text\n```\n````" in page
    assert "](data:image/png;base64,AABB)" in page


def test_every_kind_of_message_is_among_the_formats() -> None:
    sources = (ROOT / "src" / "dppp" / "protocol").rglob("*.py")
    kinds = {
        kind
        for path in sources
        for kind in re.findall(r'KIND: ClassVar\[str\] = "(.+)"', path.read_text(encoding="utf-8"))
    }
    stored_only = {"abort", "culprit", "batch request"}
    assert len(kinds) > 25
    assert not {kind for kind in kinds - stored_only if f"`{kind}`" not in FORMATS}


def test_every_test_vector_is_among_the_formats_with_the_test_that_checks_it() -> None:
    named = re.findall(r"^\| `([\w.]+)` \|.*\| (`tests/.+`) \|$", FORMATS, flags=re.MULTILINE)
    vectors = (ROOT / "tests" / "vectors").iterdir()
    there = {path.name for path in vectors if path.suffix in (".json", ".csv")}
    assert {name for name, _ in named} == there
    for _, tests in named:
        assert all((ROOT / test).is_file() for test in re.findall(r"`([^`]+)`", tests))


def test_the_wire_format_is_the_one_that_is_documented() -> None:
    from dppp.protocol.wire import VERSION

    assert f"`dppp --version` prints its number: {VERSION}." in FORMATS
