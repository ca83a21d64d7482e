"""What must hold after any run under masks, whatever happened in it.

The checks take nothing from the roles but what left them as bytes, what their stores hold, and the
entries that teachers masked.
"""

from collections import Counter

import numpy as np
from tests.simulation.invariants import Broken
from tests.simulation.masked_wiretap import Attempt, MaskedWiretap
from tests.simulation.masked_world import A_DAY, MaskedWorld, votes_of
from tests.simulation.network import LINK_FAULTS
from tests.simulation.operations import (
    AGGREGATOR,
    CrashAtSend,
    CrashAtWrite,
    Equivocate,
    Operation,
    Plan,
    Silence,
    TurnClock,
)
from tests.simulation.world import Asked, Refused

from dppp.errors import AttemptOver, BatchRefunded, TranscriptError
from dppp.masks.ballots import HEADER_DIGESTS_BYTES, Header
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import Abort
from dppp.protocol.messages import BallotList, BatchId, Endorsement, ListHash
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.release import ballots_offset
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode
from dppp.protocol.with_masks.messages import (
    DeliveredList,
    MaskedBallot,
    SeedRows,
    ShownRoot,
    Withdrawal,
)

ONCE = (MaskedBallot.KIND, Endorsement.KIND, SeedRows.KIND, Withdrawal.KIND, ShownRoot.KIND)
"""What is said once in an attempt, and after that in the same bytes."""


def simulate_masked(plan: Plan, *, epoch_seconds: int = A_DAY) -> MaskedWorld:
    """Run a plan and check everything; the world, for a closer look."""
    world = MaskedWorld(plan, epoch_seconds=epoch_seconds)
    world.run()
    MaskedCheck(world).everything()
    return world


class MaskedCheck:
    """All invariants of one run."""

    def __init__(self, world: MaskedWorld) -> None:
        self._world = world
        self._setting = world.setting
        self._trust = world.setting.task.trust
        self._tap = MaskedWiretap(world)

    def everything(self) -> None:
        for number, asked in enumerate(self._world.asked):
            self._ends_once_with_a_name(number, asked)
        self._nothing_leaves_before_it_is_stored()
        self._nothing_is_said_that_was_not_asked()
        self.nothing_is_said_twice_in_other_words()
        self._no_secret_is_in_two_ballots()
        self._ballots_are_votes_plus_fresh_noise()
        self._an_endorsement_says_what_is_so()
        self._nothing_is_opened_without_t_endorsements()
        self.at_most_one_list_of_a_batch_can_be_opened()
        self.what_can_be_opened_has_enough_noise_and_no_other_secret()
        for number, asked in enumerate(self._world.asked):
            if isinstance(asked.endings[0], Receipt):
                self._released_sums_are_what_was_masked(number, asked, asked.endings[0])
                self._released_is_endorsed_and_charged(number, asked, asked.endings[0])
        self.what_left_was_charged_once()
        self._nobody_honest_is_blamed()

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Broken(what, self._world.plan)

    # How batches end.

    def _ends_once_with_a_name(self, number: int, asked: Asked) -> None:
        self._require(len(asked.endings) > 0, f"batch {number} never ended")
        self._require(len(asked.endings) == 1, f"batch {number} ended twice: {asked.endings}")
        ending = asked.endings[0]
        if isinstance(ending, Abort):
            is_own_fault = (
                self._is_troubled(AGGREGATOR)
                and ending.is_refunded
                and "before this aggregator came back" in ending.reason
            )
            is_convicted = (  # the aggregator names itself, and nobody else
                any(isinstance(each, Equivocate) for each in self._world.plan.operations)
                and ending.reason.startswith("the aggregator delivered to teacher")
                and not (ending.missing or ending.culprits)
            )
            has_name = ending.missing or ending.culprits or is_own_fault or is_convicted
            self._require(
                bool(ending.reason and has_name),
                f"batch {number} aborted without a name: {ending}",
            )
        if isinstance(ending, Refused):
            charged = [each for each in self._world.honest if self._is_charged(each, asked.batch)]
            self._require(not charged, f"batch {number} was refused, and {charged} were charged")

    def _released_sums_are_what_was_masked(
        self, number: int, asked: Asked, receipt: Receipt
    ) -> None:
        transcript = StoredBatches(self._world.batch_store).transcript(asked.batch)
        assert transcript is not None
        task_id = self._setting.task.task_id
        try:
            verified = verify_receipt(receipt.to_bytes(), expected_task=task_id)
            of_transcript = verify_transcript(transcript.to_bytes(), expected_task=task_id)
        except TranscriptError as error:
            raise Broken(f"batch {number} was released, and {error}", self._world.plan) from error
        self._require(
            of_transcript.answers == verified.answers == receipt.answers,
            f"the transcript of batch {number} says something else than its receipt",
        )
        ballots = decode(transcript.ballot_list, BallotList).ballots
        read = [decode(data, MaskedBallot) for data in ballots]
        entered = [self._world.entries[each.votes] for each in read]
        expected = np.sum(entered, axis=0) - ballots_offset(self._setting.task, len(entered))
        counts = [count for answer in receipt.answers for count in answer.counts]
        self._require(
            counts == expected.tolist(),
            f"batch {number} was released with other sums than were masked",
        )
        forged = [
            each.teacher
            for each, data in zip(read, ballots, strict=True)
            if each.teacher in self._world.honest and data not in self._tap.ballots
        ]
        self._require(not forged, f"batch {number} holds ballots that {forged} never cast")

    def _released_is_endorsed_and_charged(
        self, number: int, asked: Asked, receipt: Receipt
    ) -> None:
        attempt = Attempt(asked.batch, receipt.attempt)
        endorsers = {each.teacher for each in receipt.endorsers}
        self._require(
            len(endorsers & set(receipt.participants)) >= self._trust.threshold,
            f"batch {number} was released with {len(endorsers)} endorsers",
        )
        for teacher in endorsers & set(self._world.honest):
            said = self._tap.said.get((Endorsement.KIND, teacher, attempt), set())
            lists = {decode(each, Endorsement).statement.list_hash for each in said}
            self._require(
                lists == {receipt.list_hash},
                f"batch {number} was released, and teacher {teacher} endorsed something else",
            )
        for teacher in set(receipt.participants) & set(self._world.honest):
            self._require(
                self._is_charged(teacher, asked.batch),
                f"batch {number} was released, and teacher {teacher} did not charge it",
            )

    # What honest teachers say.

    def _nothing_leaves_before_it_is_stored(self) -> None:
        self._require(
            not self._world.unstored, f"left before it was stored: {self._world.unstored}"
        )

    def _nothing_is_said_that_was_not_asked(self) -> None:
        self._require(
            not self._tap.unasked,
            f"said without the aggregator having asked for it: {self._tap.unasked}",
        )

    def nothing_is_said_twice_in_other_words(self) -> None:
        """One ballot, one list endorsed, one answer in an attempt; an answer or a withdrawal."""
        for (kind, teacher, attempt), said in self._tap.said.items():
            if kind in ONCE:
                self._require(len(said) == 1, f"two of {kind} of teacher {teacher}")
            has_withdrawn = (Withdrawal.KIND, teacher, attempt) in self._tap.said
            self._require(
                kind != SeedRows.KIND or not has_withdrawn,
                f"teacher {teacher} opened what it had withdrawn, or withdrew what it had opened",
            )

    def _no_secret_is_in_two_ballots(self) -> None:
        headers = [Header.from_bytes(each.header) for each in self._tap.ballots.values()]
        for what, found in (
            ("root", [each.salt for each in headers]),
            ("seed", [each.seed_digest for each in headers]),
        ):
            self._require(len(found) == len(set(found)), f"one {what} is in two ballots")

    def _ballots_are_votes_plus_fresh_noise(self) -> None:
        """And every draw of noise is in one ballot at most."""
        values = {asked.batch: asked.values for asked in self._world.asked}
        used: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for ballot in self._tap.ballots.values():
            asked, entries = values[ballot.batch_id], self._world.entries[ballot.votes]
            votes = [
                vote
                for value in asked
                for vote in votes_of(self._setting.task.question, ballot.teacher, value)
            ]
            used[ballot.teacher, tuple((entries - np.array(votes)).tolist())] += 1
        drawn = {
            (teacher, size): self._world.homes[teacher].randomness.noise(self._setting.task, size)
            for teacher, size in {(each, len(noise)) for each, noise in used}
        }
        for (teacher, noise), times in used.items():
            self._require(
                times <= drawn[teacher, len(noise)].count(noise),
                f"a ballot of teacher {teacher} is not its votes plus noise of its own",
            )

    def _an_endorsement_says_what_is_so(self) -> None:
        """It is of a list that was sent, with the teacher's own header in it, and long enough."""
        for (kind, teacher, attempt), said in self._tap.said.items():
            if kind != Endorsement.KIND:
                continue
            for statement in (decode(each, Endorsement).statement for each in said):
                listed = self._tap.lists.get(statement.list_hash)
                self._require(
                    listed is not None,
                    f"teacher {teacher} endorsed a list that the aggregator never sent",
                )
                assert listed is not None
                self._require(
                    statement.participants == listed.participants
                    and attempt.batch == listed.batch_id
                    and self._is_in(listed, teacher)
                    and len(set(listed.participants)) >= self._trust.ballots_needed,
                    f"teacher {teacher} endorsed what is not so",
                )

    def _is_in(self, listed: DeliveredList, teacher: int) -> bool:
        """Whether the header of the ballot that this teacher cast is in a list, in its name."""
        attempt = Attempt(listed.batch_id, listed.attempt)
        cast = self._tap.said.get((MaskedBallot.KIND, teacher, attempt), set())
        digests = {Header.from_bytes(decode(each, MaskedBallot).header).digests for each in cast}
        if teacher not in listed.participants:
            return False
        at = HEADER_DIGESTS_BYTES * listed.participants.index(teacher)
        return digests == {listed.header_digests[at : at + HEADER_DIGESTS_BYTES]}

    def _nothing_is_opened_without_t_endorsements(self) -> None:
        """Of exactly this list, shown to the teacher before; nor is a secret before its time."""
        self._require(
            not self._tap.uncertified,
            f"opened without t endorsements of the list: {self._tap.uncertified}",
        )
        self._require(
            not self._tap.untimely,
            f"showed what only t withdrawals, or an answer, allow: {self._tap.untimely}",
        )

    # What the aggregator and all byzantine teachers can make of it.

    def _openable(self) -> list[tuple[Attempt, ListHash]]:
        """Lists of which t rows of every seed are known when all byzantine teachers help."""
        helpers = len(self._world.byzantine)
        return [
            (attempt, of_list)
            for attempt, lists in self._tap.answered.items()
            for of_list, teachers in lists.items()
            if len(teachers) + helpers >= self._trust.threshold
        ]

    def at_most_one_list_of_a_batch_can_be_opened(self) -> None:
        """In all its attempts."""
        batches = [attempt.batch for attempt, _ in self._openable()]
        self._require(len(batches) == len(set(batches)), "two lists of one batch can be opened")

    def what_can_be_opened_has_enough_noise_and_no_other_secret(self) -> None:
        for attempt, of_list in self._openable():
            listed = self._tap.lists[of_list]
            honest = [each for each in self._world.honest if self._is_in(listed, each)]
            self._require(
                len(honest) >= self._trust.honest_shares,
                f"a list with {len(honest)} honest noise shares can be opened, and "
                f"{self._trust.honest_shares} are needed",
            )
            self._require(
                attempt not in self._tap.told, "a root was shown of a list that can be opened"
            )

    # What it costs.

    def what_left_was_charged_once(self) -> None:
        """Charged are the batches whose ballot is kept, but for those withdrawn by t teachers."""
        sizes = {asked.batch: len(asked.values) for asked in self._world.asked}
        for index in self._world.honest:
            ledger = self._world.ledger_of(index)
            ledger.check()
            (data,) = ledger.summary().data
            (task,) = data.tasks
            expected = sum(size for batch, size in sizes.items() if self._is_charged(index, batch))
            self._require(
                task.answered == expected,
                f"teacher {index} charged {task.answered} queries, and {expected} were asked",
            )
            self._require(task.answered <= task.queries, f"teacher {index} passed its budget")
            self._require_charges_of(index)

    def _require_charges_of(self, index: int) -> None:
        for kind, teacher, attempt in self._tap.said:
            if teacher != index or kind not in (MaskedBallot.KIND, SeedRows.KIND):
                continue
            is_withdrawn = any(
                len(withdrawers) >= self._trust.threshold
                for place, withdrawers in self._tap.withdrawn.items()
                if place.batch == attempt.batch
            )
            is_free = kind == MaskedBallot.KIND and is_withdrawn
            self._require(
                is_free or self._is_charged(index, attempt.batch),
                f"a {kind} of teacher {index} left, and is not charged",
            )

    def _is_charged(self, index: int, batch: BatchId) -> bool:
        try:
            return self._world.ledger_of(index).find_ballot(batch) is not None
        except AttemptOver:
            return True
        except BatchRefunded:
            return False

    # Who is blamed for it.

    def _nobody_honest_is_blamed(self) -> None:
        """But for silence: who objects, endorses or answers, and then is not heard any more."""
        blamed = [
            (teacher, reason)
            for asked in self._world.asked
            for teacher, reason in self._world.faults(asked.batch).items()
        ]
        stored = StoredBatches(self._world.batch_store).culprits()
        for teacher, reason in (*blamed, *((each.teacher, each.reason) for each in stored)):
            is_silence = "did not show" in reason and self._is_troubled(teacher)
            self._require(
                teacher not in self._world.honest or is_silence,
                f"honest teacher {teacher} is blamed: {reason}",
            )

    def _is_troubled(self, role: int) -> bool:
        """Whether something happens to a role, or to the aggregator that talks to it."""
        return any(_strikes(each, role) for each in self._world.plan.operations)


def _strikes(operation: Operation, role: int) -> bool:
    match operation:
        case CrashAtSend() | CrashAtWrite() | TurnClock():
            return operation.role in (role, AGGREGATOR)
        case Silence():
            return operation.teacher == role
        case Equivocate():
            return role in operation.victims
    return isinstance(operation, LINK_FAULTS) and role in (operation.sender, operation.receiver)
