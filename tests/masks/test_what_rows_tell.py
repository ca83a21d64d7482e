"""An attacker's notebook, 1: what rows and sums of rows tell, for every trust with N ≤ 12.

Each attack is a question of linear algebra over the field. Observations are linear in the dealt
secrets (or seeds) and in what dealers drew at random. They tell as much about the secrets as there
are independent combinations of them in which nothing drawn is left.

- C colluders, or any t - 1 teachers, put their rows of one dealer together. *Nothing.* Control: any
  t tell something, and any rows_needed tell everything.
- After t withdrawals everybody who may still open, and all colluders, show their seed rows.
  *Nothing*: together they are at most t - 1. Control: after t - 1 withdrawals it is something.
- The aggregator serves a second list, without one honest dealer, to some honest teachers; the
  others get the full one. *The sum over one list at most*, and only if t - C honest teachers were
  served it. Control: with 2·rows_needed - N - C packed values two half-served lists both tell
  something, and their difference is about one dealer alone.
"""

import numpy as np
import pytest
from tests.masks.field_algebra import (
    Matrix,
    dealing_matrices,
    every_trust,
    parameters_for,
    rank,
    ranks,
    subsets,
    tells,
    trust_of,
)

from dppp.masks.dealing import sharing_of
from dppp.masks.parameters import Parameters
from dppp.masks.sharing import Sharing

pytestmark = pytest.mark.attack

TRUSTS = pytest.mark.parametrize("parameters", every_trust(12), ids=trust_of)


def told_by(sharing: Sharing, size: int) -> set[int]:
    """How much each set of teachers of this size learns from its rows of one dealer."""
    if not size:
        return {0}
    chosen = subsets(range(sharing.teachers), size)
    secret, drawn = dealing_matrices(sharing)
    everything = np.concatenate([secret, drawn], axis=1)
    return set((ranks(everything[chosen]) - ranks(drawn[chosen])).tolist())


@TRUSTS
def test_rows_of_all_colluders_and_of_any_t_less_one_teachers_tell_nothing(
    parameters: Parameters,
) -> None:
    sharing = sharing_of(parameters)
    assert parameters.colluders < parameters.threshold
    assert told_by(sharing, parameters.colluders) == {0}
    assert told_by(sharing, parameters.threshold - 1) == {0}


@TRUSTS
def test_rows_of_any_t_teachers_tell_something_and_of_rows_needed_everything(
    parameters: Parameters,
) -> None:
    sharing = sharing_of(parameters)
    assert told_by(sharing, parameters.threshold) == {1}
    assert told_by(sharing, parameters.rows_needed) == {parameters.packed}


@TRUSTS
def test_after_t_withdrawals_all_who_may_still_show_seed_rows_tell_nothing(
    parameters: Parameters,
) -> None:
    """The worst case: all colluders are among the t that withdrew, and show their rows anyway."""
    rows = rows_after_withdrawals(parameters, parameters.threshold)
    assert told_by(sharing_of(parameters), rows) == {0}


def test_after_fewer_withdrawals_seed_rows_tell_something_for_some_trust() -> None:
    told = [
        told_by(sharing_of(each), rows_after_withdrawals(each, each.threshold - 1))
        for each in every_trust(8)
    ]
    assert {1} in told


def rows_after_withdrawals(parameters: Parameters, withdrawals: int) -> int:
    honest = parameters.teachers - parameters.colluders
    honest_withdrawn = max(0, withdrawals - parameters.colluders)
    return parameters.colluders + honest - honest_withdrawn


class Lists:
    """Two lists and who was served which; teachers 1 … h are honest, the others collude."""

    def __init__(self, sharing: Sharing, honest: int, first_served: int) -> None:
        self.sharing, self.honest, self.first_served = sharing, honest, first_served
        self.left_out = 0  # who is served the second list cannot be the one that it lacks

    def is_listed(self, dealer: int, endorser: int) -> bool:
        return endorser < self.first_served or dealer != self.left_out

    def observations(self) -> tuple[Matrix, Matrix]:
        """Colluders' rows of every honest dealer, then the sums that honest teachers give."""
        secret, drawn = dealing_matrices(self.sharing)
        return self._observe(secret), self._observe(drawn)

    def _observe(self, matrix: Matrix) -> Matrix:
        dealers = np.eye(self.honest, dtype=np.int64)
        known = np.kron(dealers, matrix[self.honest :])
        sums = [
            np.concatenate(
                [
                    matrix[endorser] * self.is_listed(dealer, endorser)
                    for dealer in range(self.honest)
                ]
            )
            for endorser in range(self.honest)
        ]
        return np.concatenate([known, np.stack(sums)])

    def sums_of(self, endorser: int) -> Matrix:
        """The sum of secrets over the list that this teacher was served, as observations."""
        unit = np.eye(self.sharing.packed, dtype=np.int64)
        return np.concatenate(
            [unit * self.is_listed(each, endorser) for each in range(self.honest)], axis=1
        )

    def told(self) -> int:
        return tells(*self.observations())

    def told_beyond_sum(self, endorser: int) -> int:
        """What is told by someone who already knows the sum over this teacher's list."""
        secret, drawn = self.observations()
        sums = self.sums_of(endorser)
        padded = np.concatenate([drawn, np.zeros((len(sums), drawn.shape[1]), dtype=np.int64)])
        return tells(np.concatenate([secret, sums]), padded) - rank(sums)


@TRUSTS
def test_two_lists_tell_at_most_the_sum_over_the_one_that_t_can_certify(
    parameters: Parameters,
) -> None:
    honest = parameters.teachers - parameters.colluders
    enough = parameters.threshold - parameters.colluders
    for first_served in {1, honest - enough, enough - 1, enough, honest // 2, honest - 1}:
        lists = Lists(sharing_of(parameters), honest, max(1, first_served))
        second_served = honest - lists.first_served
        if lists.first_served < enough and second_served < enough:
            assert lists.told() == 0
        else:
            certified = 0 if lists.first_served >= enough else honest - 1
            assert lists.told() >= 1
            assert lists.told_beyond_sum(certified) == 0


@pytest.mark.parametrize(
    ("teachers", "colluders", "dropouts"), [(6, 0, 1), (8, 0, 2), (9, 1, 1), (12, 0, 3), (12, 2, 2)]
)
def test_with_more_values_packed_two_half_served_lists_both_tell(
    teachers: int, colluders: int, dropouts: int
) -> None:
    parameters = parameters_for(teachers, colluders, dropouts)
    honest, needed = teachers - colluders, parameters.rows_needed
    wrong = Sharing(teachers=teachers, rows_needed=needed, packed=2 * needed - teachers - colluders)
    assert wrong.packed > parameters.packed
    lists = Lists(wrong, honest, honest // 2)
    assert lists.told_beyond_sum(0) > 0, "the second list's sum"
    assert lists.told_beyond_sum(honest - 1) > 0, "the first list's sum"
    right = Lists(sharing_of(parameters), honest, honest // 2)
    assert right.told() == 0
