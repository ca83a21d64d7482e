"""The picture of `dppp plan --plot`: accuracy against ε, one curve a family."""

from pathlib import Path
from typing import Any

from dppp.cli.extras import load_pyplot
from dppp.cli.plan_tables import verdicts
from dppp.cli.privacy_plot import save_figure
from dppp.learning.planning import Plan
from dppp.privacy.noise import FAMILIES

_MARKERS = {"binomial": "s", "discrete-gaussian": "^", "skellam": "o", "polya": "d"}


def draw_accuracy(plan: Plan, path: Path) -> None:
    """Accuracy in per cent over ε on a logarithmic axis, the target and the verdicts with it."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7.5, 5), layout="constrained")
    for size, name in enumerate(FAMILIES):
        found = [each for each in plan.by_epsilon if each.noise == name]
        axes.plot(
            [each.epsilon for each in found],
            [100 * each.accuracy for each in found],
            marker=_MARKERS[name],
            markersize=10 - 2 * size,  # curves that coincide stay visible
            linewidth=3.5 - 0.8 * size,
            label=name,
        )
    target = 100 * plan.target_accuracy
    axes.axhline(target, color="black", linestyle=":", label=f"target {target:g} %")
    if plan.accuracy_without_noise < 1:
        ceiling = 100 * plan.accuracy_without_noise
        axes.axhline(ceiling, color="grey", linestyle="--", label=f"without noise {ceiling:.1f} %")
    _name_axes(axes, plan)
    save_figure(figure, path)
    pyplot.close(figure)


def _name_axes(axes: Any, plan: Plan) -> None:
    trust, promise = plan.trust, plan.promise
    epsilons = sorted({each.epsilon for each in plan.by_epsilon})
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_ylim(0, 102)
    axes.set_xlabel(f"ε in total for {promise.queries:,} queries (δ = {promise.delta:g})")
    right = "right labels" if plan.right_means == "label" else "class with the most votes released"
    axes.set_ylabel(f"{right}, %")
    axes.set_title(
        f"{trust.teachers:,} teachers ({trust.colluders:,} may collude, {trust.dropouts:,} may "
        f"vanish), {promise.classes} classes\n" + "\n".join(verdicts(plan)),
        fontsize="medium",
        loc="left",
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
