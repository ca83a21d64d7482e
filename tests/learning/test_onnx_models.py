"""Real ONNX files vote in the real protocol; the test knows the noise, so it sees the votes."""

import numpy as np
import pytest
from tests.learning.counting import count
from tests.left_out import need_module

need_module("onnx", extra="dev")
need_module("onnxruntime", extra="onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

from dppp.errors import InputError
from dppp.learning.models import as_predict

CLASSES = ["a", "b", "c"]
ABC = [[3, 0, 0], [0, 3, 0], [0, 0, 3]]
NOTHING = [[0, 0, 0]] * 3
VALUES = [0.0, 1.0, 2.0]
OPERATORS = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]


def tensor(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def scores_of(dtype=np.float32, width=1):
    """The scores of class k are k·x − k²/2: the class nearest to x has the largest."""
    weights = np.array([[0, 1, 2]] * width, dtype=dtype)
    biases = np.array([0, -0.5, -2], dtype=dtype)
    parts = [numpy_helper.from_array(weights, "W"), numpy_helper.from_array(biases, "B")]
    return helper.make_node("Gemm", ["x", "W", "B"], ["scores"]), parts


def save(path, nodes, inputs, outputs, *, parts=(), operators=OPERATORS):
    graph = helper.make_graph(nodes, "model", inputs, outputs, initializer=list(parts))
    model = helper.make_model(graph, opset_imports=operators, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def scoring(path, *, rows="n", dtype=np.float32, kind=TensorProto.FLOAT, width=1):
    """A linear classifier that gives probabilities."""
    gemm, parts = scores_of(dtype, width)
    nodes = [gemm, helper.make_node("Softmax", ["scores"], ["probabilities"])]
    given, wanted = tensor("x", kind, rows, width), tensor("probabilities", kind, rows, 3)
    return save(path, nodes, [given], [wanted], parts=parts)


def labelling(path, *, keepdims=0):
    """A linear classifier that gives labels 0, 1, 2."""
    gemm, parts = scores_of()
    arg_max = helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=keepdims)
    wanted = tensor("label", TensorProto.INT64, *(["n", 1] if keepdims else ["n"]))
    return save(
        path, [gemm, arg_max], [tensor("x", TensorProto.FLOAT, "n", 1)], [wanted], parts=parts
    )


def like_scikit_learn(path, labels, *, zipmap):
    """Two outputs as skl2onnx writes them: the label, and a tensor or a list of dictionaries."""
    is_number = isinstance(labels[0], int)
    kind = TensorProto.INT64 if is_number else TensorProto.STRING
    names = {"classlabels_ints" if is_number else "classlabels_strings": labels}
    keys = {"classlabels_int64s" if is_number else "classlabels_strings": labels}
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=[0.0, 1.0, 2.0],
            intercepts=[0.0, -0.5, -2.0],
            post_transform="SOFTMAX",
            **names,
        )
    ]
    probabilities = tensor("scores", TensorProto.FLOAT, "n", 3)
    if zipmap:
        nodes.append(
            helper.make_node("ZipMap", ["scores"], ["zipped"], domain="ai.onnx.ml", **keys)
        )
        scores = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        mapped = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, scores))
        probabilities = helper.make_value_info("zipped", mapped)
    return save(
        path,
        nodes,
        [tensor("x", TensorProto.FLOAT, "n", 1)],
        [tensor("label", kind, "n"), probabilities],
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.mark.parametrize(
    ("dtype", "kind"), [(np.float32, TensorProto.FLOAT), (np.float64, TensorProto.DOUBLE)]
)
def test_a_file_that_gives_scores_votes_for_the_largest(path, dtype, kind):
    counted = count(as_predict(scoring(path, dtype=dtype, kind=kind), CLASSES), VALUES)
    assert counted.votes == ABC
    assert counted.notes == []


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_file_that_gives_labels_votes_for_them(path, keepdims):
    predict = as_predict(str(labelling(path, keepdims=keepdims)), [0, 1, 2])
    assert count(predict, VALUES).votes == ABC


def test_numbers_are_not_taken_for_names(path):
    counted = count(as_predict(labelling(path), CLASSES), VALUES)
    assert counted.votes == NOTHING
    assert "the model says 0; the classes are ['a', 'b', 'c']" in counted.notes[0]


@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("labels", [["a", "b", "c"], [10, 20, 30]])
def test_of_two_outputs_the_label_votes(path, labels, zipmap):
    predict = as_predict(like_scikit_learn(path, labels, zipmap=zipmap), labels)
    assert count(predict, VALUES).votes == ABC
    turned = as_predict(path, labels[::-1])
    assert count(turned, VALUES).votes == ABC[::-1]


def test_a_file_for_one_row_at_a_time_is_asked_row_by_row(path):
    assert count(as_predict(scoring(path, rows=1), CLASSES), VALUES).votes == ABC


def test_a_file_of_the_wrong_width_casts_zeros_and_says_why_locally(path):
    counted = count(as_predict(scoring(path, width=2), CLASSES), VALUES)
    assert counted.votes == NOTHING
    assert len(counted.notes) == 9
    assert all("Got: 1 Expected: 2" in note for note in counted.notes)


def test_too_few_scores_cast_zeros(path):
    counted = count(as_predict(scoring(path), [*CLASSES, "d"]), VALUES)
    assert counted.votes == NOTHING
    assert "3 scores for 4 classes" in counted.notes[0]


def test_a_corrupt_file_is_refused_when_the_teacher_is_set_up(path):
    whole = scoring(path).read_bytes()
    for damaged in (b"", b"no model", whole[:-20]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cannot load .*model\.onnx"):
            as_predict(path, CLASSES)


def test_operators_that_the_runtime_does_not_know_are_refused(path):
    given, wanted = tensor("x", TensorProto.FLOAT, "n", 1), tensor("y", TensorProto.FLOAT, "n", 1)
    from_the_future = [helper.make_opsetid("", 1000)]
    same = helper.make_node("Identity", ["x"], ["y"])
    made_up = helper.make_node("Prophesy", ["x"], ["y"])
    for node, operators in ((same, from_the_future), (made_up, OPERATORS)):
        save(path, [node], [given], [wanted], operators=operators)
        with pytest.raises(InputError, match="operator set that this release knows"):
            as_predict(path, CLASSES)


@pytest.mark.parametrize("kinds", [[TensorProto.INT64], [TensorProto.FLOAT] * 2])
def test_a_file_that_does_not_take_rows_of_floats_is_refused(path, kinds):
    names = [f"x{place}" for place in range(len(kinds))]
    given = [tensor(name, kind, "n", 1) for name, kind in zip(names, kinds, strict=True)]
    node = helper.make_node("Sum" if len(kinds) > 1 else "Identity", names, ["y"])
    save(path, [node], given, [tensor("y", kinds[0], "n", 1)])
    with pytest.raises(InputError, match="with one input, a tensor of floats"):
        as_predict(path, CLASSES)


def test_models_of_every_kind_vote_together(path):
    models = [
        as_predict(scoring(path), CLASSES),
        as_predict(lambda rows: [CLASSES[int(row[0])] for row in rows], CLASSES),
        as_predict(lambda _: 1 / 0, CLASSES),
    ]
    counted = count(models, VALUES)
    assert counted.votes == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert len(counted.notes) == 3
    assert all("ZeroDivisionError" in note for note in counted.notes)


def test_the_files_of_these_tests_are_valid(path):
    for made in (scoring(path), labelling(path), like_scikit_learn(path, [1, 2, 3], zipmap=True)):
        onnx.checker.check_model(str(made))
