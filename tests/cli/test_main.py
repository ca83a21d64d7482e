"""The command line as a whole: exit codes, one clear line, never a traceback."""

import subprocess
import sys


def run_dppp(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", *arguments], capture_output=True, text=True, check=False
    )


def test_the_version_is_printed() -> None:
    result = run_dppp("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("dppp ")


def test_an_unknown_command_is_one_line_and_exit_2() -> None:
    result = run_dppp("divine")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "divine" in result.stderr
    assert "--help" in result.stderr
