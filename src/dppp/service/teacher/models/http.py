"""A teacher's model behind HTTP, on a server of its own organisation.

Each batch is one POST of {"rows": [[…]]}, answered by {"labels": […]}: a class name for each row,
null for none. Whatever goes wrong, the teacher casts no vote and nothing is asked again row by
row, so a batch never waits longer than the timeout. Inputs go to this address and nowhere else: no
redirects, no proxies from the environment.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from dppp.errors import InputError, MissingExtraError
from dppp.learning.frames import is_frame, rows_as_lists

Label = str | int | float | None

_MOST_BYTES_PER_LABEL = 1_000
_log = logging.getLogger(__name__)
NoteFailure = Callable[[str, int], None]
"""Told why a model server gave no answers, and to how many rows."""


def log_failure(remark: str, _: int) -> None:
    """What is done with a failure where nobody watches."""
    _log.warning(remark)


def load_http(
    url: str, timeout_seconds: float, note: NoteFailure = log_failure
) -> Callable[[Any], list[Label]]:
    """What asks the model server for labels; None for each row when it fails."""
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtraError("a model server needs httpx", extra="service") from error
    _require_address(url)
    if not 0 < timeout_seconds <= 3_600:
        raise InputError(
            f"timeout_seconds must be above 0 and at most 3600, got {timeout_seconds!r}"
        )
    return partial(_labels, url, timeout_seconds, note)


def _require_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError("the url of a model server must look like http://127.0.0.1:8000/predict")
    if parts.username is not None:
        raise InputError(
            f"the url of the model server at {parts.hostname} must not hold a name or password"
        )


def _labels(url: str, timeout_seconds: float, note: NoteFailure, rows: Any) -> list[Label]:
    try:
        return _ask(url, timeout_seconds, rows)
    except Exception as error:  # noqa: BLE001 - a server may fail in any way; it never matters
        reason = str(error) if isinstance(error, _BadAnswer) else type(error).__name__
        host = urlsplit(url).hostname
        said = f"the model server at {host} failed ({reason}); no vote in {len(rows)} queries"
        note(said, len(rows))
        return [None] * len(rows)


class _BadAnswer(Exception):
    """What the server said cannot be used; the text holds nothing of the inputs."""


def _ask(url: str, timeout_seconds: float, rows: Any) -> list[Label]:
    """In a thread of its own, since the caller's may have an event loop already."""

    async def within_time() -> bytes:
        async with asyncio.timeout(timeout_seconds):
            most_bytes = _MOST_BYTES_PER_LABEL * (len(rows) + 1)
            return await _post(url, {"rows": _listed(rows)}, most_bytes)

    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(asyncio.run, within_time()).result()
    return _read_labels(answer, len(rows))


def _listed(rows: Any) -> list[list[Any]]:
    """Rows as JSON has them; null is what is missing."""
    if is_frame(rows):
        return rows_as_lists(rows, range(len(rows)))
    listed: list[list[Any]] = rows.tolist()
    return listed


async def _post(url: str, question: dict[str, object], most_bytes: int) -> bytes:
    import httpx  # noqa: PLC0415

    client = httpx.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - the whole exchange has one
        verify=ssl.create_default_context(),
        headers={"Accept-Encoding": "identity"},
    )
    async with client, client.stream("POST", url, json=question) as response:
        if response.status_code != httpx.codes.OK:
            raise _BadAnswer(f"status {response.status_code}")
        answer = bytearray()
        async for part in response.aiter_raw():
            answer += part
            if len(answer) > most_bytes:
                raise _BadAnswer(f"more than {most_bytes:,} bytes")
    return bytes(answer)


def _read_labels(answer: bytes, count: int) -> list[Label]:
    try:
        said: Any = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise _BadAnswer("not JSON") from error
    labels = said.get("labels") if isinstance(said, dict) else None
    if not isinstance(labels, list) or len(labels) != count:
        raise _BadAnswer(f"not a list of {count} labels")
    if not all(type(label) in (str, int, float, type(None)) for label in labels):
        raise _BadAnswer("a label that is not text, a number or null")
    return labels
