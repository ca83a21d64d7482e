"""`dppp plan` for a number (`--low`, `--high`, `--levels`) and for several labels (`--max-labels`).

The heavy imports are inside the functions, so that `dppp --help` answers at once.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from dppp.cli.options import read_digits, split_names
from dppp.cli.terminal import emit, waiting
from dppp.errors import InputError

if TYPE_CHECKING:
    from dppp.learning.question_planning import QuestionPlan

_DEFAULT_LEVELS, _DEFAULT_SHARE = 100, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What the command line says of a question that is not one of several classes."""

    low: float | None
    high: float | None
    levels: int | None
    max_labels: int | None
    label_share: float | None

    def is_given(self) -> bool:
        """Whether any of them was."""
        return any(getattr(self, name) is not None for name in self.__slots__)

    def question(self) -> Any:
        """As the task has it."""
        from dppp.protocol.question import Question  # noqa: PLC0415

        of_number = (self.low, self.high, self.levels) != (None, None, None)
        of_labels = (self.max_labels, self.label_share) != (None, None)
        if of_number and of_labels:
            raise InputError(
                "the question is of several labels or of a number, not of both",
                hint="leave out --max-labels, or --low, --high and --levels",
            )
        if of_labels:
            if self.max_labels is None:
                raise InputError("--label-share is for several labels", hint="give --max-labels")
            share = _DEFAULT_SHARE if self.label_share is None else self.label_share
            return Question.of_labels(most_labels=self.max_labels, share=share)
        if self.low is None or self.high is None:
            raise InputError("a number needs both ends of its range", hint="give --low and --high")
        levels = _DEFAULT_LEVELS if self.levels is None else self.levels
        return Question.of_number(low=self.low, high=self.high, levels=levels)


def plan_by_question(
    options: QuestionOptions,
    *,
    teachers: int | None,
    classes: int | None,
    votes_per_teacher: str | None,
    as_json: bool,
    **promise: Any,
) -> None:
    """Print what to expect at each ε and number of votes."""
    from dppp.learning.question_planning import EPSILONS, plan_question  # noqa: PLC0415

    question = options.question()
    if teachers is None:
        raise InputError("nothing says how many teachers vote", hint="give --teachers")
    labels = 1
    if question.kind == "labels":
        if classes is None:
            raise InputError("nothing says how many labels there are", hint="give --classes")
        labels = classes
    votes = _votes(votes_per_teacher)
    epsilons = tuple(sorted({*EPSILONS, promise.pop("epsilon")}))
    with waiting("calibrating each family at each ε"):
        made = plan_question(
            question, teachers=teachers, labels=labels, votes=votes, epsilons=epsilons, **promise
        )
    emit(made.to_json(), as_json=as_json, show=lambda console: _show(console, made))


def _votes(text: str | None) -> tuple[int, ...]:
    if text is None:
        return (1, 5, 20)
    found = [read_digits(each) for each in split_names(text)]
    votes = tuple(each for each in found if each is not None and each > 0)
    if not found or len(votes) < len(found):
        raise InputError(
            f"--votes-per-teacher is numbers from 1 up, not {text[:40]!r}", hint="such as 1,5,20"
        )
    return votes


def _show(console: Console, made: "QuestionPlan") -> None:
    from dppp.learning.question_planning import MARGINS  # noqa: PLC0415

    question = made.question
    is_number = question.kind == "number"
    console.print(
        f"{made.teachers:,} teachers, {made.queries:,} queries, δ = {made.delta:g}: "
        + (
            f"a number from {question.low:g} to {question.high:g} in {question.levels} steps"
            if is_number
            else f"at most {question.most_labels} labels in a vote, released from "
            f"{question.share:.0%} of the votes on"
        )
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("ε", "votes of each"):
        table.add_column(heading, justify="right")
    headings = ["standard error", "of the range"]
    if not is_number:
        headings = [f"right at {question.share:.0%} ± {margin:.0%}" for margin in MARGINS]
    for heading in headings:
        table.add_column(heading, justify="right")
    for each in made.outlooks:
        cells = [f"{100 * chance:.1f} %" for chance in each.released_rightly]
        if each.standard_error is not None and each.part_of_range is not None:
            cells = [f"{each.standard_error:.4g}", f"{100 * each.part_of_range:.2f} %"]
        table.add_row(f"{each.epsilon:g}", f"{each.votes:,}", *cells)
    console.print(table)
    rule = ", ".join(f"{votes:,} at ε = {epsilon:g}" for epsilon, votes in made.votes_wanted)
    console.print(f"Votes of each teacher by the rule for `auto`, if it has the records: {rule}.")
    console.print(
        "[dim]The standard error is what the noise of all teachers adds: it moves 19 of 20 answers "
        "by less than twice that. How right the models are comes on top.[/]"
        if is_number
        else "[dim]How likely a label is released rightly that has this share of the votes more, "
        "or fewer, than it takes.[/]"
    )
