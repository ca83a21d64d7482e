"""A batch under masks, at the aggregator: keys, ballots, one list, its sum, its seeds.

    (keys) ─► BALLOTS ─► ENDORSEMENTS ─rows_needed sums, S fits─► ANSWERS ─all seeds─► RELEASED
                 ▲             │ too few, or S does not fit          │ a seed is wrong: show rows
                 │             ▼                                     ▼
                 └─redo── DISPUTE (blaming.py) ─────────────────► ABORTED

Before anybody answered, a list that does not open is withdrawn by t teachers and redone without
those at fault and those who were silent, at no new charge; or its charge is given back. They count
as dropouts, so a redo needs N - D others. Whoever is proved to have broken a rule is blamed, and
whoever was silent is named as missing.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dppp.errors import (
    DpppError,
    InputError,
    OpeningFault,
    PaddingFault,
    PeerFault,
    RowsError,
    message_of,
)
from dppp.masks.ballots import Header, seal_at
from dppp.masks.dealing import secret_row_bytes, seed_row_bytes
from dppp.masks.opening import (
    add_blocks,
    add_votes,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
    secret_to_bytes,
)
from dppp.masks.packing import pack_bits
from dppp.masks.ring import ShortPolynomial
from dppp.masks.sharing import elements_from_bytes
from dppp.protocol.batch import Batch, BatchMaker, Patience, Step, Wanted
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import (
    AnswerCounted,
    BallotCounted,
    BatchStatus,
    EndorsementCounted,
    ListClosed,
    Redone,
    Send,
    Stage,
)
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import (
    BallotList,
    BatchRequest,
    Endorsement,
    Endorser,
    ListStatement,
)
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import make_releases
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.wire import Message, decode, encode
from dppp.protocol.with_masks.blaming import Blaming
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    MOST_ATTEMPTS,
    CastRequest,
    CertifiedSum,
    Complaint,
    DeliveredList,
    MaskedBallot,
    Objection,
    PublishedKey,
    RefundNotice,
    Roster,
    SeedRows,
    ShownRoot,
    ShownRows,
    Withdrawal,
)
from dppp.protocol.with_masks.rosters import Rosters
from dppp.protocol.with_masks.verification import (
    MaskedRun,
    list_hash_of,
    read_masked_ballot,
    require_masked_ballot,
    write_sums,
)


class MaskBatch(Batch):
    """Masked ballots, headers to every teacher, rows and seeds."""

    kinds: ClassVar[Mapping[str, type[Message]]] = {
        each.KIND: each
        for each in (
            MaskedBallot,
            Endorsement,
            SeedRows,
            Objection,
            Complaint,
            Withdrawal,
            ShownRoot,
            ShownRows,
        )
    }

    def __init__(
        self,
        task: Task,
        request: BatchRequest,
        patience: Patience,
        signer: Signer,
        rosters: Rosters,
    ) -> None:
        super().__init__(task, request, patience, signer)
        self.attempt = 1
        self._rosters = rosters
        self._parameters = task.parameters
        self._counts = len(self.query_ids) * len(task.class_names)
        self._epoch: int | None = None
        self._keys_since: int | None = None
        self._missing: set[int] = set()
        self._begin_attempt()

    def _begin_attempt(self) -> None:
        self._cast: CastRequest | None = None
        self._run: MaskedRun | None = None
        self._members: tuple[int, ...] = ()
        self._ballots: dict[int, MaskedBallot] = {}
        self._data: dict[int, bytes] = {}
        self._statement: ListStatement | None = None
        self._endorsements: dict[int, Endorsement] = {}
        self._secret: ShortPolynomial | None = None
        self._certified: tuple[int, ...] = ()
        self._answers: dict[int, list[bytes]] = {}
        self._blaming: Blaming | None = None
        self._needs_signatures: set[int] = set()
        self._mute: set[int] = set()
        self._is_restored = False

    @property
    def status(self) -> BatchStatus:
        """How far it is."""
        return BatchStatus(
            stage=self.stage,
            voters=tuple(sorted(self._ballots)),
            endorsers=tuple(sorted(self._endorsements)),
            answerers=tuple(sorted(self._answers)),
        )

    @property
    def participants(self) -> tuple[int, ...]:
        """Teachers whose ballots are in the list."""
        return self._said.participants

    def wanted(self) -> Wanted:
        """What is still to be had, and from whom."""
        asked: set[tuple[int, Step]] = set()
        if self.stage is Stage.BALLOTS and self._cast is None and self._epoch is not None:
            missing = set(self._everybody) - self._rosters.known(self._epoch)
            asked = {(each, Step.KEY) for each in missing}
        elif self.stage is Stage.BALLOTS and self._cast is not None:
            asked = {(each, Step.BALLOT) for each in set(self._members) - set(self._ballots)}
        elif self.stage is Stage.ENDORSEMENTS:
            asked = {(each, Step.ENDORSEMENT) for each in self._asked_to_endorse()}
        elif self.stage is Stage.ANSWERS:
            asked = {(each, Step.ANSWER) for each in self._asked_to_answer()}
            if self._is_asking_all:
                asked |= {(each, Step.ENDORSEMENT) for each in self._asked_to_endorse()}
        asked = {each for each in asked if each[0] not in self.faults}
        if self._blaming is not None and not self.stage.is_last:
            asked |= self._blaming.wanted()
        return frozenset(asked)

    def message(self, teacher: int, step: Step) -> bytes:
        """What a teacher is sent who is asked for this; signed by the aggregator."""
        match step:
            case Step.KEY:
                assert self._epoch is not None, "keys are wanted of an epoch"
                return self._rosters.request(self._epoch)
            case Step.BALLOT:
                return encode(self._begun)
            case Step.ENDORSEMENT:
                return self._delivered_to(teacher)
            case Step.ANSWER:
                return self._certified_for(teacher)
            case _:
                assert self._blaming is not None, "only a dispute asks for this"
                return self._blaming.message(teacher, step)

    def messages(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """The roster comes before the first request that needs it."""
        if step is Step.COMPLAINT:
            return self._blame().messages(teacher, step)
        asked = self.message(teacher, step)
        if step is Step.BALLOT and self._rosters.must_send(self._of_run.roster, teacher):
            return (encode(self._of_run.roster), asked)
        return (asked,)

    def reminders(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """Before what is wanted, what a teacher forgets when it is restarted: roster and list."""
        if step is Step.KEY:
            return (self.message(teacher, step),)
        before = [encode(self._of_run.roster)]
        if step not in (Step.BALLOT, Step.ENDORSEMENT) and self._statement is not None:
            before.append(self._delivered_to(teacher))
        if step is Step.ANSWER:
            self._needs_signatures.add(teacher)
        return (*before, *self.messages(teacher, step))

    def take(self, kind: str, teacher: int, data: bytes, *, now: int) -> None:
        """Take a message that the channel says is from this teacher."""
        if self.stage.is_last:
            return
        match kind:
            case MaskedBallot.KIND:
                self._take_ballot(teacher, data, now=now)
            case Endorsement.KIND:
                self._take_endorsement(teacher, data)
            case SeedRows.KIND:
                self._take_answer(teacher, data)
            case _:
                self._take_in_dispute(kind, teacher, data)

    def advance(self, store: StoredBatches, *, now: int) -> None:
        """Make the transitions whose time has come."""
        self._follow_clock_back(now)
        self._judge(now)
        if self.stage is Stage.BALLOTS and self._cast is None:
            self._advance_keys(store, now)
        if self.stage is Stage.BALLOTS and self._cast is not None:
            self._advance_ballots(store, now)
        if self.stage is Stage.ENDORSEMENTS:
            self._advance_endorsements(now)
        if self.stage is Stage.ANSWERS:
            self._advance_answers(now)
        if self.stage is Stage.DISPUTE:
            self._advance_dispute(store, now)

    def restore(self, store: StoredBatches, *, now: int) -> None:
        """Go on with the last attempt that was begun, and with its list if it was closed."""
        while store.attempt(self.batch_id, self.attempt + 1) is not None:
            self.attempt += 1
        stored = store.attempt(self.batch_id, self.attempt)
        if stored is None:
            self._advance_keys(store, now)
            return
        cast = decode(stored, CastRequest)
        roster = store.roster(cast.roster_hash)
        if roster is None:
            raise InputError("the roster of this batch is not in the store; somebody removed it")
        self._epoch = cast.epoch
        self._rosters.learn(decode(roster, Roster))
        self._go_with(cast, decode(roster, Roster), now)
        ballot_list = store.ballot_list(self.batch_id, attempt=self.attempt)
        if ballot_list is not None:
            self._endorse_with(ballot_list, now)
            self._is_restored = True

    def farewell(self) -> tuple[Send, ...]:
        """Whose ballot t withdrawals keep from ever being opened: its charge is given back.

        That is everybody where the batch ends withdrawn, and whoever was left behind in the attempt
        before the last.
        """
        sends: tuple[Send, ...] = ()
        if self._cast is not None and self._cast.withdrawals:
            left_behind = set(self._everybody) - set(self._ballots)
            sends += self._refunds(self.attempt - 1, self._cast.withdrawals, left_behind)
        if self.stage is Stage.ABORTED and self._blaming is not None and self._blaming.is_withdrawn:
            sends += self._refunds(self.attempt, self._blaming.withdrawals, set(self._members))
        return sends

    def _refunds(
        self, attempt: int, withdrawals: tuple[bytes, ...], teachers: set[int]
    ) -> tuple[Send, ...]:
        notice = RefundNotice(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            attempt=attempt,
            withdrawals=withdrawals,
        )
        data = encode(sign(notice, self._signer))
        return tuple(Send(teacher=each, data=data) for each in sorted(teachers))

    @property
    def _everybody(self) -> range:
        return range(1, self._task.trust.teachers + 1)

    @property
    def _begun(self) -> CastRequest:
        assert self._cast is not None, "there is no attempt before there are keys"
        return self._cast

    @property
    def _of_run(self) -> MaskedRun:
        assert self._run is not None, "there is no attempt before there are keys"
        return self._run

    @property
    def _said(self) -> ListStatement:
        assert self._statement is not None, "there is no list while teachers vote"
        return self._statement

    # Keys: one roster per attempt, of all whose keys of the epoch are there.

    def _advance_keys(self, store: StoredBatches, now: int) -> None:
        if self._epoch is None:
            self._epoch = self._task.epoch_at(now)
            self._rosters.expect(self._epoch)
        known = self._rosters.known(self._epoch) - set(self.faults)
        needed = self._task.trust.ballots_needed
        self._keys_since = min(now, self._keys_since) if self._keys_since is not None else now
        have_all = len(known) + len(self.faults) >= self._task.trust.teachers
        has_waited = now >= self._keys_since + self._patience.after_quorum
        if len(known) >= needed and (have_all or has_waited):
            self._begin(store, self._rosters.roster(self._epoch, known), (), now)
        elif now >= self.request.deadline:
            self.abort(
                f"{len(known)} teachers published a key, and {needed} are needed",
                answered=set(known),
            )

    def _begin(
        self, store: StoredBatches, roster: Roster, withdrawals: tuple[bytes, ...], now: int
    ) -> None:
        unsigned = CastRequest(
            task_id=self._task.task_id,
            request=encode(self.request),
            attempt=self.attempt,
            epoch=roster.epoch,
            roster_hash=roster.hash,
            withdrawals=withdrawals,
        )
        store.put_roster(roster.hash, encode(roster))
        stored = store.put_attempt(
            self.batch_id, self.attempt, encode(sign(unsigned, self._signer))
        )
        cast = decode(stored, CastRequest)
        if cast.roster_hash != roster.hash:  # another aggregator was first
            found = store.roster(cast.roster_hash)
            assert found is not None, "a roster is stored before an attempt with it"
            roster = decode(found, Roster)
        self._go_with(cast, roster, now)

    def _go_with(self, cast: CastRequest, roster: Roster, now: int) -> None:
        self._cast = cast
        self._run = MaskedRun(
            task=self._task,
            roster=roster,
            batch_id=self.batch_id,
            attempt=self.attempt,
            counts=self._counts,
        )
        self._members = self._run.members
        self._quorum_since = None
        self._enter(Stage.BALLOTS, now)

    # Ballots: checked as they come, in the list if they are there in time.

    def _take_ballot(self, teacher: int, data: bytes, *, now: int) -> None:
        is_wanted = self.stage is Stage.BALLOTS and self._cast is not None
        if not is_wanted or teacher in self._ballots or teacher in self.faults:
            return
        ballot = decode(data, MaskedBallot)
        if ballot.attempt != self.attempt:
            return  # of an attempt that is over
        self._require_signed(ballot, teacher)
        if teacher not in self._members:
            return  # it was not asked in this attempt
        require_masked_ballot(self._of_run, ballot, members=len(self._members))
        self._ballots[teacher], self._data[teacher] = ballot, data
        self._news.append(
            BallotCounted(batch=self.batch_id, teacher=teacher, count=len(self._ballots))
        )
        self._note_quorum(len(self._ballots), now)

    def _advance_ballots(self, store: StoredBatches, now: int) -> None:
        left_out = set(self._everybody) - set(self._members)
        not_coming = len(left_out - set(self.faults))
        if not self._has_waited_for_ballots(len(self._ballots) + not_coming, now):
            return
        if len(self._ballots) >= self._task.trust.ballots_needed:
            unsigned = BallotList(
                task_id=self._task.task_id,
                batch_id=self.batch_id,
                ballots=tuple(self._data[each] for each in sorted(self._ballots)),
            )
            closed = sign(unsigned, self._signer)
            stored = store.put_list(self.batch_id, closed, attempt=self.attempt)
            self._endorse_with(stored, now)
        elif self._has_no_more_ballots(now):
            self._give_up_ballots(now)

    def _has_no_more_ballots(self, now: int) -> bool:
        """All are in, or the time is over; after a restart teachers still send theirs again."""
        has_all = set(self._members) <= set(self._ballots) | set(self.faults)
        has_waited = now >= self._stage_since + self._patience.first_shares
        return has_all or (now >= self.request.deadline and has_waited)

    def _give_up_ballots(self, now: int) -> None:
        """Too few ballots: those who cast one withdraw it, and get its charge back."""
        needed = self._task.trust.ballots_needed
        reason = f"{len(self._ballots)} good ballots, and {needed} are needed for enough noise"
        if len(self._ballots) >= self._task.trust.threshold:
            self._dispute(reason, now)
        else:
            self.abort(reason, answered=set(self._ballots))

    def _endorse_with(self, ballot_list: BallotList, now: int) -> None:
        """Go on with this list: the one just closed, or the one stored before a restart."""
        read = self._read_list(ballot_list.ballots)
        self._ballots = {ballot.teacher: ballot for ballot in read}
        self._data = dict(zip(self._ballots, ballot_list.ballots, strict=True))
        self._statement = statement_of(
            self._task,
            batch=self.batch_id,
            of_list=list_hash_of(self._of_run, read),
            tallies=b"",
            participants=tuple(self._ballots),
            key_id=self._of_run.roster.hash,
        )
        self._check_sum = add_blocks(
            self._parameters, (each.check_block for each in read), count=1
        )[0]
        self._enter(Stage.ENDORSEMENTS, now)
        self._news.append(ListClosed(batch=self.batch_id, count=len(read)))

    def _read_list(self, ballots: tuple[bytes, ...]) -> list[MaskedBallot]:
        """The ballots of a list: checked now, unless they are the ones checked as they came."""
        here = sorted(self._ballots)
        if ballots == tuple(self._data[each] for each in here):
            return [self._ballots[each] for each in here]
        members = len(self._members)
        return [read_masked_ballot(self._of_run, each, members=members) for each in ballots]

    def _delivered_to(self, teacher: int) -> bytes:
        """The list as one teacher gets it: all headers, and the rows sealed to it."""
        place, members = self._members.index(teacher), len(self._members)
        listed = self._ballots.values()
        unsigned = DeliveredList(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            attempt=self.attempt,
            roster_hash=self._of_run.roster.hash,
            recipient=teacher,
            participants=self.participants,
            headers=b"".join(each.header for each in listed),
            secret_seals=b"".join(seal_at(each.secret_seals, place, members) for each in listed),
            seed_seals=b"".join(seal_at(each.seed_seals, place, members) for each in listed),
        )
        return encode(sign(unsigned, self._signer))

    # Endorsements: as many as it takes to recover the sum of the secrets.

    def _asked_to_endorse(self) -> set[int]:
        return set(self.participants) - set(self._endorsements) - self._objectors

    @property
    def _objectors(self) -> set[int]:
        """Those who objected and have not endorsed after all."""
        objectors = set() if self._blaming is None else self._blaming.objectors
        return objectors - set(self._endorsements)

    def _take_endorsement(self, teacher: int, data: bytes) -> None:
        is_time = self.stage in (Stage.ENDORSEMENTS, Stage.ANSWERS)
        if not is_time or teacher in self._endorsements or teacher in self.faults:
            return
        message = decode(data, Endorsement)
        self._require_signed(message, teacher)
        if message.statement.list_hash != self._said.list_hash:
            return  # of an attempt that is over, and late
        if message.statement != self._said or teacher not in self._ballots:
            self._refuse_other(teacher)
        expected = secret_row_bytes(self._parameters) + MAC_BYTES * len(self._members)
        if len(message.content) != expected:
            raise PeerFault(
                f"teacher {teacher}'s endorsement has another length than the task's",
                culprits=(teacher,),
            )
        row = self._row_of(message)
        elements_from_bytes(row, len(row) // 2)
        self._endorsements[teacher] = message
        self._news.append(
            EndorsementCounted(batch=self.batch_id, teacher=teacher, count=len(self._endorsements))
        )

    def _row_of(self, message: Endorsement) -> bytes:
        return message.content[: secret_row_bytes(self._parameters)]

    def _macs_for(self, said: Sequence[Endorsement], teacher: int) -> bytes:
        """What these endorsers made for one teacher."""
        start = secret_row_bytes(self._parameters) + MAC_BYTES * self._members.index(teacher)
        return b"".join(each.content[start : start + MAC_BYTES] for each in said)

    def _advance_endorsements(self, now: int) -> None:
        needed = self._parameters.rows_needed
        doubted = set() if self._blaming is None else self._blaming.doubted
        sums = {
            each: self._row_of(said)
            for each, said in self._endorsements.items()
            if each not in doubted | set(self.faults)
        }
        possible = set(self.participants) - set(self.faults) - self._objectors
        if len(sums) >= needed:
            self._certify(sums, now)
        elif doubted:
            return  # without its word there are too few: first the objection is settled
        elif len(possible) < needed:
            self._dispute(f"{len(possible)} teachers can endorse, and {needed} are needed", now)
        elif now >= self._stage_since + self._patience.opening:
            reason = f"{len(self._endorsements)} endorsements of the list, and {needed} are needed"
            self._dispute(reason, now, silent=possible - set(self._endorsements))

    def _certify(self, sums: Mapping[int, bytes], now: int) -> None:
        """There are enough sums of rows: the sum of the secrets, if it fits.

        They are of teachers that nobody doubts: after the first answer there is no way back, so
        none is asked for while it is in doubt whether enough will come.
        """
        try:
            secret = recover_secret(self._parameters, sums)
            epoch = self._of_run.epoch
            self._secret = require_fits(self._parameters, epoch, self._check_sum, secret)
        except (OpeningFault, PaddingFault, RowsError) as fault:
            self._dispute(message_of(fault), now, has_wrong_sum=True)
            return
        self._certified = tuple(sorted(self._endorsements))
        self._enter(Stage.ANSWERS, now)

    def _certified_for(self, teacher: int) -> bytes:
        """Who endorsed the list, as one teacher can check it, and the sum of the secrets."""
        assert self._secret is not None, "nothing is answered before the sum fits"
        said = [self._endorsements[each] for each in self._certified]
        has_all = teacher in self._needs_signatures
        short = [Endorser.of(each) for each in said] if has_all else []
        unsigned = CertifiedSum(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            attempt=self.attempt,
            list_hash=self._said.list_hash,
            recipient=teacher,
            endorsers=self._certified,
            macs=self._macs_for(said, teacher),
            digests=b"".join(each.digest for each in short),
            signatures=b"".join(each.signature for each in short),
            check_sum=pack_bits(self._check_sum, self._parameters.modulus_bits),
            secret=secret_to_bytes(self._secret.coefficients),
        )
        return encode(sign(unsigned, self._signer))

    # Answers: as many as it takes to recover every seed.

    def _asked_to_answer(self) -> set[int]:
        return set(self._endorsements) - set(self._answers)

    def _take_answer(self, teacher: int, data: bytes) -> None:
        is_time = self.stage in (Stage.ANSWERS, Stage.DISPUTE) and self._secret is not None
        if not is_time or teacher in self._answers or teacher in self.faults:
            return
        message = decode(data, SeedRows)
        self._require_signed(message, teacher)
        if message.attempt != self.attempt:
            return  # it is over, and the answer late
        expected = (self._task.task_id, self.batch_id, self._said.list_hash)
        found = (message.task_id, message.batch_id, message.list_hash)
        if found != expected or teacher not in self._ballots:
            self._refuse_other(teacher)
        length = seed_row_bytes(self._parameters)
        elements_from_bytes(message.rows, len(self._ballots) * length // 2)
        self._answers[teacher] = [
            message.rows[at : at + length] for at in range(0, len(message.rows), length)
        ]
        self._news.append(
            AnswerCounted(batch=self.batch_id, teacher=teacher, count=len(self._answers))
        )

    @property
    def _usable(self) -> dict[int, list[bytes]]:
        """Rows of seeds as given, or as shown later; not of those who did not show them."""
        return {each: rows for each, rows in self._answers.items() if each not in self._mute}

    def _advance_answers(self, now: int) -> None:
        self._try_to_open()
        is_late = now >= self._stage_since + self._patience.opening
        if self.stage is not Stage.ANSWERS or not is_late:
            return
        needed = self._parameters.rows_needed
        reason = f"{len(self._usable)} good answers, and {needed} are needed"
        if self._blaming is None or not self._blaming.wrong_seeds:
            self._dispute(reason, now, silent=set(self._endorsements) - set(self._answers))
        elif not self._blaming.is_waiting_for_seeds:
            self.abort(reason, answered=set(self._answers))  # rows of seeds are out: it is charged

    def _try_to_open(self) -> None:
        """Release, if there are enough answers and every seed is right; else ask for the rows."""
        if len(self._usable) < self._parameters.rows_needed:
            return
        digests = [Header.from_bytes(each.header).seed_digest for each in self._ballots.values()]
        seeds, wrong = recover_seeds(self._parameters, self._usable, digests)
        if not wrong:
            self._release(seeds)
            return
        dealers = tuple(self.participants[each] for each in wrong)
        self._blame().ask_for_seeds(dealers, tuple(sorted(self._usable)))
        if self._settle_seeds():
            self._try_to_open()

    def _settle_seeds(self) -> bool:
        """Name who is at fault for wrong seeds; whether there are better rows now."""
        verdict = self._blame().judge_seeds(self._usable)
        silent = dict.fromkeys(verdict.silent, "it did not show the rows of seeds that it gave")
        for culprit, reason in (silent | verdict.culprits).items():
            self.blame(culprit, reason)
        self._mute |= verdict.silent
        has_better = bool(verdict.silent)
        for (teacher, dealer), row in verdict.rows.items():
            place = self.participants.index(dealer)
            if teacher in self._answers and self._answers[teacher][place] != row:
                self._answers[teacher][place] = row
                has_better = True
        if verdict.false_dealers:
            self.abort(
                "a teacher dealt a seed that does not open its ballot, after others had opened "
                "theirs",
                answered=set(self._answers),
            )
        return has_better and not verdict.false_dealers

    def _release(self, seeds: tuple[bytes, ...]) -> None:
        assert self._secret is not None, "nothing is answered before the sum fits"
        votes = [each.votes for each in self._ballots.values()]
        votes_sum = add_votes(self._parameters, votes, seeds, counts=self._counts)
        sums = open_counts(
            self._parameters, self._of_run.votes_seed, votes_sum, self._secret, counts=self._counts
        )
        answers = make_releases(
            self._task,
            self.query_ids,
            np.asarray(sums).tolist(),
            ballots=len(self.participants),
            of_list=self._said.list_hash,
        )
        threshold = self._task.trust.threshold
        self.end_with(
            Receipt(
                task=encode(self._task),
                public_key=encode(self._of_run.roster),
                queries=self._query_digests(),
                list_hash=self._said.list_hash,
                participants=self.participants,
                tallies=write_sums(self._of_run, self._check_sum, votes_sum),
                endorsers=tuple(
                    Endorser.of(self._endorsements[each]) for each in self._certified[:threshold]
                ),
                openings=(secret_to_bytes(self._secret.coefficients), b"".join(seeds)),
                answers=answers,
                attempt=self.attempt,
            )
        )

    # Disputes: who is at fault, and how it goes on (blaming.py).

    def _blame(self) -> Blaming:
        if self._blaming is None:
            self._blaming = Blaming(
                self._of_run,
                self._signer,
                self._ballots,
                patience_seconds=self._patience.opening,
            )
        return self._blaming

    def _take_in_dispute(self, kind: str, teacher: int, data: bytes) -> None:
        if self._statement is None and self.stage is not Stage.DISPUTE:
            return
        message = decode(data, self.kinds[kind])
        assert isinstance(message, Objection | Complaint | Withdrawal | ShownRoot | ShownRows)
        if message.attempt != self.attempt or teacher not in self._ballots:
            return
        self._require_signed(message, teacher)
        for culprit, reason in self._blame().take(message, data).items():
            self.blame(culprit, reason)

    def _dispute(
        self,
        reason: str,
        now: int,
        *,
        has_wrong_sum: bool = False,
        silent: set[int] | frozenset[int] = frozenset(),
    ) -> None:
        """Have the attempt withdrawn. Those silent so far are left out of the next one."""
        if silent:
            reason += f"; without an answer in time: {', '.join(map(str, sorted(silent)))}"
        if not self._is_restored:  # else they may have withdrawn before, and keep their word
            self._missing |= silent
        sums = {each: self._row_of(said) for each, said in self._endorsements.items()}
        self._blame().withdraw(sums if has_wrong_sum else {}, reason)
        self._enter(Stage.DISPUTE, now)
        self._news.append(self._blame().news())

    def _advance_dispute(self, store: StoredBatches, now: int) -> None:
        blaming = self._blame()
        if not blaming.is_withdrawn:
            self._advance_unwithdrawn(now)
        elif blaming.is_settled and self._has_waited_for_withdrawals(now):
            self._redo_or_give_up(store, now)

    def _judge(self, now: int) -> None:
        """Who is at fault by now, and who is missing."""
        if self._blaming is None:
            return
        self._blaming.follow(now)
        for culprit, reason in self._blaming.judge().items():
            self.blame(culprit, reason)
        self._missing |= self._blaming.missing

    def _advance_unwithdrawn(self, now: int) -> None:
        """Answers may still come and open the list, until t teachers have withdrawn."""
        if self._secret is not None:
            self._try_to_open()
        if self.stage is Stage.DISPUTE and now >= self._stage_since + self._patience.opening:
            blaming = self._blame()
            heard = set(blaming.withdrawers) | set(self._answers)
            self.abort(blaming.reason, answered=heard - self._missing)

    @property
    def _able(self) -> frozenset[int]:
        """Who can take part in a next attempt: it has withdrawn, and nothing is against it."""
        return self._blame().withdrawers - set(self.faults) - self._missing

    def _has_waited_for_withdrawals(self, now: int) -> bool:
        outstanding = set(self._ballots) - self._blame().withdrawers - set(self._answers)
        is_enough = len(self._able) >= self._task.trust.ballots_needed
        patience = self._patience.first_shares if is_enough else self._patience.opening
        has_all = outstanding <= set(self.faults) | self._missing
        return has_all or now >= self._stage_since + patience

    def _redo_or_give_up(self, store: StoredBatches, now: int) -> None:
        epoch = self._of_run.roster.epoch
        is_enough = len(self._able) >= self._task.trust.ballots_needed
        is_in_time = now < self.request.deadline and self._task.epoch_at(now) <= epoch + 1
        if is_enough and is_in_time and self.attempt < MOST_ATTEMPTS:
            self._redo(store, now)
            return
        blaming = self._blame()
        heard = set(blaming.withdrawers) | set(self._answers)
        self.abort(blaming.reason, answered=heard - self._missing, is_refunded=True)

    def _redo(self, store: StoredBatches, now: int) -> None:
        withdrawals = self._blame().withdrawals
        roster = self._rosters.roster(self._of_run.roster.epoch, self._able)
        self._begin_attempt()
        self.attempt += 1
        self._begin(store, roster, withdrawals, now)
        self._news.append(Redone(batch=self.batch_id, attempt=self.attempt))


class MaskBatches(BatchMaker):
    """Makes batches, and collects the keys of the epochs."""

    batch_kinds = MaskBatch.kinds

    def __init__(self, *, task: Task, patience: Patience, signer: Signer) -> None:
        self._task = task
        self._patience = patience
        self._signer = signer
        self._rosters = Rosters(task=task, signer=signer)

    def make(self, request: BatchRequest) -> MaskBatch:
        """A batch for this request."""
        return MaskBatch(self._task, request, self._patience, self._signer, self._rosters)

    def take(self, kind: str, teacher: int, data: bytes) -> None:
        """A key of an epoch."""
        if kind != PublishedKey.KIND:
            super().take(kind, teacher, data)
        try:
            self._rosters.take(teacher, data)
        except DpppError:
            return  # whoever carries messages could have made it
