"""Opening a list: the sum of the secrets from endorsements, the seeds from answers, the counts.

    S = Σ s_i            from rows_needed sums of rows, one in each endorsement
    fits                 S is short and Σ b_0 - a_0·S is small, in every coefficient and in the
                         2-norm: block 0 decides that alone
    seed_i               from rows_needed answers, each checked by H(seed_i)
    counts               ⌊(Σ b_k - a_k·S)/Δ⌉

How many S fit. Two that do differ by a vector d with ‖(d, a_0·d)‖ ≤ 2R, where R² is
`largest_square`. As many points of a lattice of determinant q^n are to be expected as its volume
has room for: (2πe·4R²/2n)^n / q^n = (3918·N/q)^n. So S is the only one where q is above 3918·N, as
with slots of 11 bits or more up to N = 1,000; the bound on coefficients alone would leave
(4Δ²/q)^n, which can be many. `choose_parameters` takes no narrower slots.

The aggregator runs this; teachers check that S fits before they answer; whoever has the transcript
does all of it again from the ballots.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dppp.errors import EncodingError, OpeningFault
from dppp.masks.ballots import apply_pad, slots_of, vote_polynomials
from dppp.masks.dealing import (
    SEED_ELEMENTS,
    check_seed,
    digest_of_seed,
    reduce_to,
    seed_from,
    sharing_of,
)
from dppp.masks.epoch_keys import Epoch
from dppp.masks.packing import unpack_blocks
from dppp.masks.parameters import FIELD, Parameters
from dppp.masks.ring import ShortPolynomial, multiply, public_polynomial
from dppp.masks.sharing import elements_from_bytes

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]


def recover_secret(parameters: Parameters, sums: Mapping[int, bytes]) -> Integers:
    """S from the sums of rows of rows_needed endorsers."""
    sharing = sharing_of(parameters)
    columns = sharing.columns_for(parameters.degree)
    indices = sorted(sums)[: parameters.rows_needed]
    rows = np.stack([elements_from_bytes(sums[index], columns) for index in indices])
    return sharing.combine(indices, rows, parameters.degree)


def largest_error(parameters: Parameters) -> int:
    """What a coefficient of S, and of its error in block 0, stays below: ten deviations."""
    return 1 << (parameters.scale_bits - 1)


def largest_square(parameters: Parameters) -> int:
    """What the squares of S and of its errors in block 0 stay below together.

    They are 2n numbers of variance at most N·σ²; that their squares add up to 1.4 times what is to
    be expected has probability exp(-n·(0.4 - ln 1.4)), 2^-93 for n = 1024.
    """
    return 2 * parameters.degree * parameters.teachers * 4096 * 14 // 1000


def require_fits(
    parameters: Parameters, epoch: Epoch, check_sum: Words, secret: Integers
) -> ShortPolynomial:
    """S, if it opens the sum of the check blocks to small errors and nothing else."""
    limit = largest_error(parameters)
    if secret.shape != (parameters.degree,) or int(np.abs(secret).max()) >= limit:
        raise OpeningFault("the sum of the secrets is not short: somebody dealt or added wrongly")
    short = ShortPolynomial(secret)
    public = public_polynomial(
        check_seed(epoch), 0, degree=parameters.degree, modulus_bits=parameters.modulus_bits
    )
    product = multiply(public[None], short, modulus_bits=parameters.modulus_bits)[0]
    # Below q/2 is positive, above it negative: added to, errors of both signs are small numbers.
    errors = reduce_to(parameters, check_sum - product + np.uint64(limit))
    if int(errors.max()) >= 2 * limit:
        raise OpeningFault("the sum of the secrets does not open the sum of the check blocks")
    if _squares(secret) + _squares(errors.view(np.int64) - limit) > largest_square(parameters):
        raise OpeningFault("the sum of the secrets, or of its errors, is too long")
    return short


def _squares(values: Integers) -> int:
    return int(np.dot(values, values))


def add_blocks(parameters: Parameters, blocks: Iterable[bytes], *, count: int) -> Words:
    """The sum of blocks of several ballots; `count` is the number of blocks in each."""
    total = np.zeros((count, parameters.degree), dtype=np.uint64)
    for data in blocks:
        total += unpack_blocks(
            data, blocks=count, degree=parameters.degree, bits=parameters.modulus_bits
        )
    return reduce_to(parameters, total)


def add_votes(
    parameters: Parameters, votes: Sequence[bytes], seeds: Sequence[bytes], *, counts: int
) -> Words:
    """The sum of the vote blocks, each with the pad of its seed taken off."""
    bare = (apply_pad(data, seed) for data, seed in zip(votes, seeds, strict=True))
    return add_blocks(parameters, bare, count=parameters.blocks_for(counts))


def recover_seeds(
    parameters: Parameters, answers: Mapping[int, Sequence[bytes]], digests: Sequence[bytes]
) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """The seeds of all dealers, and the positions of those that are not the ones of their digests.

    `answers` are rows_needed teachers' seed rows, one for each dealer, in the dealers' order.
    """
    sharing = sharing_of(parameters)
    columns = sharing.columns_for(SEED_ELEMENTS)
    indices = sorted(answers)[: parameters.rows_needed]
    rows = np.stack(
        [elements_from_bytes(b"".join(answers[each]), columns * len(digests)) for each in indices]
    )
    values = sharing.combine_many(indices, rows, columns)
    seeds = tuple(seed_from(each[:SEED_ELEMENTS]) for each in values)
    wrong = tuple(
        position
        for position, (seed, digest) in enumerate(zip(seeds, digests, strict=True))
        if digest_of_seed(seed) != digest
    )
    return seeds, wrong


def open_counts(
    parameters: Parameters,
    votes_seed: bytes,
    votes_sum: Words,
    secret: ShortPolynomial,
    *,
    counts: int,
) -> Integers:
    """The sums of all entries, one per count; anything from 0 to the slots' bound.

    Slots past the last count are not looked at: nobody can be blamed for them any more, and one
    teacher must not be able to void a batch whose counts are known.
    """
    public = vote_polynomials(parameters, votes_seed, len(votes_sum))
    products = multiply(public, secret, modulus_bits=parameters.modulus_bits)
    return slots_of(parameters).decode_slots(reduce_to(parameters, votes_sum - products))[:counts]


def secret_to_bytes(secret: Integers) -> bytes:
    """S as field elements, two bytes each."""
    return (secret % FIELD).astype("<u2").tobytes()


def secret_from_bytes(parameters: Parameters, data: bytes) -> Integers:
    """S from its bytes; other lengths and numbers outside the field are refused."""
    values = elements_from_bytes(data, parameters.degree).astype(np.int64)
    centred: Integers = np.where(values > FIELD // 2, values - FIELD, values)
    return centred


def seeds_from_bytes(data: bytes, count: int) -> tuple[bytes, ...]:
    """Seeds that follow each other."""
    length = 2 * SEED_ELEMENTS
    if len(data) != count * length:
        raise EncodingError(f"{count} seeds take {count * length} bytes, got {len(data)}")
    for at in range(0, len(data), length):
        elements_from_bytes(data[at : at + length], SEED_ELEMENTS)
    return tuple(data[at : at + length] for at in range(0, len(data), length))
