"""A querier's side of the gateway: rows in, labels out, resumable.

Rows go out in batches. Before a batch is sent, its key is on disk; after a crash or a lost
connection the same key finds the same batch, so nothing is charged twice.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from dppp.errors import DpppError, GatewayAbort, GatewayError, GatewayRefusal, InputError
from dppp.protocol.events import Stage
from dppp.protocol.inputs import encode_inputs
from dppp.protocol.messages import input_digest
from dppp.protocol.receipt import Receipt
from dppp.protocol.task import Task
from dppp.protocol.wire import decode
from dppp.service.gateway.schemas import BatchState, BudgetState, Labels, Rights, TaskTerms
from dppp.service.process.config import is_this_machine

Model = TypeVar("Model", bound=BaseModel)
Rows = Sequence[Sequence[float]]
Names = Sequence[str]
Report = Callable[[int, str], None]
"""Told how many rows are answered, and what is happening to the next ones."""

_RETRY_SECONDS = 2
_FIRST_POLL_SECONDS = 0.05
_POLL_SECONDS = 0.5
_TOKEN = re.compile("[!-~]+")
_MOST_WORDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The label of one row, None for an abstention, and the noisy counts that it comes from."""

    label: str | None
    counts: tuple[int, ...]
    is_flagged: bool = False


class GatewayConnection:
    """The gateway of an aggregator, for one querier. Use it in a ``with`` block."""

    def __init__(self, address: str, token: str, *, patience_seconds: float = 60) -> None:
        self._patience_seconds = patience_seconds
        _require_address(address)
        if not _TOKEN.fullmatch(token):  # httpx would repeat it in its refusal
            raise InputError("the token is no token: one word on one line; copy it again, whole")
        self._client = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=address.startswith("https://"),  # in the clear, no proxy may come between
        )

    def __enter__(self) -> "GatewayConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def task(self) -> dict[str, Any]:
        """The terms of the task."""
        return _read(TaskTerms, self._call("GET", "/api/task")).model_dump()

    def budget(self) -> dict[str, Any]:
        """What was spent and is left."""
        return _read(BudgetState, self._call("GET", "/api/budget")).model_dump()

    def require_transcripts(self) -> None:
        """Before anything is charged: a token without the right is refused every transcript."""
        if not _read(Rights, self._call("GET", "/api/rights")).transcripts:
            raise GatewayRefusal(
                "your token may not fetch transcripts, which are for auditors; nothing was asked "
                "or charged. Leave out --transcripts, or ask the aggregator's operator for "
                "transcripts = true in your entry"
            )

    def submit(self, rows: Rows, *, key: str, is_fresh: bool = False) -> str:
        """Send a batch; the same rows under the same key are the same batch."""
        body = {"rows": [list(row) for row in rows], "fresh": is_fresh}
        headers = {"Idempotency-Key": key}
        return _read(BatchState, self._call("POST", "/api/batches", json=body, headers=headers)).id

    def wait(self, batch: str, report: Callable[[str], None]) -> None:
        """Wait for a batch to be released; a short batch is asked after more often."""
        pause = _FIRST_POLL_SECONDS
        while True:
            state = _read(BatchState, self._call("GET", f"/api/batches/{batch}"))
            report(_words(state))
            if state.stage is Stage.RELEASED:
                return
            if state.stage is Stage.ABORTED:
                raise GatewayAbort(
                    f"the batch was aborted: {_plain(state.reason or '')}{_named(state)}. The same "
                    "command asks again, at a new charge"
                )
            time.sleep(pause)
            pause = min(2 * pause, _POLL_SECONDS)

    def labels(self, batch: str) -> list[Labelled]:
        """The labels of a released batch."""
        found = _read(Labels, self._call("GET", f"/api/batches/{batch}/labels"))
        return [
            Labelled(label=each.label, counts=tuple(each.counts), is_flagged=each.flagged)
            for each in found.labels
        ]

    def receipt(self, batch: str) -> bytes | None:
        """The receipt of a released batch; None if all its rows had been released before."""
        answer = self._call("GET", f"/api/batches/{batch}/receipt", accepted=(409,))
        return answer.content if answer.status_code == 200 else None

    def transcript(self, batch: str) -> bytes | None:
        """The transcript, with all ballots, for a token that has the right to it."""
        answer = self._call("GET", f"/api/batches/{batch}/transcript", accepted=(409,))
        return answer.content if answer.status_code == 200 else None

    def _call(
        self, method: str, path: str, *, accepted: Sequence[int] = (), **more: Any
    ) -> httpx.Response:
        """Call again while the gateway is out of reach or busy, for as long as patience lasts."""
        until = time.monotonic() + self._patience_seconds
        while True:
            try:
                answer = self._client.request(method, path, **more)
                if answer.status_code < 300 or answer.status_code in accepted:
                    return answer
                problem = f"{answer.status_code} {_detail(answer)}"
                if answer.status_code < 500:
                    raise GatewayRefusal(f"the gateway refused: {problem}")
            except httpx.HTTPError as error:
                problem = f"{type(error).__name__} {error}".strip()
                if "CERTIFICATE_VERIFY_FAILED" in problem:  # waiting does not change it
                    raise GatewayError(
                        f"the gateway's certificate is not trusted here: {problem}; if it is from "
                        "an authority of your own, name that one's certificate in the variable "
                        "SSL_CERT_FILE"
                    ) from error
            if time.monotonic() > until:
                raise GatewayError(f"the gateway cannot be used: {problem}; run this again later")
            time.sleep(_RETRY_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one batch: from where, how many, under which key."""

    start: int
    count: int
    key: str


class AskedParts:
    """Which rows go into which batch, in a file beside the output, so that a run can be resumed."""

    def __init__(self, path: Path, *, rows: int, size: int, digest: str) -> None:
        self._path = path
        self._digest = digest
        self.is_new = not path.exists()
        if not self.is_new:
            self.parts = self._read(rows, digest)
            return
        self.parts = [
            Part(start=start, count=min(size, rows - start), key=secrets.token_urlsafe(16))
            for start in range(0, rows, size)
        ]
        self._write()

    def renew(self, part: Part) -> None:
        """The batch of this part was aborted: the next run asks under another key, anew."""
        self.parts[self.parts.index(part)] = replace(part, key=secrets.token_urlsafe(16))
        self._write()

    def _write(self) -> None:
        plain = [(part.start, part.count, part.key) for part in self.parts]
        unfinished = self._path.with_name(f"{self._path.name}.new")
        try:
            unfinished.write_text(
                json.dumps({"digest": self._digest, "parts": plain}), encoding="utf-8"
            )
            unfinished.replace(self._path)
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {error.strerror}") from error

    def _read(self, rows: int, digest: str) -> list[Part]:
        try:
            plain = json.loads(self._path.read_text(encoding="utf-8"))
            parts = [Part(start=s, count=c, key=k) for s, c, k in plain["parts"]]
            is_same = plain["digest"] == digest and sum(part.count for part in parts) == rows
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self._path} cannot be read; remove it to start anew") from error
        if not is_same:
            raise InputError(
                f"{self._path} belongs to other rows; give the same input again, or remove the "
                "file to start anew (rows that were released before stay free)"
            )
        return parts

    def finish(self) -> None:
        """There is nothing to go on with: the next run is a new one."""
        self._path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What a batch came to: labels, its receipt, and its transcript if that was wanted.

    Rows that were all released before have neither.
    """

    part: Part
    labels: list[Labelled]
    receipt: bytes | None
    transcript: bytes | None


def ask_in_parts(
    gateway: GatewayConnection,
    rows: Rows,
    plan: AskedParts,
    *,
    is_fresh: bool,
    with_transcripts: bool,
    report: Report,
) -> Iterator["Released"]:
    """The labels of each part as they come, with its receipt, and its transcript if wanted."""
    for part in tuple(plan.parts):
        own = rows[part.start : part.start + part.count]
        try:
            batch = gateway.submit(own, key=part.key, is_fresh=is_fresh)
        except GatewayRefusal:
            if part.start == 0 and plan.is_new:
                plan.finish()  # nothing was begun, so there is nothing to go on with
            raise
        try:
            gateway.wait(batch, lambda words, done=part.start: report(done, words))  # type: ignore[misc]
        except GatewayAbort:
            plan.renew(part)
            raise
        labels = gateway.labels(batch)
        if len(labels) != part.count:  # all later labels would stand beside other rows
            raise GatewayError(
                f"the gateway gave {len(labels):,} labels for {part.count:,} rows; use none of "
                "them, and tell the teachers"
            )
        transcript = gateway.transcript(batch) if with_transcripts else None
        yield Released(
            part=part, labels=labels, receipt=gateway.receipt(batch), transcript=transcript
        )
        report(part.start + part.count, "released")


class SignedLabels:
    """The labels that stand in the receipts of one run, by the digests of their rows.

    `features` and `classes` are what the gateway called the columns of the rows and of the counts:
    a receipt of a task that has them otherwise is about other rows. That a receipt itself holds is
    for `dppp verify`.
    """

    def __init__(self, *, features: Names, classes: Names) -> None:
        self._features = tuple(features)
        self._classes = tuple(classes)
        self._labels: dict[bytes, Labelled] = {}

    def find(self, receipt: bytes | None, rows: Rows, labels: Sequence[Labelled]) -> list[bool]:
        """Which of these rows have their label in a receipt, of this batch or of an earlier one.

        A label that differs from this batch's receipt is refused. Rows that are in no receipt were
        released before.
        """
        for each in labels:
            is_named = each.label is None or each.label in self._classes
            if not is_named or len(each.counts) != len(self._classes):
                raise GatewayError(
                    "the gateway gave a label that is not a class, or other counts than one for "
                    "each class; use none of its labels, and tell the teachers"
                )
        own = {} if receipt is None else self._read(receipt)
        digests = [input_digest(each) for each in encode_inputs(rows, len(self._features))]
        for place, (digest, labelled) in enumerate(zip(digests, labels, strict=True)):
            if own.get(digest, labelled) != labelled:
                raise GatewayError(
                    f"the gateway says another label or other counts for row {place} of the batch "
                    "than its own receipt; trust neither, and tell the teachers"
                )
        self._labels |= own
        return [
            self._labels.get(digest) == labelled
            for digest, labelled in zip(digests, labels, strict=True)
        ]

    def _read(self, data: bytes) -> dict[bytes, Labelled]:
        try:
            receipt = decode(data, Receipt)
            task = decode(receipt.task, Task)
            names = dict(enumerate(task.class_names))
            labels = {
                query.digest: Labelled(
                    label=None if answer.label is None else names[answer.label],
                    counts=answer.counts,
                    is_flagged=answer.is_flagged,
                )
                for query, answer in zip(receipt.queries, receipt.answers, strict=True)
            }
        except (DpppError, ValueError, KeyError) as error:
            raise GatewayError(f"the gateway's receipt is not about these rows: {error}") from error
        if (task.features, task.class_names) != (self._features, self._classes):
            raise GatewayError(
                "the task of the gateway's receipt has other columns or classes, or in another "
                "order, than the gateway said; use none of its labels, and tell the teachers"
            )
        return labels


def _require_address(address: str) -> None:
    try:
        host = httpx.URL(address).raw_host.decode("ascii")
        is_address = address.startswith(("https://", "http://")) and bool(host.encode("idna"))
    except (httpx.InvalidURL, UnicodeError):
        is_address = False
    if not is_address:
        raise InputError(f"{address!r} is no gateway; write it as https://host:port")
    if not address.startswith("https://") and not is_this_machine(host):
        raise InputError(
            f"{address!r} is on another machine, and your token and rows would pass in the clear; "
            "write it as https://host:port"
        )


def _read(kind: type[Model], answer: httpx.Response) -> Model:
    """What the gateway said, which is untrusted, and maybe no gateway."""
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError:
        raise GatewayError(
            f"what {answer.url} answers is not what a gateway of this version says; check the "
            "address"
        ) from None


def _words(state: BatchState) -> str:
    words = {
        Stage.VOTES: "teachers are asked",
        Stage.BALLOTS: f"{state.ballots} ballots",
        Stage.ENDORSEMENTS: f"{state.endorsements} endorsements of the list",
        Stage.SHARES: f"{state.shares} decryption shares",
    }
    return words.get(state.stage, str(state.stage))


def _named(state: BatchState) -> str:
    return "".join(
        f"; {word}: teachers {', '.join(map(str, found))}"
        for word, found in (("missing", state.missing), ("at fault", state.culprits))
        if found
    )


def _plain(text: str) -> str:
    """A stranger's words without what would move a terminal's cursor, and not too many of them."""
    return "".join(each if each.isprintable() else "?" for each in text[:_MOST_WORDS])


def _detail(answer: httpx.Response) -> str:
    try:
        return _plain(str(answer.json()["detail"]))
    except (ValueError, KeyError, TypeError):
        return _plain(answer.reason_phrase)
