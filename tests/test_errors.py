"""Exceptions: one of four kinds each, a hint on a line of its own, and they survive a process."""

import concurrent.futures
import copy
import inspect
import multiprocessing
import pickle

import pytest

import dppp
from dppp import errors
from dppp.errors import (
    BatchAborted,
    DpppError,
    InputError,
    PackingError,
    PeerFault,
    Refusal,
    TranscriptError,
    Unavailable,
)

KINDS = (InputError, Refusal, PeerFault, Unavailable)
EXCEPTIONS = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, DpppError) and each is not DpppError
]


ARGUMENTS = {
    "message": "it is broken",
    "reason": "too few ballots",
    "check": "list",
    "extra": "service",
    "slot": 4,
    "position": 5,
    "missing": (1,),
    "culprits": (2, 3),
    "dealers": (6,),
    "purpose": 1,
    "is_refunded": True,
}


def made(kind: type[DpppError], hint: str | None) -> DpppError:
    """An exception with every argument that its kind takes."""
    given = ARGUMENTS | {"hint": hint}
    return kind(**{name: given[name] for name in inspect.signature(kind).parameters})  # type: ignore[arg-type]


def raise_in_another_process() -> None:
    raise PackingError("slot 4 is too large", slot=4, hint="mend it")


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_every_exception_is_of_exactly_one_of_the_four_kinds(kind: type[DpppError]) -> None:
    assert sum(issubclass(kind, each) for each in KINDS) == 1


@pytest.mark.parametrize("hint", [None, "mend it"])
@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_a_copied_or_pickled_exception_says_the_same(
    kind: type[DpppError], hint: str | None
) -> None:
    error = made(kind, hint)
    unpickled = pickle.loads(pickle.dumps(error))  # noqa: S301 - written in the same line
    for again in (copy.copy(error), copy.deepcopy(error), unpickled):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


def test_an_exception_comes_back_from_another_process() -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        error = pool.submit(raise_in_another_process).exception()
    assert isinstance(error, PackingError)
    assert (error.slot, error.hint) == (4, "mend it")


@pytest.mark.parametrize("kind", [DpppError, *KINDS, BatchAborted, TranscriptError])
def test_the_python_interface_has_the_exceptions_that_it_raises(kind: type[DpppError]) -> None:
    assert getattr(dppp, kind.__name__) is kind
    assert kind.__name__ in dir(dppp)


def test_the_hint_is_on_the_line_after_the_message() -> None:
    error = InputError("the file is empty", hint="write something into it")
    assert str(error) == "the file is empty\nhint: write something into it"
    assert (error.message, error.hint) == ("the file is empty", "write something into it")
    assert error.one_line == "the file is empty; write something into it"


def test_an_exception_without_a_hint_is_its_message() -> None:
    error = Refusal("the budget is spent")
    assert str(error) == error.message == error.one_line == "the budget is spent"
    assert error.hint is None
