"""An attacker's notebook, 2: which honest answers can be combined to something that is told.

The attack: the aggregator serves each honest teacher a list of its choice, and looks for a
combination of the sums that they give back in which all that dealers drew at random cancels out. If
it finds one over two different lists, it learns something about a difference of lists: about few
dealers, or one.

What is checked, exhaustively for up to 6 honest teachers:

    Honest teachers are 1 … h, of whom j is served a list with the honest part A_j, or none. It has
    endorsed it, so j is in A_j. It gave y_j = Σ_(i in A_j) f_i(j), with f_i the dealt polynomial of
    i. All C colluders know their own values of every f_i. A *dependency* is a vector λ such that in
    Σ_j λ_j·y_j, less what colluders know, no drawn row of any honest dealer is left.

    (certified)    If t - C or more honest teachers were served one and the same list, then every
                   λ is zero outside of the teachers with just this list. So what is told is told
                   by the sum over this one list. No length of lists is assumed.
    (uncertified)  If all lists have at least h - D honest dealers and t - C > 2·D, then all
                   teachers in which λ is not zero were served the same list, and this is one list
                   for all λ.

Why (certified) holds: let K be those t - C > h/2 teachers and A their list. For a dealer i let w_i
be λ, set to zero at the teachers whose list lacks i. It is a word of a code (RS, dual) in which
words that are not zero have t - C places that are not. So is w_i - w_k for two dealers i, k. For
i outside of A, w_i is zero on K, so it has at most h - (t - C) < t - C places: it is zero. For i, k
in A, w_i - w_k is zero on K, so it is zero. A teacher j with λ_j ≠ 0 has itself on its list, so w_j
is not zero: j is in A, and all w_i with i in A are equal to w_j, not zero at j: A_j = A.

Controls that must violate it: lists shorter than h - D without a certificate; more packed values
(2·rows_needed - N - C), with a certificate.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.left_out import only_in_soak
from tests.masks.field_algebra import (
    Matrix,
    dealing_matrices,
    every_trust,
    kernel,
    parameters_for,
    ranks,
    trust_of,
)

from dppp.masks.dealing import sharing_of
from dppp.masks.parameters import FIELD, Parameters
from dppp.masks.sharing import Sharing

pytestmark = pytest.mark.attack

NOT_SERVED = 0
Serving = tuple[int, ...]
"""The honest part of each teacher's list as a set of bits, bit i for dealer i; 0 for no list."""


def honest_of(parameters: Parameters) -> int:
    return parameters.teachers - parameters.colluders


def trusts_with(honest: int, most_colluders: int) -> list[Parameters]:
    trusts = every_trust(12)
    return [
        each for each in trusts if honest_of(each) == honest and each.colluders <= most_colluders
    ]


def unknown_part(sharing: Sharing, honest: int) -> Matrix:
    """What of one dealing's drawn rows is in each honest row and not known to the colluders."""
    drawn = dealing_matrices(sharing)[1]
    return drawn[:honest] @ kernel(drawn[honest:]) % FIELD


def conditions(servings: NDArray[np.int64], unknown: Matrix) -> Matrix:
    """For each serving the matrix whose kernel are its dependencies."""
    honest, unknowns = unknown.shape
    dealers = np.arange(honest)
    is_listed = servings[:, None, :] >> dealers[:, None] & 1  # serving, dealer, endorser
    parts = is_listed[:, :, None, :] * unknown.T[None, None]
    rows = parts.reshape(len(servings), honest * unknowns, honest)
    silent = (servings == NOT_SERVED)[:, :, None] * np.eye(honest, dtype=np.int64)
    return np.concatenate([rows, silent], axis=1)


def are_within(matrices: Matrix, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all dependencies are zero outside of these teachers, for each serving."""
    honest = matrices.shape[2]
    outside = (~inside)[:, :, None] * np.eye(honest, dtype=np.int64)
    return ranks(np.concatenate([matrices, outside], axis=1)) == ranks(matrices)


def lists_of(teacher: int, honest: int, least: int) -> list[int]:
    return [
        each for each in range(1, 2**honest) if each >> teacher & 1 and each.bit_count() >= least
    ]


def certified_servings(honest: int, enough: int) -> Iterator[tuple[Serving, int]]:
    """Every way to serve `enough` teachers one list and the others any, and that list."""
    for served in itertools.combinations(range(honest), enough):
        needed = sum(1 << each for each in served)
        for certified in range(2**honest):
            if certified & needed != needed:
                continue
            choices = [
                [certified] if each in served else [NOT_SERVED, *lists_of(each, honest, 1)]
                for each in range(honest)
            ]
            yield from ((serving, certified) for serving in itertools.product(*choices))


def count_certified_violations(sharing: Sharing, parameters: Parameters) -> int:
    honest = honest_of(parameters)
    enough = parameters.threshold - parameters.colluders
    servings, certified = zip(*certified_servings(honest, enough), strict=True)
    sets = np.array(servings)
    matrices = conditions(sets, unknown_part(sharing, honest))
    return int((~are_within(matrices, sets == np.array(certified)[:, None])).sum())


def count_uncertified_violations(parameters: Parameters, *, least: int, silent: bool) -> int:
    """Servings for which no single list has all dependencies."""
    honest = honest_of(parameters)
    nothing = [NOT_SERVED] if silent else []
    choices = [[*nothing, *lists_of(each, honest, least)] for each in range(honest)]
    sets = np.array(list(itertools.product(*choices)))
    matrices = conditions(sets, unknown_part(sharing_of(parameters), honest))
    are_good = np.zeros(len(sets), dtype=np.bool_)
    for teacher in range(honest):
        are_good |= are_within(matrices, sets == sets[:, teacher : teacher + 1])
    return int((~are_good).sum())


FIVE = [each for honest in (2, 3, 4, 5) for each in trusts_with(honest, 2)]


@pytest.mark.parametrize("parameters", FIVE, ids=trust_of)
def test_beside_a_certified_list_no_other_list_is_in_a_dependency(parameters: Parameters) -> None:
    assert count_certified_violations(sharing_of(parameters), parameters) == 0


@pytest.mark.parametrize("colluders", [0, 1])
def test_beside_a_certified_list_no_other_is_in_a_dependency_of_six(colluders: int) -> None:
    parameters = parameters_for(6 + colluders, colluders, 1)
    assert count_certified_violations(sharing_of(parameters), parameters) == 0


@only_in_soak
@pytest.mark.parametrize("parameters", trusts_with(6, 3), ids=trust_of)
def test_beside_a_certified_list_no_other_is_in_one_for_any_trust_of_six(
    parameters: Parameters,
) -> None:
    assert count_certified_violations(sharing_of(parameters), parameters) == 0


@pytest.mark.parametrize(("teachers", "colluders", "dropouts"), [(6, 0, 1), (7, 1, 0)])
def test_with_more_values_packed_another_list_is_in_a_dependency(
    teachers: int, colluders: int, dropouts: int
) -> None:
    parameters = parameters_for(teachers, colluders, dropouts)
    needed = parameters.rows_needed
    packed = 2 * needed - teachers - colluders
    wrong = Sharing(teachers=teachers, rows_needed=needed, packed=packed)
    assert count_certified_violations(wrong, parameters) > 0


def with_long_lists(honest: int) -> list[Parameters]:
    return [
        each
        for each in trusts_with(honest, 1)
        if each.threshold - each.colluders > 2 * each.dropouts
    ]


LONG_LISTS = [each for honest in (2, 3, 4, 5) for each in with_long_lists(honest)]
LONG_LISTS_OF_SIX = [pytest.param(each, marks=only_in_soak) for each in with_long_lists(6)]


@pytest.mark.parametrize("parameters", [*LONG_LISTS, *LONG_LISTS_OF_SIX], ids=trust_of)
def test_without_a_certificate_long_lists_in_dependencies_are_one_list(
    parameters: Parameters,
) -> None:
    least = honest_of(parameters) - parameters.dropouts
    assert count_uncertified_violations(parameters, least=least, silent=True) == 0


def test_without_a_certificate_shorter_lists_are_mixed_in_6_of_64_cases_of_3_teachers() -> None:
    parameters = parameters_for(3, 0, 1)
    assert count_uncertified_violations(parameters, least=1, silent=False) == 6
