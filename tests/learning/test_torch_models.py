"""Real torch modules vote in the real protocol; the test knows the noise, so it sees the votes."""

import numpy as np
import pytest
from tests.learning.counting import count
from tests.left_out import need_module

need_module("torch", extra="torch")

import torch
from torch import nn

from dppp.learning.models import as_predict

pytestmark = pytest.mark.torch
CLASSES = ["a", "b", "c"]
ABC = [[3, 0, 0], [0, 3, 0], [0, 0, 3]]
NOTHING = [[0, 0, 0]] * 3
VALUES = [0.0, 1.0, 2.0]


def linear(dtype=torch.float32):
    """The scores of class k are k·x − k²/2: the class nearest to x has the largest."""
    layer = nn.Linear(1, 3, dtype=dtype)
    with torch.no_grad():
        layer.weight[:] = torch.tensor([[0.0], [1.0], [2.0]])
        layer.bias[:] = torch.tensor([0.0, -0.5, -2.0])
    return layer


class Then(nn.Module):
    """A linear model, and something done to its scores."""

    def __init__(self, change):
        super().__init__()
        self.scores, self.change = linear(), change

    def forward(self, rows):
        return self.change(self.scores(rows))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_module_votes_for_its_largest_score_in_its_own_floats(dtype):
    counted = count(as_predict(linear(dtype), CLASSES), VALUES)
    assert counted.votes == ABC
    assert counted.notes == []


def test_a_module_without_weights_gets_32_bit_floats():
    seen = []

    class Nearest(nn.Module):
        def forward(self, rows):
            seen.append(rows.dtype)
            return -((rows - torch.arange(3)) ** 2)

    assert count(as_predict(Nearest(), CLASSES), VALUES).votes == ABC
    assert set(seen) == {torch.float32}


def test_a_module_left_in_training_mode_is_evaluated_and_learns_nothing():
    normal = nn.BatchNorm1d(3, affine=False)
    module = nn.Sequential(linear(), nn.Dropout(0.9), normal).train()
    assert count(as_predict(module, CLASSES), VALUES).votes == ABC
    assert not module.training
    assert normal.num_batches_tracked == 0
    assert torch.equal(normal.running_mean, torch.zeros(3))


def test_no_gradients_are_kept():
    enabled = []

    def look(scores):
        enabled.append((torch.is_grad_enabled(), scores.requires_grad))
        return scores

    assert count(as_predict(Then(look), CLASSES), VALUES).votes == ABC
    assert set(enabled) == {(False, False)}


@pytest.mark.parametrize("change", [lambda s: s.argmax(1), lambda s: s.argmax(1, keepdim=True)])
def test_a_module_may_give_labels_and_they_are_the_models_own(change):
    assert count(as_predict(Then(change), [0, 1, 2]), VALUES).votes == ABC
    backwards = count(as_predict(Then(change), [2, 1, 0]), VALUES)
    assert backwards.votes == ABC[::-1]
    unnamed = count(as_predict(Then(change), CLASSES), VALUES)
    assert unnamed.votes == NOTHING
    assert "the model says 0; the classes are ['a', 'b', 'c']" in unnamed.notes[0]


def test_an_exported_module_votes_too():
    """Such a module refuses `eval()`: its mode was fixed when it was exported."""
    sizes = ({0: torch.export.Dim("rows")},)
    exported = torch.export.export(linear().eval(), (torch.zeros(2, 1),), dynamic_shapes=sizes)
    assert count(as_predict(exported.module(), CLASSES), VALUES).votes == ABC


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Linear(2, 3), "mat1 and mat2"),
        (nn.Linear(1, 2), "2 scores for 3 classes"),
        (nn.Linear(1, 4), "4 scores for 3 classes"),
        (nn.Sequential(linear(), nn.Linear(3, 1), nn.Sigmoid()), "the model says 0."),
        (Then(lambda scores: scores * float("nan")), "not a number"),
        (Then(lambda scores: (scores, scores)), "AttributeError"),
        (Then(lambda scores: scores.repeat(2, 1)), "2 answers to 1 queries"),
    ],
)
def test_a_module_that_cannot_answer_casts_zeros_and_says_why_locally(module, reason):
    counted = count(as_predict(module, CLASSES), VALUES)
    assert counted.votes == NOTHING
    assert len(counted.notes) == 9
    assert all(reason in note for note in counted.notes)


def test_a_module_that_fails_on_one_input_votes_on_the_others():
    def fail_on_one(scores):
        if (scores.argmax(1) == 1).any():
            raise RuntimeError("no ones, please")
        return scores

    counted = count(as_predict(Then(fail_on_one), CLASSES), VALUES)
    assert counted.votes == [[3, 0, 0], [0, 0, 0], [0, 0, 3]]
    assert len(counted.notes) == 3


def test_a_function_may_return_a_tensor():
    assert list(as_predict(lambda _: torch.tensor([2, 0]), [0, 1, 2])(np.zeros((2, 1)))) == [2, 0]
