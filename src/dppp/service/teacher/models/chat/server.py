"""Calls to a server with the chat completions interface, as many at a time as it may get.

A call that cannot connect, and one that is told to come again (429) or that the server is at fault
(5xx), is made again after a pause that doubles. What hangs, floods or answers something else is not
asked again. A question without an answer is None: a model that fails casts no vote.

All questions of one vote have a time of their own, which begins when that vote's turn comes. So a
record that makes one vote slow takes nothing from the time of another vote.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dppp.service.teacher.models.posting import (
    BadAnswer,
    NoteFailure,
    log_failure,
    make_client,
    post,
)

if TYPE_CHECKING:
    import httpx

_MOST_BYTES = 2**20
"""Of one answer: a class name, what the server says of it, and what some models think before."""
_LONGEST_PAUSE_SECONDS = 30.0

Read = Callable[[bytes], int]
"""From the body of an answer to a class number; raises BadAnswer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServer:
    """Where the model is, and how patiently it is asked."""

    url: str
    fields: dict[str, Any]
    """Of every request: the model's name, and how it is to answer."""
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float
    vote_seconds: float
    retries: int
    backoff_seconds: float
    calls_at_once: int
    note: NoteFailure = log_failure

    def ask(self, prompts: Sequence[str], read: Read) -> list[int | None]:
        """A class for each prompt, or None; in a thread, since the caller's may have a loop."""
        with ThreadPoolExecutor(1) as thread:
            answers, failures = thread.submit(asyncio.run, self._ask_all(prompts, read)).result()
        for reason, times in failures.items():
            host = urlsplit(self.url).hostname
            self.note(
                f"the language model at {host} failed ({reason}); no vote in {times} of "
                f"{len(prompts)} queries",
                times,
            )
        return answers

    async def _ask_all(
        self, prompts: Sequence[str], read: Read
    ) -> tuple[list[int | None], Counter[str]]:
        answers: list[int | None] = [None] * len(prompts)
        failures: Counter[str] = Counter()
        waiting = iter(enumerate(prompts))

        async def work(client: "httpx.AsyncClient") -> None:
            for place, prompt in waiting:
                try:
                    answers[place] = read(await self._answer_to(client, prompt))
                except Exception as error:  # noqa: BLE001 - it may fail in any way; it never matters
                    is_ours = isinstance(error, BadAnswer)
                    failures[str(error) if is_ours else type(error).__name__] += 1

        with suppress(TimeoutError):
            async with asyncio.timeout(self.vote_seconds), make_client(self._headers) as client:
                workers = min(self.calls_at_once, len(prompts))
                await asyncio.gather(*(work(client) for _ in range(workers)))
        unasked = answers.count(None) - failures.total()
        if unasked:
            failures["the time of this vote was over"] = unasked
        return answers, failures

    @property
    def _headers(self) -> dict[str, str]:
        return {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}

    async def _answer_to(self, client: "httpx.AsyncClient", prompt: str) -> bytes:
        """The body of a good answer, after as many tries as there may be."""
        import httpx  # noqa: PLC0415

        question = {**self.fields, "messages": [{"role": "user", "content": prompt}]}
        for tried in range(self.retries + 1):
            pause = min(self.backoff_seconds * 2**tried, _LONGEST_PAUSE_SECONDS)
            try:
                async with asyncio.timeout(self.timeout_seconds):
                    answer = await post(
                        client, f"{self.url}/chat/completions", question, _MOST_BYTES
                    )
            except httpx.TransportError:
                if tried == self.retries:
                    raise
            else:
                if answer.status == 200:
                    return answer.body
                if tried == self.retries or not (answer.status == 429 or answer.status >= 500):
                    raise BadAnswer(f"status {answer.status}")
                pause = max(pause, _asked_pause(answer.headers.get("Retry-After", "")))
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")


def _asked_pause(text: str) -> float:
    """The seconds that a server asks to be left alone, within reason; dates are not read."""
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return min(float(text), _LONGEST_PAUSE_SECONDS) if is_number else 0.0
