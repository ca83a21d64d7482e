"""Every exception that dppp raises on purpose.

The text of each says what was wrong, what was expected and what to do next. The class says whose
fault it was: ``InputError`` is the caller's, ``Refusal`` is a rule that holds, ``PeerFault`` is
another party's and names the culprits. The command line turns the first into exit code 2 and the
others into exit code 1.
"""


class DpppError(Exception):
    """Anything that dppp raises on purpose."""


class InputError(DpppError):
    """A value that the caller gave cannot be used; nothing was done."""


class UncertifiedError(DpppError):
    """No noise of this family keeps the promise, or a certificate does not hold."""


class MissingExtraError(DpppError):
    """An optional package is needed; the text names the extra to install."""


class Refusal(DpppError):  # noqa: N818 - a refusal is not an error of ours
    """A party declined to act because a rule of the protocol forbids it."""


class PeerFault(DpppError):  # noqa: N818 - theirs, not ours
    """Another party broke the protocol."""

    def __init__(self, message: str, *, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.culprits = culprits


class BudgetExceeded(Refusal):
    """Reserving this would pass the cap of the data."""


class QueriesExhausted(BudgetExceeded):
    """The task has fewer queries left than this batch holds."""


class CapChanged(Refusal):
    """The cap of a data id is fixed for good, and this one differs."""


class DataUnknown(Refusal):
    """No cap was ever fixed for this data id."""


class TaskUnknown(Refusal):
    """The teacher never accepted this task."""


class TaskChanged(Refusal):
    """A task that was accepted before comes back with other content."""


class QueryReused(Refusal):
    """A query id occurs twice in a batch, or in a batch besides its own."""


class BatchChanged(Refusal):
    """A batch that was answered before comes back with another task or other queries."""


class BallotUnknown(Refusal):
    """The teacher cast no ballot in this batch, so it helps to open nothing."""


class SecondList(Refusal):
    """The teacher has served another ballot list for this batch."""


class WrongTeacher(Refusal):
    """The ledger belongs to another teacher."""


class LedgerError(DpppError):
    """The ledger cannot be used as it is; nothing was charged and nothing may be answered."""


class LedgerDamaged(LedgerError):  # noqa: N818
    """What is stored is not what was written."""


class LedgerRolledBack(LedgerError):  # noqa: N818
    """The store lacks entries that were there before: it went back in time, or is another one."""


class LedgerUnavailable(LedgerError):  # noqa: N818
    """The store could not be read or written: locked, full, closed or out of reach."""


class NotALedger(InputError):  # noqa: N818
    """A file that is none of our ledgers."""
