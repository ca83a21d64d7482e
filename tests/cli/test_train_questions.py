"""`dppp train` for tasks that ask for labels or for a number: from a CSV to models that vote."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.service.ceremony.ceremonies import TEACHERS, hold_masked

from dppp.protocol.inputs import decode_rows, encode_rows, join_rows
from dppp.protocol.votes import cast_votes
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.teacher.models.configured import task_of
from dppp.service.teacher.models.folder import load_folder, read_manifest

RECORDS = 240
FEATURES = ("age", "weight")


def write_table(path: Path) -> Path:
    """The dose is 10 × age; `young` and `heavy` follow the signs of the columns.

    `rare` is in one record alone, so that most shards do not have it.
    """
    rows = np.random.default_rng(4).normal(size=(RECORDS, 2))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FEATURES, "heavy", "young", "rare", "dose"])
        for place, (age, weight) in enumerate(rows):
            labels = [int(weight > 0), int(age < 0), int(place == 4)]
            writer.writerow([f"{age:.6f}", f"{weight:.6f}", *labels, f"{10 * age:.6f}"])
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "records.csv")


def made(tmp_path: Path, table: Path, label: str, **terms: object) -> NDArray[np.int64]:
    """The votes of a teacher of such a task on four rows, by the models that `train` made."""
    ceremony = hold_masked(tmp_path / "ceremony", features=FEATURES, votes=3, **terms)
    config = ceremony.set_up(TEACHERS[0]).configuration
    said = json_of(f"train --config '{config}' --data {table} --label {label}")
    task, index = task_of(read_config(config, TeacherConfig))
    assert read_manifest(Path(said["folder"])).question == task.question.kind
    rows = encode_rows([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], task.columns)
    inputs = decode_rows(join_rows(rows), 4, task.columns)
    votes = [
        cast_votes(model, inputs, len(task.class_names), question=task.question)
        for model in load_folder(Path(said["folder"]), task, index)
    ]
    accepted = json_of(f"teacher accept --config '{config}' --first-use-of-this-data")
    assert accepted["votes"] == 3
    return np.stack(votes)


def test_a_task_of_labels_gets_models_that_vote_for_labels_in_its_order(
    tmp_path: Path, table: Path
) -> None:
    names = ("young", "heavy", "rare")
    votes = made(tmp_path, table, "rare,heavy,young", class_names=names, max_labels=2)
    assert votes.tolist() == [[[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]]] * 3


def test_a_task_of_a_number_gets_models_that_vote_for_steps(tmp_path: Path, table: Path) -> None:
    votes = made(tmp_path, table, "dose", class_names=("dose",), low=-30.0, high=30.0, levels=60)
    assert votes.shape == (3, 4, 1)
    assert (abs(votes[:, :, 0] - np.array([20, 20, 40, 40])) <= 8).all()


def test_columns_that_do_not_hold_what_the_task_asks_for_are_refused(
    tmp_path: Path, table: Path
) -> None:
    ceremony = hold_masked(
        tmp_path / "ceremony", features=FEATURES, class_names=("young", "heavy"), max_labels=1
    )
    config = ceremony.set_up(TEACHERS[0]).configuration
    command = f"train --config '{config}' --out {tmp_path}/models --data {table} --label"
    assert_refused(2, "the labels young, heavy", run_dppp(f"{command} young"))
    text = table.read_text(encoding="utf-8").replace(",1,", ",2,")
    (tmp_path / "twos.csv").write_text(text, encoding="utf-8")
    command = f"train --config '{config}' --out {tmp_path}/models --data {tmp_path}/twos.csv"
    assert_refused(2, "", run_dppp(f"{command} --label young,heavy"))
    assert not (tmp_path / "models").exists()
