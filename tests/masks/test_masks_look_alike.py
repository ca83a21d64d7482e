"""An attacker's notebook, 6: do masked votes look different when votes are large?

A smoke test and not a proof. The attacker has taken all pads off, knows the sum S of the secrets of
the only two honest teachers, and looks at one teacher's blocks. Its best guess of this teacher's
secret is S/2: it takes a_k·⌊S/2⌋ off and looks at what is left. If that is not uniform, or not the
same for zero votes and the largest votes, something is told. Each test is right by chance with
10^-6; streams are fixed, so a run that is green stays green. In the control the attacker knows the
secret itself, and the same tests see the difference at once.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.masks.field_algebra import parameters_for
from tests.masks.rounds import EPOCH, VOTES_SEED
from tests.masks.streams import fixed_stream

from dppp.masks.ballots import apply_pad, cast, vote_polynomials
from dppp.masks.dealing import DealerKeys, Preparation, prepare, reduce_to
from dppp.masks.opening import add_blocks
from dppp.masks.ring import ShortPolynomial, multiply

FALSE_ALARM = 1e-6
BLOCKS = 40
PARAMETERS = parameters_for(2, 0, 0, counts=BLOCKS * 1024)
COUNTS = BLOCKS * PARAMETERS.counts_per_block
LARGEST = 2 ** (PARAMETERS.slot_bits - 1) - 1
Words = NDArray[np.uint64]


def prepared_by(dealer: int) -> Preparation:
    keys = DealerKeys(
        epoch=EPOCH,
        dealer=dealer,
        own_key=bytes([dealer]) * 32,
        recipients=(1, 2),
        sealing_keys=(bytes(32), bytes(32)),
    )
    return prepare(PARAMETERS, keys, fixed_stream(100 + dealer))


def bare_blocks(prepared: Preparation, vote: int) -> Words:
    """Teacher 1's blocks with this in every slot, without their pad."""
    counts = np.full(COUNTS, vote, dtype=np.int64)
    randomness = fixed_stream(300 + (vote > 0))
    _, body = cast(PARAMETERS, prepared, counts, votes_seed=VOTES_SEED, randomness=randomness)
    return add_blocks(PARAMETERS, [apply_pad(body.votes, prepared.seed)], count=BLOCKS)


def left_over(blocks: Words, guess: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is left when the guessed secret's part is taken off, as numbers in [0, 1)."""
    public = vote_polynomials(PARAMETERS, VOTES_SEED, BLOCKS)
    products = multiply(public, ShortPolynomial(guess), modulus_bits=PARAMETERS.modulus_bits)
    return reduce_to(PARAMETERS, blocks - products).reshape(-1) / 2.0**PARAMETERS.modulus_bits


def chances(guess: NDArray[np.int64], prepared: Preparation) -> dict[str, float]:
    """The p-values of four tests."""
    zeros = left_over(bare_blocks(prepared, 0), guess)
    large = left_over(bare_blocks(prepared, LARGEST), guess)
    observed = np.histogram(large, bins=256, range=(0, 1))[0]
    return {
        "zero votes are uniform": stats.kstest(zeros, "uniform").pvalue,
        "large votes are uniform": stats.kstest(large, "uniform").pvalue,
        "their highest bytes are uniform": stats.chisquare(observed).pvalue,
        "both look alike": stats.ks_2samp(zeros, large).pvalue,
    }


@pytest.fixture(scope="module")
def pair() -> tuple[Preparation, Preparation]:
    return prepared_by(1), prepared_by(2)


def test_masked_votes_look_alike_to_one_who_knows_the_sum_of_two_secrets(
    pair: tuple[Preparation, Preparation],
) -> None:
    one, other = pair
    total = one.dealing.secret.coefficients + other.dealing.secret.coefficients
    found = chances(total // 2, one)
    assert min(found.values()) > FALSE_ALARM, found


def test_masked_votes_look_different_to_one_who_knows_the_secret(
    pair: tuple[Preparation, Preparation],
) -> None:
    found = chances(pair[0].dealing.secret.coefficients, pair[0])
    assert max(found.values()) < FALSE_ALARM, found


def test_padded_votes_are_uniform_bytes_even_to_one_who_knows_the_secret(
    pair: tuple[Preparation, Preparation],
) -> None:
    """As long as the pad is on: what withdrawals and shown roots leave."""
    counts = np.zeros(COUNTS, dtype=np.int64)
    _, body = cast(PARAMETERS, pair[0], counts, votes_seed=VOTES_SEED, randomness=fixed_stream(9))
    guess = pair[0].dealing.secret.coefficients
    padded = left_over(add_blocks(PARAMETERS, [body.votes], count=BLOCKS), guess)
    assert stats.kstest(padded, "uniform").pvalue > FALSE_ALARM
