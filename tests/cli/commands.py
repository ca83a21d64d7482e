"""Running the command line: in this process, which is fast, or for real in its own."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from typing import Any

from dppp.cli.main import main


def run_dppp(command: str) -> subprocess.CompletedProcess[str]:
    """Run `dppp COMMAND` in this process, up to its exit code."""
    out, err = io.StringIO(), io.StringIO()
    arguments = shlex.split(command)
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run_process(command: str) -> subprocess.CompletedProcess[str]:
    """Run `dppp COMMAND` in a process of its own."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", *shlex.split(command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def json_of(command: str) -> dict[str, Any]:
    result = run_dppp(f"{command} --json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def assert_refused(code: int, word: str, result: subprocess.CompletedProcess[str]) -> None:
    """What was wrong, and perhaps a hint, the exit code, and nothing that looks like a crash."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert_one_failure(result)
    assert word in result.stderr


def assert_one_failure(result: subprocess.CompletedProcess[str]) -> None:
    """One line that says what was wrong, at most one more with a hint; or one JSON object."""
    if "--json" in result.args:
        assert set(json.loads(result.stderr)) == {"error", "hint"}
    else:
        assert re.fullmatch(r"dppp: [^\n]+\n(hint: [^\n]+\n)?", result.stderr), result.stderr
