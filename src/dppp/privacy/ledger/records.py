"""What a ledger writes down: its kinds of records, and their canonical bytes.

A payload is JSON with sorted keys, no spaces, ASCII only; whole numbers and text, bytes as
hexadecimal. A ballot or an answer may be megabytes and lies beside its record, which covers it by
size and SHA-256. An endorsement or an answer of the first attempt does not name its attempt, so
that it has the bytes that it had when there was only one.
"""

import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dppp.errors import InputError
from dppp.hashing import HASH_BYTES
from dppp.privacy.change import ONE_OF_CLASSES
from dppp.privacy.ledger.budget import Budget
from dppp.whole_numbers import keep_whole, require_whole

FORMAT = 1
_LONGEST_ID = 64
_NO_QUERIES = b'"query_ids":[]'


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
    """One task of a reservation; `noise` is the canonical text of its parameters.

    `moved` and `shift` say what one vote can do to the counts of a query (change.py). They are
    written only where the question is not one of several classes.
    """

    task_id: bytes
    queries: int
    classes: int
    noise: str
    moved: int = ONE_OF_CLASSES.moved
    shift: int = ONE_OF_CLASSES.shift

    def __post_init__(self) -> None:
        _require_id("task id", self.task_id)
        keep_whole(self, "queries", "classes", "moved", "shift")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Tasks that were fixed together, and what all their queries cost together."""

    data_id: str
    budget: Budget
    tasks: tuple[ReservedTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """A task is over: another one answers what is left of it, on the same reservation."""

    task_id: bytes
    successor: ReservedTask

    def __post_init__(self) -> None:
        _require_id("task id", self.task_id)


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
        _require_ids("query id", self.query_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndorsedList:
    """The one ballot list of an attempt that the teacher endorsed, with its endorsement."""

    batch_id: bytes
    list_hash: bytes
    endorsement: Digest
    attempt: int = 1

    def __post_init__(self) -> None:
        _require_attempt(self.batch_id, self.attempt)
        _require_id("list hash", self.list_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """What the teacher gave to open the list that it endorsed."""

    batch_id: bytes
    list_hash: bytes
    answer: Digest
    attempt: int = 1

    def __post_init__(self) -> None:
        _require_attempt(self.batch_id, self.attempt)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """The teacher's signed word that it will never answer this attempt."""

    batch_id: bytes
    attempt: int
    message: Digest

    def __post_init__(self) -> None:
        _require_attempt(self.batch_id, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The batch goes on with a new ballot at no new charge.

    `evidence` is the hash of the withdrawals that ended the attempt before.
    """

    batch_id: bytes
    attempt: int
    ballot: Digest
    evidence: bytes

    def __post_init__(self) -> None:
        _require_attempt(self.batch_id, self.attempt)
        if self.attempt == 1:
            raise InputError("a retry is attempt 2 or a later one; the first is the charge")
        _require_evidence(self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """The charge is given back, since the batch will never be opened.

    `evidence` is the hash of the withdrawals that ended this attempt.
    """

    batch_id: bytes
    attempt: int
    evidence: bytes

    def __post_init__(self) -> None:
        _require_attempt(self.batch_id, self.attempt)
        _require_evidence(self.evidence)


BatchRecord = EndorsedList | GivenAnswer | ServedList | Withdrawal | Retry | Refund
"""What may follow a charge."""

Record = LedgerStart | Cap | Reservation | Succession | Charge | BatchRecord


def content_digest(record: Record) -> Digest | None:
    """The digest of what lies beside a record, if anything does."""
    match record:
        case Charge() | Retry():
            return record.ballot
        case EndorsedList():
            return record.endorsement
        case GivenAnswer():
            return record.answer
        case ServedList():
            return record.share
        case Withdrawal():
            return record.message
        case _:
            return None


def encode_record(record: Record) -> tuple[str, bytes]:
    """Kind and payload."""
    kind, fields = _fields(record)
    payload = canonical_json(fields)
    if isinstance(record, Charge):
        # Thousands of ids: the text that json would write, in a fifth of the time.
        payload = payload.replace(_NO_QUERIES, b'"query_ids":' + _list_of_hex(record.query_ids), 1)
    return kind, payload


def _list_of_hex(values: Sequence[bytes]) -> bytes:
    """The canonical JSON of a list of bytes."""
    length = len(values[0])
    if set(map(len, values)) == {length}:
        joined = binascii.hexlify(b"".join(values), b",", -length).replace(b",", b'","')
    else:
        joined = b'","'.join(map(binascii.hexlify, values))
    return b'["' + joined + b'"]'


def _fields(record: Record) -> tuple[str, dict[str, object]]:
    match record:
        case LedgerStart():
            return "opening", {"format": FORMAT, "teacher": record.teacher}
        case Cap():
            return "cap", {"data_id": record.data_id, **_budget(record.budget)}
        case Reservation():
            tasks = [_reserved_task(task) for task in record.tasks]
            budget = _budget(record.budget)
            return "reservation", {"data_id": record.data_id, "tasks": tasks, **budget}
        case Succession():
            successor = _reserved_task(record.successor)
            return "succession", {"task_id": record.task_id.hex(), "successor": successor}
        case Charge():
            ids = {"task_id": record.task_id.hex(), "batch_id": record.batch_id.hex()}
            # The query ids themselves are put in when this is text.
            return "charge", {**ids, "query_ids": [], "ballot": _digest(record.ballot)}
        case _:
            return _fields_about_batch(record)


def _fields_about_batch(record: BatchRecord) -> tuple[str, dict[str, object]]:
    batch: dict[str, object] = {"batch_id": record.batch_id.hex()}
    match record:
        case EndorsedList():
            endorsement = _digest(record.endorsement)
            return "endorsement", {**batch, **_list(record), "endorsement": endorsement}
        case GivenAnswer():
            return "answer", {**batch, **_list(record), "answer": _digest(record.answer)}
        case ServedList():
            share = _digest(record.share)
            return "list", {**batch, "list_hash": record.list_hash.hex(), "share": share}
        case Withdrawal():
            message = _digest(record.message)
            return "withdrawal", {**batch, "attempt": record.attempt, "message": message}
        case Retry():
            fields = {**batch, "attempt": record.attempt, "ballot": _digest(record.ballot)}
            return "retry", {**fields, "evidence": record.evidence.hex()}
        case Refund():
            evidence = record.evidence.hex()
            return "refund", {**batch, "attempt": record.attempt, "evidence": evidence}


def decode_record(kind: str, payload: bytes) -> Record:
    """The record of a payload; KeyError, TypeError, ValueError or InputError when it is none."""
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
        case "succession":
            successor = _read_reserved_task(data["successor"])
            return Succession(task_id=bytes.fromhex(data["task_id"]), successor=successor)
        case "charge":
            return Charge(
                task_id=bytes.fromhex(data["task_id"]),
                batch_id=bytes.fromhex(data["batch_id"]),
                query_ids=tuple(bytes.fromhex(query_id) for query_id in data["query_ids"]),
                ballot=_read_digest(data["ballot"]),
            )
        case _:
            return _read_about_batch(kind, data)


def _read_about_batch(kind: str, data: Mapping[str, Any]) -> BatchRecord:
    match kind:
        case "endorsement":
            return EndorsedList(**_read_list(data), endorsement=_read_digest(data["endorsement"]))
        case "answer":
            return GivenAnswer(**_read_list(data), answer=_read_digest(data["answer"]))
        case "list":
            return ServedList(
                batch_id=bytes.fromhex(data["batch_id"]),
                list_hash=bytes.fromhex(data["list_hash"]),
                share=_read_digest(data["share"]),
            )
        case "withdrawal":
            return Withdrawal(**_read_attempt(data), message=_read_digest(data["message"]))
        case "retry":
            ballot, evidence = _read_digest(data["ballot"]), bytes.fromhex(data["evidence"])
            return Retry(**_read_attempt(data), ballot=ballot, evidence=evidence)
        case "refund":
            return Refund(**_read_attempt(data), evidence=bytes.fromhex(data["evidence"]))
        case _:
            raise ValueError(f"kind {kind!r} is unknown")


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """One value, one text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _list(record: EndorsedList | GivenAnswer) -> dict[str, object]:
    """The list, and its attempt unless that is the first."""
    later = {} if record.attempt == 1 else {"attempt": record.attempt}
    return {"list_hash": record.list_hash.hex(), **later}


def _read_list(data: Mapping[str, Any]) -> dict[str, Any]:
    batch_id, list_hash = bytes.fromhex(data["batch_id"]), bytes.fromhex(data["list_hash"])
    if data.get("attempt") == 1:
        raise ValueError("it names the first attempt")  # one record, one text
    return {"batch_id": batch_id, "list_hash": list_hash, "attempt": data.get("attempt", 1)}


def _read_attempt(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"batch_id": bytes.fromhex(data["batch_id"]), "attempt": data["attempt"]}


def _budget(budget: Budget) -> dict[str, int]:
    return {"epsilon_units": budget.epsilon_units, "delta_units": budget.delta_units}


def _read_budget(data: Mapping[str, Any]) -> Budget:
    return Budget(epsilon_units=data["epsilon_units"], delta_units=data["delta_units"])


def _digest(digest: Digest) -> dict[str, object]:
    return {"size": digest.size, "sha256": digest.sha256.hex()}


def _read_digest(data: Mapping[str, Any]) -> Digest:
    return Digest(size=data["size"], sha256=bytes.fromhex(data["sha256"]))


def _reserved_task(task: ReservedTask) -> dict[str, object]:
    is_usual = (task.moved, task.shift) == (ONE_OF_CLASSES.moved, ONE_OF_CLASSES.shift)
    return {
        "task_id": task.task_id.hex(),
        "queries": task.queries,
        "classes": task.classes,
        "noise": task.noise,
        **({} if is_usual else {"moved": task.moved, "shift": task.shift}),
    }


def _read_reserved_task(data: Mapping[str, Any]) -> ReservedTask:
    return ReservedTask(
        task_id=bytes.fromhex(data["task_id"]),
        queries=data["queries"],
        classes=data["classes"],
        noise=data["noise"],
        moved=data.get("moved", ONE_OF_CLASSES.moved),
        shift=data.get("shift", ONE_OF_CLASSES.shift),
    )


def _require_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise InputError(f"{what} must be a text of 1 to 200 characters, got {value!r}")


def _require_attempt(batch_id: object, attempt: object) -> None:
    _require_id("batch id", batch_id)
    require_whole("attempt", attempt)


def _require_evidence(value: object) -> None:
    if not isinstance(value, bytes) or len(value) != HASH_BYTES:
        raise InputError(f"evidence must be {HASH_BYTES} bytes (a hash), got {value!r}")


def _require_ids(what: str, values: Sequence[object]) -> None:
    """The same for many at once; the first that is wrong is named."""
    lengths = set(map(len, values)) if set(map(type, values)) == {bytes} else {0}  # type: ignore[arg-type]
    if not 0 < min(lengths) <= max(lengths) <= _LONGEST_ID:
        for each in values:
            _require_id(what, each)


def _require_id(what: str, value: object) -> None:
    if not isinstance(value, bytes) or not 0 < len(value) <= _LONGEST_ID:
        raise InputError(f"{what} must be 1 to 64 bytes (a hash), got {value!r}")
