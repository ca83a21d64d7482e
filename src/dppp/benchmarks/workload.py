"""The work that is measured: a batch of labels, N teachers, one key."""

from dataclasses import dataclass

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from dppp.errors import InputError
from dppp.paillier.dealer import DealtKey, deal_from_primes
from dppp.paillier.keys import Decryption, PublicKey
from dppp.paillier.packing import Packing
from dppp.privacy.trust import Trust

# The noise in a sum is set by epsilon and delta, not by N: so the bound of a sum stays, and each
# teacher's share of it shrinks as teachers are added. 16 bits are 51 labels of 10 classes at s = 4.
DEFAULT_SLOT_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """N teachers answer a batch of labels; a sum of their entries has at most `slot_bits` bits."""

    teachers: int
    classes: int
    modulus_bits: int
    s: int
    labels: int
    slot_bits: int = DEFAULT_SLOT_BITS

    def __post_init__(self) -> None:
        if self.teachers < 2 or self.classes < 2 or self.labels < 1:
            raise InputError("a benchmark needs 2 teachers, 2 classes and 1 label at least")
        if self.entry_bound < 1:
            raise InputError(
                f"{self.slot_bits} bits cannot hold the sum of {self.teachers} teachers",
                hint="use wider slots",
            )

    @property
    def threshold(self) -> int:
        """The threshold ⌊(N + C)/2⌋ + 1 with the default of max(1, N // 5) colluders."""
        return Trust.with_defaults(self.teachers).threshold

    @property
    def entry_bound(self) -> int:
        """The largest entry of one teacher, vote and noise together."""
        return ((1 << self.slot_bits) - 1) // self.teachers

    @property
    def entries(self) -> int:
        """How many integers a ballot holds."""
        return self.labels * self.classes

    def packing(self, public: PublicKey) -> Packing:
        """How a ballot's entries lie in its plaintexts."""
        return Packing(
            contributions=self.teachers,
            entry_bound=self.entry_bound,
            plaintext_bits=public.plaintext_bits,
        )

    def labels_per_ciphertext(self, public: PublicKey) -> float:
        """How many labels share one ciphertext in a large batch."""
        return self.packing(public).slots / self.classes

    def deal(self, primes: tuple[mpz, mpz], decryption: Decryption) -> DealtKey:
        """A key for this work."""
        return deal_from_primes(
            primes,
            teachers=self.teachers,
            threshold=self.threshold,
            s=self.s,
            decryption=decryption,
            insecure_testing=True,
        )

    def draw_entries(self, seed: int) -> NDArray[np.int64]:
        """Random entries, a row for each teacher. Made-up data: no secrets, no noise."""
        generator = np.random.default_rng(seed)
        return generator.integers(0, self.entry_bound + 1, size=(self.teachers, self.entries))
