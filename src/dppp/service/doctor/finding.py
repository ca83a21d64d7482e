"""What a check found: one line, and what to do where something is not as it should be."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from dppp.errors import DpppError


class State(StrEnum):
    """How a check ended."""

    GOOD = "good"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check."""

    check: str
    state: State
    said: str
    remedy: str | None = None

    def to_json(self) -> dict[str, object]:
        """The names that `--json` prints."""
        return {
            "check": self.check,
            "state": self.state.value,
            "said": self.said,
            "remedy": self.remedy,
        }


Check = Callable[[], Iterator[Finding]]


def good(check: str, said: str) -> Finding:
    """As it should be."""
    return Finding(check=check, state=State.GOOD, said=said)


def warning(check: str, said: str, remedy: str) -> Finding:
    """It works, and will not for ever."""
    return Finding(check=check, state=State.WARNING, said=said, remedy=remedy)


def failed(check: str, said: str, remedy: str) -> Finding:
    """Not as it should be."""
    return Finding(check=check, state=State.FAILED, said=said, remedy=remedy)


def skipped(check: str, said: str, remedy: str) -> Finding:
    """It could not be looked at."""
    return Finding(check=check, state=State.SKIPPED, said=said, remedy=remedy)


def run_check(name: str, check: Check) -> Iterator[Finding]:
    """What a check finds; what it raises on purpose is a finding too."""
    try:
        yield from check()
    except DpppError as error:
        said = " ".join(error.message.split())
        yield failed(name, said, error.hint or "see docs/operations.md")
