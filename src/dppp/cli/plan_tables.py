"""How a plan is shown to people."""

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from dppp.learning.planning import Outlook, Plan


def show_plan(console: Console, plan: "Plan") -> None:
    """Three answers: accuracy against ε, queries for the budget, teachers to make it useful."""
    trust, promise = plan.trust, plan.promise
    console.print(
        f"{trust.teachers:,} teachers, {trust.colluders:,} may collude, {trust.dropouts:,} may "
        f"vanish; {promise.classes} classes; δ = {promise.delta:g}\n{_votes_text(plan)}"
    )
    asked = f"{promise.queries:,} {_plural(promise.queries, 'query', 'queries')}"
    console.print(f"\n[bold]Accuracy for {asked} at a total ε[/]", _by_epsilon(plan))
    console.print(
        f"[bold]Accuracy as queries grow, at ε = {promise.epsilon:g} in total[/]", _by_queries(plan)
    )
    for line in [*_drowned(plan), *verdicts(plan)]:
        console.print(line)
    console.print(
        "\n[dim]Exact calibration; nothing sampled. Privacy counts the noise of the honest shares "
        f"({trust.honest_shares:,}), accuracy that of all {trust.teachers:,}.[/]"
    )


def verdicts(plan: "Plan") -> list[str]:
    """What people decide by, in two sentences."""
    from dppp.learning.planning import MOST_PLANNED_QUERIES, MOST_TEACHERS  # noqa: PLC0415

    target, promise = f"{100 * plan.target_accuracy:g} %", plan.promise
    if plan.most_queries is None:
        first = f"At ε = {promise.epsilon:g} not even one query is right {target} of the time."
    else:
        more = " or more" if plan.most_queries == MOST_PLANNED_QUERIES else ""
        first = (
            f"ε = {promise.epsilon:g} buys about {plan.most_queries:,}{more} "
            f"{_plural(plan.most_queries, 'query', 'queries')} at {target} accuracy."
        )
    asked = f"{promise.queries:,} {_plural(promise.queries, 'query', 'queries')}"
    if plan.fewest_teachers is None:
        second = f"No number of teachers up to {MOST_TEACHERS:,} reaches {target} for {asked}."
    else:
        about = "about " if plan.fewest_teachers > 1000 else ""
        second = (
            f"{target} for {asked} at ε = {promise.epsilon:g} takes {about}"
            f"{plan.fewest_teachers:,} teachers with such votes."
        )
    return [first, second]


def _drowned(plan: "Plan") -> list[str]:
    """Where it stopped, because votes no longer matter."""
    lines = []
    if plan.by_epsilon and plan.by_epsilon[0].at_chance:
        lines.append(
            f"At ε = {plan.by_epsilon[0].epsilon:g} the noise drowns the votes: guessing is as "
            "good. Other noise there, and smaller ε, were not tried."
        )
    if plan.by_queries and plan.by_queries[-1].at_chance:
        queries = plan.by_queries[-1].queries
        lines.append(
            f"At {queries:,} {_plural(queries, 'query', 'queries')} the noise drowns the votes; "
            "more were not tried."
        )
    return lines


def _votes_text(plan: "Plan") -> str:
    from dppp.learning.win_probability import ExpectedMargin  # noqa: PLC0415

    if isinstance(plan.votes, ExpectedMargin):
        return f"the winner is ahead of every other class by {100 * plan.votes.margin:g} % of votes"
    against = "the label" if plan.right_means == "label" else "the class with the most votes"
    return (
        f"votes on {len(plan.votes.counts):,} queries; right is {against}: "
        f"{_percent(plan.accuracy_without_noise)} without noise"
    )


def _by_epsilon(plan: "Plan") -> Table:
    from dppp.privacy.noise import FAMILIES  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("ε", justify="right")
    for name in FAMILIES:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("least variance", justify="right", no_wrap=True)
    for epsilon in dict.fromkeys(each.epsilon for each in plan.by_epsilon):
        found = {each.noise: each for each in plan.by_epsilon if each.epsilon == epsilon}
        cells = (_accuracy(plan, found[name]) if name in found else "—" for name in FAMILIES)
        least = min(each.variance for each in found.values())
        table.add_row(f"{epsilon:g}", *cells, _variance(least))
    return table


def _by_queries(plan: "Plan") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("queries", "noise", "variance", "accuracy"):
        table.add_column(heading, justify="left" if heading == "noise" else "right")
    for each in plan.by_queries:
        accuracy = _accuracy(plan, each)
        table.add_row(f"{each.queries:,}", each.noise, _variance(each.variance), accuracy)
    return table


def _accuracy(plan: "Plan", outlook: "Outlook") -> str:
    text = _percent(outlook.accuracy)
    return f"[green]{text}[/]" if outlook.accuracy >= plan.target_accuracy else text


def _percent(part: float) -> str:
    """Rounded down, so that 100 % is said only of what is right but for one in a billion."""
    return f"{int(1000 * part + 1e-9) / 10:.1f} %"


def _variance(variance: float) -> str:
    return f"{variance:,.0f}" if variance >= 1000 else f"{variance:.4g}"


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
