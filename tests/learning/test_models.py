import random
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.left_out import need_module
from tests.protocol.small import certificate

from dppp.errors import InputError, MissingExtraError
from dppp.learning.models import VoteTable, as_predict
from dppp.learning.simulated import SimulatedFederation

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
    assert list(as_predict(lambda _: [8, 7, 8], [7, 8])(ROWS)) == [1, 0, 1]
    with pytest.raises(InputError, match=r"says 0; the classes are \[7, 8\]"):
        as_predict(lambda _: [0, 7, 8], [7, 8])(ROWS)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [(np.ones((3, 4)), "4 scores for 3 classes"), (np.full((3, 3), np.nan), "not a number")],
)
def test_scores_that_are_none_are_not_counted(scores: np.ndarray, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        as_predict(lambda _: scores, ["a", "b", "c"])(ROWS)


def test_a_model_that_fails_is_counted_in_a_simulation_as_in_the_protocol() -> None:
    def fail_on_ones(rows: np.ndarray) -> list[int]:
        if (rows[:, 0] == 1).any():
            raise RuntimeError("not these")
        return [0] * len(rows)

    votes = []
    for models in ([lambda rows: [None] * len(rows)] * 5, [fail_on_ones] * 5):
        source = random.Random(1)  # noqa: S311 - the same noise for both
        simulated = SimulatedFederation(
            certificate=certificate(), models=models, columns=2, randomness=source.randbytes
        )
        votes.append(np.array([each.counts for each in simulated.ask(ROWS).answers]))
    assert (votes[1] - votes[0]).tolist() == [[5, 0, 0], [0, 0, 0], [5, 0, 0]]


def test_a_table_of_votes_knows_its_inputs_only() -> None:
    table = VoteTable(ROWS[:2], ["a", "b"])
    assert list(as_predict(table, ["a", "b"])(ROWS)) == [0, 1, None]
    with pytest.raises(InputError, match="do not go with"):
        VoteTable(ROWS, ["a"]).predict(ROWS)


def test_what_cannot_vote_is_refused() -> None:
    with pytest.raises(InputError, match="cannot vote"):
        as_predict(42, ["a", "b"])


def test_a_missing_onnx_file_is_said(tmp_path: Path) -> None:
    need_module("onnxruntime", extra="onnx")
    with pytest.raises(InputError, match="no file"):
        as_predict(tmp_path / "missing.onnx", ["a"])


def test_a_missing_runtime_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install -c constraints.txt '.\[onnx\]'"):
        as_predict(tmp_path / "model.onnx", ["a"])
