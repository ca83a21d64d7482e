"""The options by which a command is told which noise: one set for each family."""

from typing import TYPE_CHECKING, Annotated

import typer

from dppp.errors import InputError

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

    wanted: dict[str, dict[str, float | None]] = {
        "binomial": {"--total-tosses": total_tosses},
        "discrete-gaussian": {"--share-sigma": share_sigma},
        "skellam": {"--variance": variance},
        "polya": {"--shape": shape, "--ratio": ratio},
    }
    family = noises.family_named(name)
    for other, options in wanted.items():
        for option, value in options.items():
            if (value is None) == (other == family.name):
                verb = "needs" if value is None else "does not take"
                raise InputError(f"{family.name} noise {verb} {option}")
    noises.require_whole("honest-shares", honest_shares)
    match family.name:
        case "binomial":
            return noises.Binomial(total_tosses=total_tosses or 0, shares=honest_shares)
        case "discrete-gaussian":
            return noises.DiscreteGaussian(share_sigma=share_sigma or 0.0, shares=honest_shares)
        case "skellam":
            share_variance = (variance or 0.0) / honest_shares
            return noises.Skellam(share_variance=share_variance, shares=honest_shares)
        case _:
            return noises.Polya(shape=shape or 0.0, ratio=ratio or 0.0, shares=honest_shares)
