"""An attacker's notebook, 4: what an aggregator or colluders may try to pass off when a list opens.

- Another S than the sum of the secrets: one coefficient off, a multiple of q or of the field's
  prime added, a short vector added, rubbish. Block 0 refuses all of them.
- An endorsement whose row is wrong in one element, or seeds of two dealers exchanged, or one wrong
  seed row. The sum does not fit, or the digests name the dealers' positions.
- Check blocks with multiples of Δ in them, as if block 0 held votes: refused, though the same in a
  vote block is just a vote.
- Encodings: numbers that are not below 65521, lengths, indices 0 and N + 1, too few rows, a slot
  past the last count that is not zero.

- Another S that does fit. `opening.py` says how many are to be expected; here that is worked out
  for rings that tasks get, tried at a small degree, and there is a control with a small modulus.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.masks.field_algebra import parameters_for
from tests.masks.rounds import EPOCH, VOTES_SEED, Round
from tests.masks.streams import fixed_stream

from dppp.errors import BallotFault, EncodingError, OpeningFault, PaddingFault, RowsError
from dppp.masks.ballots import apply_pad, require_body
from dppp.masks.dealing import check_seed, reduce_to, sharing_of
from dppp.masks.gaussian import draw
from dppp.masks.opening import (
    add_blocks,
    largest_error,
    largest_square,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
    secret_from_bytes,
    secret_to_bytes,
    seeds_from_bytes,
)
from dppp.masks.parameters import FIELD, NARROWEST_SLOT_BITS, SIGMA, Parameters
from dppp.masks.ring import ShortPolynomial, multiply, public_polynomial

pytestmark = pytest.mark.attack

PARAMETERS = parameters_for(5, 1, 1, largest_sum=2**14 - 1)
EVERYONE = (1, 2, 3, 4, 5)
FOUR = (1, 2, 4, 5)
VOTE = np.arange(30, dtype=np.int64) * 7
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@pytest.fixture(scope="module")
def shown() -> Round:
    """A round that is not changed by any test."""
    made = Round(PARAMETERS, EVERYONE)
    made.cast({each: VOTE + each for each in EVERYONE})
    return made


def sums_of(shown: Round) -> dict[int, bytes]:
    return {each: shown.endorse(each) for each in FOUR}


def check_sum_of(shown: Round) -> Words:
    blocks = [shown.bodies[each].check_block for each in EVERYONE]
    return add_blocks(PARAMETERS, blocks, count=1)[0]


def digests_of(shown: Round) -> list[bytes]:
    return [shown.headers[each].seed_digest for each in EVERYONE]


def fits(shown: Round, secret: Integers) -> None:
    require_fits(PARAMETERS, EPOCH, check_sum_of(shown), secret)


def unit(place: int, value: int = 1) -> Integers:
    vector = np.zeros(PARAMETERS.degree, dtype=np.int64)
    vector[place] = value
    return vector


def test_the_sum_of_the_secrets_fits(shown: Round) -> None:
    fits(shown, recover_secret(PARAMETERS, sums_of(shown)))


@pytest.mark.parametrize("place", [0, 1, 511, 1023])
@pytest.mark.parametrize("value", [1, -1, 2, 100])
def test_a_sum_with_one_coefficient_off_does_not_fit(shown: Round, place: int, value: int) -> None:
    secret = recover_secret(PARAMETERS, sums_of(shown))
    with pytest.raises(OpeningFault):
        fits(shown, secret + unit(place, value))


@pytest.mark.parametrize("value", [FIELD, -FIELD, 2**PARAMETERS.modulus_bits, 2**62])
def test_a_sum_with_a_multiple_of_a_modulus_added_does_not_fit(shown: Round, value: int) -> None:
    """Modulo q, or modulo the field's prime, it is the same; but it is not short."""
    secret = recover_secret(PARAMETERS, sums_of(shown))
    with pytest.raises(OpeningFault, match="not short"):
        fits(shown, secret + unit(7, value))


def test_a_sum_shifted_by_short_vectors_does_not_fit(shown: Round) -> None:
    secret = recover_secret(PARAMETERS, sums_of(shown))
    random = np.random.default_rng(1)
    for width in (1, 2, 5, 20):
        shift = random.integers(-width, width + 1, PARAMETERS.degree)
        with pytest.raises(OpeningFault):
            fits(shown, secret + shift)


@pytest.mark.parametrize("turn", [1, 512, 1023])
def test_a_sum_times_a_power_of_x_does_not_fit(shown: Round, turn: int) -> None:
    """It has the same norm: shortness alone would let it pass."""
    secret = recover_secret(PARAMETERS, sums_of(shown))
    with pytest.raises(OpeningFault, match="does not open"):
        fits(shown, np.concatenate([-secret[-turn:], secret[:-turn]]))


@pytest.mark.parametrize("length", [0, 8, 1023, 1025, 2048])
def test_a_sum_of_another_length_does_not_fit(shown: Round, length: int) -> None:
    with pytest.raises(OpeningFault):
        fits(shown, np.zeros(length, dtype=np.int64))


def test_a_wrong_element_in_one_endorsement_does_not_fit(shown: Round) -> None:
    sums = sums_of(shown)
    for endorser in FOUR:
        elements = np.frombuffer(sums[endorser], dtype="<u2").astype(np.int64)
        elements[3] = (elements[3] + 1) % FIELD
        wrong = {**sums, endorser: elements.astype("<u2").tobytes()}
        with pytest.raises((OpeningFault, PaddingFault)):
            fits(shown, recover_secret(PARAMETERS, wrong))


def test_endorsements_of_two_teachers_exchanged_do_not_fit(shown: Round) -> None:
    sums = sums_of(shown)
    with pytest.raises((OpeningFault, PaddingFault)):
        fits(shown, recover_secret(PARAMETERS, {**sums, 1: sums[2], 2: sums[1]}))


@pytest.mark.parametrize("votes", [1, 5, 2**13])
def test_a_check_block_that_holds_votes_does_not_fit(shown: Round, votes: int) -> None:
    secret = recover_secret(PARAMETERS, sums_of(shown))
    scaled = np.uint64(votes << PARAMETERS.scale_bits)
    changed = check_sum_of(shown)
    changed[11] = reduce_to(PARAMETERS, changed[11] + scaled)
    with pytest.raises(OpeningFault, match="does not open"):
        require_fits(PARAMETERS, EPOCH, changed, secret)


def open_with(shown: Round, votes: Words) -> Integers:
    secret = ShortPolynomial(recover_secret(PARAMETERS, sums_of(shown)))
    return open_counts(PARAMETERS, VOTES_SEED, votes, secret, counts=len(VOTE))


def votes_sum_of(shown: Round) -> Words:
    answers = {each: shown.answer(each) for each in FOUR}
    seeds, _ = recover_seeds(PARAMETERS, answers, digests_of(shown))
    bodies = [shown.bodies[each].votes for each in EVERYONE]
    bare = [apply_pad(data, seed) for data, seed in zip(bodies, seeds, strict=True)]
    return add_blocks(PARAMETERS, bare, count=1)


def test_a_colluder_moves_a_count_by_what_it_likes_and_no_other(shown: Round) -> None:
    """Not an attack that is refused: a vote block may hold any vote."""
    plain = open_with(shown, votes_sum_of(shown))
    changed = votes_sum_of(shown)
    changed[0, 11] += np.uint64(1000 << PARAMETERS.scale_bits)
    moved = open_with(shown, reduce_to(PARAMETERS, changed))
    assert np.flatnonzero(moved - plain).tolist() == [11]
    assert moved[11] - plain[11] == 1000


def test_a_slot_past_the_last_count_voids_nothing(shown: Round) -> None:
    """After OPEN nobody could be named for it, so one colluder must not end a batch with it."""
    plain, changed = open_with(shown, votes_sum_of(shown)), votes_sum_of(shown)
    changed[0, len(VOTE)] += np.uint64(1 << PARAMETERS.scale_bits)
    assert (open_with(shown, reduce_to(PARAMETERS, changed)) == plain).all()


def test_seeds_of_two_dealers_exchanged_are_both_found(shown: Round) -> None:
    answers = {each: list(shown.answer(each)) for each in FOUR}
    for rows in answers.values():
        rows[1], rows[3] = rows[3], rows[1]
    assert recover_seeds(PARAMETERS, answers, digests_of(shown))[1] == (1, 3)


@pytest.mark.parametrize("answerer", FOUR)
def test_one_wrong_seed_row_is_found_at_its_dealer(shown: Round, answerer: int) -> None:
    answers = {each: list(shown.answer(each)) for each in FOUR}
    row = np.frombuffer(answers[answerer][2], dtype="<u2").astype(np.int64)
    row[0] = (row[0] + 1) % FIELD
    answers[answerer][2] = row.astype("<u2").tobytes()
    assert recover_seeds(PARAMETERS, answers, digests_of(shown))[1] == (2,)


def test_what_a_dealer_hides_behind_a_seed_changes_nothing() -> None:
    """16 elements do not fill the packed places; the seed is the one of the digest all the same."""
    parameters = parameters_for(12, 1, 0)
    sharing = sharing_of(parameters)
    columns = sharing.columns_for(16)
    assert columns * sharing.packed > 16
    shown = Round(parameters, tuple(range(1, 13)))
    shown.cast(dict.fromkeys(shown.present, VOTE))
    digest = shown.headers[1].seed_digest
    answers = {each: shown.answer(each)[:1] for each in shown.present[: sharing.rows_needed]}
    assert recover_seeds(parameters, answers, [digest])[1] == ()
    hidden = np.zeros(columns * sharing.packed, dtype=np.int64)
    hidden[-1] = 1
    nothing = np.zeros((sharing.drawn_rows, columns), dtype=np.uint16)
    for index, row in enumerate(sharing.deal_from(hidden, nothing), start=1):
        if index in answers:
            clean = np.frombuffer(answers[index][0], dtype="<u2").astype(np.int64)
            answers[index] = (((clean + row) % FIELD).astype("<u2").tobytes(),)
    assert recover_seeds(parameters, answers, [digest])[1] == ()


@pytest.mark.parametrize("value", [FIELD, FIELD + 1, 2**16 - 1])
def test_numbers_that_are_not_in_the_field_are_refused(shown: Round, value: int) -> None:
    large = value.to_bytes(2, "little")
    sums = sums_of(shown)
    sums[1] = large + sums[1][2:]
    with pytest.raises(EncodingError):
        recover_secret(PARAMETERS, sums)
    answers = {each: list(shown.answer(each)) for each in FOUR}
    answers[4][0] = large + answers[4][0][2:]
    with pytest.raises(EncodingError):
        recover_seeds(PARAMETERS, answers, digests_of(shown))
    with pytest.raises(EncodingError):
        secret_from_bytes(PARAMETERS, large + bytes(2 * PARAMETERS.degree - 2))
    with pytest.raises(EncodingError):
        seeds_from_bytes(large + bytes(30), 1)


@pytest.mark.parametrize("index", [0, -1, 6, 65521])
def test_rows_of_nobody_are_refused(shown: Round, index: int) -> None:
    sums = sums_of(shown)
    sums[index] = sums.pop(5)
    with pytest.raises(RowsError):
        recover_secret(PARAMETERS, sums)
    answers = {each: shown.answer(each) for each in FOUR}
    answers[index] = answers.pop(5)
    with pytest.raises(RowsError):
        recover_seeds(PARAMETERS, answers, digests_of(shown))


@pytest.mark.parametrize("indices", [(1, 2, 3), (1, 1, 2, 3), (4, 4, 4, 4), (1, 2, 3, 4, 5)])
def test_a_row_counted_twice_is_refused(indices: tuple[int, ...]) -> None:
    sharing = sharing_of(PARAMETERS)
    assert sharing.rows_needed == 4
    with pytest.raises(RowsError):
        sharing.combine(indices, np.zeros((4, 1), dtype=np.uint16), 1)


def test_too_few_rows_are_refused(shown: Round) -> None:
    sums, answers = sums_of(shown), {each: shown.answer(each) for each in FOUR}
    del sums[1], answers[1]
    with pytest.raises(RowsError):
        recover_secret(PARAMETERS, sums)
    with pytest.raises(RowsError):
        recover_seeds(PARAMETERS, answers, digests_of(shown))


def test_rows_of_another_length_are_refused(shown: Round) -> None:
    sums, answers = sums_of(shown), {each: list(shown.answer(each)) for each in FOUR}
    for change in (sums[1][:-2], sums[1] + bytes(2), sums[1][:-1]):
        with pytest.raises(EncodingError):
            recover_secret(PARAMETERS, {**sums, 1: change})
    with pytest.raises(EncodingError):
        recover_seeds(PARAMETERS, {**answers, 1: answers[1][:-1]}, digests_of(shown))


def test_a_sum_in_bytes_comes_back_as_it_was(shown: Round) -> None:
    secret = recover_secret(PARAMETERS, sums_of(shown))
    assert (secret_from_bytes(PARAMETERS, secret_to_bytes(secret)) == secret).all()
    with pytest.raises(EncodingError):
        secret_from_bytes(PARAMETERS, secret_to_bytes(secret)[:-2])


@pytest.mark.parametrize("part", ["check_block", "votes", "secret_seals", "seed_seals"])
@pytest.mark.parametrize("change", ["flipped", "shorter", "longer"])
def test_a_body_that_is_not_the_one_of_its_header_names_its_dealer(
    shown: Round, part: str, change: str
) -> None:
    whole: bytes = getattr(shown.bodies[2], part)
    flipped = bytes([whole[0] ^ 1]) + whole[1:]
    changed = {"flipped": flipped, "shorter": whole[:-1], "longer": whole + b"0"}[change]
    sizes = {"dealer": 2, "recipients": 5, "counts": len(VOTE)}
    require_body(PARAMETERS, shown.headers[2], shown.bodies[2], **sizes)
    body = replace(shown.bodies[2], **{part: changed})
    with pytest.raises(BallotFault) as caught:
        require_body(PARAMETERS, shown.headers[2], body, **sizes)
    assert caught.value.culprits == (2,)


def largest_difference(parameters: Parameters) -> float:
    """log2 of ‖(d, a_0·d)‖, for the difference d of two sums that fit."""
    return 1 + math.log2(largest_square(parameters)) / 2


def expected_others(parameters: Parameters) -> float:
    """log2 of the number of points of the lattice (d, a_0·d) in the ball of differences."""
    rank = 2 * parameters.degree
    ball = rank / 2 * math.log2(math.pi) - math.lgamma(rank / 2 + 1) / math.log(2)
    radius = largest_difference(parameters)
    return ball + rank * radius - parameters.degree * parameters.modulus_bits


def root_hermite(size: int) -> float:
    """log2 of the root Hermite factor that BKZ reaches with this block size (Chen 2013)."""
    inside = (math.pi * size) ** (1 / size) * size / (2 * math.pi * math.e)
    return math.log2(inside) / (2 * (size - 1))


def rings(bits: range) -> list[Parameters]:
    return [
        parameters_for(teachers, teachers // 5, teachers // 10, largest_sum=2**each - 1)
        for teachers in (2, 5, 12, 20, 100, 250, 1000)
        for each in bits
        if teachers < 2**each
    ]


def test_with_slots_of_11_bits_or_more_no_other_sum_is_to_be_expected() -> None:
    assert max(map(expected_others, rings(range(11, 15)))) < -500


def test_by_coefficients_alone_other_sums_are_to_be_expected() -> None:
    """The control: the bound on coefficients, without the one on the 2-norm."""
    parameters = parameters_for(20, 4, 2, largest_sum=2**11 - 1)
    bits = 2 + 2 * parameters.scale_bits - parameters.modulus_bits
    assert parameters.degree * bits > 1000
    assert expected_others(parameters) < -4000


def test_narrower_slots_are_never_chosen() -> None:
    assert {each.slot_bits for each in rings(range(2, 11))} == {NARROWEST_SLOT_BITS}


def test_a_sum_within_the_bounds_of_coefficients_and_too_long_does_not_fit() -> None:
    """A colluder deals a secret that is ten times too long, and nothing else is wrong."""
    random = np.random.default_rng(3)
    long = random.normal(0, 10 * SIGMA, PARAMETERS.degree).astype(np.int64)
    assert np.abs(long).max() < largest_error(PARAMETERS)
    ring = {"degree": PARAMETERS.degree, "modulus_bits": PARAMETERS.modulus_bits}
    public = public_polynomial(check_seed(EPOCH), 0, **ring)
    block = multiply(public[None], ShortPolynomial(long), modulus_bits=PARAMETERS.modulus_bits)[0]
    with pytest.raises(OpeningFault, match="too long"):
        require_fits(PARAMETERS, EPOCH, block, long)


def test_the_longest_of_many_honest_sums_stays_far_from_the_bound() -> None:
    """400 sums of as many secrets and errors as there are teachers, with fixed seeds."""
    random = fixed_stream(5)
    drawn = draw(400 * 5 * 2 * 1024, random).reshape(400, 5, 2 * 1024).sum(axis=1)
    squares = (drawn * drawn).sum(axis=1)
    assert squares.max() < 0.85 * largest_square(PARAMETERS)


SMALL_DEGREE, SMALL_BITS = 8, 12


def test_no_short_difference_of_small_degree_maps_to_a_short_one() -> None:
    """All 5^8 differences below 3, for 20 public polynomials.

    With q = 2^12 and a_0·d below 5 in all 8 places, one passes with (9/4096)^8 < 2^-70.
    """
    differences = np.array(list(itertools.product(range(-2, 3), repeat=SMALL_DEGREE)))
    for number in range(20):
        matrix = negacyclic(public_of(number, SMALL_BITS))
        images = differences @ matrix % 2**SMALL_BITS
        centred = np.where(images >= 2 ** (SMALL_BITS - 1), images - 2**SMALL_BITS, images)
        found = np.abs(centred).max(axis=1) < 5
        assert found.sum() == 1, "the difference of zero"


def test_with_a_small_modulus_short_differences_map_to_short_ones() -> None:
    """The control: q is as small as the square of the bounds, and others fit."""
    differences = np.array(list(itertools.product(range(-2, 3), repeat=SMALL_DEGREE)))
    images = differences @ negacyclic(public_of(0, 8)) % 2**4
    centred = np.where(images >= 2**3, images - 2**4, images)
    assert (np.abs(centred).max(axis=1) < 5).sum() > 1


def public_of(number: int, bits: int) -> Integers:
    seed = number.to_bytes(4, "big")
    words = public_polynomial(seed, 0, degree=SMALL_DEGREE, modulus_bits=bits)
    return words.astype(np.int64)


def negacyclic(public: Integers) -> Integers:
    """Row i is X^i times the polynomial, so that d @ matrix is the product."""
    rows = [
        np.concatenate([-public[-i:], public[:-i]]) if i else public for i in range(len(public))
    ]
    return np.stack(rows)
