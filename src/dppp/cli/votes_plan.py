"""`dppp plan` with records: accuracy against votes per teacher, as a table and as a picture.

The heavy imports are inside the functions, so that `dppp --help` answers at once.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.optional_packages import load_pyplot, require_scikit_learn
from dppp.cli.output_files import save_figure
from dppp.cli.terminal import counted_progress, emit
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.learning.votes_planning.forecast import VoteSource
    from dppp.learning.votes_planning.plan import Change, VotesOutlook, VotesPlan
    from dppp.learning.votes_planning.public_table import OnModel


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesOptions:
    """What was typed about records and models."""

    records: int | None
    curve: str | None
    correlation: float | None
    data: Path | None
    label: str | None
    seed: int | None
    votes_per_teacher: str | None
    classes: int | None

    def is_given(self) -> bool:
        """Whether anything was typed that only a plan of votes can use."""
        return any(getattr(self, name) is not None for name in self.__slots__ if name != "classes")

    def require_whole_question(self, teachers: int | None) -> int:
        """Go on if the options go together; the number of teachers."""
        if (self.curve is None) == (self.data is None):
            raise InputError(
                "votes per teacher take either a learning curve or a public table",
                hint="give --curve 50:0.80,1000:0.93 with --records, or --data with --label",
            )
        if teachers is None:
            raise InputError("nothing says how many teachers vote", hint="give --teachers")
        if self.curve is not None:
            self._require_curve_only()
        else:
            self._require_table_only()
        return teachers

    def _require_curve_only(self) -> None:
        if self.records is None:
            raise InputError(
                "nothing says how many records each teacher has", hint="give --records"
            )
        for name in ("label", "seed"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"--{name} goes with --data, not with --curve", hint="leave it out"
                )

    def _require_table_only(self) -> None:
        if self.label is None:
            raise InputError("nothing says which column to predict", hint="give --label")
        for name, why in (
            ("classes", "the table has its own classes"),
            ("correlation", "the table shows how errors correlate"),
        ):
            if getattr(self, name) is not None:
                raise InputError(f"--{name} does not go with --data: {why}", hint="leave it out")

    def numbers_of_votes(self) -> list[int] | None:
        """The numbers to try, if they were typed."""
        if self.votes_per_teacher is None:
            return None
        try:
            return [int(each) for each in self.votes_per_teacher.split(",")]
        except ValueError:
            raise InputError(
                f"{self.votes_per_teacher!r} is not a list of whole numbers",
                hint="write e.g. --votes-per-teacher 1,5,10",
            ) from None


def plan_by_votes(
    options: VotesOptions,
    *,
    teachers: int | None,
    colluders: int | None,
    dropouts: int | None,
    epsilon: float,
    delta: float,
    queries: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Work it out, draw it if asked to, and print it."""
    from dppp.learning.votes_planning.plan import plan_votes  # noqa: PLC0415
    from dppp.privacy.trust import Trust  # noqa: PLC0415

    count = options.require_whole_question(teachers)
    Trust.with_defaults(count, colluders, dropouts)  # before a table is read and models are trained
    if plot is not None:
        load_pyplot()  # say at once that it is missing
    with counted_progress("training models on parts of the table") as progress:
        made = plan_votes(
            _source(options, count, progress),
            teachers=count,
            colluders=colluders,
            dropouts=dropouts,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            votes=options.numbers_of_votes(),
        )
    if plot is not None:
        _draw_votes(made, plot)
    result = {**made.to_json(), "source": "curve" if options.data is None else "data"}
    emit(result, as_json=as_json, show=lambda out: _show(out, made))


def _source(options: VotesOptions, teachers: int, progress: "OnModel") -> "VoteSource":
    if options.data is None:
        return _curve_source(options)
    require_scikit_learn()
    from dppp.learning.csv_records import read_records  # noqa: PLC0415
    from dppp.learning.votes_planning.public_table import open_table  # noqa: PLC0415

    assert options.label is not None, "checked before"
    return open_table(
        read_records(options.data, options.label),
        teachers=teachers,
        records=options.records,
        seed=0 if options.seed is None else options.seed,
        on_model=progress,
    )


def _curve_source(options: VotesOptions) -> "VoteSource":
    from dppp.learning.votes_planning.forecast import CORRELATION, CurveSource  # noqa: PLC0415
    from dppp.learning.votes_planning.learning_curve import parse_curve  # noqa: PLC0415

    assert options.curve is not None, "checked before"
    assert options.records is not None, "checked before"
    return CurveSource(
        curve=parse_curve(options.curve),
        records=options.records,
        classes=2 if options.classes is None else options.classes,
        correlation=CORRELATION if options.correlation is None else options.correlation,
    )


def _show(console: Console, plan: "VotesPlan") -> None:
    trust, promise = plan.trust, plan.promise
    console.print(
        f"{trust.teachers:,} teachers with {plan.records:,} records each; {trust.colluders:,} may "
        f"collude, {trust.dropouts:,} may vanish; {promise.classes} classes\n"
        f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for {promise.queries:,} queries: noise of "
        f"±{plan.tally_deviation:.1f} votes in each count"
    )
    console.print(_table(plan))
    for line in [*_findings(plan), "", *_grounds(plan)]:
        console.print(line)


def _table(plan: "VotesPlan") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("votes each", "records in a shard", "private", "without noise", "one model"):
        table.add_column(heading, justify="right")
    for each in plan.by_votes:
        bold = "bold" if each == plan.best else None
        table.add_row(
            f"{each.votes:,}",
            f"{each.records_per_shard:,}{_mark(each)}",
            _percent(each.accuracy_expected),
            _percent(each.accuracy_without_noise),
            _percent(each.accuracy_single),
            style=bold,
        )
    return table


def _mark(outlook: "VotesOutlook") -> str:
    return " *" if outlook.is_guess else " †" if outlook.is_flat else ""


def _findings(plan: "VotesPlan") -> list[str]:
    """What people decide by."""
    best, rule = plan.best, plan.rule
    lines = [f"Best: {_votes(best.votes)}, right in {_percent(best.accuracy_expected)}."]
    if rule is None:
        lines.append(
            f'`votes="auto"` would choose {_votes(plan.votes_rule)}, which was not measured.'
        )
    else:
        behind = 100 * (best.accuracy_expected - rule.accuracy_expected)
        lines.append(
            f'`votes="auto"` would choose {_votes(rule.votes)}: '
            f"{_percent(rule.accuracy_expected)}, "
            + (f"{behind:.1f} points below the best." if rule != best else "the best of these.")
        )
    if plan.next_teacher is not None:
        lines.append(f"One more teacher: {_changed(plan, plan.next_teacher)}.")
    if plan.larger_epsilon is not None:
        larger = plan.larger_epsilon
        lines.append(f"ε = {larger.epsilon:g}: {_changed(plan, larger)}.")
    if plan.accuracy_majority is not None:
        lines.append(f"Always saying the most frequent class: {_percent(plan.accuracy_majority)}.")
    return lines


def _changed(plan: "VotesPlan", change: "Change") -> str:
    gain = 100 * (change.accuracy_expected - plan.best.accuracy_expected)
    return (
        f"{_percent(change.accuracy_expected)} with {_votes(change.votes_best)}, {gain:+.1f} points"
    )


def _grounds(plan: "VotesPlan") -> list[str]:
    """What the numbers rest on."""
    shown = plan.by_votes
    lines = _measured(plan) if plan.held_out is not None else _assumed(plan)
    if any(each.is_guess for each in shown):
        lines.append("* Smaller than any shard of the curve: a guess, never called the best.")
    if any(each.is_flat for each in shown):
        lines.append("† Larger than any shard of the curve: taken to be no better than its last.")
    lines.append(
        f"At most {_votes(plan.votes_most)} each: a shard needs 15 records per class. With more "
        "than one vote the promise covers one record, not a whole teacher."
    )
    return [f"[dim]{line}[/]" for line in lines]


def _assumed(plan: "VotesPlan") -> list[str]:
    correlation = plan.by_votes[0].correlation
    return [
        f"Assumed: the errors of two models correlate by {correlation:g} (beta-binomial votes), "
        "and all wrong votes on a query are for one class. --data measures it instead."
    ]


def _measured(plan: "VotesPlan") -> list[str]:
    assert plan.held_out is not None, "asked before"
    worst = max(
        math.sqrt(each.accuracy_expected * (1 - each.accuracy_expected) / plan.held_out)
        for each in plan.by_votes
    )
    lines = [
        f"Measured: votes of models on disjoint shards of the table, on {plan.held_out:,} records "
        f"held out; standard error up to {100 * worst:.1f} points. Exact over the noise."
    ]
    short = [each for each in plan.by_votes if (each.shards_measured or 0) < each.shards]
    if short:
        lines.append(
            "The table has too few records for every shard. Votes were scaled up in proportion: "
            + ", ".join(f"{each.shards_measured} of {each.shards} shards" for each in short)
            + "."
        )
    if plan.unmeasured:
        numbers = ", ".join(map(str, plan.unmeasured))
        lines.append(f"Too few records in the table to measure {numbers} votes per teacher.")
    return lines


def _votes(count: int) -> str:
    return f"{count:,} {'vote' if count == 1 else 'votes'}"


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _draw_votes(plan: "VotesPlan", path: Path) -> None:
    """Accuracy in per cent over votes per teacher on a logarithmic axis."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7.5, 5), layout="constrained")
    votes = [each.votes for each in plan.by_votes]
    for name, text, marker in (
        ("accuracy_expected", "private", "o"),
        ("accuracy_without_noise", "votes without noise", "s"),
        ("accuracy_single", "one model alone", "^"),
    ):
        accuracies = [100 * getattr(each, name) for each in plan.by_votes]
        axes.plot(votes, accuracies, marker=marker, label=text)
    if plan.accuracy_majority is not None:
        majority = 100 * plan.accuracy_majority
        axes.axhline(majority, color="grey", linestyle="--", label="most frequent class")
    axes.set_xscale("log")
    axes.set_xticks(votes, [str(count) for count in votes])
    axes.minorticks_off()
    axes.set_ylim(0, 102)
    axes.set_xlabel("votes per teacher")
    axes.set_ylabel("right labels, %")
    axes.set_title("\n".join(_findings(plan)[:2]), fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    save_figure(figure, path)
    pyplot.close(figure)
