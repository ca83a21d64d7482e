"""A folder of models: what it votes, and what is refused before it votes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learning.retraining import KEY, changed_models, estimator, make_table, replace
from tests.service.ceremony.ceremonies import hold_masked

from dppp.errors import InputError
from dppp.learning.csv_records import Records
from dppp.learning.models import as_predict
from dppp.learning.shards import make_shards, shard_of, train_shard
from dppp.learning.training import train_models
from dppp.protocol.task import Task
from dppp.protocol.votes import sum_votes
from dppp.service.teacher.models.folder import load_folder, read_manifest, save_folder
from dppp.service.teacher.models.loading import load_skops

COLUMNS, CLASSES, VOTES = ("a", "b", "c"), ("low", "high"), 4
Change = Callable[[Path], None]


def save(
    folder: Path, rows: Any, labels: Any, *, persons: Any = None, unit: str = "record"
) -> Path:
    records = Records(features=COLUMNS, rows=rows, labels=labels, persons=persons)
    save_folder(folder, train_models(records, estimator(), votes=VOTES, unit=unit, key=KEY))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("made") / "models", *make_table())


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    root = tmp_path_factory.mktemp("tasks")
    usual: dict[str, Any] = {"class_names": CLASSES, "features": COLUMNS, "votes": VOTES}
    others: dict[str, dict[str, Any]] = {
        "usual": {},
        "votes": {"votes": 5},
        "person": {"unit": "person"},
        "columns": {"features": ("a", "c", "b")},
        "classes": {"class_names": ("low", "medium")},
    }
    return {
        name: hold_masked(root / name, **{**usual, **other}).federation.task
        for name, other in others.items()
    }


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "models")


def test_a_folder_votes_as_the_models_did_that_were_trained(
    made: Path, tasks: dict[str, Task]
) -> None:
    rows, labels = make_table()
    shards = make_shards(rows, labels, ids=None, votes=VOTES, key=KEY)
    trained = [as_predict(train_shard(estimator(), shard), CLASSES) for shard in shards]
    asked = np.random.default_rng(1).normal(size=(50, 3))
    votes = sum_votes(load_folder(made, tasks["usual"], 1), asked, len(CLASSES))
    assert (votes == sum_votes(trained, asked, len(CLASSES))).all()
    assert (votes.sum(axis=1) == VOTES).all()
    assert len(np.unique(votes[:, 0])) > 3  # and they do not all say the same


def test_replacing_one_record_changes_one_file_of_the_folder(tmp_path: Path) -> None:
    rows, labels = make_table()
    changed = replace(rows, labels, 7, ([40.0, -3.0, 7.0], "low"))
    before, after = (
        [load_skops(folder / str(shard.file)) for shard in read_manifest(folder).shards]
        for folder in (save(tmp_path / "a", rows, labels), save(tmp_path / "b", *changed))
    )
    assert changed_models(before, after) == [shard_of(7, votes=VOTES, key=KEY)]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("votes", r"5 votes, and .* has models for 4\nhint: run `dppp train`"),
        ("person", r"was made by record.*\nhint: .*--person"),
        ("columns", r"other columns than the task's, or in another order\nhint: .*--config"),
        ("classes", r"knows the class 'high'"),
    ],
)
def test_models_for_another_task_are_refused(
    name: str, reason: str, made: Path, tasks: dict[str, Task]
) -> None:
    with pytest.raises(InputError, match=reason):
        load_folder(made, tasks[name], 1)


def test_a_folder_made_by_person_serves_both_promises(
    tmp_path: Path, tasks: dict[str, Task]
) -> None:
    rows, labels = make_table()
    persons = np.array([f"P{place % 20}" for place in range(len(rows))])
    folder = save(tmp_path / "models", rows, labels, persons=persons, unit="person")
    for name in ("person", "usual"):
        assert len(load_folder(folder, tasks[name], 2)) == VOTES


def exchange(folder: Path) -> None:
    """Two whole, loadable models in each other's place."""
    one, two = folder / "model-1.skops", folder / "model-2.skops"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def flip_a_byte(folder: Path) -> None:
    data = bytearray((folder / "model-3.skops").read_bytes())
    data[100] ^= 1
    (folder / "model-3.skops").write_bytes(bytes(data))


def edit(change: Callable[[dict[str, Any]], object]) -> Change:
    def apply(folder: Path) -> None:
        path = folder / "manifest.json"
        plain = json.loads(path.read_text(encoding="utf-8"))
        change(plain)
        path.write_text(json.dumps(plain), encoding="utf-8")

    return apply


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (exchange, "SHA-256 differs"),
        (flip_a_byte, "SHA-256 differs"),
        (lambda folder: (folder / "model-1.skops").unlink(), "cannot read"),
        (lambda folder: (folder / "manifest.json").unlink(), "not a folder of models"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json"),
        (edit(lambda plain: plain.update(more=1)), "more is not known here"),
        (edit(lambda plain: plain["shards"][0].update(file="../x.skops")), "shards.0.file"),
        (edit(lambda plain: plain["shards"][0].update(sha256=None)), "its sha256"),
        (edit(lambda plain: plain["shards"].pop()), "has models for 3"),
    ],
)
def test_a_folder_that_was_changed_is_refused(
    change: Change, reason: str, folder: Path, tasks: dict[str, Task]
) -> None:
    load_folder(folder, tasks["usual"], 1)
    change(folder)
    with pytest.raises(InputError, match=reason):
        load_folder(folder, tasks["usual"], 1)
