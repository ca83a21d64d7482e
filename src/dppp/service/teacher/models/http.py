"""A teacher's model behind HTTP, on a server of its own organisation.

Each batch is one POST of {"rows": [[…]]}, answered by {"labels": […]}: for each row a class name, a
list of the names of its labels with the surest first, or a number, as the task asks; null for no
vote. Whatever goes wrong, the teacher casts no vote and nothing is asked again row by
row, so a batch never waits longer than the timeout. Inputs go to this address and nowhere else: no
redirects, no proxies from the environment.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from dppp.errors import InputError
from dppp.learning.frames import as_trained, is_frame, rows_as_lists
from dppp.protocol.votes import Predict
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
Answer = Label | list[Label]

Read = Callable[[bytes, int], list[Answer]]
"""From the body of an answer to what it says of so many rows; raises BadAnswer."""

_MOST_BYTES_PER_LABEL = 1_000


def load_http(
    url: str,
    timeout_seconds: float,
    note: NoteFailure = log_failure,
    *,
    has_several: bool = False,
) -> Callable[[Any], list[Answer]]:
    """What asks the model server for labels; None for each row when it fails.

    With `has_several` a row has a list of labels.
    """
    require_httpx()
    require_address(url, "http://127.0.0.1:8000/predict")
    if not 0 < timeout_seconds <= 3_600:
        raise InputError(
            f"timeout_seconds must be above 0 and at most 3600, got {timeout_seconds!r}"
        )
    read = _read_lists if has_several else _read_labels
    return partial(_labels, url, timeout_seconds, note, read)


def as_class_numbers(ask: Callable[[Any], list[Answer]], names: Sequence[str]) -> Predict:
    """What a teacher asks for votes on classes or labels of these names.

    A name outside the task stays a text, which is no vote on its own row. If it raised, as with
    other models, every row would be asked about again by itself.
    """
    places: dict[Label, int] = {name: place for place, name in enumerate(names)}

    def number(said: Label) -> int | str | None:
        return None if said is None else places.get(said, str(said))

    def answer(rows: Any) -> list[Any]:
        return [
            [number(each) for each in said] if isinstance(said, list) else number(said)
            for said in ask(as_trained(rows))
        ]

    return answer


def _labels(
    url: str, timeout_seconds: float, note: NoteFailure, read: Read, rows: Any
) -> list[Answer]:
    try:
        return read(_ask(url, timeout_seconds, rows), len(rows))
    except Exception as error:  # noqa: BLE001 - a server may fail in any way; it never matters
        reason = str(error) if isinstance(error, BadAnswer) else type(error).__name__
        host = urlsplit(url).hostname
        said = f"the model server at {host} failed ({reason}); no vote in {len(rows)} queries"
        note(said, len(rows))
        return [None] * len(rows)


def _ask(url: str, timeout_seconds: float, rows: Any) -> bytes:
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
        return thread.submit(asyncio.run, within_time()).result()


def _listed(rows: Any) -> list[list[Any]]:
    """Rows as JSON has them; null is what is missing."""
    if is_frame(rows):
        return rows_as_lists(rows, range(len(rows)))
    listed: list[list[Any]] = rows.tolist()
    return listed


def _read_labels(answer: bytes, count: int) -> list[Answer]:
    labels = _read_answers(answer, count)
    if not all(map(_is_label, labels)):
        raise BadAnswer("a label that is not text, a number or null")
    return labels


def _read_lists(answer: bytes, count: int) -> list[Answer]:
    lists = _read_answers(answer, count)
    for each in lists:
        if each is not None and not (isinstance(each, list) and all(map(_is_label, each))):
            raise BadAnswer("neither a list of labels nor null")
    return lists


def _read_answers(answer: bytes, count: int) -> list[Any]:
    try:
        said: Any = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("not JSON") from error
    answers = said.get("labels") if isinstance(said, dict) else None
    if not isinstance(answers, list) or len(answers) != count:
        raise BadAnswer(f"not a list of {count} labels")
    return answers


def _is_label(answer: object) -> bool:
    return type(answer) in (str, int, float, type(None))
