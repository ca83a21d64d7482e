"""Property tests: the same examples in every `make test`, more and new ones in `make soak`."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
SHOW = """
import tests.conftest
from hypothesis import settings

chosen = settings()
print(chosen.derandomize, chosen.max_examples, chosen.print_blob, chosen.deadline)
"""


def settings_with(**variables: str) -> list[str]:
    """What a process with these variables chooses; CI is set, where hypothesis has its own ways."""
    others = {name: value for name, value in os.environ.items() if name != "DPPP_SOAK"}
    shown = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", SHOW],
        cwd=HERE,
        env={**others, "CI": "true", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.split()


def test_a_plain_run_tries_the_same_examples_every_time() -> None:
    derandomize, examples, _, deadline = settings_with()
    assert (derandomize, examples, deadline) == ("True", "100", "None")


def test_a_soak_tries_more_and_new_examples_and_prints_what_repeats_a_failure() -> None:
    assert settings_with(DPPP_SOAK="1") == ["False", "1000", "True", "None"]
