"""Keys for tests, dealt once a session on fixed primes; anyone can factor these moduli."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from gmpy2 import mpz
from tests.vectors import make_paillier

from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.encryption import Ciphertext, encrypt
from dppp.paillier.keys import Decryption, PublicKey
from dppp.randomness import RandomSource

SHORT_PRIMES: tuple[mpz, mpz] = make_paillier.PRIMES
TEACHERS, THRESHOLD = 7, 4


@dataclass(frozen=True)
class Keys:
    """Dealt keys by s and way of decryption."""

    short_primes: tuple[mpz, mpz] = SHORT_PRIMES

    def dealt(self, s: int = 1, decryption: Decryption = Decryption.ROOT) -> DealtKey:
        return _dealt(s, decryption)

    def table(self, s: int = 1, decryption: Decryption = Decryption.ROOT) -> BlindingTable:
        return _table(s, decryption)

    def encrypted(self, public: PublicKey, plaintexts: Sequence[int]) -> tuple[Ciphertext, ...]:
        table = _table(public.s, public.decryption)
        return tuple(encrypt(public, mpz(plaintext), table.draw()) for plaintext in plaintexts)


@functools.cache
def _dealt(s: int, decryption: Decryption) -> DealtKey:
    return deal_from_primes(
        SHORT_PRIMES,
        teachers=TEACHERS,
        threshold=THRESHOLD,
        s=s,
        decryption=decryption,
        insecure_testing=True,
    )


@functools.cache
def _table(s: int, decryption: Decryption) -> BlindingTable:
    return BlindingTable(_dealt(s, decryption).public, bytes_limit=500_000)


@pytest.fixture(scope="session")
def keys() -> Keys:
    return Keys()


@pytest.fixture(scope="session")
def seeded() -> Callable[[str], RandomSource]:
    fixed: Callable[[str], RandomSource] = make_paillier.fixed_random
    return fixed


@pytest.fixture(scope="session")
def vectors() -> Any:
    """The module that makes the vectors."""
    return make_paillier
