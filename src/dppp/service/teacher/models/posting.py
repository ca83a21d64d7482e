"""One POST to a model server of the teacher's own, with a bound on what is read of its answer.

Used for both kinds of model servers (http.py and chat/). A question goes to its address and nowhere
else: no redirects, no proxies from the environment. What an answer may be is for the caller to say.
"""

import functools
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dppp.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import httpx


_log = logging.getLogger(__name__)
NoteFailure = Callable[[str, int], None]
"""Told why a model server gave no answers, and to how many rows."""


def log_failure(remark: str, _: int) -> None:
    """What is done with a failure where nobody watches."""
    _log.warning(remark)


class BadAnswer(Exception):
    """What the server said cannot be used; the text holds nothing of the question or answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers and body, as far as anybody wants them."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def require_httpx() -> None:
    """Say how to get httpx before anything is asked."""
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtraError("a model server needs httpx", extra="service") from error


def require_address(url: str, example: str) -> None:
    """Refuse what is not an address, or holds a password."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(f"the url of a model server must look like {example}")
    if parts.username is not None:
        raise InputError(
            f"the url of the model server at {parts.hostname} must not hold a name or password"
        )


def make_client(headers: Mapping[str, str] | None = None) -> "httpx.AsyncClient":
    """What asks; the caller bounds the time of the whole exchange."""
    import httpx  # noqa: PLC0415

    return httpx.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - the whole exchange has one
        verify=_tls_context(),
        headers={"Accept-Encoding": "identity", **(headers or {})},
    )


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Reading all authorities takes longer than a call to a server nearby."""
    return ssl.create_default_context()


async def post(
    client: "httpx.AsyncClient", url: str, question: Mapping[str, Any], most_bytes: int
) -> Answer:
    """The answer, whatever its status; the body of one that is not 200 is not read."""
    async with client.stream("POST", url, json=question) as response:
        body = bytearray()
        if response.status_code == 200:
            async for part in response.aiter_raw():
                body += part
                if len(body) > most_bytes:
                    raise BadAnswer(f"more than {most_bytes:,} bytes")
        return Answer(status=response.status_code, headers=response.headers, body=bytes(body))
