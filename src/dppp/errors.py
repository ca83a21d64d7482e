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


class DatasetUnavailable(DpppError):
    """A dataset's file is in no folder and cannot be downloaded; the text says where to put it."""


class Refusal(DpppError):
    """A party declined to act because a rule of the protocol forbids it."""


class PeerFault(DpppError):
    """Another party broke the protocol."""

    def __init__(self, message: str, *, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.culprits = culprits


class EncodingError(InputError):
    """Bytes that are not the canonical encoding of what they should be."""


class KeyMaterialError(InputError):
    """A key, a share of one or its file cannot be used: weak, damaged, foreign or locked."""


class FederationError(InputError):
    """A join request, a federation file or a certificate in one that cannot be used."""


class FederationChanged(Refusal):
    """A federation file that is not the one whose hash was compared."""


class TlsCertificateEnded(DpppError):
    """A certificate that is not valid at this time: renew it, or set the clock."""


class GroupElementError(InputError):
    """An integer that should be an element of the key's group is not."""

    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class PackingError(InputError):
    """A slot of a packed plaintext is outside its bound; `slot` is its position."""

    def __init__(self, message: str, *, slot: int) -> None:
        super().__init__(message)
        self.slot = slot


class ProofError(PeerFault):
    """A proof does not hold."""


class DecryptionError(PeerFault):
    """Decryption shares do not open the ciphertexts."""


class WeakModulusWarning(UserWarning):
    """The modulus is too short for anything but reproducing the paper."""


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


class LedgerError(DpppError):
    """The ledger cannot be used as it is; nothing was charged and nothing may be answered."""


class LedgerDamaged(LedgerError):
    """What is stored is not what was written."""


class LedgerRolledBack(LedgerError):
    """The store lacks entries that were there before: it went back in time, or is another one."""


class LedgerUnavailable(LedgerError):
    """The store could not be read or written: locked, full, closed or out of reach."""


class NotALedger(InputError):
    """A file that is none of our ledgers."""


class BatchStoreUnavailable(DpppError):
    """The aggregator's store could not be read or written; nothing was sent."""


class JobUnknown(DpppError):
    """There is no such job of this querier."""


class JobChanged(Refusal):
    """The key of a job comes back with other rows."""


class NotReleased(DpppError):
    """What was asked for is not there: the batch is under way, or was aborted."""


class AllowanceExceeded(Refusal):
    """A querier, or the task, has fewer queries left than this asks for."""


class TranscriptsNotAllowed(Refusal):
    """A querier asks for a full transcript, which its token has no right to."""


class TooManyRows(InputError):
    """More rows at once than the gateway takes."""


class RunnerStopped(DpppError):
    """The process cannot do its work any more and has to be restarted."""


class LocalFailure(DpppError):
    """A process of a local federation did not do its part."""


class GatewayError(DpppError):
    """The gateway failed, or could not be reached, or the batch was aborted."""


class GatewayRefusal(GatewayError):
    """The gateway refused a request, and will refuse it again."""


class GatewayAbort(GatewayError):
    """A batch that was asked of the gateway ended without a release."""


class Busy(DpppError):
    """Too much is under way; the same can be asked again later."""


class Abandoned(DpppError):
    """Whoever asked has gone, so nothing was done."""


class WireError(InputError):
    """Bytes that are not the message they should be."""


class TaskError(InputError):
    """A task that contradicts itself, is not certified, or is not the one that was agreed on."""


class WrongTask(Refusal):
    """A message for another task than the one that was accepted."""


class RequestExpired(Refusal):
    """A batch whose deadline has passed; nothing was charged."""


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


class TranscriptError(DpppError):
    """A transcript that does not hold; `check` is the first check that failed."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"the check of the {check} failed: {message}")
        self.check = check


class BatchAborted(DpppError):
    """A batch ended without a release; who was missing or at fault is named."""

    def __init__(self, reason: str, *, missing: tuple[int, ...], culprits: tuple[int, ...]) -> None:
        named = "".join(
            f"; {word}: teachers {', '.join(map(str, who))}"
            for word, who in (("missing", missing), ("at fault", culprits))
            if who
        )
        super().__init__(f"the batch was aborted: {reason}{named}. Its queries stay charged")
        self.missing = missing
        self.culprits = culprits


class MaskParametersError(InputError):
    """A ring, or numbers of teachers, that do not hide a vote or cannot hold the counts."""


class RowsError(InputError):
    """Rows of a dealt secret, or the indices of their teachers, that cannot be combined."""


class PaddingFault(PeerFault):
    """Where nothing was to be written, the opened sum is not zero."""
