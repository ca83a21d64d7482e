"""What tests need beyond a plain pip install: said loudly where missing, a failure in CI."""

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest


def leave_out(reason: str) -> NoReturn:
    """Skip, in words that cannot be overlooked; CI (the variable) must leave nothing out."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must not leave this out: {reason}")
    pytest.skip(f"NOT TESTED: {reason}", allow_module_level=True)


def need_program(name: str, *, package: str) -> str:
    """The path of a program, or this test is left out."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return path or leave_out(f"{name} is missing; install it with: apt-get install {package}")


def need_module(name: str, *, extra: str) -> None:
    """Go on if the module can be imported, else leave this test, or the whole file, out."""
    if importlib.util.find_spec(name) is None:
        leave_out(f"{name} is missing; install it with: pip install 'dppp[{extra}]'")
