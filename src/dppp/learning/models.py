"""Bring your own model: whatever it is, to a teacher it is a function from rows to class numbers.

Accepted are anything with `predict` (scikit-learn), a torch module, the path of an ONNX file, a
Python callable, and a table of precomputed votes. A model that raises, answers with a class outside
the task or with the wrong number of answers does not keep its teacher from taking part: the teacher
casts a vote of zeros for that query (protocol/teacher.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dppp.errors import InputError, MissingExtraError
from dppp.protocol.votes import Predict

Rows = NDArray[np.float64]
NO_CLASS = -1
"""What a label outside the task becomes; no class has this number."""


@dataclass(frozen=True, slots=True, eq=False)
class VoteTable:
    """Precomputed votes: a label for each of these inputs, none for any other."""

    inputs: ArrayLike
    labels: Sequence[object]

    def predict(self, rows: Rows) -> list[object]:
        """The labels in the table; None for an input that is not in it."""
        known = np.asarray(self.inputs, dtype=np.float64)
        if len(known) != len(self.labels):
            raise InputError(f"{len(known)} inputs do not go with {len(self.labels)} labels")
        table = dict(zip((row.tobytes() for row in known), self.labels, strict=True))
        return [table.get(np.asarray(row, dtype=np.float64).tobytes()) for row in rows]


def as_predict(model: object, classes: Sequence[object]) -> Predict:
    """What a teacher of a task with these classes asks for votes."""
    if isinstance(model, str | Path):
        return _numbers(_onnx_labels(Path(model)), classes)
    if _is_torch_module(model):
        return _torch_numbers(model)
    if callable(getattr(model, "predict", None)):
        return _numbers(model.predict, classes)  # type: ignore[attr-defined]
    if callable(model):
        return _numbers(model, classes)
    raise InputError(
        f"a model of type {type(model).__name__} cannot vote; give something with predict, a torch "
        "module, the path of an ONNX file, a function or a VoteTable"
    )


def _numbers(predict: Callable[[Rows], Any], classes: Sequence[object]) -> Predict:
    """Labels to class numbers; a prediction of two dimensions is taken as scores by class."""
    places = {_plain(label): place for place, label in enumerate(classes)}

    def numbers(rows: Rows) -> list[int | None]:
        answers = predict(rows)
        if isinstance(answers, np.ndarray) and answers.ndim == 2 and answers.shape[1] > 1:
            return [int(place) for place in np.argmax(answers, axis=1)]
        flat = np.ravel(answers) if isinstance(answers, np.ndarray) else answers
        return [None if answer is None else places.get(_plain(answer), NO_CLASS) for answer in flat]

    return numbers


def _plain(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label


def _is_torch_module(model: object) -> bool:
    return any(kind.__module__.startswith("torch.nn") for kind in type(model).__mro__)


def _torch_numbers(module: Any) -> Predict:
    """The class of the largest output of a torch module."""
    import torch  # noqa: PLC0415

    def numbers(rows: Rows) -> list[int | None]:
        module.eval()
        with torch.no_grad():
            scores = module(torch.from_numpy(np.asarray(rows, dtype=np.float32)))
        return [int(place) for place in scores.argmax(dim=1)]

    return numbers


def _onnx_labels(path: Path) -> Callable[[Rows], Any]:
    """The first output of an ONNX model: labels, or scores by class."""
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "an ONNX model needs onnxruntime; install it with: pip install onnxruntime"
        ) from error
    if not path.is_file():
        raise InputError(f"there is no file {path}; give the path of an ONNX model")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def labels(rows: Rows) -> Any:
        return session.run(None, {name: np.asarray(rows, dtype=np.float32)})[0]

    return labels
