"""The ring of a task: how many bits a mask has, what fits in it, and how well it hides.

All parties work these numbers out for themselves; the task fixes them. N teachers, of whom up to C
pool all they know and up to D vanish. A mask is b = a·s + e + Δ·m modulo q = 2^modulus_bits in
Z_q[X]/(X^degree + 1), with secret s and error e of deviation `SIGMA`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dppp.errors import MaskParametersError

SIGMA = 6.4
FIELD = 65521
"""The prime that secrets are dealt modulo."""
LEAST_SECURITY_BITS = 128
FEWEST_HONEST = 2
NARROWEST_SLOT_BITS = 11
"""With these the modulus is so large that only one sum of secrets fits block 0 (opening.py)."""
_FITTING_SUMS = 3918
"""(3918·N/q)^n other sums are to be expected that fit (opening.py)."""

# From the modulus' bits to log2 of an attack's cost: the smallest over all attacks of the lattice
# estimator under the MATZOV cost model (in the comment: core-SVP), for secret and error of width
# 3.2. That is what remains hidden of two honest teachers' masks of width 6.4 when their sum is
# known (hint-LWE, Kim et al. 2023).
_SECURITY: dict[int, dict[int, int]] = {
    1024: {22: 174, 24: 157, 25: 150, 26: 144, 27: 138, 28: 132},  # 152 133 126 119 112 106
    2048: {42: 175, 43: 170, 47: 154, 50: 143, 53: 134, 54: 131},  # 150 145 127 116 107 104
}
DEGREES = tuple(_SECURITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Everything about the masks of a task. One that exists keeps 128 bits after the argument."""

    teachers: int
    colluders: int
    dropouts: int
    degree: int
    modulus_bits: int
    slot_bits: int
    slots_per_coefficient: int
    security_bits: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _require_trust(self.teachers, self.colluders, self.dropouts)
        for name in ("degree", "modulus_bits", "slot_bits", "slots_per_coefficient"):
            _require_whole(name, getattr(self, name), least=1)
        self._require_room()
        self._require_one_sum()
        bits = security_bits(self.degree, self.modulus_bits)
        object.__setattr__(self, "security_bits", bits)
        if self.security_after_loss < LEAST_SECURITY_BITS:
            raise MaskParametersError(
                f"a modulus of {self.modulus_bits} bits at degree {self.degree} leaves {bits} - "
                f"{self.loss_bits} = {self.security_after_loss} bits of security for "
                f"{self.teachers} teachers, and {LEAST_SECURITY_BITS} are needed",
                hint="take degree 2048 or fewer or narrower slots",
            )

    def _require_room(self) -> None:
        needed = self.scale_bits + self.slots_per_coefficient * self.slot_bits
        if self.modulus_bits < needed:
            raise MaskParametersError(
                f"{self.slots_per_coefficient} slots of {self.slot_bits} bits above an error of "
                f"{self.scale_bits} bits take a modulus of {needed} bits, got {self.modulus_bits}"
            )

    def _require_one_sum(self) -> None:
        """Refuse a modulus with which more than 2^-64 other sums of secrets would fit block 0.

        Then the counts would not follow from the list. A degree of 1024, or more, is 16 · 64.
        """
        if 2 * (_FITTING_SUMS * self.teachers) ** 16 > 1 << 16 * self.modulus_bits:
            raise MaskParametersError(
                f"with a modulus of {self.modulus_bits} bits and {self.teachers} teachers another "
                "sum of secrets than the true one may fit the check blocks",
                hint=f"take slots of {NARROWEST_SLOT_BITS} bits or more",
            )

    @property
    def threshold(self) -> int:
        """Endorsements that certify a list; one row fewer tells nothing about a dealt secret."""
        return _threshold(self.teachers, self.colluders)

    @property
    def rows_needed(self) -> int:
        """Rows that give a dealt secret back: as many as are sure to come, where t is fewer."""
        return max(self.threshold, self.teachers - self.colluders - self.dropouts)

    @property
    def packed(self) -> int:
        """Secrets in one polynomial: what rows_needed leaves above t - 1 rows that tell nothing.

        Packing 2·rows_needed - N - C would let two lists, each answered by half of the honest
        teachers, both tell something.
        """
        return self.rows_needed - self.threshold + 1

    @property
    def scale_bits(self) -> int:
        """log2 of Δ: half of it is ten deviations of the sum of N errors (2^-71 to miss it)."""
        return _scale_bits(self.teachers)

    @property
    def loss_bits(self) -> int:
        """What the argument loses at most: a factor of N³."""
        return (self.teachers**3 - 1).bit_length()

    @property
    def security_after_loss(self) -> int:
        """log2 of the cost of the best attack known, less what the argument loses."""
        return self.security_bits - self.loss_bits

    @property
    def counts_per_block(self) -> int:
        """Counts that one mask hides."""
        return self.degree * self.slots_per_coefficient

    @property
    def block_bytes(self) -> int:
        """Bytes of one mask."""
        return self.degree * self.modulus_bits // 8

    def blocks_for(self, counts: int) -> int:
        """Masks that hide this many counts. Block 0, which hides none, is not among them."""
        _require_whole("counts", counts, least=1)
        return -(-counts // self.counts_per_block)

    def bytes_for(self, counts: int) -> int:
        """What one teacher sends: block 0, its vote blocks, and a row of its secret for each."""
        rows = 2 * self.teachers * -(-self.degree // self.packed)
        return (1 + self.blocks_for(counts)) * self.block_bytes + rows


def security_bits(degree: int, modulus_bits: int) -> int:
    """The table's figure for the next larger modulus in it; a larger one hides less."""
    if degree not in _SECURITY:
        raise MaskParametersError(f"the degree must be one of {DEGREES}, got {degree}")
    table = _SECURITY[degree]
    known = [bits for bits in table if bits >= modulus_bits]
    if not known:
        raise MaskParametersError(
            f"a modulus of {modulus_bits} bits at degree {degree} hides too little: at most "
            f"{max(table)} bits are known to be safe"
        )
    return table[min(known)]


def choose_parameters(
    *, teachers: int, colluders: int, dropouts: int, largest_sum: int, counts: int
) -> Parameters:
    """The ring with which a batch of this many counts takes the fewest bytes.

    `largest_sum` is the largest value that one opened count can have when nobody cheats. Slots are
    as narrow as that allows. Few counts get the small ring; many get the large one, where error and
    secrecy take a smaller part of each coefficient.
    """
    _require_trust(teachers, colluders, dropouts)
    _require_whole("largest_sum", largest_sum, least=1)
    fitting = list(
        _fitting(
            slot_bits=max(largest_sum.bit_length(), NARROWEST_SLOT_BITS),
            teachers=teachers,
            colluders=colluders,
            dropouts=dropouts,
        )
    )
    if not fitting:
        raise MaskParametersError(
            f"sums up to {largest_sum} take slots of {largest_sum.bit_length()} bits, and no ring "
            f"that hides the votes of {teachers} teachers has room for one",
            hint="narrow the noise, lower the number of votes, or use paillier",
        )
    return min(fitting, key=lambda ring: (ring.bytes_for(counts), ring.degree))


def _fitting(*, slot_bits: int, **trust: int) -> Iterator[Parameters]:
    """Every ring that is safe and has room for at least one slot, filled to the last bit."""
    scale_bits = _scale_bits(trust["teachers"])
    for degree, table in _SECURITY.items():
        for slots in range(1, (max(table) - scale_bits) // slot_bits + 1):
            try:
                yield Parameters(
                    degree=degree,
                    modulus_bits=scale_bits + slots * slot_bits,
                    slot_bits=slot_bits,
                    slots_per_coefficient=slots,
                    **trust,
                )
            except MaskParametersError:
                break


def _scale_bits(teachers: int) -> int:
    """⌈log2(20·σ·√N)⌉ in integers: 20·σ is 2^7, and ⌈log2(N)/2⌉ is half of ⌈log2 N⌉, rounded up."""
    return 7 + ((teachers - 1).bit_length() + 1) // 2


def _threshold(teachers: int, colluders: int) -> int:
    return (teachers + colluders) // 2 + 1


def _require_trust(teachers: int, colluders: int, dropouts: int) -> None:
    _require_whole("teachers", teachers, least=FEWEST_HONEST)
    _require_whole("colluders", colluders, least=0)
    _require_whole("dropouts", dropouts, least=0)
    if teachers - colluders - dropouts < FEWEST_HONEST:
        raise MaskParametersError(
            f"masks hide the votes of at least {FEWEST_HONEST} honest teachers in each other's, "
            f"and of {teachers} teachers {colluders} may collude and {dropouts} drop out"
        )
    if _threshold(teachers, colluders) > teachers - dropouts:
        raise MaskParametersError(
            f"{_threshold(teachers, colluders)} endorsements are needed, and only "
            f"{teachers - dropouts} of {teachers} teachers are sure to answer",
            hint=(
                f"lower dropouts to {(teachers - colluders - 1) // 2}, or have at least "
                f"{colluders + 2 * dropouts + 1} teachers"
            ),
        )
    if 2 * teachers >= FIELD:
        raise MaskParametersError(f"at most {FIELD // 2} teachers, got {teachers}")


def _require_whole(name: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise MaskParametersError(f"{name} must be a whole number from {least}, got {value!r}")
