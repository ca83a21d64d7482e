"""`dppp certify` and `dppp account`: what some noise delivers, and what answers have cost.

The heavy imports are inside the functions, so that `dppp --help` answers at once.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dppp.cli.options import (
    ClassesOption,
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LevelsOption,
    MaxLabelsOption,
    QueriesOption,
)
from dppp.cli.terminal import emit
from dppp.errors import InputError
from dppp.service.stores.new_files import read_file
from dppp.whole_numbers import require_whole

if TYPE_CHECKING:
    from dppp.privacy.accounting import Spending
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
    max_labels: MaxLabelsOption = None,
    levels: LevelsOption = None,
    delta: Annotated[float | None, typer.Option(help="A promised δ to compare with.")] = None,
    scope: Annotated[
        str, typer.Option(help="joint (all classes), or single-coordinate as in the paper.")
    ] = "joint",
    as_json: JsonOption = False,
) -> None:
    """Work out which δ this noise really has at this ε."""
    from dppp.privacy.accounting import Spending, total_delta  # noqa: PLC0415
    from dppp.privacy.change import change_of  # noqa: PLC0415
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
    counts, change = change_of(classes=classes, max_labels=max_labels, levels=levels)
    if scope == "joint":
        exact = total_delta([Spending(noise=given, queries=queries, change=change)], epsilon)
    elif queries == 1:
        exact = delta_at(given, epsilon, scope=scope, change=change)
    else:
        raise InputError(
            "a single coordinate is certified for one query",
            hint="leave out --queries",
        )
    sampling = sampling_delta(given, epsilon=epsilon, queries=queries, classes=counts)
    result = {
        **_describe(given, queries=queries),
        "scope": scope,
        "epsilon": epsilon,
        "classes": counts,
        "counts_moved": change.moved if scope == "joint" else 1,
        "moved_by": change.shift,
        "exact_delta": exact,
        "sampling_delta": sampling,
        "delta": delta,
        "certified": None if delta is None else exact + sampling <= delta,
    }
    emit(result, as_json=as_json, show=lambda out: _show_object(out, "What it delivers", result))


def account(
    *,
    delta: DeltaOption,
    noise: Annotated[
        str | None, typer.Option(help="binomial, discrete-gaussian, skellam or polya.")
    ] = None,
    total_tosses: TossesOption = None,
    share_sigma: SigmaOption = None,
    variance: VarianceOption = None,
    shape: ShapeOption = None,
    ratio: RatioOption = None,
    honest_shares: SharesOption = 1,
    queries: QueriesOption = 1,
    classes: ClassesOption = 10,
    max_labels: MaxLabelsOption = None,
    levels: LevelsOption = None,
    certificate: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file from `dppp calibrate --json`; repeat it for tasks fixed together."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Work out which ε these answers have cost, at this δ."""
    from dppp.privacy.accounting import Spending  # noqa: PLC0415
    from dppp.privacy.accounting import account as total_epsilon  # noqa: PLC0415
    from dppp.privacy.change import change_of  # noqa: PLC0415

    if certificate and noise is not None:
        raise InputError(
            "both --noise and --certificate say which noise", hint="give either of them, not both"
        )
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
        _, change = change_of(classes=classes, max_labels=max_labels, levels=levels)
        spendings = [Spending(noise=given, queries=queries, change=change)]
    else:
        raise InputError(
            "no noise is given", hint="give --noise with its parameter, or --certificate FILE"
        )
    epsilon = total_epsilon(spendings, delta)
    described = [_describe(each.noise, queries=each.queries) for each in spendings]
    tasks = described[0] if len(described) == 1 else {"tasks": described}
    result = {**tasks, "delta": delta, "epsilon": epsilon}
    emit(result, as_json=as_json, show=lambda out: _show_object(out, "What it costs", result))


_OPTIONS = {
    "total_tosses": "--total-tosses",
    "share_sigma": "--share-sigma",
    "share_variance": "--variance",
    "shape": "--shape",
    "ratio": "--ratio",
}
"""Which option gives which parameter. Skellam is asked for by the variance of its sum."""


_WRITE_IT = "write it with: dppp calibrate --json"


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
            verb, then = ("needs", "give") if value is None else ("does not take", "leave out")
            option = _OPTIONS[parameter]
            raise InputError(f"{family.name} noise {verb} {option}", hint=f"{then} {option}")
    require_whole("honest-shares", honest_shares)
    if variance is not None:
        if not 0 < variance < math.inf:
            raise InputError(
                f"--variance must be a positive number, got {variance:g}", hint="give one above 0"
            )
        given["share_variance"] = variance / honest_shares
    parameters = {each: given[each] for each in names}
    return noises.noise_from_parameters(
        {"noise": family.name, "shares": honest_shares, **parameters}
    )


def _describe(noise: "Noise", *, queries: int) -> dict[str, object]:
    return {
        "noise": noise.name,
        "honest_shares": noise.shares,
        "queries": queries,
        "variance": noise.variance,
        **noise.report(),
    }


def _spending_from_file(path: Path) -> "Spending":
    from dppp.privacy.accounting import Spending  # noqa: PLC0415
    from dppp.privacy.certificate import noise_from_json  # noqa: PLC0415
    from dppp.privacy.change import Change  # noqa: PLC0415

    data = _read_json_object(path)
    queries = data.get("queries")
    if not isinstance(queries, int):
        raise InputError(
            f"{path} does not say how many queries",
            hint=_WRITE_IT,
        )
    usual = Change()
    change = Change(
        moved=data.get("counts_moved", usual.moved), shift=data.get("moved_by", usual.shift)
    )
    return Spending(noise=noise_from_json(data), queries=queries, change=change)


def _read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        data = json.loads(read_file(path))
    except ValueError as error:
        raise InputError(f"{path} is not a JSON file: {error}", hint=_WRITE_IT) from error
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no JSON object", hint=_WRITE_IT)
    return data


_WORDS = {
    "noise": "noise",
    "honest_shares": "honest shares",
    "queries": "queries",
    "variance": "variance of their sum",
    "total_tosses": "tosses in all",
    "tosses_per_teacher": "tosses of one share",
    "share_sigma": "σ of one share",
    "share_variance": "variance of one share",
    "shape": "shape of the sum",
    "share_shape": "shape of one share",
    "ratio": "ratio",
    "scope": "scope",
    "epsilon": "ε",
    "classes": "counts of a query",
    "counts_moved": "counts that one vote moves",
    "moved_by": "each by at most",
    "exact_delta": "δ of the noise, exactly",
    "sampling_delta": "δ added by sampling it",
    "delta": "δ promised",
    "certified": "promise kept",
}
"""What a person reads for each name that `--json` prints."""


def _show_object(console: Console, title: str, result: Mapping[str, Any]) -> None:
    """A result as a table of names and values; what was not asked is left out."""
    table = Table(title=title, show_header=False)
    for task in result.get("tasks", ()):
        for name, value in task.items():
            table.add_row(_WORDS[name], _text(value))
        table.add_section()
    for name, value in result.items():
        if name != "tasks" and value is not None:
            table.add_row(_WORDS[name], _text(value))
    console.print(table)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
