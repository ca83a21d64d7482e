"""Whole rounds: what is opened is the plain sum, whoever of those present endorses and answers."""

import itertools

import numpy as np
import pytest
from tests.masks.rounds import Round

from dppp.errors import MaskParametersError
from dppp.masks.parameters import Parameters, choose_parameters


def every_trust(most: int) -> list[tuple[int, int, int]]:
    """Every trust with up to this many teachers that masks allow."""
    found = []
    for teachers, colluders, dropouts in itertools.product(
        range(2, most + 1), range(most), range(most)
    ):
        try:
            parameters_for(teachers, colluders, dropouts)
        except MaskParametersError:
            continue
        found.append((teachers, colluders, dropouts))
    return found


def parameters_for(teachers: int, colluders: int, dropouts: int, **more: int) -> Parameters:
    named = {"largest_sum": 2000, "counts": 30, **more}
    return choose_parameters(teachers=teachers, colluders=colluders, dropouts=dropouts, **named)


@pytest.mark.parametrize(("teachers", "colluders", "dropouts"), every_trust(12))
def test_the_opened_sums_are_the_plain_sums_with_the_most_dropouts(
    teachers: int, colluders: int, dropouts: int
) -> None:
    parameters = parameters_for(teachers, colluders, dropouts)
    random = np.random.default_rng(teachers * 100 + colluders * 10 + dropouts)
    present = tuple(range(1 + dropouts, teachers + 1))
    entries = {each: random.integers(0, 200, 30) for each in present}
    shown = Round(parameters, present)
    shown.cast(entries)
    needed = parameters.rows_needed
    opened = shown.open(present[:needed], present[-needed:])
    assert (opened == sum(entries.values())).all()


@pytest.mark.parametrize("counts", [1, 1023, 5000, 20_000])
def test_the_opened_sums_are_the_plain_sums_for_any_number_of_counts(counts: int) -> None:
    parameters = parameters_for(5, 1, 1, counts=counts)
    random = np.random.default_rng(counts)
    entries = {each: random.integers(0, 400, counts) for each in range(1, 6)}
    shown = Round(parameters, (1, 2, 3, 4, 5))
    shown.cast(entries)
    assert (shown.open((1, 2, 3, 4), (2, 3, 4, 5)) == sum(entries.values())).all()
