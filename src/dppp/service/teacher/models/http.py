"""A teacher's model behind HTTP, on a server of its own organisation.

Each batch is one POST of {"rows": [[…]]}, answered by {"labels": […]}: a class name for each row,
null for none. Whatever goes wrong, the teacher casts no vote and nothing is asked again row by
row, so a batch never waits longer than the timeout. Inputs go to this address and nowhere else: no
redirects, no proxies from the environment.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from dppp.errors import InputError
from dppp.learning.frames import is_frame, rows_as_lists
from dppp.service.teacher.models.posting import (
    BadAnswer,
    NoteFailure,
    log_failure,
    make_client,
    post,
    require_address,
    require_httpx,
)

Label = str | int | float | None

_MOST_BYTES_PER_LABEL = 1_000


def load_http(
    url: str, timeout_seconds: float, note: NoteFailure = log_failure
) -> Callable[[Any], list[Label]]:
    """What asks the model server for labels; None for each row when it fails."""
    require_httpx()
    require_address(url, "http://127.0.0.1:8000/predict")
    if not 0 < timeout_seconds <= 3_600:
        raise InputError(
            f"timeout_seconds must be above 0 and at most 3600, got {timeout_seconds!r}"
        )
    return partial(_labels, url, timeout_seconds, note)


def _labels(url: str, timeout_seconds: float, note: NoteFailure, rows: Any) -> list[Label]:
    try:
        return _ask(url, timeout_seconds, rows)
    except Exception as error:  # noqa: BLE001 - a server may fail in any way; it never matters
        reason = str(error) if isinstance(error, BadAnswer) else type(error).__name__
        host = urlsplit(url).hostname
        said = f"the model server at {host} failed ({reason}); no vote in {len(rows)} queries"
        note(said, len(rows))
        return [None] * len(rows)


def _ask(url: str, timeout_seconds: float, rows: Any) -> list[Label]:
    """In a thread of its own, since the caller's may have an event loop already."""

    async def within_time() -> bytes:
        async with asyncio.timeout(timeout_seconds):
            most_bytes = _MOST_BYTES_PER_LABEL * (len(rows) + 1)
            async with make_client() as client:
                answer = await post(client, url, {"rows": _listed(rows)}, most_bytes)
        if answer.status != 200:
            raise BadAnswer(f"status {answer.status}")
        return answer.body

    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(asyncio.run, within_time()).result()
    return _read_labels(answer, len(rows))


def _listed(rows: Any) -> list[list[Any]]:
    """Rows as JSON has them; null is what is missing."""
    if is_frame(rows):
        return rows_as_lists(rows, range(len(rows)))
    listed: list[list[Any]] = rows.tolist()
    return listed


def _read_labels(answer: bytes, count: int) -> list[Label]:
    try:
        said: Any = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("not JSON") from error
    labels = said.get("labels") if isinstance(said, dict) else None
    if not isinstance(labels, list) or len(labels) != count:
        raise BadAnswer(f"not a list of {count} labels")
    if not all(type(label) in (str, int, float, type(None)) for label in labels):
        raise BadAnswer("a label that is not text, a number or null")
    return labels
