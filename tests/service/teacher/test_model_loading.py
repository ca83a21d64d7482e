"""A teacher's model by each kind of configuration, with the real packages."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.left_out import need_module

from dppp.errors import InputError, MissingExtraError, Refusal
from dppp.learning.models import as_predict
from dppp.service.teacher.models.http import load_http
from dppp.service.teacher.models.loading import load_callable, load_onnx, load_skops, load_torch
from dppp.service.teacher.models.pickled import load_pickle

CLASSES = ("malignant", "benign")
ROWS = np.array([[-3.0, 0.5], [2.0, -1.0], [4.0, 4.0], [-0.5, 0.0]])
LABELS = [CLASSES[1 if row[0] > 0 else 0] for row in ROWS]
PLACES = [0, 1, 1, 0]


def make_pipeline() -> object:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline as join
    from sklearn.preprocessing import StandardScaler

    return join(StandardScaler(), LogisticRegression(C=1e3)).fit(ROWS, LABELS)


def test_a_pipeline_saved_by_skops_votes(tmp_path: Path) -> None:
    import skops.io

    skops.io.dump(make_pipeline(), tmp_path / "model.skops")
    model = load_skops(tmp_path / "model.skops")
    assert list(as_predict(model, CLASSES)(ROWS)) == PLACES


def make_text(value: object) -> str:
    return f"label {value}"


def save_with_foreign_function(path: Path) -> str:
    """A pipeline whose first step is a function that scikit-learn does not know."""
    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(FunctionTransformer(make_text), path)
    (name,) = skops.io.get_untrusted_types(file=path)
    return name


def test_a_skops_file_with_types_that_nobody_trusted_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    name = save_with_foreign_function(path)
    assert "make_text" in name
    for trusted in ((), ("somebody.else",)):
        with pytest.raises(InputError, match=r"make_text.*\nhint: .*trusted_types"):
            load_skops(path, trusted)
    assert load_skops(path, (name,)).func is make_text


def make_onnx(path: Path) -> None:
    """Scores: minus and plus the first feature."""
    from onnx import TensorProto, helper, save

    weights = helper.make_tensor("weights", TensorProto.FLOAT, [2, 2], [-1, 1, 0, 0])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, 2])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 2])
    node = helper.make_node("MatMul", ["rows", "weights"], ["scores"])
    graph = helper.make_graph([node], "signs", [rows], [scores], [weights])
    opset = helper.make_opsetid("", 17)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


def test_an_onnx_file_votes(tmp_path: Path) -> None:
    need_module("onnx", extra="dev")
    need_module("onnxruntime", extra="onnx")
    make_onnx(tmp_path / "model.onnx")
    assert list(load_onnx(tmp_path / "model.onnx", CLASSES)(ROWS)) == PLACES


def test_a_function_found_by_its_name_votes() -> None:
    predict = as_predict(load_callable("tests.service.teacher.own_models:by_sign"), CLASSES)
    assert list(predict(ROWS)) == PLACES


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_package.models:predict", r"No module named.*\nhint: .*PYTHONPATH"),
        ("json:no_such_name", "no attribute"),
        ("json", "package.module:name"),
        (":loads", "package.module:name"),
        ("json:loads()", "package.module:name"),
        ("json:__name__", "cannot be called"),
    ],
)
def test_a_name_that_is_no_function_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load_callable(name)


def load_onnx_of_task(path: Path) -> object:
    return load_onnx(path, CLASSES)


@pytest.mark.parametrize("load", [load_skops, load_onnx_of_task])
def test_a_file_that_is_missing_or_something_else_is_named(load, tmp_path: Path) -> None:
    need_module("onnxruntime", extra="onnx")
    path = tmp_path / "model"
    with pytest.raises(InputError, match=r"there is no file .*model"):
        load(path)
    for content in (b"", b"a letter to somebody", b"PK\3\4" + bytes(200)):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"model is not an? .*model|cannot load .*model"):
            load(path)


@pytest.mark.parametrize(
    ("module", "load", "extra"),
    [
        ("skops", lambda: load_skops(Path("model")), "service"),
        ("torch", lambda: load_torch(Path("model"), "package:Class", {}), "torch"),
        ("httpx", lambda: load_http("http://127.0.0.1:8000/predict", 1), "service"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    module: str, load: Callable[[], object], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}\nhint: .*pip install .*\[{extra}\]"):
        load()


class Trap:
    """A pickle that leaves a file behind when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_is_not_even_opened_without_the_flag(tmp_path: Path) -> None:
    path, sprung = tmp_path / "model.pickle", tmp_path / "sprung"
    path.write_bytes(pickle.dumps(Trap(sprung)))
    opened = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(path) in str(arguments[0]):
            opened.append(arguments)

    sys.addaudithook(watch)  # for the rest of the process: there is no way to take it back
    with pytest.raises(
        Refusal, match=r"can run any code.*\nhint: .*--allow-pickle-which-can-run-any-code"
    ):
        load_pickle(path, allow_pickle=False)
    with pytest.raises(Refusal):
        load_pickle(path, allow_pickle="no")  # type: ignore[arg-type]
    assert not opened
    assert not sprung.exists()
    load_pickle(path, allow_pickle=True)
    assert opened
    assert sprung.exists()  # which is what the flag's name says


def test_a_pickled_pipeline_votes_with_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(make_pipeline()))
    assert list(as_predict(load_pickle(path, allow_pickle=True), CLASSES)(ROWS)) == PLACES
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a pickled model"):
        load_pickle(path, allow_pickle=True)
