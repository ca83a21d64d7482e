"""`dppp calibrate`, `dppp certify` and `dppp account`: how much noise, and what it costs.

The heavy imports are inside the commands, so that `dppp --help` answers at once.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.files import read_json_object
from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.privacy.certificate import Certificate
    from dppp.privacy.noise import Noise

EpsilonOption = Annotated[float, typer.Option(help="Total ε, greater than 0.")]
DeltaOption = Annotated[float, typer.Option(help="Total δ, between 0 and 1.")]
QueriesOption = Annotated[int, typer.Option(help="Queries that the total covers.")]
ClassesOption = Annotated[int, typer.Option(help="Classes to vote on.")]
NoiseOption = Annotated[
    str, typer.Option(help="binomial, discrete-gaussian, skellam or polya.", show_default=False)
]
TossesOption = Annotated[int | None, typer.Option(help="Binomial: tosses of all honest shares.")]
SigmaOption = Annotated[float | None, typer.Option(help="Discrete Gaussian: σ of one share.")]
VarianceOption = Annotated[float | None, typer.Option(help="Skellam: variance of the sum.")]
ShapeOption = Annotated[float | None, typer.Option(help="Pólya: shape of the sum.")]
RatioOption = Annotated[float | None, typer.Option(help="Pólya: ratio, between 0 and 1.")]
SharesOption = Annotated[int, typer.Option(help="Honest shares that make up the sum.")]


def calibrate(
    *,
    epsilon: EpsilonOption,
    delta: DeltaOption,
    teachers: Annotated[int, typer.Option(help="Teachers who vote.")],
    noise: Annotated[
        str, typer.Option(help="auto (least variance) or one of the four families.")
    ] = "auto",
    queries: QueriesOption = 1,
    colluders: Annotated[
        int | None, typer.Option(help="Teachers who may collude. [default: teachers // 5]")
    ] = None,
    dropouts: Annotated[
        int | None, typer.Option(help="Teachers who may vanish. [default: teachers // 10]")
    ] = None,
    classes: ClassesOption = 10,
    calibration: Annotated[str, typer.Option(help="exact or paper.")] = "exact",
    compare: Annotated[
        bool, typer.Option("--compare", help="All families by both calibrations.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw δ(ε), promised against delivered, to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """How much noise for this promise?"""
    from dppp.privacy import calibration as calibrations  # noqa: PLC0415
    from dppp.privacy.certificate import Promise  # noqa: PLC0415
    from dppp.privacy.trust import Trust  # noqa: PLC0415

    promise = Promise(epsilon=epsilon, delta=delta, queries=queries, classes=classes)
    trust = Trust.with_defaults(teachers, colluders, dropouts)
    if compare:
        certificates = calibrations.compare(promise, trust)
    else:
        certificates = [calibrations.calibrate_for(noise, promise, trust, calibration=calibration)]
    if plot is not None:
        from dppp.cli.privacy_plot import draw_promised_against_delivered  # noqa: PLC0415

        draw_promised_against_delivered(certificates, plot)
    first = certificates[0]
    if compare:
        rows = [
            {**each.to_json(), "ratio_to_best": each.noise.variance / first.noise.variance}
            for each in certificates
        ]
        emit({"compared": rows}, as_json=as_json, show=lambda out: show_compared(out, certificates))
    else:
        emit(first.to_json(), as_json=as_json, show=lambda out: show_certificate(out, first))


def certify(
    *,
    noise: NoiseOption,
    epsilon: EpsilonOption,
    total_tosses: TossesOption = None,
    share_sigma: SigmaOption = None,
    variance: VarianceOption = None,
    shape: ShapeOption = None,
    ratio: RatioOption = None,
    honest_shares: SharesOption = 1,
    queries: QueriesOption = 1,
    classes: ClassesOption = 10,
    delta: Annotated[float | None, typer.Option(help="A promise to hold it against.")] = None,
    scope: Annotated[str, typer.Option(help="joint or single-coordinate.")] = "joint",
    as_json: JsonOption = False,
) -> None:
    """What δ does this noise really have at this ε?"""
    from dppp.privacy.accounting import Spending, total_delta  # noqa: PLC0415
    from dppp.privacy.divergence import delta_at, require_delta  # noqa: PLC0415
    from dppp.privacy.sampling import sampling_delta  # noqa: PLC0415

    given = _noise_from_options(
        noise,
        honest_shares=honest_shares,
        total_tosses=total_tosses,
        share_sigma=share_sigma,
        variance=variance,
        shape=shape,
        ratio=ratio,
    )
    if delta is not None:
        require_delta(delta)
    if scope == "joint":
        exact = total_delta([Spending(noise=given, queries=queries)], epsilon)
    elif queries == 1:
        exact = delta_at(given, epsilon, scope=scope)
    else:
        raise InputError("a single coordinate is certified for one query; leave out --queries")
    sampling = sampling_delta(given, epsilon=epsilon, queries=queries, classes=classes)
    result = {
        **_describe(given, queries=queries),
        "scope": scope,
        "epsilon": epsilon,
        "classes": classes,
        "exact_delta": exact,
        "sampling_delta": sampling,
        "delta": delta,
        "certified": None if delta is None else exact + sampling <= delta,
    }
    emit(result, as_json=as_json, show=lambda out: _show_object(out, "What it delivers", result))


def account(
    *,
    delta: DeltaOption,
    noise: Annotated[str | None, typer.Option(help="One of the four families.")] = None,
    total_tosses: TossesOption = None,
    share_sigma: SigmaOption = None,
    variance: VarianceOption = None,
    shape: ShapeOption = None,
    ratio: RatioOption = None,
    honest_shares: SharesOption = 1,
    queries: QueriesOption = 1,
    certificate: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file from `dppp calibrate --json`; repeat it for tasks fixed together."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What ε have these answers cost, at this δ?"""
    from dppp.privacy.accounting import Spending  # noqa: PLC0415
    from dppp.privacy.accounting import account as total_epsilon  # noqa: PLC0415

    if certificate and noise is not None:
        raise InputError("give either --noise with its parameter or --certificate, not both")
    if certificate:
        spendings = [_spending_from_file(path) for path in certificate]
    elif noise is not None:
        given = _noise_from_options(
            noise,
            honest_shares=honest_shares,
            total_tosses=total_tosses,
            share_sigma=share_sigma,
            variance=variance,
            shape=shape,
            ratio=ratio,
        )
        spendings = [Spending(noise=given, queries=queries)]
    else:
        raise InputError("say which noise: --noise with its parameter, or --certificate FILE")
    epsilon = total_epsilon(spendings, delta)
    described = [_describe(each.noise, queries=each.queries) for each in spendings]
    tasks = described[0] if len(described) == 1 else {"tasks": described}
    result = {**tasks, "delta": delta, "epsilon": epsilon}
    emit(result, as_json=as_json, show=lambda out: _show_object(out, "What it costs", result))


def show_certificate(console: Console, certificate: "Certificate") -> None:
    """What to add, who is protected, and whether the promise is kept."""
    from dppp.privacy.certificate import family_parameters  # noqa: PLC0415

    noise, trust = certificate.noise, certificate.trust
    table = Table(show_header=False, box=None, padding=(0, 2))
    parameters = ", ".join(
        f"{name} {value:.8g}" for name, value in family_parameters(noise).items()
    )
    table.add_row("each teacher adds", f"its share of {noise.name} noise to every class")
    table.add_row("noise", parameters)
    table.add_row(
        f"{trust.honest_shares} honest shares",
        f"variance {noise.variance:,.6g} a class, σ = {math.sqrt(noise.variance):,.4g} votes",
    )
    table.add_row(
        "who is trusted",
        f"{trust.teachers} teachers, {trust.colluders} may collude, {trust.dropouts} may vanish",
    )
    table.add_row(
        "quorum", f"{trust.ballots_needed} ballots, {trust.threshold} decryption shares to open"
    )
    table.add_row(
        "promise",
        f"{_promise_text(certificate)}, {certificate.calibration} calibration",
    )
    table.add_row(
        "delivered",
        f"exact δ = {certificate.exact_delta:.6g}, sampling adds {certificate.sampling_delta:.2g}",
    )
    table.add_row("certified", _verdict(certificate))
    console.print(table)


def show_compared(console: Console, certificates: "list[Certificate]") -> None:
    """A table of all families and calibrations, best first."""
    first = certificates[0]
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=f"{_promise_text(first)}; {first.trust.honest_shares} honest shares of "
        f"{first.trust.teachers}",
        caption="one share: m tosses; σ; V variance; r shape and q ratio",
    )
    table.add_column("noise", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    for heading in ("one share", "variance", "ratio", "δ really", "kept"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in certificates:
        table.add_row(
            each.noise.name,
            each.calibration,
            _share_text(each.noise),
            f"{each.noise.variance:,.5g}",
            f"{each.noise.variance / first.noise.variance:.3g}×",
            f"{each.exact_delta:.2g}",
            _verdict(each),
        )
    console.print(table)


def _promise_text(certificate: "Certificate") -> str:
    promise = certificate.promise
    queries = "one query" if promise.queries == 1 else f"{promise.queries:,} queries in total"
    return f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for {queries}"


def _verdict(certificate: "Certificate") -> str:
    return "[green]yes[/]" if certificate.certified else "[bold red]NO[/]"


def _show_object(console: Console, title: str, result: Mapping[str, Any]) -> None:
    table = Table(title=title, show_header=False)
    for name, value in result.items():
        table.add_row(name, _text(value))
    console.print(table)


def _text(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _share_text(noise: "Noise") -> str:
    from dppp.privacy import noise as noises  # noqa: PLC0415

    match noise:
        case noises.Binomial():
            return f"m {noise.tosses_per_teacher}"
        case noises.DiscreteGaussian():
            return f"σ {noise.share_sigma:.4g}"
        case noises.Skellam():
            return f"V {noise.share_variance:.4g}"
        case noises.Polya():
            return f"r {noise.share_shape:.3g}, q {noise.ratio:.3g}"


def _describe(noise: "Noise", *, queries: int) -> dict[str, object]:
    from dppp.privacy.certificate import family_parameters  # noqa: PLC0415

    return {
        "noise": noise.name,
        "honest_shares": noise.shares,
        "queries": queries,
        "variance": noise.variance,
        **family_parameters(noise),
    }


def _spending_from_file(path: Path) -> Any:
    from dppp.privacy.accounting import Spending  # noqa: PLC0415
    from dppp.privacy.certificate import noise_from_json  # noqa: PLC0415

    data = read_json_object(path)
    queries = data.get("queries")
    if not isinstance(queries, int):
        raise InputError(f"{path} does not say how many queries; write it with calibrate --json")
    return Spending(noise=noise_from_json(data), queries=queries)


def _noise_from_options(
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
