"""Any of the families: one teacher's share, and the sum of h shares.

A noise object is the sum of `shares` independent shares; `one_share()` is what one teacher draws.
Values are integers. The binomial is sent as it falls, around tosses/2 (the common offset is
subtracted from the counts later); the other families are centred on 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np

from dppp.errors import InputError
from dppp.privacy.noise.binomial import Binomial
from dppp.privacy.noise.discrete_gaussian import DiscreteGaussian
from dppp.privacy.noise.polya import Polya
from dppp.privacy.noise.skellam import Skellam
from dppp.privacy.pmf import LOG_TAIL, Pmf

Noise = Binomial | DiscreteGaussian | Skellam | Polya

FAMILIES: Mapping[str, type[Noise]] = {
    family.name: family for family in (Binomial, DiscreteGaussian, Skellam, Polya)
}


LONGEST_REACH = 2**23
"""Values on either side of the centre that are worked out, in some hundred megabytes."""


def pmf_of(noise: Noise) -> Pmf:
    """The masses of the sum of the shares; refuses what would take all time and memory."""
    require_narrow(noise, LONGEST_REACH)
    return noise.pmf()


def require_narrow(noise: Noise, longest_reach: int) -> None:
    """Refuse noise whose masses would be too many to be worked out."""
    try:
        with np.errstate(all="ignore"):
            is_narrow = noise.reach(LOG_TAIL) <= longest_reach
    except (ArithmeticError, ValueError):
        is_narrow = False
    if not is_narrow:
        raise InputError(
            f"{noise.name} noise of standard deviation {_deviation_words(noise)} is too wide to "
            "be worked out, and no count under it would mean anything",
            hint="use less noise, that is a larger epsilon or delta, or fewer queries",
        )


def _deviation_words(noise: Noise) -> str:
    try:
        return f"{math.sqrt(noise.variance):.2g}"
    except ArithmeticError:
        return "past all numbers"


def parameter_names(family: type[Noise]) -> tuple[str, ...]:
    """The family's own parameters in its own order, the number of shares aside."""
    return tuple(field.name for field in fields(family) if field.name != "shares")


def noise_to_parameters(noise: Noise) -> dict[str, object]:
    """A plain mapping that `noise_from_parameters` reads back."""
    parameters = {field.name: getattr(noise, field.name) for field in fields(noise)}
    return {"noise": noise.name, **parameters}


def noise_from_parameters(parameters: Mapping[str, object]) -> Noise:
    """The noise that `noise_to_parameters` wrote; refuses unknown names and wrong types."""
    given = dict(parameters)
    family = family_named(given.pop("noise", None))
    expected = sorted(field.name for field in fields(family))
    if sorted(given) != expected:
        raise InputError(
            f"{family.name} noise is described by {', '.join(expected)}; got "
            f"{', '.join(sorted(given)) or 'nothing'}",
            hint="take the file as `dppp calibrate --json` writes it",
        )
    return family(**given)  # type: ignore[arg-type]


def has_no_less(noise: Noise, other: Noise) -> bool:
    """Whether noise is the other plus independent noise, so that it hides at least as much.

    That is so where a family is closed under sums. Sums of discrete Gaussians are not of the
    family, and only the very same noise will do.
    """
    match noise, other:
        case Skellam(), Skellam():
            return _total_variance(noise) >= _total_variance(other)
        case Polya(), Polya():
            return noise.ratio == other.ratio and noise.shape >= other.shape
        case Binomial(), Binomial():
            return noise.total_tosses >= other.total_tosses
        case _:
            return noise == other


def _total_variance(noise: Skellam) -> Fraction:
    """Without the rounding of a float."""
    return Fraction(noise.share_variance) * noise.shares


def in_shares(noise: Noise, shares: int) -> Noise:
    """Noise that holds all of this one, in another number of equal shares."""
    match noise:
        case Binomial():
            return Binomial(total_tosses=-(-noise.total_tosses // shares) * shares, shares=shares)
        case Skellam():
            found = noise.shared_among(shares)
            while not has_no_less(found, noise):  # a float was rounded down
                found = replace(
                    found, share_variance=math.nextafter(found.share_variance, math.inf)
                )
            return found
        case Polya():
            return noise.shared_among(shares)
        case DiscreteGaussian():
            if shares == noise.shares:
                return noise
            raise InputError(
                f"discrete Gaussian noise of {noise.shares} shares is not that of {shares}: its "
                "sums are of another family",
                hint="keep the number of teachers less colluders and dropouts, or make a new task",
            )


def family_named(name: object) -> type[Noise]:
    """The family of this name."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(
            f"unknown noise {name!r}",
            hint=f"choose one of {', '.join(FAMILIES)}",
        )
    return FAMILIES[name]


def noise_from_numbers(name: object, numbers: Sequence[float], shares: int) -> Noise:
    """The noise of these parameters in the family's own order; a whole float may be a count."""
    family = family_named(name)
    expected = [field for field in fields(family) if field.name != "shares"]
    if len(expected) != len(numbers):
        raise InputError(
            f"{name} noise has the parameters {', '.join(parameter_names(family))}; got "
            f"{len(numbers)} numbers",
            hint="give one for each",
        )
    values = {
        field.name: int(number) if field.type is int and number.is_integer() else number
        for field, number in zip(expected, numbers, strict=True)
    }
    return family(shares=shares, **values)  # type: ignore[arg-type]
