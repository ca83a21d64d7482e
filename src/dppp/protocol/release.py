"""From opened sums to labels: offsets off, the largest count wins, ties by hash, or abstain.

A function of public values only, so the aggregator, the querier and whoever verifies a receipt get
the same labels. Counts that votes and noise cannot give are flagged: somebody cast more than a
vote. That catches the clumsy only. Nothing proves that a ballot holds one vote and honest noise,
and one dishonest teacher who stays within the noise can decide labels.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.hashing import hash_parts
from dppp.privacy.noise import Noise
from dppp.privacy.sampling import sampling_table
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release of one query: a class number, or None for an abstention, and the counts.

    `is_flagged`: honest ballots give such counts less often than once in a million answers.
    """

    label: int | None
    counts: tuple[int, ...]
    is_flagged: bool = False


FALSE_ALARM_RATE = 1e-6
"""How often, at the most, an answer is flagged although every teacher kept the rules."""


def make_releases(
    task: Task,
    query_ids: Sequence[QueryId],
    sums: Sequence[int],
    *,
    ballots: int,
    of_list: ListHash,
) -> tuple[Release, ...]:
    """What is released for a batch, from the opened sums of the entries of `ballots` ballots.

    A sum that no entries can give voids its own label only.
    """
    classes = len(task.class_names)
    largest = ballots * task.entry_bound
    offset = ballots_offset(task, ballots)
    answers = []
    for position, identifier in enumerate(query_ids):
        of_query = [int(each) for each in sums[position * classes : (position + 1) * classes]]
        counts = tuple(each - offset for each in of_query)
        label = (
            None
            if max(of_query) > largest
            else choose_label(counts, of_list, identifier, abstain_below=task.abstain_below)
        )
        is_flagged = not is_plausible(task.noise, counts, ballots)
        answers.append(Release(label=label, counts=counts, is_flagged=is_flagged))
    return tuple(answers)


def is_plausible(noise: Noise, counts: Sequence[int], ballots: int) -> bool:
    """Whether one vote and one noise share in each ballot can give these counts, and their sum."""
    of_one, of_all = plausible_noise(noise, ballots, len(counts))
    return (
        all(-of_one <= count <= ballots + of_one for count in counts)
        and -of_all <= sum(counts) <= ballots + of_all
    )


@functools.lru_cache(maxsize=256)
def plausible_noise(noise: Noise, ballots: int, classes: int) -> tuple[int, int]:
    """How far the noise of a count, and of all counts together, is from 0.

    Each of the 2(c + 1) bounds is passed with a probability of at most its part of the false-alarm
    rate: `reach` is a bound on the tail of the sum of all shares (Chernoff or Hoeffding).
    """
    log_tail = math.log(FALSE_ALARM_RATE / (2 * (classes + 1)))
    of_one, of_all = (
        noise.of_teachers(shares).reach(log_tail) + 1 for shares in (ballots, ballots * classes)
    )
    return of_one, of_all + classes


def ballots_offset(task: Task, ballots: int) -> int:
    """What every sum holds besides votes and centred noise.

    Entries are shifted by the lowest share to be non-negative.
    """
    return task.noise.sum_of_centres(ballots) - sampling_table(task.noise).lowest * ballots


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
