"""What must hold after any run, whatever happened in it.

The checks take nothing from the roles but what left them as bytes and what their stores hold; the
plaintexts they compare with come from the primes and from the recorded randomness. Colluders may
still bias counts: a byzantine ballot with any entries that stay within the slots' range is counted
as it is, and so it is here.
"""

from collections import Counter, defaultdict

from tests.protocol.parties import CLASSES, entries_of, label_of, open_by_primes
from tests.simulation.operations import AGGREGATOR, Plan
from tests.simulation.world import Asked, Refused, World

from dppp.protocol.batch import Abort
from dppp.protocol.messages import Ballot, BallotList, BatchId, ListHash, SignedShares, list_hash
from dppp.protocol.release import ballots_offset
from dppp.protocol.transcript import Transcript, verify_transcript
from dppp.protocol.wire import decode, kind_of


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
        self._ballots: dict[tuple[int, BatchId], set[bytes]] = defaultdict(set)
        self._sharers: dict[tuple[BatchId, ListHash], set[int]] = defaultdict(set)
        self._lists: dict[ListHash, BallotList] = {}
        for message in world.network.left:
            self._read(message.sender, message.data)

    def everything(self) -> None:
        for number, asked in enumerate(self._world.asked):
            self._every_query_ends_once(number, asked)
            self._released_sums_are_what_was_encrypted(number, asked)
        self._no_two_ballots_of_a_batch_leave()
        self._honest_ballots_are_votes_plus_fresh_noise()
        self._at_most_one_list_of_a_batch_can_be_opened()
        self._every_openable_list_has_enough_honest_noise()
        self._what_left_was_charged_once()

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Broken(what, self._world.plan)

    def _read(self, sender: int, data: bytes) -> None:
        if sender == AGGREGATOR:
            if kind_of(data) == BallotList.KIND:
                ballot_list = decode(data, BallotList)
                self._lists[list_hash(ballot_list)] = ballot_list
        elif sender in self._world.honest:
            match kind_of(data):
                case Ballot.KIND:
                    self._ballots[sender, decode(data, Ballot).batch_id].add(data)
                case SignedShares.KIND:
                    shares = decode(data, SignedShares)
                    self._sharers[shares.batch_id, shares.list_hash].add(sender)

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
        if not isinstance(released, Transcript):
            return
        verified = verify_transcript(released.to_bytes(), insecure_testing=True)
        ballots = decode(released.ballot_list, BallotList).ballots
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
                    self._ballots[teacher, asked.batch] == {data},
                    f"batch {number} was released with a ballot that teacher {teacher} never cast",
                )
                self._require(
                    self._is_charged(teacher, asked),
                    f"batch {number} was released, and teacher {teacher} did not charge it",
                )

    def _no_two_ballots_of_a_batch_leave(self) -> None:
        for (teacher, _), ballots in self._ballots.items():
            self._require(len(ballots) == 1, f"two ballots of teacher {teacher} for a batch left")

    def _honest_ballots_are_votes_plus_fresh_noise(self) -> None:
        """And every draw of noise is in one ballot at most."""
        for teacher in self._world.honest:
            used: Counter[tuple[int, ...]] = Counter()
            for asked in self._world.asked:
                for data in self._ballots.get((teacher, asked.batch), set()):
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
            for place, sharers in self._sharers.items()
            if len(sharers) + helpers >= self._trust.threshold
        ]

    def _at_most_one_list_of_a_batch_can_be_opened(self) -> None:
        batches = [batch for batch, _ in self._openable()]
        self._require(len(batches) == len(set(batches)), "two lists of one batch can be opened")

    def _every_openable_list_has_enough_honest_noise(self) -> None:
        for batch, served in self._openable():
            teachers = {decode(each, Ballot).teacher for each in self._lists[served].ballots}
            cast = [
                teacher
                for teacher in teachers & set(self._world.honest)
                if self._ballots[teacher, batch] <= set(self._lists[served].ballots)
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
            requests = self._world.requests_to(index)
            charged = {batch for batch in requests if ledger.find_ballot(batch) is not None}
            self._require(
                task.answered == sum(requests[batch] for batch in charged),
                f"teacher {index} charged {task.answered} queries for {len(charged)} batches",
            )
            left = {batch for teacher, batch in self._ballots if teacher == index}
            self._require(left <= charged, f"a ballot of teacher {index} left without a charge")
            self._require(task.answered <= task.queries, f"teacher {index} passed its budget")
            self._one_list_was_served(index, charged)

    def _one_list_was_served(self, index: int, charged: set[BatchId]) -> None:
        for batch in charged:
            lists = [place for place, who in self._sharers.items() if index in who]
            served = {of_list for where, of_list in lists if where == batch}
            self._require(len(served) <= 1, f"teacher {index} served two lists of one batch")

    def _is_charged(self, index: int, asked: Asked) -> bool:
        return self._world.ledger_of(index).find_ballot(asked.batch) is not None
