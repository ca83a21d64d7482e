"""What README.md and docs/usage.md show is run, and what the README says it prints is compared."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
USAGE = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
SHOWN = re.compile(r"```python\n(.*?)```\s+```\n(.*?)```", flags=re.DOTALL)
NOISY = re.compile(r"(?<=^right: )\d+")
"""The only part of the README's output that depends on the noise."""


def run(block: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(block, "documentation", "exec"), {})  # noqa: S102 - our own text
    return capsys.readouterr().out


def test_the_readme_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [(block, claimed)] = SHOWN.findall(README)
    printed = run(block, capsys)
    assert NOISY.sub("*", printed) == NOISY.sub("*", claimed)
    least = re.search(r"at\s+least (\d+) in all but one of a million", README)
    assert least is not None
    for text in (printed, claimed):
        found = NOISY.search(text)
        assert found is not None
        assert int(least[1]) <= int(found[0]) <= 30


@pytest.mark.parametrize("block", PYTHON.findall(USAGE))
def test_a_block_of_the_usage_page_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(block, capsys)


def test_make_demo_installs_what_the_readme_goes_on_with() -> None:
    """Each line after `make demo` needs one of these extras."""
    made = re.search(r"^\.venv/demo:.*?'\.\[([\w,]+)\]'", MAKEFILE, flags=re.DOTALL | re.MULTILINE)
    named = re.search(r"pip install -c constraints\.txt '\.\[([\w,]+)\]'", README)
    assert made is not None
    assert named is not None
    assert set(made[1].split(",")) == set(named[1].split(",")) == {"service", "experiments"}


def test_the_examples_are_there() -> None:
    assert len(PYTHON.findall(README)) == 1
    assert len(PYTHON.findall(USAGE)) == 6
