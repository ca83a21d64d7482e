"""What goes over HTTP between a querier and the gateway, as OpenAPI describes it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from dppp.protocol.events import Stage
from dppp.service.gateway.job import MOST_RECENT

Cell = FiniteFloat | str | None
"""A number, a category's value or a text; null is missing."""
Row = Annotated[
    list[Cell], Field(description="A value for each feature, in order; null where it is missing.")
]

FEW_LABELS = 5
"""Labels of a batch in a list of batches; all of them are at /api/batches/…/labels."""


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Problem(BaseModel):
    """Why a request was refused, and what to do, if that can be said."""

    detail: str
    hint: str | None = None


class NewBatch(_Sent):
    """Rows to label: sealed ones, or in the clear, so that this gateway reads and seals them.

    In the clear they are `rows` in the order of the task's features, or `records` by their names.
    """

    query_ids: str | None = Field(
        default=None,
        min_length=1,
        description="Of all rows that you sealed, 32 bytes each, base64.",
    )
    sealed: str | None = Field(
        default=None,
        min_length=1,
        description="Those of them that were not released before, as sealed queries, base64.",
    )
    rows: list[Row] | None = Field(default=None, min_length=1)
    records: list[dict[str, Cell]] | None = Field(default=None, min_length=1)
    classes: list[str] | None = Field(
        default=None, description="The classes that you count on; refused unless the task has them."
    )
    fresh: bool = Field(
        default=False,
        description="Ask anew about rows in the clear that were released before, at a charge.",
    )
    insist: bool = Field(
        default=False,
        description="Begin a batch even while too few teachers are online: it will probably be "
        "aborted, and its queries stay charged.",
    )
    share: bool = Field(
        default=True,
        description="Let a single query go into one batch with those of other queriers, where the "
        "gateway gathers them: each then sees all query ids and counts of it, and no rows.",
    )


class SomeQueries(_Sent):
    """Queries by their ids."""

    query_ids: str = Field(min_length=1, description="32 bytes each, in base64.")


class WhichReleased(BaseModel):
    """Which queries were released before: these cost nothing."""

    released: list[bool]


class BatchState(BaseModel):
    """How far a batch is. `batch` is null if every row had been released before."""

    id: str
    stage: Stage
    rows: int
    charged: int
    batch: str | None = None
    ballots: int = 0
    endorsements: int = 0
    answers: int = 0
    reason: str | None = None
    missing: tuple[int, ...] = ()
    culprits: tuple[int, ...] = ()


class Label(BaseModel):
    """The answer to a row, with the noisy counts that it comes from.

    `label` is of a question of one class, and null for an abstention; `labels` are of a
    question of labels; `value` is of a question of a number, with the `standard_error` that
    noise gives it: the largest one, as if as many teachers were missing as may be. What the
    question does not ask for is null. `flagged`: votes and noise by the rules hardly ever give
    such counts, so somebody may have cast more than a vote.
    `lead_by_noise`: how often noise alone gives a lead as large as that of the largest count
    over the second, if the two classes had equally many votes; 1 says nothing, and small means
    that noise hardly explains the lead. If another class had more votes than the one that
    leads, such a lead would be rarer still. It is not the chance that the label is wrong.
    """

    label: str | None
    labels: list[str] | None = None
    value: float | None = None
    standard_error: float | None = None
    counts: list[int]
    flagged: bool
    lead_by_noise: float | None = Field(default=None, ge=0, le=1)


class Labels(BaseModel):
    """A label for each row; `batch` is named in the aggregator's log and in every teacher's."""

    batch: str | None = None
    classes: list[str]
    labels: list[Label]


class StageTime(BaseModel):
    """When a batch reached a stage, in seconds since 1970."""

    stage: Stage
    at: float


class RecentBatch(BaseModel):
    """A batch of yours: how far it is, when it got there, and its first few labels."""

    state: BatchState
    times: list[StageTime] = Field(description="As far as this process saw it itself.")
    labels: list[Label] = Field(description=f"The first {FEW_LABELS}, once released.")


class Verification(BaseModel):
    """What the aggregator found when it checked its own receipt: check it yourself as well."""

    is_verified: bool
    checks: list[str] = Field(description="Those that hold, in their order.")
    ballots: int
    endorsements: int = Field(description="Teachers who signed the list of ballots.")
    reason: str | None
    command: str = Field(description="What to run on the receipt, on your own machine.")


class Examples(BaseModel):
    """Rows to try the task with, if the aggregator has any to show."""

    rows: list[Row]


class CardQuestion(BaseModel):
    """Which form of the privacy card."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    form: Literal["html", "markdown", "yaml"] = "html"


class RecentQuestion(BaseModel):
    """How many of the last batches to list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(default=20, ge=1, le=MOST_RECENT)


class PlanQuestion(BaseModel):
    """A federation that might be."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    teachers: int = Field(ge=2, le=1_000)
    colluders: int = Field(ge=0, le=1_000)
    dropouts: int = Field(ge=0, le=1_000)
    epsilon: float = Field(ge=0.05, le=32)
    delta: float = Field(ge=1e-10, le=0.1)
    queries: int = Field(ge=1, le=1_000)
    classes: int = Field(ge=2, le=100)
    votes: int = Field(default=1, ge=1, le=1_000, description="Of each teacher.")
    margin: float = Field(ge=0.01, le=1, description="Lead of the winner, as a part of all votes.")
    noise: Literal["skellam", "polya", "binomial", "discrete-gaussian"]
    calibration: Literal["exact", "paper"] = "exact"


class PlannedNoise(BaseModel):
    """One family of noise: what it promises, what it delivers, and how often the label is right."""

    noise: str
    calibration: str
    honest_shares: int
    threshold: int
    variance: float = Field(description="Of the honest shares, per class.")
    tally_variance: float = Field(description="Of the shares of all teachers, per class.")
    tally_deviation: float = Field(description="Standard deviation of the noise in a count.")
    votes_in_all: int = Field(description="Of all teachers, on one query.")
    lead_needed: int | None = Field(
        description=(
            "Votes by which the right class must lead every other to be released with a chance of "
            "90 %; may be more than there are. Null where the noise is too wide to be worked out."
        )
    )
    promised_delta: float
    exact_delta: float | None = Field(description="Null where it is too wide to be worked out.")
    is_certified: bool
    accuracy: float | None
    accuracy_without_noise: float


class ColumnTerms(BaseModel):
    """What a feature is: a number, a category with its values, or a text."""

    name: str
    kind: Literal["number", "category", "text"]
    values: list[str]
    may_be_missing: bool


class QuestionTerms(BaseModel):
    """What is asked: one class, some labels or a number. The fields of the others are 0."""

    kind: Literal["choice", "labels", "number"]
    most_labels: int
    share: float
    low: float
    high: float
    levels: int
    description: str


class TaskTerms(BaseModel):
    """What all parties agreed on."""

    name: str
    task_id: str
    question: QuestionTerms
    classes: list[str] = Field(description="The names of the counts: classes, labels, the number.")
    features: list[str]
    columns: list[ColumnTerms] = Field(description="The features with what they hold.")
    teachers: int
    colluders: int
    dropouts: int
    threshold: int
    ballots_needed: int
    epsilon: float
    delta: float
    queries: int
    noise: str
    variance: float
    abstain_below: int | None
    unit: str
    votes: list[int]
    cryptosystem: str
    modulus_bits: int | None
    security_bits: int | None


class BudgetState(BaseModel):
    """Queries and ε at the task's δ: of the task, and what you may still spend of it."""

    queries: int
    charged: int
    left: int
    epsilon: float
    epsilon_spent: float
    delta: float
    yours: int
    left_to_you: int


class BudgetStep(BaseModel):
    """What your batches had cost when one of them ended: your queries alone, at the task's δ."""

    at: float = Field(description="Seconds since 1970.")
    queries: int
    epsilon_before: float
    epsilon: float


class CardLine(BaseModel):
    """A line of the privacy card's short form."""

    name: str
    text: str


class Rights(BaseModel):
    """What your token may do."""

    name: str
    queries: int = Field(description="That you may spend in all; /api/budget says what is left.")
    transcripts: bool = Field(description="Whether you may fetch full transcripts.")


class TeacherView(BaseModel):
    """One teacher: whether it is online, and how it took part in your own batches. No votes."""

    teacher: int
    name: str
    is_online: bool
    answered_at: float | None = Field(description="When its last ballot on a batch of yours came.")
    ballots: int = Field(description="On batches of yours, since this gateway started.")
    missed: int = Field(description="Batches of yours without a ballot of it, as long.")
    has_missed_last: bool


class Health(BaseModel):
    """Whether this gateway can do its work."""

    status: str
    teachers_online: int
