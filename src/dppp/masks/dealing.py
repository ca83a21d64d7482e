"""What a teacher can make before it knows the votes: a secret, its check block and its rows.

    root = HMAC(own epoch secret, salt)              the salt is fresh and stands in the header
    s, e_0, drawn rows = the root's key stream       everybody can do this again from the root
    b_0 = a_0·s + e_0                                the check block: it hides nothing
    seed = 16 field elements, from fresh randomness  never from the root: a root that is shown in a
                                                     dispute must not open votes
    rows of s and of the seed, one of each for each teacher

a_0 belongs to the epoch and s is used once, so this can be prepared ahead. A preparation is kept
in memory only and is gone when it was used, or when the process ends: so no secret is used twice.

Only the seals wait for the ballot, as they are bound to its batch and attempt. A recipient does not
check the signatures of N headers, so this alone keeps an aggregator from delivering an old ballot
again: one of an attempt that was given up, whose root has been shown, would have its pad opened in
the next attempt, and so its vote.
"""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.hashing import HASH_BYTES, hash_parts
from dppp.masks.epoch_keys import Epoch
from dppp.masks.gaussian import draw
from dppp.masks.packing import pack_bits
from dppp.masks.parameters import FIELD, Parameters
from dppp.masks.ring import ShortPolynomial, multiply, public_polynomial
from dppp.masks.sealing import Pairs, Purpose
from dppp.masks.sharing import Sharing, draw_elements, elements_to_bytes
from dppp.randomness import KeyStream, RandomSource, system_randomness

SALT_BYTES = 32
SEED_ELEMENTS = 16
ROOT_BYTES = 32
_CHECK_DOMAIN = "dppp masks check block 1"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DealerKeys:
    """A teacher's own key of an epoch, and the sealing keys of its pairs, its own among them."""

    epoch: Epoch
    dealer: int
    own_key: bytes
    recipients: tuple[int, ...]
    sealing_keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Dealing:
    """What follows from a root: made by its dealer, and by everybody in a dispute."""

    secret: ShortPolynomial
    check_block: bytes
    rows: NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Preparation:
    """A dealing with its seed, and the keys to seal them to all recipients, for one ballot."""

    keys: DealerKeys
    salt: bytes
    dealing: Dealing
    seed: bytes
    seed_rows: NDArray[np.uint16]


def sharing_of(parameters: Parameters) -> Sharing:
    """How secrets and seeds are dealt."""
    return Sharing(
        teachers=parameters.teachers,
        rows_needed=parameters.rows_needed,
        packed=parameters.packed,
    )


def secret_row_bytes(parameters: Parameters) -> int:
    """The length of a row of a secret."""
    return 2 * sharing_of(parameters).columns_for(parameters.degree)


def seed_row_bytes(parameters: Parameters) -> int:
    """The length of a row of a seed."""
    return 2 * sharing_of(parameters).columns_for(SEED_ELEMENTS)


def check_seed(epoch: Epoch) -> bytes:
    """From what a_0 is made: the same for all batches of an epoch, whose secrets are all fresh."""
    return hash_parts(_CHECK_DOMAIN, (epoch.to_bytes(),))


def root_of(own_key: bytes, salt: bytes) -> bytes:
    """The root of a dealing; its dealer finds it again from the salt while the epoch lasts."""
    return hmac.digest(own_key, b"dppp masks root 1" + salt, "sha256")


def expand_root(parameters: Parameters, epoch: Epoch, root: bytes) -> Dealing:
    """Secret, check block and rows that follow from a root, bit for bit on every machine."""
    stream = KeyStream(hash_parts("dppp masks expansion 1", (root,)))
    secret = ShortPolynomial(draw(parameters.degree, stream))
    errors = draw(parameters.degree, stream)
    public = public_polynomial(
        check_seed(epoch), 0, degree=parameters.degree, modulus_bits=parameters.modulus_bits
    )
    product = multiply(public[None], secret, modulus_bits=parameters.modulus_bits)[0]
    block = reduce_to(parameters, product + errors.view(np.uint64))
    return Dealing(
        secret=secret,
        check_block=pack_bits(block, parameters.modulus_bits),
        rows=sharing_of(parameters).deal(secret.coefficients, stream),
    )


def reduce_to(parameters: Parameters, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Modulo q, which divides 2^64."""
    reduced: NDArray[np.uint64] = words & np.uint64((1 << parameters.modulus_bits) - 1)
    return reduced


def digest_of_head(salt: bytes, *, check: bytes, votes: bytes, seed: bytes) -> bytes:
    """H(all of a header but the digests of the seals themselves)."""
    return hash_parts("dppp masks head 1", (salt, check, votes, seed))


def seal_contexts(epoch: Epoch, votes_seed: bytes, heads: Iterable[bytes]) -> list[bytes]:
    """What all seals of a ballot are bound to, for the digest of each ballot's head.

    `votes_seed` stands for the batch and the attempt: it is another one for each. A teacher needs N
    of these for every list, so what all have in common is hashed once.
    """
    common = hash_parts("dppp masks seal context 3", (epoch.to_bytes(), votes_seed))
    return [common + head for head in heads]


def digest_of_check_block(block: bytes) -> bytes:
    """H(b_0)."""
    return hash_parts("dppp masks check digest 1", (block,))


def digest_of_seed(seed: bytes) -> bytes:
    """H(seed): a domain apart from the pad's."""
    return hash_parts("dppp masks seed digest 1", (seed,))


def prepare(
    parameters: Parameters, keys: DealerKeys, randomness: RandomSource = system_randomness
) -> Preparation:
    """Deal a fresh secret and seed; by a teacher, once for each ballot."""
    salt = randomness(SALT_BYTES)
    dealing = expand_root(parameters, keys.epoch, root_of(keys.own_key, salt))
    stream = KeyStream(randomness(HASH_BYTES))
    elements = draw_elements(SEED_ELEMENTS, stream)
    return Preparation(
        keys=keys,
        salt=salt,
        dealing=dealing,
        seed=elements_to_bytes(elements),
        seed_rows=sharing_of(parameters).deal(_centred(elements), stream),
    )


def seal_rows(preparation: Preparation, context: bytes) -> tuple[bytes, bytes]:
    """The seals of rows of the secret and of the seed, each to all recipients; by the dealer."""
    keys = preparation.keys
    places = np.array(keys.recipients) - 1
    secret_rows = rows_as_bytes(preparation.dealing.rows[places])
    pairs = Pairs.of_dealer(
        keys.sealing_keys,
        dealer=keys.dealer,
        recipients=keys.recipients,
        context=context,
        length=secret_rows.shape[1],
    )
    seed_rows = rows_as_bytes(preparation.seed_rows[places])
    return pairs.seal(Purpose.SECRET_ROW, secret_rows), pairs.seal(Purpose.SEED_ROW, seed_rows)


def _centred(elements: NDArray[np.uint16]) -> NDArray[np.int64]:
    values = elements.astype(np.int64)
    return np.where(values > FIELD // 2, values - FIELD, values)


def rows_as_bytes(rows: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Rows of field elements as rows of bytes, little-endian."""
    return np.ascontiguousarray(rows.astype("<u2")).view(np.uint8).reshape(len(rows), -1)


def seed_from(values: Sequence[int] | NDArray[np.int64]) -> bytes:
    """A seed from the values that its rows combine to."""
    return elements_to_bytes((np.asarray(values) % FIELD).astype(np.uint16))
