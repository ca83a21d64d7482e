"""`dppp calibrate`, `dppp certify` and `dppp account`: how much noise, and what it costs.

The heavy imports are inside the commands, so that `dppp --help` answers at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dppp.cli.files import read_json_object
from dppp.cli.noise_options import (
    NoiseOption,
    RatioOption,
    ShapeOption,
    SharesOption,
    SigmaOption,
    TossesOption,
    VarianceOption,
    noise_from_options,
)
from dppp.cli.output import JsonOption, emit
from dppp.cli.privacy_tables import show_certificate, show_compared, show_object
from dppp.cli.promise_options import (
    ClassesOption,
    ColludersOption,
    DeltaOption,
    DropoutsOption,
    EpsilonOption,
    QueriesOption,
)
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.privacy.noise import Noise


def calibrate(
    *,
    epsilon: EpsilonOption,
    delta: DeltaOption,
    teachers: Annotated[int, typer.Option(help="Teachers who vote.")],
    noise: Annotated[
        str, typer.Option(help="auto (least variance) or one of the four families.")
    ] = "auto",
    queries: QueriesOption = 1,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
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

    given = noise_from_options(
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
        raise InputError(
            "a single coordinate is certified for one query", hint="leave out --queries"
        )
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
    emit(result, as_json=as_json, show=lambda out: show_object(out, "What it delivers", result))


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
        raise InputError(
            "a noise and a certificate were given",
            hint="give either --noise with its parameter or --certificate",
        )
    if certificate:
        spendings = [_spending_from_file(path) for path in certificate]
    elif noise is not None:
        given = noise_from_options(
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
        raise InputError(
            "there is no noise to account for",
            hint="give --noise with its parameter, or --certificate FILE",
        )
    epsilon = total_epsilon(spendings, delta)
    described = [_describe(each.noise, queries=each.queries) for each in spendings]
    tasks = described[0] if len(described) == 1 else {"tasks": described}
    result = {**tasks, "delta": delta, "epsilon": epsilon}
    emit(result, as_json=as_json, show=lambda out: show_object(out, "What it costs", result))


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
        raise InputError(
            f"{path} does not say how many queries", hint="write it with calibrate --json"
        )
    return Spending(noise=noise_from_json(data), queries=queries)
