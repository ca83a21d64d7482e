"""Budgets in whole units: ε in 10⁻⁹, δ in 10⁻³⁰.

Used by the ledger, where sums must be exact. A float is read as the shortest decimal that names it,
which is what the operator wrote: ten tasks of ε = 0.1 fit a cap of ε = 1. (Its binary value differs
by less than one part in 10¹⁶, within the rounding that every certified δ already includes.) More
digits than the units have are rounded against us: a cost up, a cap down.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dppp.errors import InputError
from dppp.whole_numbers import keep_whole

EPSILON_UNITS = 10**9
DELTA_UNITS = 10**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An (ε, δ), spent or to be spent."""

    epsilon_units: int
    delta_units: int

    def __post_init__(self) -> None:
        keep_whole(self, "epsilon_units", "delta_units", least=0)

    @classmethod
    def cost(cls, *, epsilon: float, delta: float) -> Self:
        """What a promise costs, rounded up."""
        exact_epsilon, exact_delta = _decimals(epsilon, delta)
        return cls(
            epsilon_units=math.ceil(exact_epsilon * EPSILON_UNITS),
            delta_units=math.ceil(exact_delta * DELTA_UNITS),
        )

    @classmethod
    def cap(cls, *, epsilon: float, delta: float) -> Self:
        """What may be spent at the most, rounded down."""
        exact_epsilon, exact_delta = _decimals(epsilon, delta)
        return cls(
            epsilon_units=math.floor(exact_epsilon * EPSILON_UNITS),
            delta_units=math.floor(exact_delta * DELTA_UNITS),
        )

    @property
    def epsilon(self) -> float:
        """The float nearest to ε, for showing."""
        return self.epsilon_units / EPSILON_UNITS

    @property
    def delta(self) -> float:
        """The float nearest to δ, for showing."""
        return self.delta_units / DELTA_UNITS

    def plus(self, other: "Budget") -> "Budget":
        """Both, one after the other: ε and δ add (basic composition)."""
        return Budget(
            epsilon_units=self.epsilon_units + other.epsilon_units,
            delta_units=self.delta_units + other.delta_units,
        )

    def minus(self, other: "Budget") -> "Budget":
        """What is left of this after the other."""
        return Budget(
            epsilon_units=self.epsilon_units - other.epsilon_units,
            delta_units=self.delta_units - other.delta_units,
        )

    def fits_within(self, cap: "Budget") -> bool:
        """Whether neither ε nor δ passes the cap."""
        return self.epsilon_units <= cap.epsilon_units and self.delta_units <= cap.delta_units

    def __str__(self) -> str:
        return f"ε = {self.epsilon:.10g}, δ = {self.delta:.10g}"

    def to_json(self) -> dict[str, float]:
        """The names that `--json` prints."""
        return {"epsilon": self.epsilon, "delta": self.delta}


NOTHING = Budget(epsilon_units=0, delta_units=0)


def _decimals(epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not 0 < value < math.inf
        ):
            raise InputError(f"{name} of a budget must be a positive number, got {value!r}")
    if delta >= 1:
        raise InputError(f"delta of a budget must be below 1, got {delta!r}")
    return Fraction(repr(float(epsilon))), Fraction(repr(float(delta)))
