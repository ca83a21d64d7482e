"""An attacker's notebook, 3: masks made in five slightly other ways, and what each gives away.

- The error is scaled instead of the message, T·e + m, with T and q powers of two. Modulo T the
  error is gone: one block whose message is known, and block 0 is one, gives the secret.
- One secret stands in two lists: the difference of the two sums is the secret of the teacher that
  is in one of them only, and with it its vote.
- One preparation is used for two ballots: the seed that opens the second opens the pad of the
  first as well, whose root was shown because it was given up.
- Teachers open by giving their own seeds: the one teacher that opened before t others withdrew has
  told its seed, and its root is shown after the withdrawals.
- The seed is drawn from the root: a root that is shown opens the vote.

Each attack is tried on the masks as they are, where it fails, and on the weakened ones, where it
reads the vote or the secret. (AES-GCM in place of the seals: `test_sealing.py`.)
"""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.masks.field_algebra import dealing_matrices, parameters_for, tells
from tests.masks.rounds import EPOCH, VOTES_SEED, Round
from tests.masks.streams import fixed_stream

from dppp.errors import OpeningFault, PaddingFault, RowsError
from dppp.hashing import hash_parts
from dppp.masks.ballots import Body, Header, apply_pad, cast
from dppp.masks.blame import recompute_dealing
from dppp.masks.dealing import (
    SEED_ELEMENTS,
    Preparation,
    check_seed,
    digest_of_seed,
    expand_root,
    prepare,
    root_of,
    sharing_of,
)
from dppp.masks.epoch_keys import Epoch, own_row_key
from dppp.masks.opening import (
    add_blocks,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
)
from dppp.masks.packing import unpack_bits
from dppp.masks.ring import ShortPolynomial, centre, multiply, public_polynomial, reduce
from dppp.masks.sharing import draw_elements, elements_to_bytes
from dppp.randomness import KeyStream

pytestmark = pytest.mark.attack

PARAMETERS = parameters_for(5, 1, 1)
EVERYONE = (1, 2, 3, 4, 5)
VICTIM = 3
VOTE = np.arange(30, dtype=np.int64) * 7
Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

T_BITS = 8


def is_unit(public: Words) -> bool:
    """Modulo 2, X^n + 1 is (X + 1)^n, so a polynomial has an inverse if its sum is odd."""
    return bool(int(public.sum()) & 1)


def product(one: Words, other: Words) -> Words:
    """Modulo T."""
    short = ShortPolynomial(other.astype(np.int64))
    return multiply(one[None], short, modulus_bits=T_BITS)[0]


def inverse(public: Words) -> Words:
    """Newton: what is not right is in the ideal (2, X + 1)^(2^k), which is zero in the end."""
    target = reduce(public, T_BITS)
    found = np.zeros_like(target)
    found[0] = 1
    two = 2 * found
    for _ in range(20):
        found = product(found, reduce(two - product(target, found), T_BITS))
    assert (product(target, found) == two // 2).all()
    return found


def solve_modulo_t(public: Words, block: Words) -> Integers:
    """The secret, if nothing but multiples of T was added to the product of a known block."""
    return centre(product(inverse(public), reduce(block, T_BITS)), T_BITS)


def epoch_with_a_unit() -> tuple[Epoch, Words]:
    for number in count():
        epoch = Epoch(task_id=EPOCH.task_id, number=number)
        ring = {"degree": PARAMETERS.degree, "modulus_bits": PARAMETERS.modulus_bits}
        public = public_polynomial(check_seed(epoch), 0, **ring)
        if is_unit(public):
            return epoch, public
    raise AssertionError


def test_one_known_block_does_not_give_the_secret() -> None:
    epoch, public = epoch_with_a_unit()
    dealing = expand_root(PARAMETERS, epoch, bytes(32))
    block = unpack_bits(dealing.check_block, PARAMETERS.modulus_bits)
    guessed = solve_modulo_t(public, block)
    secret = dealing.secret.coefficients
    assert (guessed == secret).mean() < 0.1


def test_one_known_block_gives_the_secret_if_the_error_is_scaled() -> None:
    _, public = epoch_with_a_unit()
    dealing = expand_root(PARAMETERS, EPOCH, bytes(32))
    errors = expand_root(PARAMETERS, EPOCH, bytes(31) + b"1").secret.coefficients
    bare = multiply(public[None], dealing.secret, modulus_bits=PARAMETERS.modulus_bits)[0]
    block = reduce(bare + (errors << T_BITS).view(np.uint64), PARAMETERS.modulus_bits)
    assert (solve_modulo_t(public, block) == dealing.secret.coefficients).all()


def fresh_round(votes_seed: bytes = VOTES_SEED) -> Round:
    shown = Round(PARAMETERS, EVERYONE, votes_seed=votes_seed)
    shown.cast({each: VOTE + each for each in EVERYONE})
    return shown


def without(shown: Round, dealer: int) -> Round:
    """The same ballots in a shorter list."""
    shorter = Round(PARAMETERS, EVERYONE, votes_seed=shown.votes_seed)
    shorter.secrets, shorter.bodies = shown.secrets, shown.bodies
    shorter.headers = {each: shown.headers[each] for each in EVERYONE if each != dealer}
    return shorter


def sum_of(shown: Round) -> Integers:
    """S, which the aggregator has of every list that is endorsed by rows_needed teachers."""
    return recover_secret(PARAMETERS, {each: shown.endorse(each) for each in (1, 2, 4, 5)})


def take_mask_off(
    shown: Round, body: Body, seed: bytes, secret: ShortPolynomial
) -> NDArray[np.int64]:
    """One ballot's counts, from its seed and its secret."""
    blocks = add_blocks(PARAMETERS, [apply_pad(body.votes, seed)], count=1)
    return open_counts(PARAMETERS, shown.votes_seed, blocks, secret, counts=len(VOTE))


def is_read(shown: Round, body: Body, seed: bytes, secret: ShortPolynomial) -> bool:
    try:
        return bool((take_mask_off(shown, body, seed, secret) == VOTE + VICTIM).all())
    except PaddingFault:  # random numbers where zeros should be
        return False


def secret_between(longer: Round, shorter: Round) -> ShortPolynomial:
    """What is between two sums, if it is the secret of the victim's check block."""
    check = add_blocks(PARAMETERS, [longer.bodies[VICTIM].check_block], count=1)[0]
    return require_fits(PARAMETERS, EPOCH, check, sum_of(longer) - sum_of(shorter))


def test_one_secret_in_two_lists_gives_a_vote_away() -> None:
    longer = fresh_round()
    shorter = without(longer, VICTIM)
    secret = secret_between(longer, shorter)
    digests = [longer.headers[each].seed_digest for each in EVERYONE]
    answers = {each: longer.answer(each) for each in (1, 2, 4, 5)}
    seeds, _ = recover_seeds(PARAMETERS, answers, digests)
    assert is_read(longer, longer.bodies[VICTIM], seeds[VICTIM - 1], secret)


def test_fresh_secrets_in_a_second_list_give_nothing_away() -> None:
    longer, shorter = fresh_round(), without(fresh_round(b"another batch"), VICTIM)
    with pytest.raises(OpeningFault):
        secret_between(longer, shorter)


def root_shown_by_victim(shown: Round) -> bytes:
    return root_of(own_row_key(shown.secrets[VICTIM], EPOCH), shown.headers[VICTIM].salt)


def shown_secret(shown: Round) -> ShortPolynomial:
    header = shown.headers[VICTIM]
    return recompute_dealing(PARAMETERS, EPOCH, header, root_shown_by_victim(shown)).secret


def opened_seed(shown: Round) -> bytes:
    answers = {each: shown.answer(each) for each in (1, 2, 4, 5)}
    digests = [shown.headers[each].seed_digest for each in EVERYONE]
    return recover_seeds(PARAMETERS, answers, digests)[0][VICTIM - 1]


@pytest.mark.parametrize("is_used_again", [False, True])
def test_a_preparation_used_again_opens_the_ballot_that_was_given_up(is_used_again: bool) -> None:
    given_up = fresh_round()
    prepared = prepare(PARAMETERS, given_up.dealer_keys(VICTIM))
    vote = VOTE + VICTIM
    _put(given_up, cast(PARAMETERS, prepared, vote, votes_seed=given_up.votes_seed))
    opened = fresh_round(b"the next attempt")
    opened.secrets = given_up.secrets
    again = prepared if is_used_again else prepare(PARAMETERS, opened.dealer_keys(VICTIM))
    opened.cast(dict.fromkeys(EVERYONE, VOTE))
    _put(opened, cast(PARAMETERS, again, vote, votes_seed=opened.votes_seed))
    seed, secret = opened_seed(opened), shown_secret(given_up)
    assert is_read(given_up, given_up.bodies[VICTIM], seed, secret) is is_used_again


def _put(shown: Round, ballot: tuple[Header, Body]) -> None:
    shown.headers[VICTIM], shown.bodies[VICTIM] = ballot


def test_an_own_seed_on_the_wire_and_withdrawals_of_the_others_give_a_vote_away() -> None:
    """t withdrew, so all roots are shown. The victim had opened, and would have told its seed."""
    shown = fresh_round()
    own_seed = opened_seed(shown)  # what it would have sent
    assert is_read(shown, shown.bodies[VICTIM], own_seed, shown_secret(shown))


def test_seed_rows_on_the_wire_and_withdrawals_of_the_others_give_nothing_away() -> None:
    """Teacher 3 opened, 1, 2, 4 and 5 withdrew, and colluder 5 shows its rows all the same."""
    shown, sharing = fresh_round(), sharing_of(PARAMETERS)
    assert PARAMETERS.threshold == 4
    rows = {each: shown.answer(each) for each in (VICTIM, 5)}
    with pytest.raises(RowsError):
        recover_seeds(PARAMETERS, rows, [each.seed_digest for each in shown.headers.values()])
    secret, drawn = dealing_matrices(sharing)
    known = np.array(sorted(rows)) - 1
    assert tells(secret[known], drawn[known]) == 0


def seed_from_root(root: bytes) -> tuple[bytes, Integers]:
    """A seed that goes on where the root's stream ends, as it must not be made."""
    elements = draw_elements(SEED_ELEMENTS, KeyStream(hash_parts("seed of a root", (root,))))
    values = elements.astype(np.int64)
    return elements_to_bytes(elements), np.where(values > 32760, values - 65521, values)


def with_seed_from_root(prepared: Preparation) -> Preparation:
    root = root_of(prepared.keys.own_key, prepared.salt)
    seed, values = seed_from_root(root)
    rows = sharing_of(PARAMETERS).deal(values, fixed_stream(1))
    return replace(prepared, seed=seed, seed_rows=rows)


@pytest.mark.parametrize("is_from_root", [False, True])
def test_a_seed_that_follows_from_the_root_is_told_by_the_root(is_from_root: bool) -> None:
    shown = fresh_round()
    prepared = prepare(PARAMETERS, shown.dealer_keys(VICTIM))
    prepared = with_seed_from_root(prepared) if is_from_root else prepared
    _put(shown, cast(PARAMETERS, prepared, VOTE + VICTIM, votes_seed=VOTES_SEED))
    guessed, _ = seed_from_root(root_shown_by_victim(shown))
    secret = shown_secret(shown)
    assert (digest_of_seed(guessed) == shown.headers[VICTIM].seed_digest) is is_from_root
    assert is_read(shown, shown.bodies[VICTIM], guessed, secret) is is_from_root


def test_the_same_salt_gives_the_same_secret_and_another_seed() -> None:
    """The seed is not a function of anything that the root is a function of."""
    keys = Round(PARAMETERS, EVERYONE).dealer_keys(VICTIM)
    fresh = iter([bytes(32), b"1" * 32, bytes(32), b"2" * 32])
    one, other = (prepare(PARAMETERS, keys, lambda _: next(fresh)) for _ in range(2))
    assert one.dealing.check_block == other.dealing.check_block
    assert one.seed != other.seed
