"""Logs for machines: one JSON object a line on standard error, with what happened and to what.

Nobody logs secrets here: messages are fixed texts, and what varies (ids, counts, reasons) goes in
`extra`. Reasons are the texts of our own exceptions, which hold no secrets (CONVENTIONS.md, 11).
"""

import json
import logging
import sys
from datetime import UTC, datetime

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
        line |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to_stderr(level: str) -> None:
    """Send all logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # broker.py says it in our words
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(logging.WARNING)
