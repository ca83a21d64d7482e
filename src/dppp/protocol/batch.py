"""One batch at the aggregator, from its request to its outcome.

    VOTING ──all ballots in, or quorum and patience over──► OPENING ──t good shares──► RELEASED
       │                                                       │
       └──deadline, fewer than N - D good ballots──► ABORTED ◄─┘──deadline, fewer than t good shares

Decryption shares are tried without proofs first; if they do not open, every teacher that gave some
is asked to prove them, and only proven ones are used from then on.
"""

import enum
from dataclasses import dataclass
from typing import ClassVar

from dppp.errors import BallotFault, DecryptionError, PackingError, ProofError
from dppp.paillier.decryption.combination import Decrypted, open_tallies
from dppp.paillier.decryption.opening import verify_openings
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import Ciphertext, add_ballots
from dppp.paillier.keys import PublicKey
from dppp.paillier.share_proofs import ShareProof, verify_shares
from dppp.protocol.ballots import ReadBallot, check_proofs, read_ballot
from dppp.protocol.messages import (
    BallotList,
    BatchRequest,
    ListHash,
    SignedShareProof,
    SignedShares,
    batch_id,
    input_digest,
    list_hash,
    query_id,
    share_context,
    share_lot,
)
from dppp.protocol.release import release_answers
from dppp.protocol.signing import verify_signature
from dppp.protocol.task import Task
from dppp.protocol.transcript import QueryDigest, Transcript
from dppp.protocol.wire import decode, encode


class Phase(enum.StrEnum):
    """Where a batch stands."""

    VOTING = "voting"
    OPENING = "opening"
    RELEASED = "released"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Why a batch has no release, and who was missing or at fault."""

    KIND: ClassVar[str] = "abort"
    SIZE_LIMIT: ClassVar[int] = 2**20
    reason: str
    missing: tuple[int, ...]
    culprits: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds to wait for teachers.

    `after_quorum`: for the other ballots once there are enough. `first_shares`: for the decryption
    shares of the t teachers who are asked first, before all others are asked too. `opening`: for
    decryption shares at all.
    """

    after_quorum: int = 2
    first_shares: int = 5
    opening: int = 60


class Batch:
    """The state of one batch. The aggregator owns it, and stores what must survive."""

    def __init__(
        self, task: Task, public: PublicKey, request: BatchRequest, patience: Patience
    ) -> None:
        self.request = request
        self.query_ids = tuple(query_id(task.task_id, query) for query in request.queries)
        self.batch_id = batch_id(task.task_id, self.query_ids)
        self.phase = Phase.VOTING
        self.faults: dict[int, str] = {}
        self.outcome: Transcript | Abort | None = None
        self.ballot_list: BallotList | None = None
        self.is_proving = False
        self._task = task
        self._public = public
        self._patience = patience
        self._ballots: dict[int, ReadBallot] = {}
        self._size = task.ciphertexts_for(len(self.query_ids))
        self._quorum_since: int | None = None
        self._tally: tuple[Ciphertext, ...] = ()
        self._shares: dict[int, DecryptionShares] = {}
        self._proven: set[int] = set()
        self._served = ListHash(b"")
        self._opened_at = 0
        self._is_asking_all = False

    @property
    def asked(self) -> tuple[int, ...]:
        """Who is to give decryption shares: t teachers drawn by hash, or all voters."""
        if self._is_asking_all or self.is_proving or self.faults.keys() & self._ballots.keys():
            return self.voters
        drawn = sorted(self.voters, key=lambda teacher: share_lot(self._served, teacher))
        return tuple(sorted(drawn[: self._public.threshold]))

    @property
    def voters(self) -> tuple[int, ...]:
        """Teachers whose ballots are in the list, or have come in so far."""
        return tuple(sorted(self._ballots))

    @property
    def sharers(self) -> tuple[int, ...]:
        """Teachers whose decryption shares have come in."""
        return tuple(sorted(self._shares))

    @property
    def unproven(self) -> tuple[int, ...]:
        """Teachers whose decryption shares have come in without a proof."""
        return tuple(sorted(set(self._shares) - self._proven))

    def take_ballot(self, teacher: int, data: bytes, *, now: int) -> None:
        """Keep a ballot that came from this teacher; a late or second one changes nothing."""
        if self.phase is not Phase.VOTING or teacher in self._ballots or teacher in self.faults:
            return
        ballot = read_ballot(self._task, self._public, data, batch=self.batch_id, size=self._size)
        if ballot.teacher != teacher:
            raise BallotFault(
                f"teacher {teacher} sent a ballot of teacher {ballot.teacher}; leave it out",
                culprits=(teacher,),
            )
        self._ballots[teacher] = ballot
        if len(self._ballots) >= self._task.trust.ballots_needed and self._quorum_since is None:
            self._quorum_since = now

    def can_close(self, now: int) -> bool:
        """Whether there is nothing more to wait for."""
        self._set_back(now)
        answered = len(self._ballots) + len(self.faults)
        if answered >= self._task.trust.teachers or now >= self.request.deadline:
            return True
        since = self._quorum_since
        return since is not None and now >= since + self._patience.after_quorum

    def close_voting(self, now: int) -> BallotList | None:
        """The list of all good ballots; None, and an abort at the deadline, if they are too few."""
        ballots = [self._ballots[teacher] for teacher in self.voters]
        try:
            if ballots:
                check_proofs(self._task, self._public, ballots, self.batch_id)
        except ProofError as error:
            for culprit in error.culprits:
                self.blame(culprit, "its ballot's proof does not hold")
        if len(self._ballots) >= self._task.trust.ballots_needed:
            return BallotList(
                task_id=self._task.task_id,
                batch_id=self.batch_id,
                ballots=tuple(self._ballots[teacher].data for teacher in self.voters),
            )
        self._quorum_since = None
        everybody_answered = len(self._ballots) + len(self.faults) >= self._task.trust.teachers
        if now >= self.request.deadline or everybody_answered:
            self.abort(
                f"{len(self._ballots)} good ballots, and {self._task.trust.ballots_needed} are "
                "needed for enough noise",
                answered=set(self._ballots),
            )
        return None

    def open_with(self, ballot_list: BallotList, *, now: int) -> None:
        """Go on with this list: the one just closed, or the one stored before a restart."""
        ballots = [
            read_ballot(self._task, self._public, data, batch=self.batch_id, size=self._size)
            for data in ballot_list.ballots
        ]
        self.ballot_list = ballot_list
        self._served = list_hash(ballot_list)
        self._ballots = {ballot.teacher: ballot for ballot in ballots}
        self._tally = add_ballots(self._public, [ballot.ciphertexts for ballot in ballots])
        self._opened_at = now
        self.phase = Phase.OPENING

    def take_shares(self, teacher: int, data: bytes) -> None:
        """Keep decryption shares of the list; try to open once there are enough."""
        if self.phase is not Phase.OPENING or teacher in self._shares or teacher in self.faults:
            return
        message = decode(data, SignedShares)
        self._require_about_list(message, teacher)
        shares = DecryptionShares.from_bytes(self._public, message.shares)
        if shares.index != teacher or len(shares.elements) != len(self._tally):
            raise BallotFault(
                f"teacher {teacher} sent decryption shares that do not fit; leave them out",
                culprits=(teacher,),
            )
        self._shares[teacher] = shares
        if not self.is_proving and len(self._shares) >= self._public.threshold:
            self._try_to_open(self._shares)

    def take_proof(self, teacher: int, data: bytes) -> None:
        """Check the proof of shares that were given; go on with proven ones only."""
        if self.phase is not Phase.OPENING or teacher not in self._shares:
            return
        message = decode(data, SignedShareProof)
        self._require_about_list(message, teacher)
        verify_shares(
            self._public,
            self._tally,
            self._shares[teacher],
            ShareProof.from_bytes(self._public, message.proof),
            context=share_context(self._task.task_id, self.batch_id, message.list_hash),
        )
        self._proven.add(teacher)
        if len(self._proven) >= self._public.threshold:
            self._try_to_open({each: self._shares[each] for each in self._proven})

    def blame(self, teacher: int, reason: str) -> None:
        """Leave a teacher out of this batch from now on, and remember why."""
        self.faults.setdefault(teacher, reason)
        self._proven.discard(teacher)
        self._shares.pop(teacher, None)
        if self.phase is Phase.VOTING:
            self._ballots.pop(teacher, None)

    def ask_all(self, now: int) -> bool:
        """Whether it is time, for the first time, to ask every voter for decryption shares."""
        self._set_back(now)
        waited = now >= self._opened_at + self._patience.first_shares
        if self.phase is not Phase.OPENING or self._is_asking_all or not waited:
            return False
        self._is_asking_all = True
        return True

    def expire(self, now: int) -> None:
        """Abort an opening that has waited long enough."""
        self._set_back(now)
        if self.phase is Phase.OPENING and now >= self._opened_at + self._patience.opening:
            good = self._proven if self.is_proving else set(self._shares)
            self.abort(
                f"{len(good)} good decryption shares, and {self._public.threshold} are needed",
                answered=good,
            )

    def _set_back(self, now: int) -> None:
        """When the clock was put back, wait from now on, and not until it is where it was."""
        self._opened_at = min(self._opened_at, now)
        if self._quorum_since is not None:
            self._quorum_since = min(self._quorum_since, now)

    def abort(self, reason: str, *, answered: set[int]) -> None:
        """End without a release, saying who was missing and who was at fault."""
        missing = set(range(1, self._task.trust.teachers + 1)) - answered - set(self.faults)
        self.outcome = Abort(
            reason=reason, missing=tuple(sorted(missing)), culprits=tuple(sorted(self.faults))
        )
        self.phase = Phase.ABORTED

    def _require_about_list(self, message: SignedShares | SignedShareProof, teacher: int) -> None:
        expected = (self._task.task_id, self.batch_id, self._served, teacher)
        found = (message.task_id, message.batch_id, message.list_hash, message.teacher)
        if found != expected or teacher not in self._ballots:
            raise BallotFault(
                f"teacher {teacher} answered about another list or for another; leave it out",
                culprits=(teacher,),
            )
        verify_signature(self._task, message)

    def _try_to_open(self, shares: dict[int, DecryptionShares]) -> None:
        try:
            decrypted = open_tallies(self._public, self._tally, list(shares.values()))
        except DecryptionError:
            self.is_proving = True
            return
        self._release(decrypted)

    def _release(self, decrypted: Decrypted) -> None:
        assert self.ballot_list is not None
        verify_openings(self._public, self._tally, decrypted.openings)
        try:
            answers = release_answers(
                self._task,
                self.query_ids,
                decrypted.plaintexts,
                ballots=len(self.ballot_list.ballots),
                of_list=self._served,
            )
        except PackingError as error:
            # Some voter packed an impossible entry; the sum does not say who.
            self.abort(f"a ballot was not made by the rules: {error}", answered=set(self._ballots))
            return
        self.outcome = Transcript(
            task=encode(self._task),
            public_key=self._public.to_bytes(),
            queries=tuple(
                QueryDigest(nonce=query.nonce, digest=input_digest(query.input))
                for query in self.request.queries
            ),
            ballot_list=encode(self.ballot_list),
            openings=tuple(opening.to_bytes(self._public) for opening in decrypted.openings),
            answers=answers,
        )
        self.phase = Phase.RELEASED
