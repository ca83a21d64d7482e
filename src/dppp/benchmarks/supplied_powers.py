"""Tried and left: the aggregator computes x_j^Δ for all teachers, and they check it.

A decryption share is x^(2Δ·d_i), and Δ = N! is nearly as long as the modulus at N = 250. So the
aggregator could send y_j = x_j^Δ; a teacher would check all of them at once, with fresh weights,
and answer (y_j²)^(d_i). At N = 250 that takes a third off the cost of shares in large batches and
nothing in small ones. But most of a teacher's work is checking ballots: about a twentieth of the
whole is not worth another message and another check. It is here so that `dppp bench` measures it.

The squaring must come after the check. Weights can tell up to sign only. So if y_j were to be
x_j^(2Δ), an aggregator could send its negative, and the share's sign would be the parity of d_i.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gmpy2 import mpz

from dppp.benchmarks.proof_costs import ProofCosts
from dppp.benchmarks.workload import Workload
from dppp.errors import ProofError
from dppp.experiments.costs.processor_time import fastest
from dppp.paillier.arithmetic.groups import are_equal_up_to_sign, check_units
from dppp.paillier.arithmetic.modexp import power_public, power_secret
from dppp.paillier.arithmetic.multiexp import multiply_powers
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, check_ciphertexts, encrypt
from dppp.paillier.keys import Decryption, KeyShare, PublicKey, require_share_of
from dppp.randomness import RandomSource, random_below, random_bits, system_randomness

TEACHERS = (20, 100, 250)
_WEIGHT_BITS = 64
_REPEATS = 5


def supply_powers(public: PublicKey, ciphertexts: Sequence[Ciphertext]) -> tuple[mpz, ...]:
    """y_j = x_j^Δ modulo n. Run by the aggregator, once for all teachers."""
    factorial, modulus = public.factorial, public.modulus
    return map_over_cores(lambda each: power_public(each, factorial, modulus), ciphertexts)


def check_powers(
    public: PublicKey,
    ciphertexts: Sequence[Ciphertext],
    powers: Sequence[mpz],
    randomness: RandomSource = system_randomness,
) -> None:
    """Raise unless every y_j is x_j^Δ up to sign: Π y_j^w_j = ±(Π x_j^w_j)^Δ. Run by a teacher."""
    residues = check_ciphertexts(public, ciphertexts)
    check_units(powers, public.modulus, public.modulus, what="supplied power")
    weights = [random_bits(_WEIGHT_BITS, randomness) for _ in residues]
    left = multiply_powers(powers, weights, public.modulus)
    right = multiply_powers(residues, weights, public.modulus)
    raised = power_public(right, public.factorial, public.modulus)
    if not are_equal_up_to_sign(left, raised, public.modulus):
        raise ProofError("a supplied power is false")


def make_shares_from_powers(
    public: PublicKey,
    key_share: KeyShare,
    ciphertexts: Sequence[Ciphertext],
    powers: Sequence[mpz],
) -> DecryptionShares:
    """The same decryption shares, from supplied powers that are checked first, then squared."""
    require_share_of(public, key_share)
    check_powers(public, ciphertexts, powers)
    exponent, modulus = key_share.exponent, public.modulus
    elements = map_over_cores(
        lambda power: power_secret(power * power % modulus, exponent, modulus), powers
    )
    return DecryptionShares(key_id=public.key_id, index=key_share.index, elements=elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCosts:
    """One teacher's processor seconds for the shares of a batch, both ways."""

    plain: float
    supplied: float
    modexp: float
    ciphertexts: int

    def over_modexp(self) -> dict[str, float]:
        """One share, check and all, over one constant-time exponentiation of n's length."""
        unit = self.ciphertexts * self.modexp
        return {"plain": self.plain / unit, "supplied": self.supplied / unit}

    def saved_part(self, rest: float) -> float:
        """What supplied powers save of a teacher's work on a batch, `rest` being all but shares."""
        return (self.plain - self.supplied) / (self.plain + rest)


def measure_shares(key: DealtKey, count: int) -> ShareCosts:
    """The shares of `count` ciphertexts, by one teacher."""
    public = key.public
    blinding = BlindingTable(public, bytes_limit=2_000_000).draw()
    ciphertexts = [encrypt(public, mpz(place), blinding) for place in range(count)]
    powers = supply_powers(public, ciphertexts)
    base, exponent = (random_below(public.modulus, system_randomness) for _ in range(2))
    works: list[Callable[[], object]] = [
        lambda: make_decryption_shares(public, key.shares[0], ciphertexts),
        lambda: make_shares_from_powers(public, key.shares[0], ciphertexts, powers),
        lambda: power_secret(base, exponent, public.modulus),
    ]
    plain, supplied, modexp = fastest(works, _REPEATS)
    return ShareCosts(plain=plain, supplied=supplied, modexp=modexp, ciphertexts=count)


def measure_supplied_powers(
    workload: Workload,
    primes: tuple[mpz, mpz],
    *,
    ballot: float,
    proofs: Sequence[ProofCosts],
    teachers: Sequence[int] = TEACHERS,
) -> dict[str, object]:
    """Shares at several N, and the part of a teacher's whole work that would be saved, by batch.

    `ballot` is what one teacher spends on a ballot for one label; `proofs` are of this workload.
    """
    by_teachers = {
        number: measure_shares(
            replace(workload, teachers=number, s=1).deal(primes, Decryption.ROOT), 10
        )
        for number in teachers
    }
    key = workload.deal(primes, Decryption.ROOT)
    packing = workload.packing(key.public)
    saved = {}
    for cost in proofs:
        shares = measure_shares(key, packing.plaintexts_for(cost.labels * workload.classes))
        saved[str(cost.labels)] = shares.saved_part(
            cost.labels * ballot + cost.one_teacher(workload)
        )
    return {
        "share_over_modexp_by_teachers": {
            str(number): cost.over_modexp()["plain"] for number, cost in by_teachers.items()
        },
        "supplied_share_over_modexp_by_teachers": {
            str(number): cost.over_modexp()["supplied"] for number, cost in by_teachers.items()
        },
        "supplied_powers_measured": "10 ciphertexts; shares with the check of supplied powers",
        "supplied_powers_save_part_of_teacher_by_batch": saved,
    }
