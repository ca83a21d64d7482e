"""docs/attacks.md names tests: each of them exists, and `make attacks` runs it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/attacks.md").read_text())


def test_the_page_names_many_attacks() -> None:
    assert len(NAMED) > 40
    assert len(set(NAMED)) == len(NAMED)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_an_attack_on_the_page_exists_and_carries_the_marker(file: str, name: str) -> None:
    source = (ROOT / file).read_text()
    assert f"\ndef {name}(" in source
    assert "\npytestmark = pytest.mark.attack\n" in source
