"""A torch state with its class: numbers are loaded, code is not."""

from pathlib import Path

import pytest
from tests.left_out import need_module

need_module("torch", extra="torch")

import torch
from tests.service.teacher.own_torch_model import TwoLayers
from tests.service.teacher.test_model_loading import CLASSES, ROWS, Trap

from dppp.errors import InputError
from dppp.learning.models import as_predict
from dppp.service.teacher.models.loading import load_torch

NAME = "tests.service.teacher.own_torch_model:TwoLayers"
pytestmark = pytest.mark.torch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.pt"


def test_a_state_with_its_class_votes_as_the_model_did(path: Path) -> None:
    model = TwoLayers(hidden=5)
    torch.save(model.state_dict(), path)
    loaded = load_torch(path, NAME, {"hidden": 5})
    assert not loaded.training
    assert list(as_predict(loaded, CLASSES)(ROWS)) == list(as_predict(model, CLASSES)(ROWS))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"hidden": 6}, "is not a state of"),
        ({"hidden": "many"}, "cannot be made with the arguments hidden"),
        ({}, "cannot be made with the arguments none"),
        ({"width": 5}, "cannot be made with the arguments width"),
    ],
)
def test_a_state_of_another_shape_or_wrong_arguments_are_refused(
    arguments: dict[str, object], says: str, path: Path
) -> None:
    torch.save(TwoLayers(hidden=5).state_dict(), path)
    with pytest.raises(InputError, match=says) as caught:
        load_torch(path, NAME, arguments)
    assert NAME in str(caught.value)


def test_a_file_with_code_in_it_is_refused_and_not_run(path: Path, tmp_path: Path) -> None:
    torch.save({"layers.0.weight": Trap(tmp_path / "sprung")}, path)
    with pytest.raises(InputError, match=r"model.pt is not a state of"):
        load_torch(path, NAME, {"hidden": 5})
    torch.save(TwoLayers(hidden=5), path)
    with pytest.raises(InputError, match=r"torch.save\(model.state_dict\(\)\)"):
        load_torch(path, NAME, {"hidden": 5})
    assert not (tmp_path / "sprung").exists()


def test_a_file_that_is_missing_or_something_else_is_named(path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        load_torch(path, NAME, {"hidden": 5})
    path.write_bytes(b"a letter")
    with pytest.raises(InputError, match=r"model.pt is not a state of"):
        load_torch(path, NAME, {"hidden": 5})


@pytest.mark.parametrize("name", ["tests.service.teacher.own_models:by_sign", "json:JSONDecoder"])
def test_a_name_that_is_no_module_class_is_refused(name: str, path: Path) -> None:
    with pytest.raises(InputError, match=r"not a subclass of torch\.nn\.Module"):
        load_torch(path, name, {})
