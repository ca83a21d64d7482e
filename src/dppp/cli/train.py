"""`dppp train`: a teacher's models from its own CSV, one for each of its votes."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_scikit_learn, require_service
from dppp.cli.options import (
    ColludersOption,
    DropoutsOption,
    JsonOption,
    read_votes,
    split_names,
)
from dppp.cli.output_files import require_folder_above
from dppp.cli.terminal import counted_progress, emit, say, say_notes
from dppp.errors import InputError
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.units import UNITS, describe_unit

if TYPE_CHECKING:
    from dppp.learning.csv_records import Records
    from dppp.learning.training import TrainedModels
    from dppp.protocol.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """How many votes, for whom the promise is, and why so many votes."""

    votes: int
    unit: str
    reason: str


def train(
    *,
    data: Annotated[Path, typer.Option(help="The teacher's records: a table with a header.")],
    label: Annotated[
        str,
        typer.Option(
            help="The column to predict: classes. Where the task of --config asks for a number, "
            "that number; where it asks for labels, their columns of 0 and 1: a,b,c."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder for the models. (default: the folder in --config)"),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="teacher.toml: votes, unit, classes and columns are those of its task."),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(help="How many votes, or auto: by noise and records. (default: the task's)"),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="The column that says whom a record is about; one person, one shard."),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option("--id", help="A column that names each record for good. (default: its line)"),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="record, person or teacher. (default: person with --person, else record)"
        ),
    ] = None,
    teachers: Annotated[int, typer.Option(help="For auto: teachers in the federation.")] = 20,
    epsilon: Annotated[float, typer.Option(help="For auto: the total ε.")] = 8.0,
    delta: Annotated[float, typer.Option(help="For auto: the total δ.")] = 1e-5,
    queries: Annotated[int, typer.Option(help="For auto: queries that the total covers.")] = 100,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    shard_key: Annotated[
        Path | None,
        typer.Option(help="Deals records to shards; made once. (default: shards.key beside --out)"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Models that are trained at a time.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Teacher: deal your records to shards, and train a model on each for one vote."""
    require_scikit_learn()
    require_service()
    from dppp.learning.csv_records import read_records  # noqa: PLC0415
    from dppp.service.teacher.models.folder import require_new, save_folder  # noqa: PLC0415
    from dppp.service.teacher.models.shard_key import SHARD_KEY  # noqa: PLC0415

    seat, folder = _seat(config, out)
    require_folder_above(folder)
    require_new(folder)
    question = CHOICE if seat is None else seat[0].question
    records = read_records(
        data,
        label if seat is None else _label_columns(label, seat[0]),
        is_number=question.kind == "number",
        person=person,
        identifier=identifier,
        columns=None if seat is None else seat[0].columns,
    )
    if not as_json:
        say_notes(records.notes)
    if seat is None:
        wanted = _wanted(
            records,
            votes=read_votes(votes or "auto"),
            unit=_unit(unit, person),
            epsilon=epsilon,
            delta=delta,
            teachers=teachers,
            colluders=colluders,
            dropouts=dropouts,
            queries=queries,
        )
    else:
        records = _as_task_asks(records, seat[0])
        wanted = _of_task(*seat, votes=votes, unit=unit)
    key_file = shard_key or folder.parent / SHARD_KEY
    trained = _train(records, wanted, key_file, question, jobs)
    manifest = save_folder(folder, trained)
    has_names = person is not None or identifier is not None
    result = {
        "folder": str(folder),
        "shard_key": str(key_file),
        "records": len(records.labels),
        "votes": wanted.votes,
        "votes_reason": wanted.reason,
        "notes": list(records.notes),
        **manifest.model_dump(mode="json"),
    }
    emit(
        result,
        as_json=as_json,
        show=lambda console: _show(
            console,
            folder,
            key_file,
            trained,
            wanted,
            has_names=has_names,
            is_named=config is not None and out is None,
        ),
    )


def _label_columns(label: str, task: "Task") -> str | tuple[str, ...]:
    """Where the task asks for labels, their columns are named as they are, in the task's order."""
    if task.question.kind != "labels":
        return label
    given = split_names(label)
    if set(given) != set(task.class_names):
        raise InputError(
            f"the task asks for the labels {', '.join(task.class_names)}, not for {label}",
            hint="give --label with the names of these columns, between commas",
        )
    return task.class_names


def _train(
    records: "Records", wanted: _Wanted, key_file: Path, question: Question, jobs: int
) -> "TrainedModels":
    """The models, with a bar where somebody watches."""
    from dppp.learning.default_model import default_model_for  # noqa: PLC0415
    from dppp.learning.training import train_models  # noqa: PLC0415
    from dppp.service.teacher.models.shard_key import read_or_make_shard_key  # noqa: PLC0415

    with counted_progress("training models") as report:
        return train_models(
            records,
            default_model_for(question.kind, records.rows),
            votes=wanted.votes,
            unit=wanted.unit,
            key=read_or_make_shard_key(key_file),
            question=question.kind,
            jobs=jobs,
            report=report,
        )


def _seat(config: Path | None, out: Path | None) -> "tuple[tuple[Task, int] | None, Path]":
    """The task with this teacher's index, where a configuration says so; and where to write."""
    if config is None:
        if out is None:
            raise InputError("nothing says where the models go", hint="give --out, or --config")
        return None, out
    from dppp.service.process.config import (  # noqa: PLC0415
        FolderModel,
        TeacherConfig,
        read_config,
    )
    from dppp.service.teacher.models.configured import task_of  # noqa: PLC0415

    settings = read_config(config, TeacherConfig)
    if out is None and not isinstance(settings.model, FolderModel):
        raise InputError(
            f"[model] in {config} names one model, not a folder",
            hint='write kind = "folder" and a path there, or give --out',
        )
    if out is None:
        assert isinstance(settings.model, FolderModel)
        out = settings.model.path
    return task_of(settings), out


def _unit(unit: str | None, person: str | None) -> str:
    if unit is not None and unit not in UNITS:
        raise InputError(
            f"the unit is {', '.join(UNITS[:-1])} or {UNITS[-1]}, not {unit!r}",
            hint="leave it out: it is record, or person with --person",
        )
    return unit or ("record" if person is None else "person")


def _wanted(
    records: "Records",
    *,
    votes: int | str,
    unit: str,
    epsilon: float,
    delta: float,
    teachers: int,
    colluders: int | None,
    dropouts: int | None,
    queries: int,
) -> _Wanted:
    """Without a task: what was asked for, or the rule for teachers who are all like this one."""
    from dppp.learning.choosing_votes import choose_votes  # noqa: PLC0415
    from dppp.privacy.calibration import calibrate  # noqa: PLC0415

    classes = len(set(records.labels.tolist()))
    certificate = calibrate(
        "auto",
        epsilon=epsilon,
        delta=delta,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        queries=queries,
        classes=classes,
    )
    chosen = choose_votes(
        votes,
        unit=unit,
        noise=certificate.noise,
        records=[len(records.labels)] * teachers,
        classes=classes,
    )
    assumed = f" (for {teachers} teachers, ε = {epsilon:g}, δ = {delta:g}, {queries:,} queries)"
    reason = chosen.reason + (assumed if votes == "auto" and unit != "teacher" else "")
    return _Wanted(votes=chosen.per_teacher[0], unit=unit, reason=reason)


def _of_task(task: "Task", index: int, *, votes: str | None, unit: str | None) -> _Wanted:
    """What the task says of this teacher; whoever asks for something else is told."""
    entry = task.teachers[index - 1]
    if votes is not None and read_votes(votes) != entry.votes:
        raise InputError(
            f"the task gives {entry.name} {entry.votes} votes, not {votes}",
            hint="leave --votes out, or have the task made with other votes",
        )
    if unit is not None and unit != task.unit:
        raise InputError(
            f"the task promises for one {task.unit}, not for one {unit}",
            hint="leave --unit out, or have the task made with another unit",
        )
    return _Wanted(votes=entry.votes, unit=task.unit, reason=f"the task says so of {entry.name}")


def _as_task_asks(records: "Records", task: "Task") -> "Records":
    from dppp.learning.training import require_classes, take_columns  # noqa: PLC0415

    if task.question.kind == "choice":
        require_classes(records, task.class_names)
    return take_columns(records, task.features)


def _show(
    console: Console,
    folder: Path,
    key_file: Path,
    trained: "TrainedModels",
    wanted: _Wanted,
    *,
    has_names: bool,
    is_named: bool,
) -> None:
    """`is_named` where a configuration names the folder, for a task that gives so many votes."""
    sizes = trained.sizes
    spread = math.fsum(sizes) / len(sizes)
    lines = [
        f"models    {folder}   {len(sizes)}, one for each vote",
        f"shards    {min(sizes):,} to {max(sizes):,} records, {spread:,.0f} on average",
        f"votes     {wanted.reason}",
        f"unit      {wanted.unit}: {describe_unit(wanted.unit)}",
        f"key       {key_file}   keep it: the same records then stay in the same shards",
    ]
    if not is_named:
        lines.append(
            '\nIn teacher.toml write kind = "folder" and this path under [model]. '
            f"The task must give this teacher {len(sizes)} votes."
        )
    if trained.is_thin and len(sizes) > 1:
        lines.append(
            "The shards are small for so many classes: with fewer votes each model is better."
        )
    if not has_names and len(sizes) > 1:
        lines.append(
            "A record's line stands for its name: the promise covers what a record says, not "
            "whether it is there. Give --id or --person for that."
        )
    say(console, *lines)
