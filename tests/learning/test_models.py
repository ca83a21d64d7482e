from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.left_out import need_module

from dppp.errors import InputError
from dppp.learning.models import NO_CLASS, VoteTable, as_predict

ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])


def test_anything_with_predict_votes() -> None:
    model = LogisticRegression().fit([[0, 1], [1, 0]], ["b", "a"])
    assert list(as_predict(model, ["a", "b", "c"])(ROWS[:2])) == [1, 0]


def test_a_function_votes_with_labels() -> None:
    assert list(as_predict(lambda rows: ["b"] * len(rows), ["a", "b"])(ROWS)) == [1, 1, 1]


def test_scores_by_class_vote_for_the_largest() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.4]])
    assert list(as_predict(lambda _: scores, ["a", "b"])(ROWS)) == [1, 0, 0]


def test_labels_are_not_taken_for_places() -> None:
    assert list(as_predict(lambda _: [0, 7, 8], [7, 8])(ROWS)) == [NO_CLASS, 0, 1]


def test_a_table_of_votes_knows_its_inputs_only() -> None:
    table = VoteTable(ROWS[:2], ["a", "b"])
    assert list(as_predict(table, ["a", "b"])(ROWS)) == [0, 1, None]
    with pytest.raises(InputError, match="do not go with"):
        VoteTable(ROWS, ["a"]).predict(ROWS)


def test_what_cannot_vote_is_refused() -> None:
    with pytest.raises(InputError, match="cannot vote"):
        as_predict(42, ["a", "b"])


def write_onnx(path: Path, operation: str, **attributes: int) -> Path:
    """A model of one operation on rows of two features."""
    need_module("onnx", extra="dev")
    from onnx import TensorProto, helper, save

    kind = TensorProto.INT64 if operation == "ArgMax" else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(operation, ["rows"], ["out"], **attributes)],
        "graph",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("out", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, str(path))
    return path


def test_an_onnx_model_votes_by_its_scores(tmp_path: Path) -> None:
    need_module("onnxruntime", extra="onnx")
    path = write_onnx(tmp_path / "scores.onnx", "Neg")
    assert list(as_predict(path, ["a", "b"])(ROWS[:2])) == [0, 1]


def test_an_onnx_model_votes_by_its_labels(tmp_path: Path) -> None:
    need_module("onnxruntime", extra="onnx")
    path = write_onnx(tmp_path / "labels.onnx", "ArgMax", axis=1, keepdims=0)
    assert list(as_predict(str(path), [1, 0])(ROWS[:2])) == [0, 1]


def test_a_missing_onnx_file_is_said(tmp_path: Path) -> None:
    need_module("onnxruntime", extra="onnx")
    with pytest.raises(InputError, match=r"no file .*missing\.onnx"):
        as_predict(tmp_path / "missing.onnx", ["a"])
