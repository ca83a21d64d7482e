"""The models that a teacher's configuration names: one for each vote that the task gives it."""

from dppp.errors import InputError, MissingExtraError
from dppp.learning.question_models import as_answering
from dppp.protocol.columns import is_plain
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict
from dppp.service.ceremony.federation_file import read_federation, read_hash
from dppp.service.ceremony.home import Home
from dppp.service.process.config import (
    CallableModel,
    ChatModel,
    FolderModel,
    HttpModel,
    OnnxModel,
    PickleModel,
    SkopsModel,
    TeacherConfig,
    TorchModel,
)
from dppp.service.teacher.models.folder import load_folder, require_folder
from dppp.service.teacher.models.http import as_class_numbers, load_http
from dppp.service.teacher.models.loading import load_callable, load_onnx, load_skops, load_torch
from dppp.service.teacher.models.pickled import load_pickle
from dppp.service.teacher.models.posting import NoteFailure, log_failure
from dppp.service.teacher.models.skops_files import import_skops
from dppp.service.teacher.models.watching import ModelWatch

SingleModel = SkopsModel | OnnxModel | TorchModel | CallableModel | HttpModel | PickleModel


def load_models(
    config: TeacherConfig, task: Task, index: int, *, watch: ModelWatch, allow_pickle: bool
) -> tuple[Predict, ...]:
    """All models of teacher `index`: those of a folder, or the only one that is named; tried."""
    trusted = config.model.trusted_types if isinstance(config.model, SkopsModel) else ()
    if isinstance(config.model, SkopsModel | FolderModel) and not trusted:
        import_skops(tables=not is_plain(task.columns))
    if isinstance(config.model, FolderModel):
        models = load_folder(config.model.path, task, index, watch=watch.watch)
    elif isinstance(config.model, ChatModel):
        # Not tried: each made-up row would be a call for every vote.
        loaded = _load_chat(config.model, task, index, note=watch.note_server)
        return tuple(watch.watch(each) for each in loaded)
    else:
        _require_one_vote(task, index)
        model = load_model(
            config.model,
            task.class_names,
            task.question,
            allow_pickle=allow_pickle,
            note=watch.note_server,
        )
        models = (watch.watch(model),)
    watch.try_all(models, task)
    return models


def load_model(
    model: SingleModel,
    names: tuple[str, ...],
    question: Question = CHOICE,
    *,
    allow_pickle: bool = False,
    note: NoteFailure = log_failure,
) -> Predict:
    """One model, ready to vote on the task's classes or labels, or to give its number."""
    match model:
        case SkopsModel():
            return as_answering(load_skops(model.path, model.trusted_types), names, question)
        case OnnxModel():
            return load_onnx(model.path, names, question)
        case TorchModel():
            module = load_torch(model.path, model.class_name, model.arguments)
            return as_answering(module, names, question)
        case CallableModel():
            return as_answering(load_callable(model.import_name), names, question)
        case HttpModel():
            ask = load_http(
                model.url, model.timeout_seconds, note, has_several=question.kind == "labels"
            )
            is_number = question.kind == "number"
            return as_answering(ask, names, question) if is_number else as_class_numbers(ask, names)
        case PickleModel():
            return as_answering(load_pickle(model.path, allow_pickle=allow_pickle), names, question)


def _load_chat(
    model: ChatModel, task: Task, index: int, *, note: NoteFailure = log_failure
) -> tuple[Predict, ...]:
    try:
        from dppp.service.teacher.models.chat.voters import load_chat  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "the examples of a language model are found by scikit-learn", extra="learning"
        ) from error
    return load_chat(model, task, index, note=note)


def task_of(config: TeacherConfig) -> tuple[Task, int]:
    """The task of a configuration, and which of its teachers this one is."""
    federation = read_federation(config.federation, read_hash(config.federation_hash))
    return federation.task, federation.index_of(Home(folder=config.home).request().name)


def require_models(config: TeacherConfig) -> None:
    """Refuse models that do not go with the task, before its price is reserved for good."""
    task, index = task_of(config)
    if isinstance(config.model, FolderModel):
        require_folder(config.model.path, task, index)
    elif isinstance(config.model, ChatModel):
        _load_chat(config.model, task, index)
    else:
        _require_one_vote(task, index)


def _require_one_vote(task: Task, index: int) -> None:
    entry = task.teachers[index - 1]
    if entry.votes > 1:
        raise InputError(
            f"the task gives {entry.name} {entry.votes} votes, and [model] in the configuration "
            "names one model",
            hint='run `dppp train --config` with this file, and write kind = "folder" and the path '
            "of what it made",
        )
