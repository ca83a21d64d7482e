"""The options by which a command is told which noise: one set for each family."""

from typing import TYPE_CHECKING, Annotated

import typer

from dppp.errors import InputError
from dppp.whole_numbers import require_whole

if TYPE_CHECKING:
    from dppp.privacy.noise import Noise

NoiseOption = Annotated[
    str, typer.Option(help="binomial, discrete-gaussian, skellam or polya.", show_default=False)
]
TossesOption = Annotated[int | None, typer.Option(help="Binomial: tosses of all honest shares.")]
SigmaOption = Annotated[float | None, typer.Option(help="Discrete Gaussian: σ of one share.")]
VarianceOption = Annotated[float | None, typer.Option(help="Skellam: variance of the sum.")]
ShapeOption = Annotated[float | None, typer.Option(help="Pólya: shape of the sum.")]
RatioOption = Annotated[float | None, typer.Option(help="Pólya: ratio, between 0 and 1.")]
SharesOption = Annotated[int, typer.Option(help="Honest shares that make up the sum.")]

_OPTIONS = {
    "total_tosses": "--total-tosses",
    "share_sigma": "--share-sigma",
    "share_variance": "--variance",
    "shape": "--shape",
    "ratio": "--ratio",
}
"""Which option gives which parameter. Skellam is asked for by the variance of its sum."""


def noise_from_options(
    name: str,
    *,
    honest_shares: int,
    total_tosses: int | None,
    share_sigma: float | None,
    variance: float | None,
    shape: float | None,
    ratio: float | None,
) -> "Noise":
    """The noise that the family's own options describe; refuses missing and foreign ones."""
    from dppp.privacy import noise as noises  # noqa: PLC0415

    given = {
        "total_tosses": total_tosses,
        "share_sigma": share_sigma,
        "share_variance": variance,
        "shape": shape,
        "ratio": ratio,
    }
    family = noises.family_named(name)
    names = noises.parameter_names(family)
    for parameter, value in given.items():
        if (value is None) == (parameter in names):
            verb = "needs" if value is None else "does not take"
            raise InputError(f"{family.name} noise {verb} {_OPTIONS[parameter]}")
    require_whole("honest-shares", honest_shares)
    if variance is not None:
        given["share_variance"] = variance / honest_shares
    parameters = {each: given[each] for each in names}
    return noises.noise_from_parameters(
        {"noise": family.name, "shares": honest_shares, **parameters}
    )
