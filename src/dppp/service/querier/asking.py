"""Rows in, labels out, resumable: a querier's rows, sealed, in batches to the gateway.

Used by `dppp query`. Before a batch is sent, its key is on disk, and so is the secret of its rows.
After a crash or a lost connection the same key finds the same batch, so nothing is charged twice.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dppp.errors import GatewayAbort, GatewayFault, GatewayRefusal, InputError
from dppp.protocol.messages import QueryId, SealedQueries, split_query_ids
from dppp.protocol.rows import query_ids_of, seal_rows
from dppp.protocol.task import Task
from dppp.service.querier.connection import GatewayConnection, Labelled
from dppp.service.querier.row_secrets import RowSecrets

Report = Callable[[int, str], None]
"""Told how many rows are answered, and what is happening to the next ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one batch: from where, how many, under which key, and the place of their secret."""

    start: int
    count: int
    key: str
    secret: int


class AskedParts:
    """Which rows go into which batch, in a file beside the output, so that a run can be resumed."""

    def __init__(self, path: Path, *, rows: int, size: int, digest: str, secret: int) -> None:
        """`secret` is the place of the row secret, if the run is a new one."""
        self._path = path
        self._digest = digest
        self.is_new = not path.exists()
        if not self.is_new:
            self.parts = self._read(rows, digest)
            return
        self.parts = [
            Part(
                start=start,
                count=min(size, rows - start),
                key=secrets.token_urlsafe(16),
                secret=secret,
            )
            for start in range(0, rows, size)
        ]
        self._write()

    def renew(self, part: Part, *, secret: int) -> None:
        """The batch of this part was aborted: the next run asks again, under other keys."""
        self.parts[self.parts.index(part)] = replace(
            part, key=secrets.token_urlsafe(16), secret=secret
        )
        self._write()

    def _write(self) -> None:
        plain = [(part.start, part.count, part.key, part.secret) for part in self.parts]
        unfinished = self._path.with_name(f"{self._path.name}.new")
        try:
            unfinished.write_text(
                json.dumps({"digest": self._digest, "parts": plain}), encoding="utf-8"
            )
            unfinished.replace(self._path)
        except OSError as error:
            raise InputError(
                f"cannot write {self._path}: {error.strerror}",
                hint="make room or choose another folder",
            ) from error

    def _read(self, rows: int, digest: str) -> list[Part]:
        try:
            plain = json.loads(self._path.read_text(encoding="utf-8"))
            parts = [
                Part(start=start, count=count, key=key, secret=secret)
                for start, count, key, secret in plain["parts"]
            ]
            is_same = plain["digest"] == digest and sum(part.count for part in parts) == rows
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self._path} cannot be read", hint="remove it to start again"
            ) from error
        if not is_same:
            raise InputError(
                f"{self._path} belongs to other rows",
                hint=(
                    "give the same input again, or remove the file to start again (rows that "
                    "were released before stay free)"
                ),
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
    query_ids: tuple[QueryId, ...]
    labels: list[Labelled]
    receipt: bytes | None
    transcript: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRows:
    """What is asked about: encoded rows, for which task, and the secrets to know them by."""

    task: Task
    rows: Sequence[bytes] = field(repr=False)
    secrets: RowSecrets = field(repr=False)

    def ids_of(
        self, part: Part, gateway: GatewayConnection, *, is_fresh: bool
    ) -> tuple[bytes, SealedQueries | None]:
        """The query id of each row of a part, and its new rows sealed, if there are any.

        A row that was released before keeps the id that it has, under whichever secret.
        """
        rows = self.rows[part.start : part.start + part.count]
        own_key = self.secrets.row_key(part.secret, self.task.task_id)
        others = [] if is_fresh else self.secrets.row_keys(self.task.task_id)
        found: dict[bytes, QueryId] = {}
        for row_key in (own_key, *(each for each in others if each != own_key)):
            left = [row for row in dict.fromkeys(rows) if row not in found]
            if not left:
                break
            query_ids = query_ids_of(row_key, self.task.task_id, left)
            released = gateway.are_released(query_ids)
            named = zip(left, split_query_ids(query_ids), released, strict=True)
            found |= {row: query_id for row, query_id, is_released in named if is_released}
        new = [row for row in dict.fromkeys(rows) if row not in found]
        sealed = seal_rows(self.task, own_key, new) if new else None
        if sealed is not None:
            found |= zip(new, split_query_ids(sealed.query_ids), strict=True)
        return b"".join(found[row] for row in rows), sealed


def ask_in_parts(
    gateway: GatewayConnection,
    own: OwnRows,
    asked: AskedParts,
    *,
    is_fresh: bool,
    with_transcripts: bool,
    report: Report,
    insist: bool = False,
    share: bool = True,
) -> Iterator[Released]:
    """The labels of each part as they come, with its receipt, and its transcript if wanted."""
    for part in tuple(asked.parts):
        try:
            query_ids, sealed = own.ids_of(part, gateway, is_fresh=is_fresh)
            batch = gateway.submit(query_ids, sealed, key=part.key, insist=insist, share=share)
        except GatewayRefusal:
            if part.start == 0 and asked.is_new:
                asked.finish()  # nothing was begun, so there is nothing to go on with
            raise
        try:
            gateway.wait(batch, lambda words, done=part.start: report(done, words))  # type: ignore[misc]
        except GatewayAbort:
            asked.renew(part, secret=own.secrets.add())
            raise
        labels = gateway.labels(batch)
        if len(labels) != part.count:  # all later labels would stand beside other rows
            raise GatewayFault(
                f"the gateway gave {len(labels):,} labels for {part.count:,} rows",
                hint="use none of them, and tell the teachers",
            )
        transcript = gateway.transcript(batch) if with_transcripts else None
        yield Released(
            part=part,
            query_ids=split_query_ids(query_ids),
            labels=labels,
            receipt=gateway.receipt(batch),
            transcript=transcript,
        )
        report(part.start + part.count, "released")
