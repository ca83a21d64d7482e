"""The terms that a coordinator proposes: terms.toml, public, before anybody has joined.

How much noise they take, and under masks which ring, follows when the federation file is made: it
depends on how many teachers came.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from dppp.errors import InputError, KeyMaterialError, TaskError
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, require_dealable
from dppp.protocol.columns import Column, ColumnType
from dppp.protocol.question import CHOICE, DEFAULT_LEVELS, DEFAULT_SHARE, Question
from dppp.protocol.task import DAY_SECONDS, LONGEST_EPOCH_SECONDS, SHORTEST_EPOCH_SECONDS
from dppp.protocol.units import MOST_VOTES, require_unit
from dppp.service.process.config import Section, first_problem, read_config

TERMS = "terms.toml"
_DEFAULT_S = 4


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("write printable characters, without spaces around them")
    return text


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError("each name may occur once only")
    return names


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Names = Annotated[tuple[Name, ...], AfterValidator(_distinct)]


class Feature(Section):
    """A feature that is more than a number that is always there."""

    name: Name
    kind: Literal["number", "category", "text"] = "number"
    values: tuple[str, ...] = ()
    may_be_missing: bool = False

    @model_validator(mode="after")
    def _require_type(self) -> "Feature":
        try:
            self.to_column()
        except TaskError as error:
            raise ValueError(error.one_line) from error
        return self

    def to_column(self) -> Column:
        """As the task has it."""
        of_column = ColumnType(
            kind=self.kind, values=self.values, may_be_missing=self.may_be_missing
        )
        return Column(name=self.name, type=of_column)


def feature_of(column: Column) -> "str | Feature":
    """A column as terms have it: its name alone if it is a number that is always there."""
    if column.type.is_plain:
        return column.name
    return Feature(
        name=column.name,
        kind=column.type.kind,  # type: ignore[arg-type]
        values=column.type.values,
        may_be_missing=column.type.may_be_missing,
    )


def _distinct_features(features: tuple[str | Feature, ...]) -> tuple[str | Feature, ...]:
    _distinct(tuple(each if isinstance(each, str) else each.name for each in features))
    return features


_NameOrFeature = Annotated[
    Annotated[Name, Tag("name")] | Annotated[Feature, Tag("feature")],
    Discriminator(lambda given: "name" if isinstance(given, str) else "feature"),
]
Features = Annotated[tuple[_NameOrFeature, ...], AfterValidator(_distinct_features)]


class Terms(Section):
    """What is asked, of which data, at what price.

    None for colluders is max(1, N // 5), and for dropouts N // 10. Under masks the ring is the one
    that takes the fewest bytes for batches of `labels_per_batch` queries (all, if that is None),
    and teachers make new sealing keys every `epoch_seconds`. Under paillier `modulus_bits` and `s`
    are those of the key to be dealt.

    The question is one of the classes. With `max_labels` it is some of them, which are then called
    labels, at most so many in a vote; one is released from `label_share` of the votes on. With
    `low` and `high` it is a number between these in `levels` steps, and the one class names it.

    Every teacher casts `votes` votes, but those that `votes_of` names. With "auto" their number
    follows from the noise and from how many records each teacher says it has. Without a unit the
    promise covers the whole teacher where everybody casts one vote, and a record otherwise.
    """

    name: Name
    data_id: Name
    class_names: Names = Field(min_length=1)
    max_labels: int | None = Field(default=None, ge=1)
    label_share: float | None = Field(default=None, gt=0, lt=1)
    low: float | None = None
    high: float | None = None
    levels: int | None = Field(default=None, ge=1)
    features: Features = Field(min_length=1)
    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    queries: int = Field(ge=1)
    colluders: int | None = Field(default=None, ge=0)
    dropouts: int | None = Field(default=None, ge=0)
    noise: Literal["auto", "binomial", "discrete-gaussian", "skellam", "polya"] = "auto"
    cryptosystem: Literal["masks", "paillier"] = "masks"
    labels_per_batch: int | None = Field(default=None, ge=1)
    epoch_seconds: int | None = Field(
        default=None, ge=SHORTEST_EPOCH_SECONDS, le=LONGEST_EPOCH_SECONDS
    )
    modulus_bits: int | None = None
    s: int | None = None
    abstain_below: int | None = Field(default=None, ge=0)
    votes: Annotated[int, Field(ge=1, le=MOST_VOTES)] | Literal["auto"] = 1
    votes_of: dict[Name, Annotated[int, Field(ge=1, le=MOST_VOTES)]] | None = None
    unit: Literal["record", "person", "teacher"] | None = None

    @model_validator(mode="after")
    def _require_one_cryptosystem(self) -> "Terms":
        others = {"masks": ("modulus_bits", "s"), "paillier": ("labels_per_batch", "epoch_seconds")}
        for name in others[self.cryptosystem]:
            if getattr(self, name) is not None:
                raise ValueError(f"{self.cryptosystem} has no {name}; leave it out")
        if self.cryptosystem == "paillier":
            try:
                require_dealable(teachers=2, threshold=2, modulus_bits=self.key_bits, s=self.key_s)
            except KeyMaterialError as error:
                raise ValueError(error.one_line) from error
        return self

    @model_validator(mode="after")
    def _require_question(self) -> "Terms":
        try:
            self.question.change(len(self.class_names))
        except InputError as error:
            raise ValueError(error.one_line) from error
        if self.abstain_below is not None and self.question != CHOICE:
            raise ValueError("only a question of one class has abstentions: leave them out")
        return self

    @property
    def question(self) -> Question:
        """What is asked about a row; raises InputError where these terms contradict themselves."""
        is_number = any(each is not None for each in (self.low, self.high, self.levels))
        is_labels = self.max_labels is not None or self.label_share is not None
        if is_number and is_labels:
            raise InputError("a question is of labels or of a number, not of both")
        if is_number:
            if self.low is None or self.high is None:
                raise InputError("a number needs both bounds, low and high")
            levels = DEFAULT_LEVELS if self.levels is None else self.levels
            return Question.of_number(low=self.low, high=self.high, levels=levels)
        if not is_labels:
            return CHOICE
        if self.max_labels is None:
            raise InputError("labels need max_labels, the most of them in one vote")
        share = DEFAULT_SHARE if self.label_share is None else self.label_share
        return Question.of_labels(most_labels=self.max_labels, share=share)

    @model_validator(mode="after")
    def _require_unit(self) -> "Terms":
        if self.unit is not None:
            try:
                require_unit(self.unit, [*self._given_votes, *(self.votes_of or {}).values()])
            except TaskError as error:
                raise ValueError(error.one_line) from error
        return self

    @property
    def _given_votes(self) -> list[int]:
        return [] if self.votes == "auto" else [self.votes]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The features with their types."""
        return tuple(
            Column(name=each) if isinstance(each, str) else each.to_column()
            for each in self.features
        )

    @property
    def key_bits(self) -> int:
        """The length of the modulus of a key to be dealt."""
        return DEFAULT_MODULUS_BITS if self.modulus_bits is None else self.modulus_bits

    @property
    def key_s(self) -> int:
        """Damgard-Jurik's s of a key to be dealt."""
        return _DEFAULT_S if self.s is None else self.s

    @property
    def epoch_length(self) -> int:
        """How long an epoch of sealing keys lasts, in seconds."""
        return DAY_SECONDS if self.epoch_seconds is None else self.epoch_seconds

    def to_toml(self) -> str:
        """The file that `read_terms` reads."""
        lines = ["# What this federation is asked, and at what price. Send it to everybody.\n"]
        for name, value in self.model_dump(exclude_none=True).items():
            lines.append(f"{name} = {_toml(value)}\n")
        return "".join(lines)


def make_terms(**values: Any) -> Terms:
    """Terms from what the coordinator typed."""
    try:
        return Terms(**values)
    except ValidationError as error:
        raise first_problem("these terms cannot be used", error) from None


def read_terms(folder: Path) -> Terms:
    """The terms in a coordinator's folder."""
    path = folder / TERMS
    if not path.is_file():
        raise InputError(
            f"there is no {TERMS} in {folder}", hint="make the folder with `dppp init`"
        )
    return read_config(path, Terms)


def _toml(value: object) -> str:
    """TOML's strings, numbers and lists of strings are JSON's, but for escapes beyond ASCII."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(name)} = {_toml(of)}" for name, of in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
