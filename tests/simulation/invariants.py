"""What must hold after any run, whatever happened in it.

The checks take nothing from the roles but what left them as bytes and what their stores hold; the
plaintexts they compare with come from the primes and from the recorded randomness. Colluders may
still bias counts: a byzantine ballot with any entries that stay within the slots' range is counted
as it is, and so it is here.
"""

from collections import Counter
from typing import Any

from tests.protocol.parties import (
    CLASSES,
    entries_of,
    label_of,
    open_by_primes,
    tallies_of,
)
from tests.simulation.operations import Plan
from tests.simulation.wiretap import Wiretap
from tests.simulation.world import Asked, Refused, World

from dppp.errors import TranscriptError
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import read_ciphertexts
from dppp.protocol.batch_store import StoredBatches
from dppp.protocol.events import Abort
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    Endorsement,
    ListHash,
    SignedShares,
)
from dppp.protocol.receipt import Receipt, verify_receipt
from dppp.protocol.release import ballots_offset
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode


class Broken(AssertionError):
    """An invariant does not hold; the text is enough to run it again."""

    def __init__(self, what: str, plan: Plan) -> None:
        super().__init__(
            f"{what}\nRun it again with DPPP_SIMULATION_SEED={plan.seed}, or thin out this plan "
            f"and hand it to `simulate`:\n{plan}"
        )


def simulate(plan: Plan) -> World:
    """Run a plan and check everything; the world, for a closer look."""
    world = World(plan)
    world.run()
    Check(world).everything()
    return world


class Check:
    """All invariants of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._setting = world.setting
        self._trust = world.setting.task.trust
        self._tap = Wiretap(world)

    def everything(self) -> None:
        for number, asked in enumerate(self._world.asked):
            self._every_query_ends_once(number, asked)
            self._released_sums_are_what_was_encrypted(number, asked)
            self._released_is_endorsed_and_tells_no_ballot(number, asked)
        self._no_two_answers_of_a_kind_leave()
        self._honest_ballots_are_votes_plus_fresh_noise()
        self._an_honest_endorsement_says_what_is_so()
        self._no_honest_share_leaves_without_t_endorsements()
        self._honest_shares_are_of_the_endorsed_tallies()
        self.at_most_one_list_of_a_batch_can_be_opened()
        self._every_openable_list_has_enough_honest_noise()
        self._what_left_was_charged_once()

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Broken(what, self._world.plan)

    def _every_query_ends_once(self, number: int, asked: Asked) -> None:
        self._require(len(asked.endings) > 0, f"batch {number} never ended")
        self._require(len(asked.endings) == 1, f"batch {number} ended twice: {asked.endings}")
        ending = asked.endings[0]
        if isinstance(ending, Abort):
            named = ending.missing or ending.culprits or "by the rules" in ending.reason
            self._require(bool(ending.reason and named), f"batch {number} aborted without a name")
        if isinstance(ending, Refused):
            charged = [index for index in self._world.honest if self._is_charged(index, asked)]
            self._require(not charged, f"batch {number} was refused, and {charged} were charged")

    def _released_sums_are_what_was_encrypted(self, number: int, asked: Asked) -> None:
        released = asked.endings[0]
        if not isinstance(released, Receipt):
            return
        transcript = StoredBatches(self._world.batch_store).transcript(asked.batch)
        assert transcript is not None
        known: dict[str, Any] = {
            "expected_task": self._setting.task.task_id,
            "insecure_testing": True,
        }
        try:
            verified = verify_receipt(released.to_bytes(), **known)
            of_transcript = verify_transcript(transcript.to_bytes(), **known)
        except TranscriptError as error:
            raise Broken(f"batch {number} was released, and {error}", self._world.plan) from error
        self._require(
            of_transcript.answers == verified.answers,
            f"the transcript of batch {number} says something else than its receipt",
        )
        ballots = decode(transcript.ballot_list, BallotList).ballots
        modulus = self._setting.public.plaintext_modulus
        opened = [open_by_primes(self._setting, each) for each in ballots]
        total = [sum(place) % modulus for place in zip(*opened, strict=True)]
        packing, size = self._setting.task.packing, len(asked.values) * len(CLASSES)
        sums = packing.unpack(total, size, contributions=len(ballots))
        offset = ballots_offset(self._setting.task, len(ballots))
        counts = [count + offset for answer in verified.answers for count in answer.counts]
        self._require(
            counts == list(sums) and verified.answers == released.answers,
            f"batch {number} was released with other sums than its ballots hold",
        )
        for data in ballots:
            teacher = decode(data, Ballot).teacher
            if teacher in self._world.honest:
                self._require(
                    self._tap.ballots[teacher, asked.batch] == {data},
                    f"batch {number} was released with a ballot that teacher {teacher} never cast",
                )
                self._require(
                    self._is_charged(teacher, asked),
                    f"batch {number} was released, and teacher {teacher} did not charge it",
                )

    def _released_is_endorsed_and_tells_no_ballot(self, number: int, asked: Asked) -> None:
        """t endorsers, whose honest ones said so on the wire; and nothing of any ballot."""
        released = asked.endings[0]
        if not isinstance(released, Receipt):
            return
        endorsers = {each.teacher for each in released.endorsers}
        self._require(
            len(endorsers) >= self._trust.threshold,
            f"batch {number} was released with {len(endorsers)} endorsers",
        )
        for teacher in endorsers & set(self._world.honest):
            said = self._tap.endorsements.get((teacher, asked.batch), set())
            lists = {decode(each, Endorsement).statement.list_hash for each in said}
            self._require(
                lists == {released.list_hash},
                f"batch {number} was released, and teacher {teacher} endorsed something else",
            )
        data = released.to_bytes()
        for ballot in self._tap.lists[released.list_hash].ballots:
            parts = decode(ballot, Ballot)
            is_told = any(each in data for each in (parts.ciphertexts, parts.proof))
            self._require(not is_told, f"the receipt of batch {number} holds a ballot")

    def _no_two_answers_of_a_kind_leave(self) -> None:
        """One ballot, one list endorsed, one answer: for a batch, the same bytes for ever."""
        for what, left in (
            ("ballots", self._tap.ballots),
            ("endorsements", self._tap.endorsements),
            ("answers", self._tap.shares),
        ):
            for (teacher, _), said in left.items():
                self._require(len(said) == 1, f"two {what} of teacher {teacher} for a batch left")

    def _an_honest_endorsement_says_what_is_so(self) -> None:
        """It is of a list that was sent, with the teacher's own ballot in it, and was kept."""
        for (teacher, batch), said in self._tap.endorsements.items():
            for data in said:
                statement = decode(data, Endorsement).statement
                of_list = statement.list_hash
                self._require(
                    of_list in self._tap.lists,
                    f"teacher {teacher} endorsed a list that the aggregator never sent",
                )
                ballots = set(self._tap.lists[of_list].ballots)
                self._require(
                    statement == self._tap.statement(of_list)
                    and batch == self._tap.lists[of_list].batch_id
                    and self._tap.ballots[teacher, batch] <= ballots
                    and len(set(statement.participants)) >= self._trust.ballots_needed,
                    f"teacher {teacher} endorsed what is not so",
                )
                ledger = self._world.ledger_of(teacher)
                self._require(
                    ledger.find_endorsement(batch, of_list) == data,
                    f"an endorsement of teacher {teacher} left that is not in its ledger",
                )

    def _no_honest_share_leaves_without_t_endorsements(self) -> None:
        """Of exactly this list, shown to the teacher before; and its own is in its ledger."""
        self._require(
            not self._tap.uncertified,
            f"shares left without t endorsements of their list: {self._tap.uncertified}",
        )
        given = {(who, *place) for place, sharers in self._tap.sharers.items() for who in sharers}
        for teacher, batch, of_list in given | self._tap.proofs:
            ledger = self._world.ledger_of(teacher)
            self._require(
                ledger.find_answer(batch, of_list) is not None,
                f"shares or a proof of teacher {teacher} left that are not in its ledger",
            )

    def _honest_shares_are_of_the_endorsed_tallies(self) -> None:
        public = self._setting.public
        for (teacher, _), said in self._tap.shares.items():
            for shares in (decode(each, SignedShares) for each in said):
                tallies = tallies_of(self._setting, self._tap.lists[shares.list_hash].ballots)
                expected = make_decryption_shares(
                    public,
                    self._setting.key.shares[teacher - 1],
                    read_ciphertexts(public, tallies),
                )
                self._require(
                    shares.shares == expected.to_bytes(public),
                    f"teacher {teacher} gave shares of something else than the endorsed tallies",
                )

    def _honest_ballots_are_votes_plus_fresh_noise(self) -> None:
        """And every draw of noise is in one ballot at most."""
        for teacher in self._world.honest:
            used: Counter[tuple[int, ...]] = Counter()
            for asked in self._world.asked:
                for data in self._tap.ballots.get((teacher, asked.batch), set()):
                    used[self._noise_in(data, asked, teacher)] += 1
            randomness = self._world.homes[teacher].randomness
            for noise, times in used.items():
                self._require(
                    times <= randomness.noise(self._setting.task, len(noise)).count(noise),
                    f"a ballot of teacher {teacher} is not its votes plus noise of its own",
                )

    def _noise_in(self, data: bytes, asked: Asked, teacher: int) -> tuple[int, ...]:
        entries = entries_of(self._setting, data, len(asked.values))
        votes = [
            int(label_of(teacher, value) == label)
            for value in asked.values
            for label in range(len(CLASSES))
        ]
        return tuple(entry - vote for entry, vote in zip(entries, votes, strict=True))

    def _openable(self) -> list[tuple[BatchId, ListHash]]:
        """Lists that the aggregator can open when all byzantine teachers help."""
        helpers = len(self._world.byzantine)
        return [
            place
            for place, sharers in self._tap.sharers.items()
            if len(sharers) + helpers >= self._trust.threshold
        ]

    def at_most_one_list_of_a_batch_can_be_opened(self) -> None:
        batches = [batch for batch, _ in self._openable()]
        self._require(len(batches) == len(set(batches)), "two lists of one batch can be opened")

    def _every_openable_list_has_enough_honest_noise(self) -> None:
        for batch, served in self._openable():
            teachers = {decode(each, Ballot).teacher for each in self._tap.lists[served].ballots}
            cast = [
                teacher
                for teacher in teachers & set(self._world.honest)
                if self._tap.ballots[teacher, batch] <= set(self._tap.lists[served].ballots)
            ]
            self._require(
                len(cast) >= self._trust.honest_shares,
                f"a list with {len(cast)} honest noise shares can be opened, and "
                f"{self._trust.honest_shares} are needed",
            )

    def _what_left_was_charged_once(self) -> None:
        """Answered is the number of distinct queries, and no ballot left that is not among them."""
        for index in self._world.honest:
            ledger = self._world.ledger_of(index)
            ledger.check()
            (data,) = ledger.summary().data
            (task,) = data.tasks
            requests = self._tap.requests[index]
            charged = {batch for batch in requests if ledger.find_ballot(batch) is not None}
            self._require(
                task.answered == sum(requests[batch] for batch in charged),
                f"teacher {index} charged {task.answered} queries for the {len(charged)} batches "
                "that the aggregator asked it for",
            )
            left = {batch for teacher, batch in self._tap.ballots if teacher == index}
            self._require(left <= charged, f"a ballot of teacher {index} left without a charge")
            self._require(task.answered <= task.queries, f"teacher {index} passed its budget")

    def _is_charged(self, index: int, asked: Asked) -> bool:
        return self._world.ledger_of(index).find_ballot(asked.batch) is not None
