"""Bring your own model: whatever it is, to a teacher it is a function from rows to class numbers.

Accepted are anything with `predict` (scikit-learn), a torch module, the path of an ONNX file, a
Python callable, and a table of precomputed votes. A file that cannot be loaded is refused when the
teacher is set up. Later, a model that raises, answers with a class outside the task or with the
wrong number of answers casts a vote of zeros for that query (protocol/votes.py).

Rows of a task that has more than plain numbers are a DataFrame to a model (frames.py).
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dppp.errors import InputError, MissingExtraError
from dppp.learning.frames import as_trained
from dppp.protocol.votes import Predict

Rows = NDArray[np.float64]
ModelFunction = Callable[[Any], Any]
"""What a model says of rows, in its own way: labels, or scores with a column per class."""

_ONNX_FLOATS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
}


@dataclass(frozen=True, slots=True, eq=False)
class VoteTable:
    """Precomputed votes: a label for each of these inputs, none for any other."""

    inputs: ArrayLike
    labels: Sequence[object]

    def predict(self, rows: Rows) -> list[object]:
        """The labels in the table; None for an input that is not in it."""
        known = np.asarray(self.inputs, dtype=np.float64)
        if len(known) != len(self.labels):
            raise InputError(
                f"{len(known)} inputs do not go with {len(self.labels)} labels",
                hint="give one label per input",
            )
        table = dict(zip((row.tobytes() for row in known), self.labels, strict=True))
        return [table.get(np.asarray(row, dtype=np.float64).tobytes()) for row in rows]


def as_predict(model: object, classes: Sequence[object]) -> Predict:
    """What a teacher asks for votes.

    `classes` are the model's own labels of the task's classes, in the task's order: the names of
    the classes, or 0, 1, … for a model that learned numbers.
    """
    return _numbers(answer_of(model), classes)


def answer_of(model: object) -> ModelFunction:
    """How a model is asked, whatever kind it is; refuses what cannot vote."""
    if isinstance(model, str | Path):
        return _onnx_answer(Path(model))
    if _is_torch_module(model):
        return _torch_answer(model)
    if callable(getattr(model, "predict", None)):
        return model.predict  # type: ignore[attr-defined,no-any-return]
    if callable(model):
        return model
    raise InputError(
        f"a model of type {type(model).__name__} cannot vote",
        hint=(
            "give something with predict, a torch module, the path of an ONNX file, a function "
            "or a VoteTable"
        ),
    )


def _numbers(answer: ModelFunction, classes: Sequence[object]) -> Predict:
    """Labels or scores to class numbers; raises what is neither, and the vote is all zeros."""
    places = {_plain(label): place for place, label in enumerate(classes)}

    def numbers(rows: Any) -> list[int | None]:
        answers = answer(as_trained(rows))
        if hasattr(answers, "__array__"):
            table = np.asarray(answers)
            if table.ndim == 2 and table.shape[1] > 1:
                return _largest(table, len(places))
            answers = table.ravel()
        return [_place(_plain(label), places) for label in answers]

    return numbers


def _largest(scores: NDArray[Any], classes: int) -> list[int | None]:
    if scores.shape[1] != classes:
        raise InputError(
            f"the model gives {scores.shape[1]} scores for {classes} classes",
            hint="the model must be of the task's classes, in their order",
        )
    if np.isnan(scores).any():
        raise InputError(
            "the model gives a score that is not a number",
            hint="look for a missing value in the records, or in the model",
        )
    return [int(place) for place in scores.argmax(axis=1)]


def _place(label: object, places: Mapping[object, int]) -> int | None:
    if label is not None and label not in places:
        raise InputError(
            f"the model says {label!r}; the classes are {list(places)}",
            hint="the model must answer with the task's classes",
        )
    return None if label is None else places[label]


def _plain(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label


def _is_torch_module(model: object) -> bool:
    return any(kind.__module__.startswith("torch.nn") for kind in type(model).__mro__)


def _torch_answer(module: Any) -> ModelFunction:
    """A torch module in evaluation mode (and left in it), on its own device, in its own floats."""
    import torch  # noqa: PLC0415

    def answer(rows: Rows) -> Any:
        floats = (weight for weight in module.parameters() if weight.is_floating_point())
        like = next(floats, torch.zeros((), dtype=torch.float32))
        with contextlib.suppress(NotImplementedError):  # of torch.export: its mode is built in
            module.eval()
        with torch.no_grad():
            return module(torch.from_numpy(rows).to(like)).cpu().numpy()

    return answer


def _onnx_answer(path: Path) -> ModelFunction:
    """The first output of an ONNX model: scikit-learn's exporters put the label there."""
    session = _onnx_session(path)
    (given, *more), (wanted, *_) = session.get_inputs(), session.get_outputs()
    if more or given.type not in _ONNX_FLOATS:
        raise InputError(
            f"{path} takes {1 + len(more)} inputs, the first a {given.type}; a model votes on "
            "rows of numbers",
            hint="export it with one input, a tensor of floats",
        )

    def answer(rows: Rows) -> Any:
        feed = {given.name: rows.astype(_ONNX_FLOATS[given.type])}
        return session.run([wanted.name], feed)[0]

    return answer


def _onnx_session(path: Path) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("an ONNX model needs onnxruntime", extra="onnx") from error
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="give the path of an ONNX model")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and noted by the teacher
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common class of their own
        raise InputError(
            f"onnxruntime {onnxruntime.__version__} cannot load {path} ({error})",
            hint="export the model again, for an operator set that this release knows",
        ) from error
