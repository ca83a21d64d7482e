"""Rows in, labels out, resumable: a querier's rows in batches to the gateway.

Used by `dppp query`. Before a batch is sent, its key is on disk. After a crash or a lost connection
the same key finds the same batch, so nothing is charged twice.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dppp.errors import GatewayAbort, GatewayFault, GatewayRefusal, InputError
from dppp.service.querier.connection import GatewayConnection, Labelled, Rows

Report = Callable[[int, str], None]
"""Told how many rows are answered, and what is happening to the next ones."""


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
        """The batch of this part was aborted: the next run asks again, under another key."""
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
            raise InputError(
                f"cannot write {self._path}: {error.strerror}",
                hint="make room or choose another folder",
            ) from error

    def _read(self, rows: int, digest: str) -> list[Part]:
        try:
            plain = json.loads(self._path.read_text(encoding="utf-8"))
            parts = [Part(start=s, count=c, key=k) for s, c, k in plain["parts"]]
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
    labels: list[Labelled]
    receipt: bytes | None
    transcript: bytes | None


def ask_in_parts(
    gateway: GatewayConnection,
    rows: Rows,
    asked: AskedParts,
    *,
    is_fresh: bool,
    with_transcripts: bool,
    report: Report,
) -> Iterator[Released]:
    """The labels of each part as they come, with its receipt, and its transcript if wanted."""
    for part in tuple(asked.parts):
        own = rows[part.start : part.start + part.count]
        try:
            batch = gateway.submit(own, key=part.key, is_fresh=is_fresh)
        except GatewayRefusal:
            if part.start == 0 and asked.is_new:
                asked.finish()  # nothing was begun, so there is nothing to go on with
            raise
        try:
            gateway.wait(batch, lambda words, done=part.start: report(done, words))  # type: ignore[misc]
        except GatewayAbort:
            asked.renew(part)
            raise
        labels = gateway.labels(batch)
        if len(labels) != part.count:  # all later labels would stand beside other rows
            raise GatewayFault(
                f"the gateway gave {len(labels):,} labels for {part.count:,} rows",
                hint="use none of them, and tell the teachers",
            )
        transcript = gateway.transcript(batch) if with_transcripts else None
        yield Released(
            part=part, labels=labels, receipt=gateway.receipt(batch), transcript=transcript
        )
        report(part.start + part.count, "released")
