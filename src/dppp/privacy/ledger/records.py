"""What a ledger writes down: its kinds of records, and their canonical bytes.

A payload is JSON with sorted keys, no spaces, ASCII only; whole numbers and text, bytes as
hexadecimal. A ballot or an answer may be megabytes and lies beside its record, which covers it by
size and SHA-256.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dppp.errors import InputError
from dppp.privacy.ledger.budget import Budget
from dppp.whole_numbers import keep_whole

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Size and hash of bytes that lie beside a record."""

    size: int
    sha256: bytes

    @classmethod
    def of(cls, content: bytes) -> "Digest":
        """The digest of these bytes."""
        return cls(size=len(content), sha256=hashlib.sha256(content).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStart:
    """The first record: whose ledger this is."""

    teacher: str

    def __post_init__(self) -> None:
        _require_name("teacher", self.teacher)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that may ever be spent on a data id."""

    data_id: str
    budget: Budget

    def __post_init__(self) -> None:
        _require_name("data id", self.data_id)
        if not self.budget.epsilon_units or not self.budget.delta_units:
            raise InputError(f"a cap of {self.budget} allows nothing", hint="give a larger one")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedTask:
    """One task of a reservation; `noise` is the canonical text of its parameters."""

    task_id: bytes
    queries: int
    classes: int
    noise: str

    def __post_init__(self) -> None:
        _require_id("task id", self.task_id)
        keep_whole(self, "queries", "classes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Tasks that were fixed together, and what all their queries cost together."""

    data_id: str
    budget: Budget
    tasks: tuple[ReservedTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A batch was answered: its queries are used up, and this ballot is the answer for ever."""

    task_id: bytes
    batch_id: bytes
    query_ids: tuple[bytes, ...]
    ballot: Digest

    def __post_init__(self) -> None:
        _require_id("task id", self.task_id)
        _require_id("batch id", self.batch_id)
        if not self.query_ids:
            raise InputError("a batch must hold at least one query")
        for query_id in self.query_ids:
            _require_id("query id", query_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndorsedList:
    """The one ballot list of a batch that the teacher endorsed, with its endorsement."""

    batch_id: bytes
    list_hash: bytes
    endorsement: Digest

    def __post_init__(self) -> None:
        _require_id("batch id", self.batch_id)
        _require_id("list hash", self.list_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """What the teacher gave to open the list that it endorsed."""

    batch_id: bytes
    list_hash: bytes
    answer: Digest

    def __post_init__(self) -> None:
        _require_id("batch id", self.batch_id)
        _require_id("list hash", self.list_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedList:
    """A list opened before 0.2.0, when there were no endorsements. Read, never written."""

    batch_id: bytes
    list_hash: bytes
    share: Digest

    def __post_init__(self) -> None:
        _require_id("batch id", self.batch_id)
        _require_id("list hash", self.list_hash)


Record = LedgerStart | Cap | Reservation | Charge | EndorsedList | GivenAnswer | ServedList


def content_digest(record: Record) -> Digest | None:
    """The digest of what lies beside a record, if anything does."""
    match record:
        case Charge():
            return record.ballot
        case EndorsedList():
            return record.endorsement
        case GivenAnswer():
            return record.answer
        case ServedList():
            return record.share
        case _:
            return None


def encode_record(record: Record) -> tuple[str, bytes]:  # noqa: PLR0911 - one for each kind
    """Kind and payload."""
    match record:
        case LedgerStart():
            return "opening", canonical_json({"format": FORMAT, "teacher": record.teacher})
        case Cap():
            return "cap", canonical_json({"data_id": record.data_id, **_budget(record.budget)})
        case Reservation():
            tasks = [_reserved_task(task) for task in record.tasks]
            fields = {"data_id": record.data_id, "tasks": tasks, **_budget(record.budget)}
            return "reservation", canonical_json(fields)
        case Charge():
            ids = {"task_id": record.task_id.hex(), "batch_id": record.batch_id.hex()}
            queries = [query_id.hex() for query_id in record.query_ids]
            fields = {**ids, "query_ids": queries, "ballot": _digest(record.ballot)}
            return "charge", canonical_json(fields)
        case EndorsedList():
            endorsement = _digest(record.endorsement)
            return "endorsement", canonical_json({**_ids(record), "endorsement": endorsement})
        case GivenAnswer():
            return "answer", canonical_json({**_ids(record), "answer": _digest(record.answer)})
        case ServedList():
            return "list", canonical_json({**_ids(record), "share": _digest(record.share)})


def decode_record(kind: str, payload: bytes) -> Record:  # noqa: PLR0911 - one for each kind
    """The record of a payload; KeyError, TypeError, ValueError or InputError when there is none."""
    try:
        data = json.loads(payload)
    except RecursionError as error:
        raise ValueError("it is nested without end") from error
    match kind:
        case "opening":
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']} is not {FORMAT}")
            return LedgerStart(teacher=data["teacher"])
        case "cap":
            return Cap(data_id=data["data_id"], budget=_read_budget(data))
        case "reservation":
            tasks = tuple(_read_reserved_task(task) for task in data["tasks"])
            return Reservation(data_id=data["data_id"], budget=_read_budget(data), tasks=tasks)
        case "charge":
            return Charge(
                task_id=bytes.fromhex(data["task_id"]),
                batch_id=bytes.fromhex(data["batch_id"]),
                query_ids=tuple(bytes.fromhex(query_id) for query_id in data["query_ids"]),
                ballot=_read_digest(data["ballot"]),
            )
        case "endorsement":
            return EndorsedList(**_read_ids(data), endorsement=_read_digest(data["endorsement"]))
        case "answer":
            return GivenAnswer(**_read_ids(data), answer=_read_digest(data["answer"]))
        case "list":
            return ServedList(**_read_ids(data), share=_read_digest(data["share"]))
        case _:
            raise ValueError(f"kind {kind!r} is unknown")


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """One value, one text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _ids(record: EndorsedList | GivenAnswer | ServedList) -> dict[str, object]:
    return {"batch_id": record.batch_id.hex(), "list_hash": record.list_hash.hex()}


def _read_ids(data: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: bytes.fromhex(data[name]) for name in ("batch_id", "list_hash")}


def _budget(budget: Budget) -> dict[str, int]:
    return {"epsilon_units": budget.epsilon_units, "delta_units": budget.delta_units}


def _read_budget(data: Mapping[str, Any]) -> Budget:
    return Budget(epsilon_units=data["epsilon_units"], delta_units=data["delta_units"])


def _digest(digest: Digest) -> dict[str, object]:
    return {"size": digest.size, "sha256": digest.sha256.hex()}


def _read_digest(data: Mapping[str, Any]) -> Digest:
    return Digest(size=data["size"], sha256=bytes.fromhex(data["sha256"]))


def _reserved_task(task: ReservedTask) -> dict[str, object]:
    return {
        "task_id": task.task_id.hex(),
        "queries": task.queries,
        "classes": task.classes,
        "noise": task.noise,
    }


def _read_reserved_task(data: Mapping[str, Any]) -> ReservedTask:
    return ReservedTask(
        task_id=bytes.fromhex(data["task_id"]),
        queries=data["queries"],
        classes=data["classes"],
        noise=data["noise"],
    )


def _require_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise InputError(f"{what} must be a text of 1 to 200 characters, got {value!r}")


def _require_id(what: str, value: object) -> None:
    if not isinstance(value, bytes) or not 0 < len(value) <= 64:
        raise InputError(f"{what} must be 1 to 64 bytes (a hash), got {value!r}")
