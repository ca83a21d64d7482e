"""From opened sums to labels: offsets off, the largest count wins, ties by hash, or abstain.

A function of public values only, so the aggregator, the querier and whoever verifies a transcript
get the same labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gmpy2 import mpz

from dppp.privacy.noise import Binomial, Noise
from dppp.privacy.sampling import sampling_table
from dppp.protocol.messages import ListHash, QueryId, hash_parts
from dppp.protocol.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The release of one query: a class number, or None for an abstention, and the counts."""

    label: int | None
    counts: tuple[int, ...]


def release_answers(
    task: Task,
    query_ids: Sequence[QueryId],
    plaintexts: Sequence[mpz],
    *,
    ballots: int,
    of_list: ListHash,
) -> tuple[Answer, ...]:
    """The answers to a batch from the plaintexts of the tally of so many ballots."""
    classes = len(task.class_names)
    sums = task.packing.unpack(plaintexts, classes * len(query_ids), contributions=ballots)
    offset = ballots_offset(task, ballots)
    answers = []
    for position, identifier in enumerate(query_ids):
        counts = tuple(each - offset for each in sums[position * classes :][:classes])
        label = choose_label(counts, of_list, identifier, abstain_below=task.abstain_below)
        answers.append(Answer(label=label, counts=counts))
    return tuple(answers)


def ballots_offset(task: Task, ballots: int) -> int:
    """What every sum holds besides votes and centred noise.

    Entries are shifted by the lowest share to be non-negative.
    """
    return sum_of_centres(task.noise, ballots) - sampling_table(task.noise).lowest * ballots


def sum_of_centres(noise: Noise, ballots: int) -> int:
    """What the shares of so many ballots add up to on average.

    Binomial shares are around m/2, the others around 0. With an odd number of tosses in all, counts
    stay half a vote too high, all alike.
    """
    return noise.tosses_per_teacher * ballots // 2 if isinstance(noise, Binomial) else 0


def choose_label(
    counts: Sequence[int],
    of_list: ListHash,
    identifier: QueryId,
    *,
    abstain_below: int | None,
) -> int | None:
    """The class of the largest count; of equal ones that with the smallest hash."""
    highest = max(counts)
    if abstain_below is not None and highest < abstain_below:
        return None
    winners = [label for label, count in enumerate(counts) if count == highest]
    return min(winners, key=lambda label: _lot(of_list, identifier, label))


def _lot(of_list: ListHash, identifier: QueryId, label: int) -> bytes:
    return hash_parts("dppp tie 1", (of_list, identifier, label.to_bytes(4, "big")))
