"""The opened sums are the plain sums at sizes that tasks have, with the most dropouts.

Keys of an epoch are made once for each number of teachers, and every batch is dealt, sealed,
endorsed and answered in full.
"""

import functools
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.left_out import only_in_soak
from tests.masks.field_algebra import parameters_for
from tests.masks.rounds import Round

from dppp.masks.epoch_keys import EpochSecret

MOST_IN_ONE_ENTRY = 30


@dataclass(slots=True)
class LargeRound(Round):
    """A round in which both teachers of a pair use the key that the first of them worked out."""

    known: dict[frozenset[int], bytes] = field(default_factory=dict)

    def sealing_key(self, one: int, other: int) -> bytes:
        pair = frozenset((one, other))
        if pair not in self.known:
            self.known[pair] = Round.sealing_key(self, one, other)
        return self.known[pair]


@functools.cache
def epoch_of(
    present: tuple[int, ...],
) -> tuple[dict[int, EpochSecret], dict[frozenset[int], bytes]]:
    """The secrets of one epoch, and the keys of pairs as they become known."""
    return {each: EpochSecret.generate(each) for each in present}, {}


def open_plain_sums(teachers: int, classes: int, labels: int) -> None:
    colluders, dropouts = teachers // 5, teachers // 10
    counts = classes * labels
    largest = MOST_IN_ONE_ENTRY * teachers
    parameters = parameters_for(teachers, colluders, dropouts, largest_sum=largest, counts=counts)
    present = tuple(range(1 + dropouts, teachers + 1))
    random = np.random.default_rng([teachers, classes, labels])
    entries = {each: random.integers(0, MOST_IN_ONE_ENTRY + 1, counts) for each in present}
    shown = LargeRound(parameters, present)
    shown.secrets, shown.known = epoch_of(present)
    shown.cast(entries)
    opened = shown.open(present[: parameters.rows_needed], present[-parameters.rows_needed :])
    assert (opened == sum(entries.values())).all()


@pytest.mark.parametrize("labels", [1, 500, 5000])
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_the_opened_sums_of_20_teachers_are_the_plain_sums(classes: int, labels: int) -> None:
    open_plain_sums(20, classes, labels)


@pytest.mark.parametrize(("teachers", "classes"), [(2, 10), (20, 10), (20, 2)])
def test_the_opened_sums_of_10_000_labels_are_the_plain_sums(teachers: int, classes: int) -> None:
    open_plain_sums(teachers, classes, 10_000)


@pytest.mark.parametrize(
    ("classes", "labels"), [(2, 1), (100, 1), (10, 500), (100, 500), (2, 5000)]
)
def test_the_opened_sums_of_100_teachers_are_the_plain_sums(classes: int, labels: int) -> None:
    open_plain_sums(100, classes, labels)


@pytest.mark.parametrize(("classes", "labels"), [(2, 1), (10, 500), (2, 5000)])
def test_the_opened_sums_of_250_teachers_are_the_plain_sums(classes: int, labels: int) -> None:
    open_plain_sums(250, classes, labels)


@only_in_soak
def test_half_a_million_opened_sums_of_100_teachers_are_the_plain_sums() -> None:
    open_plain_sums(100, 100, 5000)


@only_in_soak
def test_the_opened_sums_of_1000_teachers_are_the_plain_sums() -> None:
    open_plain_sums(1000, 2, 1)
