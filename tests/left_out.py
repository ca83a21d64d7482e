"""What tests need beyond a plain pip install: said in a few lines where missing, failing in CI."""

import importlib.util
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from typing import NoReturn

import pytest

from dppp.errors import install_hint

IS_SOAK = os.environ.get("DPPP_SOAK") == "1"
only_in_soak = pytest.mark.skipif(not IS_SOAK, reason="it is long; run it with: make soak")

_SAID_LOUDLY = "NOT TESTED: "


def leave_out(reason: str) -> NoReturn:
    """Skip, and be counted in the last lines of the run; CI (the variable) leaves nothing out."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must not leave this out: {reason}")
    pytest.skip(_SAID_LOUDLY + reason, allow_module_level=True)


def need_program(name: str, *, package: str) -> str:
    """The path of a program, or this test is left out."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return path or leave_out(f"{name} is missing; install it with: apt-get install {package}")


def need_module(name: str, *, extra: str) -> None:
    """Go on if the module can be imported, else leave this test, or the whole file, out."""
    if importlib.util.find_spec(name) is None:
        leave_out(f"{name} is missing; {install_hint(extra)}")


def describe_left_out(
    skipped: Iterable[pytest.TestReport | pytest.CollectReport],
) -> list[str]:
    """One line for each reason, with the number of tests, or of whole files, that it left out."""
    tests: defaultdict[str, set[str]] = defaultdict(set)
    files: defaultdict[str, set[str]] = defaultdict(set)
    for report in skipped:  # a set, since every worker of xdist reports a file that it cannot read
        whole = isinstance(report, pytest.CollectReport)
        (files if whole else tests)[_reason_of(report)].add(report.nodeid)
    return [
        f"left out: {_count(len(tests[reason]), len(files[reason]))}: {reason}"
        for reason in sorted({*tests, *files})
    ]


def _reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    assert isinstance(report.longrepr, tuple)  # of a skip: the file, the line, the reason
    return report.longrepr[2].removeprefix("Skipped: ").removeprefix(_SAID_LOUDLY)


def _count(tests: int, files: int) -> str:
    counted = ((tests, "test"), (files, "file"))
    return " and ".join(f"{many} {what}{'s' * (many > 1)}" for many, what in counted if many)
