"""What goes over HTTP between a querier and the gateway, as OpenAPI describes it."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from dppp.service.events import Stage

Row = Annotated[list[FiniteFloat], Field(description="A number for each feature, in order.")]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Problem(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str


class NewBatch(_Sent):
    """Rows to label: `rows` in the order of the task's features, or `records` by their names."""

    rows: list[Row] | None = Field(default=None, min_length=1)
    records: list[dict[str, FiniteFloat]] | None = Field(default=None, min_length=1)
    classes: list[str] | None = Field(
        default=None, description="The classes that you count on; refused unless the task has them."
    )
    fresh: bool = Field(
        default=False, description="Ask anew about rows that were released before, at a charge."
    )


class BatchState(BaseModel):
    """How far a batch is. `batch` is null if every row had been released before."""

    id: str
    stage: Stage
    rows: int
    charged: int
    batch: str | None
    ballots: int
    shares: int
    reason: str | None
    missing: list[int]
    culprits: list[int]


class Label(BaseModel):
    """A label, null for an abstention, with the noisy counts that it comes from."""

    label: str | None
    counts: list[int]


class Labels(BaseModel):
    """A label for each row."""

    classes: list[str]
    labels: list[Label]


class TaskTerms(BaseModel):
    """What all parties agreed on."""

    name: str
    task_id: str
    classes: list[str]
    features: list[str]
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
    modulus_bits: int


class Budget(BaseModel):
    """Queries and ε at the task's δ: of the task, and what you may still spend of it."""

    queries: int
    charged: int
    left: int
    epsilon: float
    epsilon_spent: float
    delta: float
    yours: int
    left_to_you: int


class TeacherView(BaseModel):
    """One teacher, as the aggregator sees it: no votes, nothing but its presence."""

    teacher: int
    name: str
    is_online: bool
    heard_at: float | None
    answered_at: float | None
    ballots: int
    missed: int


class Health(BaseModel):
    """Whether this gateway can do its work."""

    status: str
    teachers_online: int
    open_batches: int
