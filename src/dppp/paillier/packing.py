"""Many small non-negative integers in one plaintext.

A slot is as wide as the largest possible sum of all contributions, so a valid sum cannot run over
into its neighbour: overflow is impossible rather than unlikely. The paper uses one ciphertext for
each class. Run by teachers (pack) and by whoever reads counts (unpack).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from dppp.errors import InputError, PackingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How integers lie in plaintexts.

    `contributions` is the largest number of ballots that are added, `entry_bound` the largest
    integer that one ballot may hold in a slot, `plaintext_bits` the key's.
    """

    contributions: int
    entry_bound: int
    plaintext_bits: int

    def __post_init__(self) -> None:
        if self.contributions < 1 or self.entry_bound < 1:
            raise InputError("a packing needs at least one contribution and a bound of at least 1")
        if self.slot_bits > self.plaintext_bits:
            raise InputError(
                f"a slot of {self.slot_bits} bits does not fit a plaintext of "
                f"{self.plaintext_bits}",
                hint="use a larger s or a smaller bound",
            )

    @property
    def slot_bits(self) -> int:
        """The bits of the largest possible sum."""
        return (self.contributions * self.entry_bound).bit_length()

    @property
    def slots(self) -> int:
        """How many integers one plaintext holds."""
        return self.plaintext_bits // self.slot_bits

    def plaintexts_for(self, count: int) -> int:
        """How many plaintexts `count` integers need."""
        return -(-count // self.slots)

    def pack(self, entries: Sequence[int]) -> tuple[mpz, ...]:
        """Plaintexts of one ballot; an entry outside 0..entry_bound is refused by its position."""
        if entries and not 0 <= min(entries) <= max(entries) <= self.entry_bound:
            slot = next(
                slot for slot, entry in enumerate(entries) if not 0 <= entry <= self.entry_bound
            )
            raise PackingError(
                f"slot {slot} is outside 0..{self.entry_bound}; "
                "an entry must be within the bound that all teachers agreed on",
                slot=slot,
            )
        return tuple(
            gmpy2.pack(list(entries[start : start + self.slots]), self.slot_bits)
            for start in range(0, len(entries), self.slots)
        )

    def unpack(
        self, plaintexts: Sequence[mpz], count: int, *, contributions: int | None = None
    ) -> tuple[int, ...]:
        """The `count` sums in the plaintexts of a tally of `contributions` ballots (default: all).

        Every slot must be within its bound, and whatever lies behind the last slot must be zero.
        """
        if len(plaintexts) != self.plaintexts_for(count):
            raise InputError(
                f"{count} integers take {self.plaintexts_for(count)} plaintexts, not "
                f"{len(plaintexts)}",
                hint="unpack the whole tally",
            )
        ballots = self.contributions if contributions is None else contributions
        if not 0 < ballots <= self.contributions:
            raise InputError(f"a tally of {ballots} ballots is not one of 1..{self.contributions}")
        sums: list[int] = []
        for plaintext in plaintexts:
            held = min(self.slots, count - len(sums))
            sums.extend(self._unpack_one(plaintext, held, first_slot=len(sums)))
        self._check_sums(sums, ballots * self.entry_bound)
        return tuple(sums)

    def _unpack_one(self, plaintext: mpz, held: int, *, first_slot: int) -> list[int]:
        if plaintext < 0 or plaintext >> (held * self.slot_bits):
            raise PackingError(
                f"the plaintext behind slot {first_slot + held - 1} is not zero; "
                "a ballot in this tally was not packed by the rules",
                slot=first_slot + held,
            )
        values = [int(value) for value in gmpy2.unpack(plaintext, self.slot_bits)]
        return values + [0] * (held - len(values))

    @staticmethod
    def _check_sums(sums: Sequence[int], bound: int) -> None:
        for slot, value in enumerate(sums):
            if value > bound:
                raise PackingError(
                    f"slot {slot} of the tally is above its bound {bound}; "
                    "a ballot in this tally was not packed by the rules",
                    slot=slot,
                )
