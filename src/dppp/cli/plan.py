"""`dppp plan`: what a budget buys, before anything is deployed; as tables, and as a picture.

The heavy imports are inside the functions, so that `dppp --help` answers at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import load_pyplot
from dppp.cli.options import (
    ColludersOption,
    DeltaOption,
    DropoutsOption,
    EpsilonOption,
    JsonOption,
    LevelsOption,
    MaxLabelsOption,
    QueriesOption,
)
from dppp.cli.output_files import require_figure_place, save_figure
from dppp.cli.question_plan import QuestionOptions, plan_by_question
from dppp.cli.terminal import emit, waiting
from dppp.cli.votes_plan import VotesOptions, plan_by_votes
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.learning.planning import Outlook, Plan

LABEL = "label"
_MARKERS = {"binomial": "s", "discrete-gaussian": "^", "skellam": "o", "polya": "d"}


def plan(
    *,
    teachers: Annotated[
        int | None, typer.Option(help="Teachers who vote. (default: the columns of --votes)")
    ] = None,
    accuracy_margin: Annotated[
        float | None,
        typer.Option(help="The fraction of the votes by which the winner leads, e.g. 0.4."),
    ] = None,
    votes: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file: a row per query, a column per teacher, and `label` if known."
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            help="Records of each teacher. (default: an equal part of --data, held-out rows aside)"
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            help="Records in a shard : accuracy of one model, e.g. 50:0.80,200:0.88,1000:0.93."
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            help="With --curve: how much the errors of two models correlate. (default: 0.6)"
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Measure on parts of a public CSV table instead; features are numbers."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column of --data to predict.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed deals --data in the same way. (default: 0)")
    ] = None,
    votes_per_teacher: Annotated[
        str | None,
        typer.Option(
            help="Numbers of votes to try, e.g. 1,5,10. (default: 1, 2, 5, 10, … and the rule's)"
        ),
    ] = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-5,
    queries: QueriesOption = 100,
    colluders: ColludersOption = None,
    dropouts: DropoutsOption = None,
    classes: Annotated[
        int | None,
        typer.Option(
            help="Classes to vote on. (default: 10, or those of --votes or --data; 2 for --curve)"
        ),
    ] = None,
    target_accuracy: Annotated[
        float,
        typer.Option(help="The accuracy that you need, between 0 and 1; not used with --records."),
    ] = 0.9,
    low: Annotated[
        float | None, typer.Option(help="The question is a number: the least that it can be.")
    ] = None,
    high: Annotated[float | None, typer.Option(help="The most that it can be.")] = None,
    levels: LevelsOption = None,
    max_labels: MaxLabelsOption = None,
    label_share: Annotated[
        float | None,
        typer.Option(help="Part of the votes from which on a label is released. (default: 0.5)"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw accuracy against ε, or votes, to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Work out what a budget buys: accuracy, queries, teachers, or votes per teacher.

    With --accuracy-margin or --votes: accuracy against ε and queries, and the teachers it takes.
    With --curve or --data: accuracy against the number of votes that each teacher casts.
    With --low and --high: what the noise adds to a number. With --max-labels and --classes: how
    likely a label is released rightly.
    """
    require_figure_place(plot)
    question = QuestionOptions(
        low=low, high=high, levels=levels, max_labels=max_labels, label_share=label_share
    )
    if question.is_given():
        given = (accuracy_margin, votes, records, curve, data, plot)
        if any(each is not None for each in given):
            raise InputError(
                "a plan for a number or for several labels takes no votes, records or plot",
                hint="leave out --accuracy-margin, --votes, --records, --curve, --data and --plot",
            )
        plan_by_question(
            question,
            teachers=teachers,
            classes=classes,
            votes_per_teacher=votes_per_teacher,
            as_json=as_json,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            colluders=colluders,
            dropouts=dropouts,
        )
        return
    options = VotesOptions(
        records=records,
        curve=curve,
        correlation=correlation,
        data=data,
        label=label,
        seed=seed,
        votes_per_teacher=votes_per_teacher,
        classes=classes,
    )
    if options.is_given():
        _require_one_plan(accuracy_margin, votes)
        plan_by_votes(
            options,
            teachers=teachers,
            colluders=colluders,
            dropouts=dropouts,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            plot=plot,
            as_json=as_json,
        )
        return
    from dppp.learning.planning import plan as make_plan  # noqa: PLC0415

    table, labels = (None, None) if votes is None else _read_votes(votes, classes)
    if plot is not None:
        load_pyplot()  # say at once that it is missing
    with waiting("calibrating each family at each ε; about a minute"):
        made = make_plan(
            teachers=teachers,
            accuracy_margin=accuracy_margin,
            votes=table,
            labels=labels,
            classes=classes,
            colluders=colluders,
            dropouts=dropouts,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            target_accuracy=target_accuracy,
        )
    if plot is not None:
        _draw_accuracy(made, plot)
    emit(made.to_json(), as_json=as_json, show=lambda out: _show_plan(out, made))


def _require_one_plan(accuracy_margin: float | None, votes: Path | None) -> None:
    if accuracy_margin is not None or votes is not None:
        given = "--votes FILE" if accuracy_margin is None else "--accuracy-margin"
        raise InputError(
            f"{given} is for one vote per teacher, whatever its records are",
            hint="leave it out, or leave out --records, --curve, --data and what goes with them",
        )


def _read_votes(path: Path, classes: int | None) -> tuple[list[list[str]], list[str] | None]:
    """The votes in a CSV file, and its column `label` where there is one."""
    from dppp.learning.csv_table import read_table  # noqa: PLC0415
    from dppp.learning.votes import require_few_classes, require_votes  # noqa: PLC0415

    table = read_table(path)
    if not table.rows:
        raise InputError(
            f"{path} holds no votes",
            hint="give a row of column names, then a row per query",
        )
    if "" in table.columns:
        raise InputError(
            f"the first line of {path} must name every column: a name for each teacher, and "
            f"{LABEL} for the truth if it is known",
            hint="write the names into the first line, and take an index column out",
        )
    require_votes(table.columns, table.rows)
    if classes is None:
        require_few_classes(table.rows)
    if LABEL not in table.columns:
        return [list(row) for row in table.rows], None
    place = table.columns.index(LABEL)
    votes = [[*row[:place], *row[place + 1 :]] for row in table.rows]
    return votes, table.texts(LABEL)


def _show_plan(console: Console, plan: "Plan") -> None:
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
    for line in [*_drowned(plan), *_verdicts(plan)]:
        console.print(line)
    console.print(
        "\n[dim]Exact calibration; nothing sampled. Privacy counts the noise of the honest shares "
        f"({trust.honest_shares:,}), accuracy that of all {trust.teachers:,}.[/]"
    )


def _verdicts(plan: "Plan") -> list[str]:
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


def _draw_accuracy(plan: "Plan", path: Path) -> None:
    """Accuracy in per cent over ε on a logarithmic axis, the target and the verdicts with it."""
    from dppp.privacy.noise import FAMILIES  # noqa: PLC0415

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


def _name_axes(axes: Any, plan: "Plan") -> None:
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
        f"vanish), {promise.classes} classes\n" + "\n".join(_verdicts(plan)),
        fontsize="medium",
        loc="left",
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
