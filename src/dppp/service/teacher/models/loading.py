"""A teacher's own model, from what its configuration says; used by `dppp teacher run`.

Nothing here came from another party: every file, class and function is the operator's. Loading
refuses all the same what could run code that nobody looked at: a skops file loads the types that
its reader trusts by name, a torch file only numbers. A pickle is another matter (pickled.py).
What these functions return goes to learning.models.as_predict with the task's classes.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dppp.errors import DpppError, InputError, MissingExtraError
from dppp.learning.question_models import as_answering
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.votes import Predict
from dppp.service.teacher.models.skops_files import import_skops

_SKOPS = "a model saved by skops.io.dump"


def load_skops(path: Path, trusted_types: Sequence[str] = ()) -> Any:
    """A scikit-learn model from a file made by skops.io.dump."""
    import_skops()
    with reading_model(path, _SKOPS):
        return read_skops(path, path.read_bytes(), trusted_types)


def read_skops(path: Path, data: bytes, trusted_types: Sequence[str] = ()) -> Any:
    """The model in the bytes of such a file; `path` is for what is said of it."""
    skops = import_skops()
    with understanding_model(path, _SKOPS):
        found = skops.get_untrusted_types(data=data)
        from dppp.learning.default_model import TYPES  # noqa: PLC0415 - brings scikit-learn

        trusted = {*trusted_types, *TYPES}
        _require_trusted(path, sorted(set(found) - trusted))
        return skops.loads(data, trusted=sorted(trusted))


def _require_trusted(path: Path, untrusted: Sequence[str]) -> None:
    if untrusted:
        raise InputError(
            f"{path} holds types that nobody trusted, and loading them runs their code: "
            f"{', '.join(untrusted)}",
            hint="read what they do, and if you trust them, name them in trusted_types",
        )


def load_onnx(path: Path, names: Sequence[object], question: Question = CHOICE) -> Predict:
    """An ONNX model, ready to vote: as_answering opens the file by itself."""
    with reading_model(path, "an ONNX model"):
        return as_answering(path, names, question)


def load_torch(path: Path, class_name: str, arguments: Mapping[str, Any]) -> Any:
    """A torch module: the class "package.module:Class" made with these arguments, and its state."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("a torch model needs torch", extra="torch") from error
    kind = import_name(class_name)
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        raise InputError(
            f"{class_name} is not a subclass of torch.nn.Module", hint="name the model's class"
        )
    try:
        module = kind(**arguments)
    except Exception as error:
        raise InputError(
            f"{class_name} cannot be made with the arguments {', '.join(arguments) or 'none'} "
            f"({_words(error)})",
            hint="give those with which it was trained",
        ) from error
    with reading_model(path, f"a state of {class_name}, saved by torch.save(model.state_dict())"):
        module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return module.eval()


def load_callable(name: str) -> Any:
    """The function "package.module:function", from rows to labels."""
    function = import_name(name)
    if not callable(function):
        raise InputError(
            f"{name} is of type {type(function).__name__} and cannot be called",
            hint="name a function that takes rows and returns a label for each",
        )
    return function


def import_name(name: str) -> Any:
    """What the operator's own code calls "package.module:name"."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute.isidentifier():
        raise InputError(f"{name!r} is not a name to import", hint="write package.module:name")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except Exception as error:
        raise InputError(
            f"cannot import {name} ({_words(error)})",
            hint=(
                "install the package that holds it in this environment, or add its folder to "
                "PYTHONPATH"
            ),
        ) from error


@contextmanager
def reading_model(path: Path, what: str) -> Iterator[None]:
    """Say which file is missing or cannot be read, and what it should be."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint=f"give the path of {what}")
    with understanding_model(path, what):
        yield


@contextmanager
def understanding_model(path: Path, what: str) -> Iterator[None]:
    """Say what a file should be; a damaged one may raise anything."""
    try:
        yield
    except DpppError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is not {what} that this version can read: {_words(error)}",
            hint="save the model again",
        ) from error


def _words(error: Exception) -> str:
    """The kind of an error and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
