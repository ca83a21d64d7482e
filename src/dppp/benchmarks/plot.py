"""A picture of the steps from the paper to this package."""

from collections.abc import Mapping
from pathlib import Path

from dppp.errors import InputError, MissingExtraError


def plot_steps(result: Mapping[str, object], path: Path) -> None:
    """Bars of processor milliseconds a label, one for each step, on a logarithmic scale."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra that few commands need
    except ImportError as error:
        raise MissingExtraError(
            "the plot needs matplotlib; install dppp with the extra 'experiments'"
        ) from error
    steps = result["steps"]
    if not isinstance(steps, list):
        raise InputError("there are no steps to plot; measure them with --steps")
    names = [step["step"] for step in steps]
    milliseconds = [step["ms"] for step in steps]
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(names, milliseconds, color="#2f6f9f")
    axes.bar_label(bars, labels=[f"{value:,.0f}" for value in milliseconds], padding=3)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlim(left=1, right=8 * max(milliseconds))
    axes.set_xlabel("processor milliseconds a label, all parties")
    axes.set_title(
        f"{result['teachers']} teachers, {result['classes']} classes, "
        f"{result['modulus_bits']} bits, batches of {result['labels']} labels"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
