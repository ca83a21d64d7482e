"""The picture of `dppp calibrate --plot`: δ(ε), promised against delivered."""

from pathlib import Path

import numpy as np

from dppp.cli.extras import load_pyplot
from dppp.errors import InputError
from dppp.privacy.accounting import Spending, delta_curve
from dppp.privacy.certificate import Certificate


def draw_promised_against_delivered(certificates: list[Certificate], path: Path) -> None:
    """One curve a certificate; dashed where the promise, marked by a star, is not kept."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    promise = certificates[0].promise
    epsilons = np.linspace(promise.epsilon / 20, 2 * promise.epsilon, 60)
    for each in certificates:
        spending = Spending(noise=each.noise, queries=promise.queries)
        label = f"{each.noise.name}, {each.calibration}" + ("" if each.certified else ": not kept")
        deltas = np.maximum(delta_curve([spending], epsilons.tolist()), 1e-300)
        axes.plot(epsilons, deltas, "-" if each.certified else "--", label=label)
    axes.plot(promise.epsilon, promise.delta, "k*", markersize=12, label="promise")
    axes.set_yscale("log")
    axes.set_ylim(promise.delta * 1e-4, 1.5)
    axes.set_xlabel("ε in total")
    axes.set_ylabel("δ delivered")
    axes.set_title(
        f"queries: {promise.queries:,}; {certificates[0].trust.honest_shares} honest shares "
        f"of {certificates[0].trust.teachers}"
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def save_figure(figure: object, path: Path) -> None:
    """Write a figure, or say why that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)  # type: ignore[attr-defined]
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot draw to {path}: {error}", hint="name a .png, .svg or .pdf file"
        ) from error
