"""Which batch a thread works for, so that every line it logs meanwhile names it (logs.py).

The same id is in the gateway's answers: whoever asks why a batch took long finds all that was said
of it, at the aggregator and at every teacher.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_batch: ContextVar[str | None] = ContextVar("dppp_batch", default=None)


@contextmanager
def about_batch(batch: bytes | None) -> Iterator[None]:
    """All that is logged in this block is about this batch; None: about none that is known."""
    token = _batch.set(None if batch is None else batch.hex())
    try:
        yield
    finally:
        _batch.reset(token)


def current_batch() -> str | None:
    """The batch of the innermost block."""
    return _batch.get()
