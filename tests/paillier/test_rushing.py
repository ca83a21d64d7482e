"""The rushing attack: colluders who vote last try to factor n from the decryption shares.

A colluder sees the honest ciphertexts before it votes. Their product is W = Z^e modulo n, e = n^s.
It takes the blinding K = W^u · κ^(2^k) with 2^k dividing 1 + u·e and κ of Jacobi symbol -1. It
knows K, so its ballot's proof is true. The opening shows R = K·Z, hence Z, and R = r^(2^k) for a
known r of symbol -1. Let the shares be x^(φ·f(j)). An integer relation Σ c_i·f(i) = 0 whose honest
c_j are divisible by a power of 2 gives a known square from honest shares and a known power of r
from the rest, and the squares of these two are the same. When that power of r is odd the two differ
by a root of 1 other than ±1, and n is factored. It is odd only if the power of 2 is all that is in
2^k·φ. With φ = 2, the shares of keys of version 1, there are such relations. With φ = 2·N! there
are none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz

from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, add, encrypt
from dppp.paillier.keys import Decryption, PublicKey
from dppp.paillier.proofs.ballots import ProvenBallot, prove_ballot, verify_ballots
from dppp.paillier.structure import lift_root

pytestmark = pytest.mark.attack

# N, t = ⌊(N + C)/2⌋ + 1 with C = ⌊N/5⌋, and two colluders of that C.
FEDERATIONS = [(10, 7, (4, 8)), (20, 13, (8, 16))]
KEYS = 8

Relation = list[int]
GiveShares = Callable[[DealtKey, int, Ciphertext], DecryptionShares]


def find_relations(
    teachers: int, threshold: int, honest: Sequence[int], power: int
) -> list[Relation]:
    """A basis of all c with Σ c_i·f(i) = 0 for deg f < t and 2^power dividing each honest c_j.

    Without the second condition the t-th differences are a basis. Each step takes one more factor
    2: relations are added until few are odd at some honest place, and those few are doubled.
    """
    difference = [
        (-1) ** place * int(gmpy2.comb(threshold, place)) for place in range(threshold + 1)
    ]
    spare = teachers - threshold
    basis = [[0] * shift + difference + [0] * (spare - shift) for shift in range(spare + 1)]
    for step in range(power):
        doubled: list[Relation] = []
        for place in honest:
            odd = [relation for relation in basis if relation[place] >> step & 1]
            if not odd:
                continue
            pivot = odd[0]
            basis = [
                [mine - its for mine, its in zip(relation, pivot, strict=True)]
                if any(relation is each for each in odd)
                else relation
                for relation in basis
                if relation is not pivot
            ]
            doubled.append([2 * coefficient for coefficient in pivot])
        basis += doubled
    return basis


def shares_as_now(dealt: DealtKey, index: int, tally: Ciphertext) -> DecryptionShares:
    return make_decryption_shares(dealt.public, dealt.shares[index - 1], [tally])


def shares_of_version_1(dealt: DealtKey, index: int, tally: Ciphertext) -> DecryptionShares:
    """x^(2·d_i), without N!; whoever has them can raise them to N! and combine as now."""
    public, exponent = dealt.public, 2 * dealt.shares[index - 1].exponent
    element = gmpy2.powmod(tally, exponent, public.modulus)
    return DecryptionShares(key_id=public.key_id, index=index, elements=(element,))


@dataclass(frozen=True)
class Batch:
    """What the colluders know after one batch: a root r of R = r^(2^k), and honest shares."""

    public: PublicKey
    root: mpz
    shares: dict[int, mpz]


def run_batch(
    dealt: DealtKey, colluders: tuple[int, ...], power: int, give_shares: GiveShares
) -> Batch:
    """One batch of one ciphertext in which a colluder votes last; every check is passed."""
    public = dealt.public
    modulus, exponent = public.modulus, public.plaintext_modulus
    honest = [i for i in range(1, public.teachers + 1) if i not in colluders]
    table = BlindingTable(public, bytes_limit=500_000)
    ballots = [encrypt(public, mpz(index), table.draw()) for index in honest]
    product = add(public, ballots) % modulus
    times = -gmpy2.invert(exponent, mpz(1) << power) % (1 << power) if power else mpz(0)
    known = next(mpz(v) for v in range(2, 999) if gmpy2.jacobi(mpz(v), modulus) == -1)
    own = gmpy2.powmod(product, times, modulus) * gmpy2.powmod(known, 1 << power, modulus) % modulus
    blinding = Blinding(exponent=mpz(0), root=own, factor=lift_root(public, own), shift=mpz(0))
    last = encrypt(public, mpz(1), blinding)
    proof = prove_ballot(public, [last], [blinding], context=b"c")
    ballot = ProvenBallot(index=colluders[0], ciphertexts=(last,), context=b"c", proof=proof)
    verify_ballots(public, [ballot])
    tally = add(public, [*ballots, last])
    shares = {index: give_shares(dealt, index, tally) for index in honest}
    opening = open_tallies(
        public, [tally], [_as_now(public, share, give_shares) for share in shares.values()]
    ).openings[0]
    assert opening.plaintext == sum(honest) + 1
    rest = opening.root * gmpy2.invert(own, modulus) % modulus
    root = gmpy2.powmod(rest, (1 + times * exponent) >> power, modulus) * known % modulus
    assert gmpy2.powmod(root, 1 << power, modulus) == opening.root
    elements = {index: share.elements[0] for index, share in shares.items()}
    return Batch(public=public, root=root, shares=elements)


def _as_now(
    public: PublicKey, share: DecryptionShares, give_shares: GiveShares
) -> DecryptionShares:
    if give_shares is shares_as_now:
        return share
    element = gmpy2.powmod(share.elements[0], public.factorial, public.modulus)
    return DecryptionShares(key_id=share.key_id, index=share.index, elements=(element,))


def try_to_factor(
    batch: Batch, known: dict[int, mpz], relations: list[Relation], whole: mpz, twos: int
) -> bool:
    """Whether any relation gives a factor; `known` are the colluders' shares of the key by index.

    Shares are r^(whole·e·f(j)), and 2^twos divides every honest c_j. So the honest shares to the
    powers c_j/2^twos are r^(rest·e·Σ c_j·f(j)) with rest = whole/2^twos. By the relation that is
    r^(-rest·E) up to a root of 1, E = c_0 + e·Σ c_i·d_i.
    """
    public, modulus = batch.public, batch.public.modulus
    for relation in relations:
        square = mpz(1)
        for index, share in batch.shares.items():
            square = square * gmpy2.powmod(share, relation[index] >> twos, modulus) % modulus
        rest = relation[0] + public.plaintext_modulus * sum(
            relation[index] * exponent for index, exponent in known.items()
        )
        other = gmpy2.powmod(batch.root, -(whole >> twos) * rest, modulus)
        for value in (square - other, square + other):
            if gmpy2.gcd(value, modulus) not in (1, modulus):
                return True
    return False


def _has_odd(relation: Relation, colluders: tuple[int, ...]) -> bool:
    return any(relation[index] % 2 for index in (0, *colluders))


@pytest.fixture(params=[(federation, s) for federation in FEDERATIONS for s in (1, 2)], ids=str)
def federation(request: Any, keys: Any, seeded: Any) -> tuple[list[DealtKey], tuple[int, ...]]:
    """Some keys of one federation, and who colludes in it."""
    (teachers, threshold, colluders), s = request.param
    dealt = [
        deal_from_primes(
            keys.short_primes,
            teachers=teachers,
            threshold=threshold,
            s=s,
            decryption=Decryption.ROOT,
            randomness=seeded(f"rushing {seed}"),
            insecure_testing=True,
        )
        for seed in range(KEYS)
    ]
    return dealt, colluders


def attack(
    dealt: DealtKey, colluders: tuple[int, ...], give_shares: GiveShares, power: int
) -> bool:
    """One batch, and every relation with every power of 2 that the shares' exponents allow."""
    public = dealt.public
    whole = mpz(2 << power)
    if give_shares is shares_as_now:
        whole *= public.factorial
    batch = run_batch(dealt, colluders, power, give_shares)
    known = {index: dealt.shares[index - 1].exponent for index in colluders}
    return any(
        try_to_factor(
            batch,
            known,
            find_relations(public.teachers, public.threshold, list(batch.shares), twos),
            whole,
            twos,
        )
        for twos in range(gmpy2.bit_scan1(whole) + 1)
    )


def test_rushing_colluders_factored_the_modulus_from_shares_of_version_1(federation: Any) -> None:
    keys, colluders = federation
    found = [attack(dealt, colluders, shares_of_version_1, 1) for dealt in keys]
    assert sum(found) >= KEYS // 4


@pytest.mark.parametrize("power", [0, 1, 2])
def test_rushing_colluders_get_no_factor_from_shares_as_they_are(
    federation: Any, power: int
) -> None:
    keys, colluders = federation
    assert not any(attack(dealt, colluders, shares_as_now, power) for dealt in keys)


@pytest.mark.parametrize(("teachers", "threshold", "colluders"), FEDERATIONS)
def test_there_is_no_relation_for_shares_as_they_are_whoever_colludes(
    teachers: int, threshold: int, colluders: tuple[int, ...]
) -> None:
    """With fewer than t colluders f(0) and their f(i) are free, and N!·f(j) is integer in them."""
    twos = gmpy2.bit_scan1(2 * gmpy2.fac(teachers))
    sets = [
        colluders,
        tuple(range(1, threshold)),
        tuple(range(teachers - threshold + 2, teachers + 1)),
    ]
    sets += [(2**k,) for k in range(teachers.bit_length() - 1)]
    for each in sets:
        honest = [index for index in range(1, teachers + 1) if index not in each]
        relations = find_relations(teachers, threshold, honest, twos)
        assert len(relations) == teachers - threshold + 1
        for relation in relations:
            assert all(relation[index] % 2**twos == 0 for index in honest)
            assert sum(c * i ** (threshold - 1) for i, c in enumerate(relation)) == 0
        assert not any(_has_odd(relation, each) for relation in relations)
    honest = [index for index in range(1, teachers + 1) if index not in colluders]
    before = find_relations(teachers, threshold, honest, 2)
    assert any(_has_odd(relation, colluders) for relation in before)
