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

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import ClassVar

from dppp.errors import DpppError, OpeningFault, PaddingFault, RowsError, message_of
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
from dppp.protocol.messages import BallotList, BatchRequest, Endorsement
from dppp.protocol.refusals import subject_of
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.wire import Message, encode
from dppp.protocol.with_masks.answers import make_receipt
from dppp.protocol.with_masks.attempts import Attempt, give_back, last_attempt, store_attempt
from dppp.protocol.with_masks.blaming import Blaming
from dppp.protocol.with_masks.messages import (
    MOST_ATTEMPTS,
    CastRequest,
    Complaint,
    MaskedBallot,
    Objection,
    PublishedKey,
    Roster,
    SeedRows,
    ShownRoot,
    ShownRows,
    Withdrawal,
)
from dppp.protocol.with_masks.rosters import Rosters


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
        self._rows_needed = task.parameters.rows_needed
        self._epoch: int | None = None
        self._keys_since: int | None = None
        self._missing: set[int] = set()
        self._begun: Attempt | None = None
        self._is_restored = False
        self._needs_signatures: set[int] = set()

    @property
    def status(self) -> BatchStatus:
        """How far it is."""
        if self._begun is None:
            return BatchStatus(stage=self.stage, voters=(), endorsers=(), answerers=())
        return BatchStatus(
            stage=self.stage,
            voters=tuple(sorted(self._begun.ballots)),
            endorsers=tuple(sorted(self._begun.endorsers)),
            answerers=tuple(sorted(self._begun.answerers)),
        )

    @property
    def participants(self) -> tuple[int, ...]:
        """Teachers whose ballots are in the list."""
        return self._now_at.closed.participants

    def wanted(self) -> Wanted:
        """What is still to be had, and from whom."""
        if self.stage.is_last:
            return frozenset()
        if self._begun is None:
            return self._wanted_keys()
        blaming = self._begun.blaming
        asked = {each for each in self._wanted_now() if each[0] not in self.faults}
        return frozenset(asked if blaming is None else asked | blaming.wanted())

    def is_about(self, subject: bytes) -> bool:
        """Its id; while keys are wanted also the request for them, which is about no batch."""
        if self._begun is not None or self._epoch is None:
            return super().is_about(subject)
        return subject in (self.batch_id, subject_of(self._rosters.request(self._epoch)))

    def _wanted_keys(self) -> Wanted:
        if self._epoch is None:
            return frozenset()
        missing = set(self._everybody) - self._rosters.known(self._epoch) - set(self.faults)
        return frozenset((each, Step.KEY) for each in missing)

    def _wanted_now(self) -> set[tuple[int, Step]]:
        """What the stage is about."""
        at = self._now_at
        asked: set[tuple[int, Step]] = set()
        if self.stage is Stage.BALLOTS:
            asked = {(each, Step.BALLOT) for each in set(at.members) - set(at.ballots)}
        if self.stage is Stage.ANSWERS:
            asked = {(each, Step.ANSWER) for each in at.endorsers - at.answerers}
        is_asking = self.stage is Stage.ANSWERS and self._is_asking_all
        if self.stage is Stage.ENDORSEMENTS or is_asking:
            others = set(self.participants) - at.endorsers - at.objectors
            asked |= {(each, Step.ENDORSEMENT) for each in others}
        return asked

    def message(self, teacher: int, step: Step) -> bytes:
        """What a teacher is sent who is asked for this; signed by the aggregator."""
        match step:
            case Step.KEY:
                assert self._epoch is not None, "keys are wanted of an epoch"
                return self._rosters.request(self._epoch)
            case Step.BALLOT:
                return encode(replace(self._now_at.cast, request=self._ballot_request(teacher)))
            case Step.ENDORSEMENT:
                return self._now_at.closed.deliver(teacher, self._signer)
            case Step.ANSWER:
                needs_all = teacher in self._needs_signatures
                endorsed = self._now_at.endorsements
                return endorsed.show(teacher, self._signer, with_signatures=needs_all)
            case _:
                return self._blame().message(teacher, step)

    def messages(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """The roster comes before the first request that needs it."""
        if step is Step.COMPLAINT:
            return self._blame().messages(teacher, step)
        asked = self.message(teacher, step)
        if step is Step.BALLOT and self._rosters.must_send(self._now_at.run.roster, teacher):
            return (encode(self._now_at.run.roster), asked)
        return (asked,)

    def reminders(self, teacher: int, step: Step) -> tuple[bytes, ...]:
        """Before what is wanted, what a teacher forgets when it is restarted: roster and list."""
        if step is Step.KEY:
            return (self.message(teacher, step),)
        before = [encode(self._now_at.run.roster)]
        if step not in (Step.BALLOT, Step.ENDORSEMENT) and self._now_at.is_closed:
            before.append(self._now_at.closed.deliver(teacher, self._signer))
        if step is Step.ANSWER:
            self._needs_signatures.add(teacher)
        return (*before, *self.messages(teacher, step))

    def take(self, message: Message, teacher: int, data: bytes, *, now: int) -> None:
        """Take a message that the channel says is from this teacher."""
        if self.stage.is_last:
            return
        match message:
            case MaskedBallot():
                self._take_ballot(message, teacher, data, now=now)
            case Endorsement():
                self._take_endorsement(message, teacher)
            case SeedRows():
                self._take_answer(message, teacher)
            case _:
                self._take_in_dispute(message, teacher, data)

    def advance(self, store: StoredBatches, *, now: int) -> None:
        """Make the transitions whose time has come."""
        self._follow_clock_back(now)
        self._judge(now)
        if self.stage is Stage.BALLOTS and self._begun is None:
            self._advance_keys(store, now)
        if self.stage is Stage.BALLOTS and self._begun is not None:
            self._advance_ballots(store, now)
        if self.stage is Stage.ENDORSEMENTS:
            self._advance_endorsements(now)
        if self.stage is Stage.ANSWERS:
            self._advance_answers(now)
        if self.stage is Stage.DISPUTE:
            self._advance_dispute(store, now)

    def restore(self, store: StoredBatches, *, now: int) -> None:
        """Go on with the last attempt that was begun, and with its list if it was closed."""
        stored = last_attempt(store, self.batch_id)
        if stored is None:
            self._advance_keys(store, now)
            return
        cast, roster = stored
        self._epoch = cast.epoch
        self._rosters.learn(roster)
        self._go_with(cast, roster, now)
        ballot_list = store.ballot_list(self.batch_id, attempt=self.attempt)
        if ballot_list is not None:
            self._endorse_with(ballot_list, now)
            self._is_restored = True

    def farewell(self) -> tuple[Send, ...]:
        """Whose ballot t withdrawals keep from ever being opened: its charge is given back.

        That is everybody where the batch ends withdrawn, and whoever was left behind in the attempt
        before the last.
        """
        if self._begun is None:
            return ()
        at, blaming = self._begun, self._begun.blaming
        sends: tuple[Send, ...] = ()
        if at.cast.withdrawals:
            left_behind = set(self._everybody) - set(at.ballots)
            before = self.attempt - 1
            sends += give_back(at.run, before, at.cast.withdrawals, left_behind, self._signer)
        if self.stage is Stage.ABORTED and blaming is not None and blaming.is_withdrawn:
            members, shown = set(at.members), blaming.withdrawals
            sends += give_back(at.run, self.attempt, shown, members, self._signer)
        return sends

    @property
    def _everybody(self) -> range:
        return range(1, self._task.trust.teachers + 1)

    @property
    def _now_at(self) -> Attempt:
        """The attempt that is under way."""
        assert self._begun is not None, "there is no attempt before there are keys"
        return self._begun

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
            self._begin(store, self._rosters.roster(self._epoch, known), now)
        elif now >= self.request.deadline:
            self.abort(
                f"{len(known)} teachers published a key, and {needed} are needed",
                answered=set(known),
            )

    def _begin(
        self,
        store: StoredBatches,
        roster: Roster,
        now: int,
        *,
        attempt: int = 1,
        withdrawals: tuple[bytes, ...] = (),
    ) -> None:
        unsigned = CastRequest(
            task_id=self._task.task_id,
            batch_id=self.batch_id,
            attempt=attempt,
            epoch=roster.epoch,
            roster_hash=roster.hash,
            withdrawals=withdrawals,
        )
        cast, roster = store_attempt(store, sign(unsigned, self._signer), roster)
        self._go_with(cast, roster, now)

    def _go_with(self, cast: CastRequest, roster: Roster, now: int) -> None:
        self.attempt = cast.attempt
        self._begun = Attempt(self._task, cast, roster, queries=len(self.query_ids))
        self._needs_signatures.clear()
        self._is_restored = False
        self._quorum_since = None
        self._enter(Stage.BALLOTS, now)

    # Ballots: checked as they come, in the list if they are there in time.

    def _take_ballot(self, ballot: MaskedBallot, teacher: int, data: bytes, *, now: int) -> None:
        at = self._begun
        if self.stage is not Stage.BALLOTS or at is None:
            return
        if teacher in at.ballots or teacher in self.faults:
            return
        if ballot.attempt != self.attempt:
            return  # of an attempt that is over
        self._require_signed(ballot, teacher)
        if teacher not in at.members:
            return  # it was not asked in this attempt
        if not at.collected.take(ballot, data):
            return
        count = len(at.ballots)
        self._news.append(
            BallotCounted(batch=self.batch_id, teacher=teacher, count=count, size_bytes=len(data))
        )
        self._note_quorum(count, now)

    def _advance_ballots(self, store: StoredBatches, now: int) -> None:
        at = self._now_at
        left_out = set(self._everybody) - set(at.members)
        not_coming = len(left_out - set(self.faults))
        if not self._has_waited_for_ballots(len(at.ballots) + not_coming, now):
            return
        if len(at.ballots) >= self._task.trust.ballots_needed:
            made = at.collected.as_list(self._signer)
            stored = store.put_list(self.batch_id, made, attempt=self.attempt)
            self._endorse_with(stored, now)
        elif self._has_no_more_ballots(now):
            self._give_up_ballots(now)

    def _has_no_more_ballots(self, now: int) -> bool:
        """All are in, or the time is over; after a restart teachers still send theirs again."""
        has_all = set(self._now_at.members) <= set(self._now_at.ballots) | set(self.faults)
        has_waited = now >= self._stage_since + self._patience.first_shares
        return has_all or (now >= self.request.deadline and has_waited)

    def _give_up_ballots(self, now: int) -> None:
        """Too few ballots: those who cast one withdraw it, and get its charge back."""
        needed = self._task.trust.ballots_needed
        ballots = self._now_at.ballots
        reason = f"{len(ballots)} good ballots, and {needed} are needed for enough noise"
        if len(ballots) >= self._task.trust.threshold:
            self._dispute(reason, now)
        else:
            self.abort(reason, answered=set(ballots))

    def _endorse_with(self, ballot_list: BallotList, now: int) -> None:
        """Go on with this list: the one just closed, or the one stored before a restart."""
        self._now_at.close(ballot_list)
        self._enter(Stage.ENDORSEMENTS, now)
        self._news.append(ListClosed(batch=self.batch_id, count=len(self._now_at.ballots)))

    # Endorsements: as many as it takes to recover the sum of the secrets.

    def _take_endorsement(self, message: Endorsement, teacher: int) -> None:
        is_time = self.stage in (Stage.ENDORSEMENTS, Stage.ANSWERS)
        if not is_time or teacher in self._now_at.endorsers or teacher in self.faults:
            return
        self._require_signed(message, teacher)
        at, statement = self._now_at, self._now_at.closed.statement
        if message.statement.list_hash != statement.list_hash:
            return  # of an attempt that is over, and late
        if message.statement != statement or teacher not in at.ballots:
            self._refuse_other(teacher)
        at.endorsements.take(message)
        self._news.append(
            EndorsementCounted(batch=self.batch_id, teacher=teacher, count=len(at.endorsers))
        )

    def _advance_endorsements(self, now: int) -> None:
        at, needed = self._now_at, self._rows_needed
        doubted = set() if at.blaming is None else at.blaming.doubted
        possible = set(self.participants) - set(self.faults) - at.objectors
        believed = set(at.endorsers) - doubted - set(self.faults)
        if len(believed) >= needed:
            self._certify(believed, now)
        elif doubted:
            return  # without its word there are too few: first the objection is settled
        elif len(possible) < needed:
            self._dispute(f"{len(possible)} teachers can endorse, and {needed} are needed", now)
        elif now >= self._stage_since + self._patience.opening:
            reason = f"{len(at.endorsers)} endorsements of the list, and {needed} are needed"
            self._dispute(reason, now, silent=possible - at.endorsers)

    def _certify(self, believed: set[int], now: int) -> None:
        """There are enough sums of rows: the sum of the secrets, if it fits.

        They are of teachers that nobody doubts: after the first answer there is no way back, so
        none is asked for while it is in doubt whether enough will come.
        """
        try:
            self._now_at.endorsements.certify(believed)
        except (OpeningFault, PaddingFault, RowsError) as fault:
            self._dispute(message_of(fault), now, has_wrong_sum=True)
            return
        self._enter(Stage.ANSWERS, now)

    # Answers: as many as it takes to recover every seed.

    def _take_answer(self, message: SeedRows, teacher: int) -> None:
        is_time = self.stage in (Stage.ANSWERS, Stage.DISPUTE) and self._now_at.is_certified
        if not is_time or teacher in self._now_at.answerers or teacher in self.faults:
            return
        self._require_signed(message, teacher)
        if message.attempt != self.attempt:
            return  # it is over, and the answer late
        at = self._now_at
        expected = (self._task.task_id, self.batch_id, at.closed.statement.list_hash)
        found = (message.task_id, message.batch_id, message.list_hash)
        if found != expected or teacher not in at.ballots:
            self._refuse_other(teacher)
        if teacher not in at.endorsers:
            return  # a row counts only beside the word on what it came from
        at.answers.take(message)
        self._news.append(
            AnswerCounted(batch=self.batch_id, teacher=teacher, count=len(at.answerers))
        )

    def _advance_answers(self, now: int) -> None:
        self._try_to_open()
        is_late = now >= self._stage_since + self._patience.opening
        if self.stage is not Stage.ANSWERS or not is_late:
            return
        at = self._now_at
        reason = f"{len(at.answers.usable)} good answers, and {self._rows_needed} are needed"
        if at.blaming is None or not at.blaming.wrong_seeds:
            self._dispute(reason, now, silent=at.endorsers - at.answerers)
        elif not at.blaming.is_waiting_for_seeds:
            self.abort(reason, answered=set(at.answerers))  # rows of seeds are out: it is charged

    def _try_to_open(self) -> None:
        """Release, if there are enough answers and every seed is right; else ask for the rows."""
        at = self._now_at
        if not at.answers.is_enough:
            return
        seeds, wrong_dealers = at.answers.recover()
        if not wrong_dealers:
            self.end_with(make_receipt(at.closed, at.endorsements, seeds, self.request))
            return
        said = {each: at.endorsements.taken[each] for each in at.answers.usable}
        for culprit, reason in self._blame().ask_for_seeds(wrong_dealers, said).items():
            self.blame(culprit, reason)
        if not self._end_if_void() and self._settle_seeds():
            self._try_to_open()

    def _settle_seeds(self) -> bool:
        """Name who is at fault for wrong seeds; whether there are better rows now."""
        answers = self._now_at.answers
        verdict = self._blame().judge_seeds(answers.usable)
        silent = dict.fromkeys(verdict.silent, "it did not show the rows of seeds that it gave")
        for culprit, reason in (silent | verdict.culprits).items():
            self.blame(culprit, reason)
        answers.leave_out(verdict.silent)
        has_better = answers.put_right(verdict.rows) or bool(verdict.silent)
        if verdict.false_dealers:
            self.abort(
                "a teacher dealt a seed that does not open its ballot, after others had opened "
                "theirs",
                answered=set(answers.taken),
            )
        return has_better and not verdict.false_dealers

    # Disputes: who is at fault, and how it goes on (blaming.py).

    def _blame(self) -> Blaming:
        at = self._now_at
        if at.blaming is None:
            patience = self._patience.opening
            at.blaming = Blaming(at.run, self._signer, at.ballots, patience_seconds=patience)
        return at.blaming

    def _take_in_dispute(self, message: Message, teacher: int, data: bytes) -> None:
        if self._begun is None or not (self._begun.is_closed or self.stage is Stage.DISPUTE):
            return
        assert isinstance(message, Objection | Complaint | Withdrawal | ShownRoot | ShownRows)
        if message.attempt != self.attempt or teacher not in self._begun.ballots:
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
        silent: AbstractSet[int] = frozenset(),
    ) -> None:
        """Have the attempt withdrawn. Those silent so far are left out of the next one."""
        if silent:
            reason += f"; without an answer in time: {', '.join(map(str, sorted(silent)))}"
        if not self._is_restored:  # else they may have withdrawn before, and keep their word
            self._missing |= silent
        self._blame().withdraw(self._now_at.endorsements.taken if has_wrong_sum else {}, reason)
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
        blaming = None if self._begun is None else self._begun.blaming
        if blaming is None:
            return
        blaming.follow(now)
        for culprit, reason in blaming.judge().items():
            self.blame(culprit, reason)
        self._missing |= blaming.missing
        self._end_if_void()

    def _end_if_void(self) -> bool:
        """End if the aggregator itself is at fault, as no teacher is; whether it did."""
        blaming = self._blame()
        if not blaming.against_aggregator:
            return False
        self.abort(
            blaming.against_aggregator,
            answered=set(self._everybody),
            is_refunded=blaming.is_withdrawn,
        )
        return True

    def _advance_unwithdrawn(self, now: int) -> None:
        """Answers may still come and open the list, until t teachers have withdrawn."""
        if self._now_at.is_certified:
            self._try_to_open()
        if self.stage is Stage.DISPUTE and now >= self._stage_since + self._patience.opening:
            blaming = self._blame()
            heard = set(blaming.withdrawers) | self._now_at.answerers
            self.abort(blaming.reason, answered=heard - self._missing)

    @property
    def _able(self) -> frozenset[int]:
        """Who can take part in a next attempt: it has withdrawn, and nothing is against it."""
        return self._blame().withdrawers - set(self.faults) - self._missing

    def _has_waited_for_withdrawals(self, now: int) -> bool:
        at = self._now_at
        outstanding = set(at.ballots) - self._blame().withdrawers - at.answerers
        is_enough = len(self._able) >= self._task.trust.ballots_needed
        patience = self._patience.first_shares if is_enough else self._patience.opening
        has_all = outstanding <= set(self.faults) | self._missing
        return has_all or now >= self._stage_since + patience

    def _redo_or_give_up(self, store: StoredBatches, now: int) -> None:
        epoch = self._now_at.run.roster.epoch
        is_enough = len(self._able) >= self._task.trust.ballots_needed
        is_in_time = now < self.request.deadline and self._task.epoch_at(now) <= epoch + 1
        if is_enough and is_in_time and self.attempt < MOST_ATTEMPTS:
            self._redo(store, now)
            return
        blaming = self._blame()
        heard = set(blaming.withdrawers) | self._now_at.answerers
        reason = blaming.reason
        if self._is_restored and not self.faults:
            reason += "; who had withdrawn before this aggregator came back is not at fault"
        self.abort(reason, answered=heard - self._missing, is_refunded=True)

    def _redo(self, store: StoredBatches, now: int) -> None:
        withdrawals = self._blame().withdrawals
        roster = self._rosters.roster(self._now_at.run.roster.epoch, self._able)
        self._begin(store, roster, now, attempt=self.attempt + 1, withdrawals=withdrawals)
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
