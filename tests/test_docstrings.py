"""Every public name has types and an example, and each example prints what it says."""

import doctest
import importlib
import inspect
import warnings
from typing import Any

import pytest

import dppp
from dppp.errors import WeakModulusWarning

# What all exceptions have is shown at DpppError, and tests/test_errors.py makes each of them.
OTHER_EXCEPTIONS = {
    name for name, home in dppp._HOMES.items() if home == "dppp.errors" and name != "DpppError"
}
NAMES = sorted(set(dppp.__all__) - {"__version__"} - OTHER_EXCEPTIONS)


def examples_of(name: str) -> doctest.DocTest:
    found = getattr(dppp, name)
    # With no names given: an example has to import what it uses, as a reader would.
    return doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", {}, name, None, None)


def signature_of(name: str) -> Any:
    found = getattr(dppp, name)
    return inspect.signature(found.__init__ if inspect.isclass(found) else found)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_prints_what_it_says(name: str) -> None:
    test = examples_of(name)
    sources = "".join(example.source for example in test.examples)
    assert name.lower() in sources.lower(), f"{name} has no example"
    assert any(example.want for example in test.examples), f"the example of {name} shows nothing"
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModulusWarning)  # keys that are quick to deal
        result = doctest.DocTestRunner().run(test, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_types(name: str) -> None:
    signature = signature_of(name)
    untyped = [
        each.name
        for each in signature.parameters.values()
        if each.name != "self" and each.annotation is inspect.Parameter.empty
    ]
    assert not untyped
    assert signature.return_annotation is not inspect.Signature.empty


def test_a_name_comes_from_the_home_that_it_is_listed_under() -> None:
    for name, home in dppp._HOMES.items():
        assert getattr(importlib.import_module(home), name) is getattr(dppp, name)
