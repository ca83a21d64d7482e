"""Logs on standard error, with what happened and to what: JSON lines, or for people at a terminal.

Nobody logs secrets here: messages are fixed texts, and what varies (ids, counts, reasons) goes in
`extra`. Reasons are the texts of our own exceptions, which hold no secrets. Used by the commands
that run a process.
"""

import json
import logging
import sys
from datetime import UTC, datetime

from dppp.service.process.about_batch import current_batch

_USUAL = set(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _extras(record)
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class ReadableLines(logging.Formatter):
    """A record as a line to read: the hour, what happened, and to what."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        hour = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{hour}  {level}{record.getMessage()}"
        line += "".join(f"  {name}={value}" for name, value in _extras(record).items())
        if record.exc_info is not None:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _extras(record: logging.LogRecord) -> dict[str, object]:
    """What a line says beside its message; the batch it is about, if its caller did not say."""
    extras = {name: value for name, value in record.__dict__.items() if name not in _USUAL}
    batch = current_batch()
    return extras if batch is None else {"batch": batch, **extras}


def log_to_stderr(level: str, *, as_json: bool = False) -> None:
    """Send all logs of this process to standard error; JSON unless that is a terminal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json or not sys.stderr.isatty() else ReadableLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # broker/connection.py says it better
    # A line for each call to a model, with words that its server chose.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    quiet_asyncio()
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(logging.WARNING)


def quiet_asyncio() -> None:
    """Leave out what asyncio says at each end of each TLS connection, which needs nobody."""
    logging.getLogger("asyncio").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return "eof_received" not in record.getMessage()
