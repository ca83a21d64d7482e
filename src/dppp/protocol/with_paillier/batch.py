"""A batch under paillier, at the aggregator.

Decryption shares are tried without proofs first; if they do not open, every teacher that gave some
is asked to prove them, and only proven ones are used from then on.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from dppp.errors import (
    BallotFault,
    DecryptionError,
    PackingError,
    ProofError,
)
from dppp.paillier.decryption.combination import Decrypted, find_wrong_shares, open_tallies
from dppp.paillier.decryption.opening import verify_openings
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import Ciphertext, write_ciphertexts
from dppp.paillier.keys import PublicKey
from dppp.paillier.proofs.shares import ShareProof, verify_shares
from dppp.protocol.batch import Batch, BatchMaker, Patience, Step
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import (
    AnswerCounted,
    BallotCounted,
    BatchStatus,
    EndorsementCounted,
    ListClosed,
    Stage,
)
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchRequest,
    CertifiedList,
    Endorsement,
    Endorser,
    ListStatement,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    list_hash,
    share_context,
    share_lot,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import make_releases
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.wire import Message, decode, encode
from dppp.protocol.with_paillier.ballots import (
    ReadBallot,
    check_proofs,
    read_ballot,
    tally_ballots,
)


class PaillierBatch(Batch):
    """Encrypted ballots, whole lists to every teacher, decryption shares."""

    kinds: ClassVar[Mapping[str, type[Message]]] = {
        each.KIND: each for each in (Ballot, Endorsement, SignedShares, SignedShareProof)
    }

    def __init__(
        self,
        task: Task,
        public: PublicKey,
        request: BatchRequest,
        patience: Patience,
        signer: Signer,
    ) -> None:
        super().__init__(task, request, patience, signer)
        self.is_proving = False
        self._public = public
        self._ballots: dict[int, ReadBallot] = {}
        self._size = task.ciphertexts_for(len(self.query_ids))
        self._ballot_list: BallotList | None = None
        self._tallies: tuple[Ciphertext, ...] = ()
        self._statement: ListStatement | None = None
        self._endorsers: dict[int, Endorser] = {}
        self._certified: tuple[Endorser, ...] = ()
        self._shares: dict[int, DecryptionShares] = {}
        self._proven: set[int] = set()
        self._messages: dict[Step, bytes] = {}

    @property
    def status(self) -> BatchStatus:
        """How far it is."""
        return BatchStatus(
            stage=self.stage,
            voters=self.voters,
            endorsers=self.endorsers,
            answerers=self.sharers,
        )

    def take(self, message: Message, teacher: int, data: bytes, *, now: int) -> None:
        """Take a message that the channel says is from this teacher."""
        match message.KIND:
            case Ballot.KIND:
                self.take_ballot(teacher, data, now=now)
            case Endorsement.KIND:
                self.take_endorsement(teacher, data, now=now)
            case SignedShares.KIND:
                self.take_shares(teacher, data)
            case _:
                self.take_proof(teacher, data)

    def advance(self, store: StoredBatches, *, now: int) -> None:
        """Close votes and openings whose time has come."""
        self._follow_clock_back(now)
        if self.stage is Stage.BALLOTS and self.can_close(now):
            closed = self.close_voting(now)
            if closed is not None:
                self.endorse_with(store.put_list(self.batch_id, closed), now=now)
        self.expire(now)

    def restore(self, store: StoredBatches, *, now: int) -> None:
        """Go on with the list that was closed, if there is one."""
        ballot_list = store.ballot_list(self.batch_id)
        if ballot_list is not None:
            self.endorse_with(ballot_list, now=now)

    def can_close(self, now: int) -> bool:
        """Whether there is nothing more to wait for."""
        return self._has_waited_for_ballots(len(self._ballots), now)

    def blame(self, teacher: int, reason: str) -> None:
        """Leave a teacher out of this batch from now on, and remember why."""
        super().blame(teacher, reason)
        self._proven.discard(teacher)
        self._shares.pop(teacher, None)
        if self.stage is Stage.BALLOTS:
            self._ballots.pop(teacher, None)

    def message(self, teacher: int, step: Step) -> bytes:
        """What a teacher is sent who is asked for this; signed by the aggregator."""
        if step is Step.BALLOT:
            return self._ballot_request(teacher)
        if step not in self._messages:
            makers: dict[Step, Callable[[], bytes]] = {
                Step.ENDORSEMENT: lambda: encode(self._listed),
                Step.ANSWER: lambda: encode(sign(self._certified_list(), self._signer)),
                Step.PROOF: lambda: encode(sign(self._proof_request(), self._signer)),
            }
            self._messages[step] = makers[step]()
        return self._messages[step]

    @property
    def voters(self) -> tuple[int, ...]:
        """Teachers whose ballots are in the list, or have come in so far."""
        return tuple(sorted(self._ballots))

    @property
    def endorsers(self) -> tuple[int, ...]:
        """Teachers whose endorsements have come in."""
        return tuple(sorted(self._endorsers))

    @property
    def sharers(self) -> tuple[int, ...]:
        """Teachers whose decryption shares have come in."""
        return tuple(sorted(self._shares))

    def wanted(self) -> frozenset[tuple[int, Step]]:
        """What is still to be had, and from whom."""
        if self.stage is Stage.BALLOTS:
            everybody = range(1, self._task.trust.teachers + 1)
            asked = {(each, Step.BALLOT) for each in set(everybody) - set(self._ballots)}
        elif self.stage is Stage.ENDORSEMENTS:
            asked = self._endorsements_wanted()
        elif self.stage is Stage.ANSWERS:
            asked = {(each, Step.ANSWER) for each in set(self._endorsers) - set(self._shares)}
            if self._must_ask_all:
                asked |= self._endorsements_wanted()
            if self.is_proving:
                asked |= {(each, Step.PROOF) for each in set(self._shares) - self._proven}
        else:
            asked = set()
        return frozenset(each for each in asked if each[0] not in self.faults)

    def take_ballot(self, teacher: int, data: bytes, *, now: int) -> None:
        """Keep a ballot that came from this teacher; a late or second one changes nothing."""
        if self.stage is not Stage.BALLOTS or teacher in self._ballots or teacher in self.faults:
            return
        self._require_signed(decode(data, Ballot), teacher)
        self._ballots[teacher] = read_ballot(
            self._task, self._public, data, batch=self.batch_id, size=self._size
        )
        self._news.append(
            BallotCounted(
                batch=self.batch_id,
                teacher=teacher,
                count=len(self._ballots),
                size_bytes=len(data),
            )
        )
        self._note_quorum(len(self._ballots), now)

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
            unsigned = BallotList(
                task_id=self._task.task_id,
                batch_id=self.batch_id,
                ballots=tuple(self._ballots[teacher].data for teacher in self.voters),
            )
            return sign(unsigned, self._signer)
        self._quorum_since = None
        everybody_answered = len(self._ballots) + len(self.faults) >= self._task.trust.teachers
        if now >= self.request.deadline or everybody_answered:
            self.abort(
                f"{len(self._ballots)} good ballots, and {self._task.trust.ballots_needed} are "
                "needed for enough noise",
                answered=set(self._ballots),
            )
        return None

    def endorse_with(self, ballot_list: BallotList, *, now: int) -> None:
        """Go on with this list: the one just closed, or the one stored before a restart."""
        ballots = [
            read_ballot(self._task, self._public, data, batch=self.batch_id, size=self._size)
            for data in ballot_list.ballots
        ]
        tallied = tally_ballots(self._public, ballots)
        self._ballot_list = ballot_list
        self._ballots = {ballot.teacher: ballot for ballot in ballots}
        self._tallies = tallied.tallies
        self._statement = statement_of(
            self._task,
            batch=self.batch_id,
            of_list=list_hash(ballot_list),
            tallies=write_ciphertexts(self._public, tallied.tallies),
            participants=tallied.participants,
        )
        self._enter(Stage.ENDORSEMENTS, now)
        self._news.append(ListClosed(batch=self.batch_id, count=len(ballots)))

    def take_endorsement(self, teacher: int, data: bytes, *, now: int) -> None:
        """Keep an endorsement of the list; t of them certify it."""
        is_time = self.stage in (Stage.ENDORSEMENTS, Stage.ANSWERS)
        if not is_time or teacher in self._endorsers or teacher in self.faults:
            return
        message = decode(data, Endorsement)
        self._require_signed(message, teacher)
        if message.statement != self._said or teacher not in self._ballots:
            self._refuse_other(teacher)
        self._endorsers[teacher] = Endorser.of(message)
        self._news.append(
            EndorsementCounted(batch=self.batch_id, teacher=teacher, count=len(self._endorsers))
        )
        if self.stage is Stage.ENDORSEMENTS and len(self._endorsers) >= self._task.trust.threshold:
            self._certified = tuple(self._endorsers[each] for each in self.endorsers)
            self._enter(Stage.ANSWERS, now)

    def take_shares(self, teacher: int, data: bytes) -> None:
        """Keep decryption shares of the list; try to open once there are enough."""
        if self.stage is not Stage.ANSWERS or teacher in self._shares or teacher in self.faults:
            return
        message = decode(data, SignedShares)
        self._require_about_list(message, teacher)
        shares = DecryptionShares.from_bytes(self._public, message.shares)
        expected = (self._public.key_id, teacher, len(self._tallies))
        if (shares.key_id, shares.index, len(shares.elements)) != expected:
            raise BallotFault(
                f"teacher {teacher} sent decryption shares that do not fit",
                culprits=(teacher,),
            )
        self._shares[teacher] = shares
        self._news.append(
            AnswerCounted(batch=self.batch_id, teacher=teacher, count=len(self._shares))
        )
        if not self.is_proving and len(self._shares) >= self._public.threshold:
            self._try_to_open(self._shares)

    def take_proof(self, teacher: int, data: bytes) -> None:
        """Check the proof of shares that were given; go on with proven ones only."""
        is_wanted = self.is_proving and teacher in self._shares and teacher not in self._proven
        if self.stage is not Stage.ANSWERS or not is_wanted:
            return
        message = decode(data, SignedShareProof)
        self._require_about_list(message, teacher)
        verify_shares(
            self._public,
            self._tallies,
            self._shares[teacher],
            ShareProof.from_bytes(self._public, message.proof),
            context=share_context(self._task.task_id, self.batch_id, message.list_hash),
        )
        self._proven.add(teacher)
        if len(self._proven) >= self._public.threshold:
            self._try_to_open({each: self._shares[each] for each in self._proven})

    def expire(self, now: int) -> None:
        """Abort a list that has waited long enough for endorsements or shares."""
        is_waiting = self.stage in (Stage.ENDORSEMENTS, Stage.ANSWERS)
        if not is_waiting or now < self._stage_since + self._patience.opening:
            return
        if self.stage is Stage.ENDORSEMENTS:
            good, what = set(self._endorsers) - set(self.faults), "endorsements of the list"
        else:
            good = self._proven if self.is_proving else set(self._shares)
            what = "good decryption shares"
        reason = f"{len(good)} {what}, and {self._task.trust.threshold} are needed"
        if unproven := sorted(set(self._shares) - self._proven) if self.is_proving else ():
            named = ", ".join(map(str, unproven))
            reason += f"; shares that do not open, and no proof of them, came from teachers {named}"
        self.abort(reason, answered=good)

    @property
    def _listed(self) -> BallotList:
        assert self._ballot_list is not None, "there is no list while teachers vote"
        return self._ballot_list

    @property
    def _said(self) -> ListStatement:
        assert self._statement is not None, "there is no list while teachers vote"
        return self._statement

    @property
    def _must_ask_all(self) -> bool:
        has_faulty_voter = bool(self.faults.keys() & self._ballots.keys())
        return self._is_asking_all or self.is_proving or has_faulty_voter

    def _endorsements_wanted(self) -> set[tuple[int, Step]]:
        """From t voters drawn by hash, or from all."""
        lots = sorted(self.voters, key=lambda each: share_lot(self._said.list_hash, each))
        asked = lots if self._must_ask_all else lots[: self._task.trust.threshold]
        return {(each, Step.ENDORSEMENT) for each in set(asked) - set(self._endorsers)}

    def _certified_list(self) -> CertifiedList:
        return CertifiedList(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            list_hash=self._said.list_hash,
            tallies=write_ciphertexts(self._public, self._tallies),
            endorsers=self._certified,
        )

    def _proof_request(self) -> ProofRequest:
        return ProofRequest(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            list_hash=self._said.list_hash,
            tallies=write_ciphertexts(self._public, self._tallies),
        )

    def _require_about_list(self, message: SignedShares | SignedShareProof, teacher: int) -> None:
        self._require_signed(message, teacher)
        expected = (self._task.task_id, self.batch_id, self._said.list_hash)
        found = (message.task_id, message.batch_id, message.list_hash)
        if found != expected or teacher not in self._ballots:
            self._refuse_other(teacher)

    def _try_to_open(self, shares: dict[int, DecryptionShares]) -> None:
        try:
            decrypted = open_tallies(self._public, self._tallies, list(shares.values()))
        except DecryptionError:
            self.is_proving = True
            return
        if self.is_proving:
            self._name_the_unproven([shares[each] for each in decrypted.subset])
        self._release(decrypted)

    def _name_the_unproven(self, right: list[DecryptionShares]) -> None:
        """Who sent wrong shares and kept the proof back is named all the same."""
        unproven = [self._shares[each] for each in self.sharers if each not in self._proven]
        for culprit in find_wrong_shares(self._public, right, unproven):
            self.blame(culprit, "its decryption shares are wrong")

    def _release(self, decrypted: Decrypted) -> None:
        verify_openings(self._public, self._tallies, decrypted.openings)
        try:
            answers = make_releases(
                self._task,
                self.query_ids,
                self._task.packing.unpack(
                    decrypted.plaintexts,
                    len(self._task.class_names) * len(self.query_ids),
                    contributions=len(self._said.participants),
                ),
                participants=self._said.participants,
                of_list=self._said.list_hash,
            )
        except PackingError as error:
            # Some voter packed an impossible entry; the sum does not say who.
            reason = f"a ballot was not made by the rules: {error.message}"
            self.abort(reason, answered=set(self._ballots))
            return
        receipt = Receipt(
            task=encode(self._task),
            public_key=self._public.to_bytes(),
            query_ids=self.request.query_id_bytes,
            list_hash=self._said.list_hash,
            participants=self._said.participants,
            tallies=write_ciphertexts(self._public, self._tallies),
            endorsers=self._certified,
            openings=tuple(opening.to_bytes(self._public) for opening in decrypted.openings),
            answers=answers,
        )
        self.end_with(receipt)


class PaillierBatches(BatchMaker):
    """Makes batches under one public key."""

    batch_kinds = PaillierBatch.kinds

    def __init__(
        self, *, task: Task, public: PublicKey, patience: Patience, signer: Signer
    ) -> None:
        task.require_key(public)
        self._task = task
        self._public = public
        self._patience = patience
        self._signer = signer

    def make(self, request: BatchRequest) -> PaillierBatch:
        """A batch for this request."""
        return PaillierBatch(self._task, self._public, request, self._patience, self._signer)
