"""A folder of models, one for each vote: what `dppp train` writes and `dppp teacher run` reads.

Each model is a file of skops. The manifest names every file with its SHA-256, so a file that was
exchanged or damaged is refused, and says what the votes stand for: unit, classes and columns. A
shard without records has no file: its vote is always empty. Sizes of shards say something of the
teacher's records: the folder stays on its own machine.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, model_validator

from dppp.errors import InputError
from dppp.learning.question_models import as_answering
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict
from dppp.service.process.config import HexHash, Section, first_problem
from dppp.service.stores.new_files import NewFile, read_file, refuse_to_overwrite, write_new_files
from dppp.service.teacher.models.loading import read_skops
from dppp.service.teacher.models.skops_files import import_skops

if TYPE_CHECKING:
    from dppp.learning.training import TrainedModels  # it needs scikit-learn, reading does not

MANIFEST = "manifest.json"
_AGAIN = "make the models again with `dppp train`, into a new folder"


class ModelFile(Section):
    """The model of one shard."""

    records: int = Field(ge=0)
    file: str | None = Field(pattern=r"^[A-Za-z0-9_-]+\.skops$")
    sha256: HexHash | None

    @model_validator(mode="after")
    def _file_with_hash(self) -> "ModelFile":
        if (self.file is None) != (self.sha256 is None) or (self.file is None) != (
            self.records == 0
        ):
            raise ValueError("a shard with records has a file and its sha256, another has neither")
        return self


class Manifest(Section):
    """The content of manifest.json."""

    kind: Literal["dppp models 1"] = "dppp models 1"
    unit: Literal["record", "person", "teacher"]
    question: Literal["choice", "labels", "number"] = "choice"
    classes: tuple[str, ...] = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=1)
    shards: tuple[ModelFile, ...] = Field(min_length=1)

    @property
    def votes(self) -> int:
        """How many votes these models cast."""
        return len(self.shards)


def save_folder(folder: Path, trained: "TrainedModels") -> Manifest:
    """Write the models and their manifest into a folder that has none, and read each back."""
    require_new(folder)
    skops = import_skops()
    files, shards = [], []
    pairs = list(zip(trained.models, trained.sizes, strict=True))
    for place, (model, records) in enumerate(pairs, start=1):
        if records == 0:
            shards.append(ModelFile(records=0, file=None, sha256=None))
            continue
        name = f"model-{place:0{len(str(len(pairs)))}d}.skops"
        data = skops.dumps(model)
        read_skops(folder / name, data)  # what cannot be loaded later is refused now
        files.append(NewFile(name=name, data=data))
        digest = hashlib.sha256(data).hexdigest()
        shards.append(ModelFile(records=records, file=name, sha256=digest))
    manifest = Manifest.model_validate(
        {
            "unit": trained.unit,
            "question": trained.question,
            "classes": trained.classes,
            "columns": trained.columns,
            "shards": tuple(shards),
        }
    )
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    write_new_files(folder, [*files, NewFile(name=MANIFEST, data=text.encode("utf-8"))])
    return manifest


def require_new(folder: Path) -> None:
    """Refuse a folder with models in it, before an hour of training."""
    refuse_to_overwrite(folder, [MANIFEST])
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder", hint="choose another")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of models."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"{folder} has no {MANIFEST}, so it is not a folder of models",
            hint="make one with `dppp train`",
        )
    try:
        return Manifest.model_validate_json(read_file(path))
    except ValidationError as error:
        problem = first_problem(str(path), error)
        raise InputError(problem.message, hint=_AGAIN) from None


def require_folder(folder: Path, task: Task, index: int) -> Manifest:
    """Refuse models that are not those of this teacher in this task; opens no model."""
    manifest = read_manifest(folder)
    entry = task.teachers[index - 1]
    if manifest.votes != entry.votes:
        raise InputError(
            f"the task gives {entry.name} {entry.votes} votes, and {folder} has models for "
            f"{manifest.votes}",
            hint=f"run `dppp train` again with --votes {entry.votes}, or with --config",
        )
    if task.unit == "person" and manifest.unit != "person" and manifest.votes > 1:
        raise InputError(
            f"the task promises for a person, and {folder} was made by {manifest.unit}: one "
            "person may be behind several of its votes",
            hint="run `dppp train` again with --person and the column that names the person",
        )
    if manifest.columns != task.features:
        raise InputError(
            f"{folder} was trained on other columns than the task's, or in another order",
            hint="run `dppp train` with --config: it takes the task's columns in their order",
        )
    if manifest.question != task.question.kind:
        raise InputError(
            f"{folder} answers a question of {manifest.question}, and the task asks for "
            f"{task.question.kind}",
            hint=_AGAIN,
        )
    strange = sorted(set(manifest.classes) - set(task.class_names))
    if strange:
        raise InputError(
            f"{folder} knows the class {strange[0]!r}, which the task does not have",
            hint="name the labels as the task does, and run `dppp train` again",
        )
    for shard in manifest.shards:
        _read_checked(folder, shard)
    return manifest


def load_folder(
    folder: Path, task: Task, index: int, *, watch: Callable[[Predict], Predict] = lambda it: it
) -> tuple[Predict, ...]:
    """The models of this teacher, one for each of its votes; each is what the manifest says.

    `watch` is given every model there is; a shard without records has none to watch.
    """
    manifest = require_folder(folder, task, index)
    return tuple(
        _no_vote if shard.file is None else watch(_load(folder, shard, task))
        for shard in manifest.shards
    )


def _load(folder: Path, shard: ModelFile, task: Task) -> Predict:
    data = _read_checked(folder, shard)
    if shard.file is None or data is None:
        return _no_vote
    return as_answering(read_skops(folder / shard.file, data), task.class_names, task.question)


def _no_vote(rows: Any) -> list[int | None]:
    return [None] * len(rows)


def _read_checked(folder: Path, shard: ModelFile) -> bytes | None:
    """The bytes of a shard's model, if they are those that were trained."""
    if shard.file is None:
        return None
    data = read_file(folder / shard.file)
    if hashlib.sha256(data).hexdigest() != shard.sha256:
        raise InputError(
            f"{folder / shard.file} is not the file that was trained: its SHA-256 differs from the "
            "manifest's",
            hint=f"restore the folder, or {_AGAIN}",
        )
    return data
