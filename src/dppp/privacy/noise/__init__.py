"""The four families of discrete noise; what depends on the family is a method of its class.

All parties use this room; the names below are its door.
"""

from dppp.privacy.noise.binomial import Binomial
from dppp.privacy.noise.discrete_gaussian import DiscreteGaussian
from dppp.privacy.noise.families import (
    FAMILIES,
    Noise,
    family_named,
    has_no_less,
    in_shares,
    noise_from_numbers,
    noise_from_parameters,
    noise_to_parameters,
    parameter_names,
    pmf_of,
    require_narrow,
)
from dppp.privacy.noise.formulas import Arithmetic
from dppp.privacy.noise.polya import Polya
from dppp.privacy.noise.skellam import Skellam

__all__ = [
    "FAMILIES",
    "Arithmetic",
    "Binomial",
    "DiscreteGaussian",
    "Noise",
    "Polya",
    "Skellam",
    "family_named",
    "has_no_less",
    "in_shares",
    "noise_from_numbers",
    "noise_from_parameters",
    "noise_to_parameters",
    "parameter_names",
    "pmf_of",
    "require_narrow",
]
