"""Opening tallies from the shares of many teachers, and naming those who sent wrong ones.

Run by the aggregator, and by anyone who has the shares.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gmpy2 import mpz

from dppp.errors import DecryptionError, GroupElementError, InputError, ProofError
from dppp.paillier.arithmetic.groups import check_units
from dppp.paillier.arithmetic.lagrange import interpolate
from dppp.paillier.arithmetic.modexp import power_public
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.decryption import paper, root
from dppp.paillier.decryption.opening import Opening
from dppp.paillier.decryption.shares import DecryptionShares
from dppp.paillier.encryption import Ciphertext, check_ciphertexts
from dppp.paillier.keys import Decryption, PublicKey
from dppp.paillier.proofs.shares import ShareProof, verify_shares
from dppp.randomness import RandomSource, random_bits, system_randomness

_WEIGHT_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Decrypted:
    """The plaintexts of a batch, their openings (none for `paper`), and who was left out."""

    plaintexts: tuple[mpz, ...]
    openings: tuple[Opening, ...]
    subset: tuple[int, ...]
    culprits: tuple[int, ...]


def open_tallies(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    shares: Sequence[DecryptionShares],
    *,
    proofs: Mapping[int, ShareProof] | None = None,
    context: bytes = b"",
) -> Decrypted:
    """The plaintexts of all ciphertexts from any t good shares.

    Shares that cannot be right are left out at once. For a `root` key the rest are tried without
    proofs; if they do not open, or for a `paper` key, `proofs` (by teacher) say who is wrong, and
    a teacher without one counts as wrong. Who was left out is in the result. When fewer than t
    are good, or no proofs were given to tell, ``DecryptionError`` names the culprits known.
    The caller has made sure, by the channel, that each message is from the teacher it names.
    """
    if not ciphertexts:
        raise InputError("there are no ciphertexts to open")
    check_ciphertexts(public, ciphertexts)
    culprits = _plainly_wrong(public, len(ciphertexts), shares)
    left = _without(shares, culprits)
    _require_threshold(public, left, culprits)
    if public.decryption == Decryption.ROOT:
        try:
            return _combine(public, ciphertexts, left, culprits)
        except DecryptionError as error:
            if proofs is None:
                raise DecryptionError(
                    error.message, culprits=tuple(sorted(culprits)), hint=error.hint
                ) from None
    culprits |= _without_proof(public, ciphertexts, left, proofs or {}, context)
    left = _without(left, culprits)
    _require_threshold(public, left, culprits)
    return _combine(public, ciphertexts, left, culprits)


def find_wrong_shares(
    public: PublicKey,
    right: Sequence[DecryptionShares],
    others: Sequence[DecryptionShares],
    randomness: RandomSource = system_randomness,
) -> tuple[int, ...]:
    """Who of the others sent shares that t right ones contradict; no proof is needed for it.

    d_i is on the polynomial through the d_j of the right ones, so with integers λ_j and b with
    b·f(i) = Σ λ_j·f(j) a right share has share_i^(2b) = Π share_j^(2λ_j). Checked for all
    ciphertexts at once, with random weights, among squares: nothing here is up to sign.
    """
    modulus = public.share_modulus
    weights = [random_bits(_WEIGHT_BITS, randomness) for _ in right[0].elements]

    def weighted(share: DecryptionShares) -> mpz:
        product = multiply_powers(share.elements, weights, modulus)
        return product * product % modulus

    products = [weighted(share) for share in right]
    wrong = []
    for share in others:
        # Interpolation at i is interpolation at 0 of the polynomial moved by i.
        moved = interpolate(tuple(each.index - share.index for each in right))
        expected = multiply_powers(products, moved.coefficients, modulus)
        if power_public(weighted(share), moved.denominator, modulus) != expected:
            wrong.append(share.index)
    return tuple(wrong)


def _plainly_wrong(
    public: PublicKey, count: int, shares: Sequence[DecryptionShares]
) -> frozenset[int]:
    """Teachers with another key's shares, too few or many, not units, or sent twice."""
    times = Counter(share.index for share in shares)
    wrong = {index for index, seen in times.items() if seen > 1}
    for share in shares:
        is_ours = share.key_id == public.key_id and share.index <= public.teachers
        if not is_ours or len(share.elements) != count:
            wrong.add(share.index)
            continue
        try:
            check_units(
                share.elements, public.modulus, public.share_modulus, what="decryption share"
            )
        except GroupElementError:
            wrong.add(share.index)
    return frozenset(wrong)


def _without_proof(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    shares: Sequence[DecryptionShares],
    proofs: Mapping[int, ShareProof],
    context: bytes,
) -> frozenset[int]:
    """Teachers whose shares have no proof that holds."""

    def is_proven(share: DecryptionShares) -> bool:
        if share.index not in proofs:
            return False
        try:
            verify_shares(public, ciphertexts, share, proofs[share.index], context=context)
        except ProofError:
            return False
        return True

    verdicts = map_over_cores(is_proven, shares)
    return frozenset(share.index for share, good in zip(shares, verdicts, strict=True) if not good)


def _without(
    shares: Sequence[DecryptionShares], culprits: frozenset[int]
) -> tuple[DecryptionShares, ...]:
    kept = (share for share in shares if share.index not in culprits)
    return tuple(sorted(kept, key=lambda share: share.index))


def _require_threshold(
    public: PublicKey, shares: Sequence[DecryptionShares], culprits: frozenset[int]
) -> None:
    if len(shares) < public.threshold:
        raise DecryptionError(
            f"{len(shares)} good decryption shares are fewer than the threshold {public.threshold}",
            hint="ask more teachers",
            culprits=tuple(sorted(culprits)),
        )


def _combine(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    shares: Sequence[DecryptionShares],
    culprits: frozenset[int],
) -> Decrypted:
    """Combine the first t, every ciphertext on its own, on all cores."""
    chosen = shares[: public.threshold]
    subset = tuple(share.index for share in chosen)
    columns = zip(*(share.elements for share in chosen), strict=True)
    work = list(zip(ciphertexts, columns, strict=True))
    openings: tuple[Opening, ...] = ()
    if public.decryption == Decryption.ROOT:
        openings = map_over_cores(lambda pair: root.combine(public, pair[0], subset, pair[1]), work)
        plaintexts = tuple(opening.plaintext for opening in openings)
    else:
        plaintexts = map_over_cores(lambda pair: paper.combine(public, subset, pair[1]), work)
    return Decrypted(
        plaintexts=plaintexts,
        openings=openings,
        subset=subset,
        culprits=tuple(sorted(culprits)),
    )
