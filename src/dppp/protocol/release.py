"""From opened sums to answers: offsets off, and what the question makes of the counts.

Of a choice the largest count wins, ties by hash, or it abstains; of labels all that pass the share
of the votes; of a number the mean of the votes.

A function of public values only, so the aggregator, the querier and whoever verifies a receipt get
the same labels. Counts that votes and noise cannot give are flagged: somebody cast more than its
votes. That catches the clumsy only. Nothing proves that a ballot holds votes and honest noise, and
one dishonest teacher who stays within the noise can decide labels.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.hashing import hash_parts
from dppp.privacy.noise import Noise
from dppp.privacy.sampling import sampling_table
from dppp.protocol.messages import ListHash, QueryId
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release of one query: what the question asked for, and the counts.

    `label` is a class number, or None for an abstention; `labels` are the labels above the share,
    which may be none; `value` is the mean. Only the one that the question asks for is there, and
    not even that where no entries can give the sum. `is_flagged`: honest ballots give such counts
    less often than once in a million answers.
    """

    label: int | None
    counts: tuple[int, ...]
    is_flagged: bool = False
    labels: tuple[int, ...] | None = None
    value: float | None = None


FALSE_ALARM_RATE = 1e-6
"""How often, at the most, an answer is flagged although every teacher kept the rules."""


def make_releases(
    task: Task,
    query_ids: Sequence[QueryId],
    sums: Sequence[int] | NDArray[np.int64],
    *,
    participants: Sequence[int],
    of_list: ListHash,
) -> tuple[Release, ...]:
    """What is released for a batch, from the opened sums of the entries of these teachers' ballots.

    A sum that no entries can give voids its own answer only.
    """
    ballots, votes = len(participants), task.votes_of(participants)
    classes = len(task.class_names)
    table = np.array(sums[: len(query_ids) * classes], dtype=np.int64).reshape(-1, classes)
    counts = table - ballots_offset(task, ballots)
    is_void = table.max(axis=1) > ballots * task.entry_bound
    is_flagged = ~_are_plausible(task.noise, counts, ballots, votes=votes, question=task.question)
    if task.question.kind != "choice":
        return tuple(
            release_of(task.question, tuple(of_query), votes, is_void=void, is_flagged=flag)
            for of_query, void, flag in zip(
                counts.tolist(), is_void.tolist(), is_flagged.tolist(), strict=True
            )
        )
    is_tied = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    labels: list[int | None] = counts.argmax(axis=1).tolist()
    for row in np.flatnonzero(is_tied).tolist():
        labels[row] = choose_label(
            counts[row].tolist(), of_list, query_ids[row], abstain_below=task.abstain_below
        )
    is_below = False if task.abstain_below is None else counts.max(axis=1) < task.abstain_below
    for row in np.flatnonzero(is_void | is_below).tolist():
        labels[row] = None
    return tuple(
        Release(label=label, counts=tuple(of_query), is_flagged=flag)
        for label, of_query, flag in zip(labels, counts.tolist(), is_flagged.tolist(), strict=True)
    )


def release_of(
    question: Question,
    counts: tuple[int, ...],
    votes: int,
    *,
    is_void: bool = False,
    is_flagged: bool = False,
) -> Release:
    """The answer to a question of labels or of a number."""
    if is_void:
        return Release(label=None, counts=counts, is_flagged=is_flagged)
    if question.kind == "number":
        value = question.mean_of(counts[0], votes)
        return Release(label=None, counts=counts, is_flagged=is_flagged, value=value)
    least = question.least_count(votes)
    labels = tuple(place for place, count in enumerate(counts) if count >= least)
    return Release(label=None, counts=counts, is_flagged=is_flagged, labels=labels)


def is_plausible(
    noise: Noise,
    counts: Sequence[int],
    ballots: int,
    *,
    votes: int,
    question: Question = CHOICE,
) -> bool:
    """Whether so many votes and a noise share in each ballot can give these counts."""
    table = np.array([counts], dtype=np.int64)
    return bool(_are_plausible(noise, table, ballots, votes=votes, question=question)[0])


def _are_plausible(
    noise: Noise, counts: NDArray[np.int64], ballots: int, *, votes: int, question: Question
) -> NDArray[np.bool_]:
    """The same for many queries, one per row."""
    of_one, of_all = plausible_noise(noise, ballots, counts.shape[1])
    totals = counts.sum(axis=1)
    most, most_in_all = votes * question.largest_entry, votes * question.largest_total
    is_each_plausible = (counts >= -of_one) & (counts <= most + of_one)
    is_plausible_total = (totals >= -of_all) & (totals <= most_in_all + of_all)
    found: NDArray[np.bool_] = is_each_plausible.all(axis=1) & is_plausible_total
    return found


def standard_error(task: Task, participants: Sequence[int]) -> float:
    """What the noise of these teachers' ballots adds to a mean: its standard deviation."""
    variance = task.noise.of_teachers(len(participants)).variance
    return task.question.standard_error(variance, task.votes_of(participants))


def largest_standard_error(task: Task) -> float:
    """The same for whoever does not know which teachers took part: it is never less.

    Fewer ballots hold less noise, but the mean is over fewer votes, which weighs more.
    """
    fewest = len(task.teachers) - task.trust.dropouts
    by_votes = sorted(range(1, len(task.teachers) + 1), key=lambda each: task.votes[each - 1])
    return standard_error(task, by_votes[:fewest])


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
