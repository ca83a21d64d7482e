"""Every exception that dppp raises on purpose.

The message says what was wrong and what was expected; the hint, if there is one, says what to do
next. Four kinds say whose turn it is: ``InputError`` is the caller's fault; ``Refusal`` is a rule
that holds; ``PeerFault`` is another party's and names the culprits; ``Unavailable`` is something
that is missing, out of reach or has stopped. The command line turns the first into exit code 2 and
the others into exit code 1.
"""

from typing import Any


class DpppError(Exception):
    """Anything that dppp raises on purpose.

    >>> from dppp import DpppError, Trust
    >>> try:
    ...     Trust(teachers=5, colluders=3, dropouts=1)
    ... except DpppError as error:
    ...     print(f"{type(error).__name__}: {error}")
    InputError: the decryption threshold would be 5, but only 4 of 5 teachers are sure to answer
    hint: lower dropouts to 0, lower colluders to 2, or have at least 6 teachers
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"

    @property
    def one_line(self) -> str:
        """Message and hint without a line break, for logs."""
        return self.message if self.hint is None else f"{self.message}; {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # By state and not by the arguments of `__init__`: some kinds need more than the message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[DpppError], arguments: tuple[object, ...], state: dict[str, object]
) -> DpppError:
    """The exception that was pickled or copied."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def message_of(error: Exception) -> str:
    """What any exception says was wrong, without a hint: for a text that holds another's."""
    return error.message if isinstance(error, DpppError) else str(error)


def install_hint(extra: str) -> str:
    """How to get an extra: in a clone, since no package of dppp is on any index."""
    return f"in your clone of dppp: pip install -c constraints.txt '.[{extra}]'"


class InputError(DpppError):
    """A value that the caller gave cannot be used; nothing was done."""


class RecordsError(InputError, ValueError):
    """Records, or what goes with them, that cannot be dealt to teachers.

    Also a ``ValueError``, which scikit-learn and its users expect of an estimator.
    """


class Refusal(DpppError):
    """A party declined to act because a rule of the protocol forbids it."""


class PeerFault(DpppError):
    """Another party broke the protocol."""

    def __init__(
        self, message: str, *, culprits: tuple[int, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.culprits = culprits


class Unavailable(DpppError):
    """Something is missing, out of reach, busy or has stopped; the request itself may be good."""


class UncertifiedError(Refusal):
    """No noise of this family keeps the promise, or a certificate does not hold."""


class MissingExtraError(Unavailable):
    """An optional package is needed; the hint says how to install the extra that brings it."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message, hint=install_hint(extra))


class DatasetUnavailable(Unavailable):
    """A dataset's file is in no folder and cannot be downloaded; the hint says where to put it."""


class EncodingError(InputError):
    """Bytes that are not the canonical encoding of what they should be."""


class KeyMaterialError(InputError):
    """A key, a share of one or its file cannot be used: weak, damaged, foreign or locked."""


class FederationError(InputError):
    """A join request, a federation file or a certificate in one that cannot be used."""


class FederationChanged(Refusal):
    """A federation file that is not the one whose hash was compared."""


class TlsCertificateEnded(Unavailable):
    """A certificate that is not valid at this time: renew it, or set the clock."""


class GroupElementError(InputError):
    """An integer that should be an element of the key's group is not."""

    def __init__(self, message: str, *, position: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class PackingError(InputError):
    """A slot of a packed plaintext is outside its bound; `slot` is its position."""

    def __init__(self, message: str, *, slot: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot


class ProofError(PeerFault):
    """A proof does not hold."""


class DecryptionError(PeerFault):
    """Decryption shares do not open the ciphertexts."""


class WeakModulusWarning(UserWarning):
    """The modulus is too short for anything but reproducing the paper."""


class NotWorthItWarning(UserWarning):
    """Private answers can be expected to be worse than what one has without them."""


class RecordsUsedAgainWarning(UserWarning):
    """Records that were asked about under one budget get a second one: what they tell adds up."""


class PartlyScoredWarning(UserWarning):
    """The budget did not pay for every row, so a score is of some of them."""


class BudgetNotCopied(Refusal):
    """A copy of this would be a second budget for the same records."""


class BudgetExceeded(Refusal):
    """Reserving this would pass the cap of the data."""


class QueriesExhausted(BudgetExceeded):
    """The task has fewer queries left than this batch holds."""


class CapChanged(Refusal):
    """The cap of a data id is fixed for good, and this one differs."""


class DataUnknown(Refusal):
    """No cap was ever fixed for this data id."""


class FirstUseUnsaid(Refusal):
    """A ledger would begin to count data from nothing, and nobody said that it was never used."""


class NoColluders(Refusal):
    """A task whose promise does not hold against a teacher who sees what the aggregator sees."""


class TaskUnknown(Refusal):
    """The teacher never accepted this task."""


class TaskChanged(Refusal):
    """A task that was accepted before comes back with other content."""


class TaskSucceeded(Refusal):
    """A task that another one has taken the place of: nothing more is charged to it."""


class ChangeNotSigned(Refusal):
    """A change of members that too few of the old task's teachers have signed."""


class ChangeNotAsked(Refusal):
    """A change of members that gives somebody keys which its own key never asked for."""


class QueryReused(Refusal):
    """A query id occurs twice in a batch, or in a batch besides its own."""


class BatchChanged(Refusal):
    """A batch that was answered before comes back with another task or other queries."""


class BallotUnknown(Refusal):
    """The teacher cast no ballot in this batch, so it helps to open nothing."""


class SecondList(Refusal):
    """The teacher has endorsed another ballot list for this batch."""


class WrongTeacher(Refusal):
    """The ledger belongs to another teacher."""


class LedgerError(Unavailable):
    """The ledger cannot be used as it is; nothing was charged and nothing may be answered."""


class LedgerDamaged(LedgerError):
    """What is stored is not what was written."""


class LedgerRolledBack(LedgerError):
    """The store lacks entries that were there before: it went back in time, or is another one."""


class LedgerUnavailable(LedgerError):
    """The store could not be read or written: locked, full, closed or out of reach."""


class NotALedger(InputError):
    """A file that is not a ledger of dppp."""


class BatchStoreUnavailable(Unavailable):
    """The aggregator's store could not be read or written; nothing was sent."""


class EpochSecretsUnavailable(Unavailable):
    """A teacher cannot keep or forget the secrets of its epochs, so it publishes no key."""


class JobUnknown(InputError):
    """There is no such job of this querier."""


class JobChanged(Refusal):
    """The key of a job comes back with other rows."""


class NotReleased(Unavailable):
    """What was asked for is not there: the batch is under way, or was aborted."""


class AllowanceExceeded(Refusal):
    """A querier, or the task, has fewer queries left than this asks for."""


class TranscriptsNotAllowed(Refusal):
    """A querier asks for a full transcript, which its token has no right to."""


class TooManyRows(InputError):
    """More rows at once than the gateway takes."""


class RunnerStopped(Unavailable):
    """The process cannot do its work any more and has to be restarted."""


class LocalFailure(Unavailable):
    """A process of a local federation did not do its part."""


class GatewayError(Unavailable):
    """The gateway failed or could not be reached, a batch was aborted, or a receipt is missing."""


class GatewayRefusal(Refusal):
    """The gateway refused a request, and will refuse it again."""


class GatewayFault(PeerFault):
    """The gateway gave answers that contradict each other or what it said before."""


class GatewayAbort(GatewayError):
    """A batch that was asked of the gateway ended without a release."""


class ModelUnusable(InputError):
    """A teacher's own model cannot vote on rows of the task."""


class ModelServerUnavailable(Unavailable):
    """The server of a teacher's model gave no answer."""


class Busy(Unavailable):
    """Too much is under way; the same can be asked again later."""


class TeachersMissing(Unavailable):
    """Too few teachers are there for a batch that could be released; nothing was charged."""


class Abandoned(Unavailable):
    """Whoever asked has gone, so nothing was done."""


class WireError(InputError):
    """Bytes that are not the message they should be."""


class TaskError(InputError):
    """A task that contradicts itself, is not certified, or is not the one that was agreed on."""


class WrongTask(Refusal):
    """A message for another task than the one that was accepted."""


class WrongBatch(Refusal):
    """A request whose parts are of different batches."""


class RequestExpired(Refusal):
    """A batch whose deadline has passed; nothing was charged."""


class RowsUnreadable(Refusal):
    """Sealed rows that do not open with this teacher's key, or do not hold rows of the task."""


class RowsChanged(Refusal):
    """Sealed rows that open, and are not those of the batch."""


class OwnBallotMissing(Refusal):
    """A list without the ballot that this teacher cast."""


class NotFromAggregator(Refusal):
    """A message that the aggregator of the task did not sign."""


class ListNotEndorsed(Refusal):
    """Shares of a list that this teacher never endorsed."""


class ListNotCertified(Refusal):
    """A list without the endorsements of t distinct teachers."""


class ListNotServed(Refusal):
    """A proof of shares that were never given."""


class SignatureFault(PeerFault):
    """A message that its teacher did not sign."""


class BallotFault(PeerFault):
    """A ballot that cannot be counted."""


class ListFault(PeerFault):
    """A ballot list that may not be opened."""


class TranscriptError(PeerFault):
    """A transcript that does not hold; `check` is the first check that failed."""

    def __init__(self, check: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"the check of the {check} failed: {message}", hint=hint)
        self.check = check


class BatchAborted(Unavailable):
    """A batch ended without a release; who was missing or at fault is named."""

    def __init__(
        self,
        reason: str,
        *,
        missing: tuple[int, ...],
        culprits: tuple[int, ...],
        is_refunded: bool = False,
        hint: str | None = None,
    ) -> None:
        named = "".join(
            f"; {word}: teachers {', '.join(map(str, who))}"
            for word, who in (("missing", missing), ("at fault", culprits))
            if who
        )
        super().__init__(
            f"the batch was aborted: {reason}{named}. Its queries "
            + ("were given back" if is_refunded else "stay charged"),
            hint=hint,
        )
        self.missing = missing
        self.culprits = culprits


class EpochKeyFault(PeerFault):
    """An epoch key that may not be used: malformed, of low order, on the twist or not possessed."""


class SealUnopened(PeerFault):
    """Seals that do not open; `dealers` made them, but who is at fault is for a dispute to say."""

    def __init__(
        self, message: str, *, dealers: tuple[int, ...], purpose: int, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.dealers = dealers
        self.purpose = purpose


class MaskParametersError(InputError):
    """A ring, or numbers of teachers, that do not hide a vote or cannot hold the counts."""


class RowsError(InputError):
    """Rows of a dealt secret, or the indices of their teachers, that cannot be combined."""


class PaddingFault(PeerFault):
    """Where nothing was to be written, the opened sum is not zero."""


class OpeningFault(PeerFault):
    """A list that does not open; who is at fault is for a dispute to say."""


class EpochOver(Refusal):
    """Keys of an epoch that has ended, or that is not near."""


class RosterUnknown(Refusal):
    """A roster that this teacher was not sent, or has forgotten with its epoch."""


class SumDoesNotFit(Refusal):
    """What should open a list does not fit its check blocks."""


class TooFewWithdrawals(Refusal):
    """Fewer than t teachers have said that they will never open the batch."""


class RowsNotGiven(Refusal):
    """Rows that are shown only once they were given, or once nobody can open the batch."""


class AnswerGiven(Refusal):
    """The teacher has answered this attempt, so it cannot say that it never will."""


class Withdrawn(Refusal):
    """The teacher said that it will never answer this attempt."""


class AttemptOver(Refusal):
    """The teacher has gone on to a later attempt of this batch."""


class BallotReused(Refusal):
    """A ballot of an earlier attempt, which would be in two lists."""


class BatchRefunded(Refusal):
    """The charge of this batch was given back, so nothing more is given in it."""
