"""A querier's connection to the gateway of an aggregator: every call that it answers, typed.

Used by `dppp query`. A gateway that is out of reach or busy is called again for a while. Nothing it
says is trusted: what is not of the expected form is refused, and its words are made safe to print.
"""

import base64
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from dppp.errors import (
    GatewayAbort,
    GatewayError,
    GatewayRefusal,
    InputError,
    TaskError,
    WireError,
    message_of,
)
from dppp.hashing import HASH_BYTES
from dppp.protocol.events import Stage
from dppp.protocol.messages import SealedQueries
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.service.gateway.schemas import (
    BatchState,
    BudgetState,
    Labels,
    Problem,
    Rights,
    WhichReleased,
)
from dppp.service.process.config import is_this_machine

Model = TypeVar("Model", bound=BaseModel)

_RETRY_SECONDS = 2
_FIRST_POLL_SECONDS = 0.05
_POLL_SECONDS = 0.5
_TOKEN = re.compile("[!-~]+")
_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The answer to one row, and the noisy counts that it comes from.

    `label` is None for an abstention, and where the question is of labels or of a number; then
    `labels` or `value` is there.
    """

    label: str | None
    counts: tuple[int, ...]
    is_flagged: bool = False
    labels: tuple[str, ...] | None = None
    value: float | None = None
    standard_error: float | None = field(default=None, compare=False)
    lead_by_noise: float | None = field(default=None, compare=False)
    """As the gateway says it (schemas.Label); receipts have the counts, and say nothing of it."""


class GatewayConnection:
    """The gateway of an aggregator, for one querier. Use it in a ``with`` block.

    `on_wait` is told, once in each call, why it takes longer.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        patience_seconds: float = 60,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._patience_seconds = patience_seconds
        self._on_wait = on_wait
        _require_address(address)
        if not _TOKEN.fullmatch(token):  # httpx would repeat it in its refusal
            raise InputError(
                "this cannot be a token, which is one word on one line", hint="copy it again, whole"
            )
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

    def task(self) -> Task:
        """The task, with the keys that rows are sealed to; whose they are is for the id to say."""
        try:
            return decode(self._call("GET", "/api/task/terms").content, Task)
        except (WireError, TaskError) as error:
            raise GatewayError(
                f"the gateway gives terms of a task that cannot be used: {message_of(error)}",
                hint="check the address, and that both have the same version of dppp",
            ) from None

    def budget(self) -> dict[str, Any]:
        """What was spent and is left."""
        return _read(BudgetState, self._call("GET", "/api/budget")).model_dump()

    def require_transcripts(self) -> None:
        """Before anything is charged: a token without the right is refused every transcript."""
        if not _read(Rights, self._call("GET", "/api/rights")).transcripts:
            raise GatewayRefusal(
                "your token may not fetch transcripts, which are for auditors (nothing was asked "
                "or charged)",
                hint=(
                    "leave out --transcripts, or ask the aggregator's operator for transcripts = "
                    "true in your entry"
                ),
            )

    def are_released(self, query_ids: bytes) -> list[bool]:
        """Which queries were released before, so that they cost nothing."""
        body = {"query_ids": base64.b64encode(query_ids).decode()}
        found = _read(WhichReleased, self._call("POST", "/api/released", json=body)).released
        if len(found) != len(query_ids) // HASH_BYTES:
            raise GatewayError("the gateway did not say of each row whether it was released before")
        return found

    def submit(
        self,
        query_ids: bytes,
        sealed: SealedQueries | None,
        *,
        key: str,
        insist: bool = False,
        share: bool = True,
    ) -> str:
        """Send a batch: the ids of all rows, and those sealed that were not released before.

        The same ids under the same key are the same batch. `insist` begins one even while too few
        teachers are online to release it. Without `share` a single row has a batch of its own.
        """
        body: dict[str, Any] = {"query_ids": base64.b64encode(query_ids).decode()}
        if insist:
            body["insist"] = True
        if not share:
            body["share"] = False
        if sealed is not None:
            body["sealed"] = base64.b64encode(encode(sealed)).decode()
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
                    f"the batch was aborted: {_plain(state.reason or '')}{_named(state)}",
                    hint=f"the same command asks again, at a new charge; the operator's logs name "
                    f"this batch {_plain(state.batch or '')}",
                )
            time.sleep(pause)
            pause = min(2 * pause, _POLL_SECONDS)

    def labels(self, batch: str) -> list[Labelled]:
        """The labels of a released batch."""
        found = _read(Labels, self._call("GET", f"/api/batches/{batch}/labels"))
        return [
            Labelled(
                label=each.label,
                counts=tuple(each.counts),
                is_flagged=each.flagged,
                labels=None if each.labels is None else tuple(each.labels),
                value=each.value,
                standard_error=each.standard_error,
                lead_by_noise=each.lead_by_noise,
            )
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
        has_said_why = False
        while True:
            hint = None
            try:
                answer = self._client.request(method, path, **more)
                if answer.status_code < 300 or answer.status_code in accepted:
                    return answer
                detail, hint = _problem_of(answer)
                problem = f"{answer.status_code} {detail}"
                if answer.status_code < 500:
                    raise GatewayRefusal(f"the gateway refused: {problem}", hint=hint)
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
                if "CERTIFICATE_VERIFY_FAILED" in problem:  # waiting does not change it
                    raise GatewayError(
                        f"the gateway's TLS certificate is not trusted here: {problem}",
                        hint=(
                            "if it is from an authority of your own, name that one's TLS "
                            "certificate in the variable SSL_CERT_FILE"
                        ),
                    ) from error
            if time.monotonic() > until:
                raise GatewayError(
                    f"the gateway {self._client.base_url} cannot be used: {problem}",
                    hint=hint or "check its address, or run this again later",
                )
            if not has_said_why:
                has_said_why = True
                self._on_wait(f"{problem}; trying again for {self._patience_seconds:.0f} s")
            time.sleep(_RETRY_SECONDS)


def _require_address(address: str) -> None:
    try:
        host = httpx.URL(address).raw_host.decode("ascii")
        is_address = address.startswith(("https://", "http://")) and bool(host.encode("idna"))
    except (httpx.InvalidURL, UnicodeError):
        is_address = False
    if not is_address:
        raise InputError(
            f"{address!r} is not the address of a gateway", hint="write it as https://host:port"
        )
    if not address.startswith("https://") and not is_this_machine(host):
        raise InputError(
            f"{address!r} is on another machine, and your token would pass in the clear",
            hint="write it as https://host:port",
        )


def _read(kind: type[Model], answer: httpx.Response) -> Model:
    """What the gateway said; it is not trusted, and may not even be a gateway."""
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError:
        raise GatewayError(
            f"what {answer.url} answers is not what a gateway of this version says",
            hint="check the address",
        ) from None


def _words(state: BatchState) -> str:
    words = {
        Stage.VOTES: "teachers are asked",
        Stage.BALLOTS: f"{state.ballots} ballots",
        Stage.ENDORSEMENTS: f"{state.endorsements} endorsements of the list",
        Stage.ANSWERS: f"{state.answers} answers to the list",
    }
    return words.get(state.stage, str(state.stage))


def _named(state: BatchState) -> str:
    return "".join(
        f"; {word}: teachers {', '.join(map(str, found))}"
        for word, found in (("missing", state.missing), ("at fault", state.culprits))
        if found
    )


def _plain(text: str) -> str:
    """A stranger's text without what would move a terminal's cursor, and not too much of it."""
    return "".join(each if each.isprintable() else "?" for each in text[:_MOST_CHARACTERS])


def _problem_of(answer: httpx.Response) -> tuple[str, str | None]:
    """What the gateway says was wrong, and what to do."""
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError:
        return _plain(answer.reason_phrase), None
    return _plain(problem.detail), None if problem.hint is None else _plain(problem.hint)
