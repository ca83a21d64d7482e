"""The answers to one certified list: rows of seeds, of which enough open every ballot's pad.

Run by the aggregator.
"""

from collections.abc import Iterable, Mapping

from dppp.masks.dealing import seed_row_bytes
from dppp.masks.opening import add_votes, open_counts, recover_seeds, secret_to_bytes
from dppp.masks.sharing import elements_from_bytes
from dppp.protocol.messages import BatchRequest
from dppp.protocol.receipt import Receipt
from dppp.protocol.release import make_releases
from dppp.protocol.wire import encode
from dppp.protocol.with_masks.ballots import ClosedList
from dppp.protocol.with_masks.endorsements import Endorsements
from dppp.protocol.with_masks.messages import SeedRows
from dppp.protocol.with_masks.verification import write_sums


class Answers:
    """Who gave which rows of the listed dealers' seeds."""

    def __init__(self, closed: ClosedList) -> None:
        self._list = closed
        self._parameters = closed.run.task.parameters
        self._mute: set[int] = set()
        self.taken: dict[int, list[bytes]] = {}

    @property
    def usable(self) -> dict[int, list[bytes]]:
        """Rows of seeds as given, or as shown later; not of those who did not show them."""
        return {each: rows for each, rows in self.taken.items() if each not in self._mute}

    @property
    def is_enough(self) -> bool:
        """Whether seeds can be recovered."""
        return len(self.usable) >= self._parameters.rows_needed

    def take(self, message: SeedRows) -> None:
        """Keep the rows of a teacher that signed them, about this list."""
        length = seed_row_bytes(self._parameters)
        elements_from_bytes(message.rows, len(self._list.ballots) * length // 2)
        self.taken[message.teacher] = [
            message.rows[at : at + length] for at in range(0, len(message.rows), length)
        ]

    def recover(self) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
        """The seeds, and the dealers whose seed came out wrong."""
        seeds, wrong = recover_seeds(self._parameters, self.usable, self._list.seed_digests)
        return seeds, tuple(self._list.participants[each] for each in wrong)

    def leave_out(self, silent: Iterable[int]) -> None:
        """Do without the rows of those who did not show them."""
        self._mute |= set(silent)

    def put_right(self, shown: Mapping[tuple[int, int], bytes]) -> bool:
        """Take rows as they were sealed, by teacher and dealer; whether any is another one."""
        has_changed = False
        for (teacher, dealer), row in shown.items():
            place = self._list.participants.index(dealer)
            if teacher in self.taken and self.taken[teacher][place] != row:
                self.taken[teacher][place] = row
                has_changed = True
        return has_changed


def make_receipt(
    closed: ClosedList, endorsements: Endorsements, seeds: tuple[bytes, ...], request: BatchRequest
) -> Receipt:
    """Open a list with the seeds of all its ballots and the sum of its secrets."""
    run, secret = closed.run, endorsements.secret
    parameters = run.task.parameters
    votes = [each.votes for each in closed.ballots.values()]
    votes_sum = add_votes(parameters, votes, seeds, counts=run.counts)
    sums = open_counts(parameters, run.votes_seed, votes_sum, secret, counts=run.counts)
    answers = make_releases(
        run.task,
        request.query_ids,
        sums,
        participants=closed.participants,
        of_list=closed.statement.list_hash,
    )
    return Receipt(
        task=encode(run.task),
        public_key=encode(run.roster),
        query_ids=request.query_id_bytes,
        list_hash=closed.statement.list_hash,
        participants=closed.participants,
        tallies=write_sums(run, closed.check_sum, votes_sum),
        endorsers=endorsements.endorsers(run.task.trust.threshold),
        openings=(secret_to_bytes(secret.coefficients), b"".join(seeds)),
        answers=answers,
        attempt=run.attempt,
    )
