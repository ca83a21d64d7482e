"""The votes of a teacher with a language model: one voter for each of its shards of records.

Private in-context learning. All voters ask the same model, which nobody here trained. What makes
them differ, and what has to be protected, are the records in their prompts. A voter searches its
own shard only, so one record can be in the prompts of one vote, and changing it moves one vote: the
promise of shards.py, without a word about how the model works. That holds as long as the server
answers each prompt by itself: see docs/privacy.md, section 1.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dppp.errors import InputError
from dppp.learning.csv_records import read_records
from dppp.learning.frames import as_trained
from dppp.learning.nearest_records import LabelledText, NearestRecords, search_in
from dppp.learning.row_texts import rows_as_texts
from dppp.learning.shards import Shard
from dppp.learning.training import deal_records, require_classes
from dppp.protocol.columns import Column
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict
from dppp.service.process.config import ChatModel
from dppp.service.teacher.models.chat.answers import choices_by_name, content_of, place_of
from dppp.service.teacher.models.chat.prompt import PromptTemplate, read_template
from dppp.service.teacher.models.chat.server import ChatServer
from dppp.service.teacher.models.posting import NoteFailure, log_failure, require_httpx
from dppp.service.teacher.models.shard_key import SHARD_KEY, read_or_make_shard_key

_MORE_TOKENS = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voter:
    """One vote: a shard of records, and the model that is shown those nearest to a question."""

    search: NearestRecords | None = field(repr=False)
    """None where the shard has no records: this vote is always empty."""
    features: tuple[str, ...]
    class_names: tuple[str, ...]
    template: PromptTemplate
    server: ChatServer
    examples: int
    longest_record: int
    is_logged: bool

    def __call__(self, rows: Any) -> list[int | None]:
        """The class of each row, None where the model gives none."""
        if self.search is None:
            return [None] * len(rows)
        places = choices_by_name(self.class_names)

        def read(body: bytes) -> int:
            content = content_of(body)
            if self.is_logged:
                _log.info("answer of the language model", extra={"answer": content})
            return place_of(content, places)

        return self.server.ask(self.prompts(rows, self.search), read)

    def prompts(self, rows: Any, search: NearestRecords) -> list[str]:
        """What the model is asked for each row."""
        questions = rows_as_texts(as_trained(rows), self.features, longest=self.longest_record)
        found = search.find(questions, self.examples)
        prompts = [
            self.template.fill_in(self.class_names, nearest, question)
            for nearest, question in zip(found, questions, strict=True)
        ]
        if self.is_logged:
            for prompt in prompts:
                _log.info("prompt for the language model", extra={"prompt": prompt})
        return prompts


def load_chat(
    model: ChatModel, task: Task, index: int, *, note: NoteFailure = log_failure
) -> tuple[Predict, ...]:
    """A voter for each vote that the task gives this teacher; asks nothing yet."""
    return make_voters(
        model,
        class_names=_choices(task),
        columns=task.columns,
        votes=task.teachers[index - 1].votes,
        unit=task.unit,
        note=note,
    )


def make_voters(
    model: ChatModel,
    *,
    class_names: Sequence[str],
    columns: Sequence[Column],
    votes: int,
    unit: str,
    note: NoteFailure = log_failure,
) -> tuple[Predict, ...]:
    """Deal the records to shards, and give each voter one; refuses what does not go together."""
    require_httpx()
    choices_by_name(class_names)
    records = read_records(
        model.records,
        model.label,
        person=model.person,
        identifier=model.identifier,
        columns=columns,
    )
    require_classes(records, class_names)
    key = read_or_make_shard_key(model.shard_key or model.records.parent / SHARD_KEY)
    shards = deal_records(records, votes=votes, unit=unit, key=key)
    features = tuple(column.name for column in columns)
    return tuple(_voter(model, tuple(class_names), features, shard, note) for shard in shards)


def _voter(
    model: ChatModel,
    class_names: tuple[str, ...],
    features: tuple[str, ...],
    shard: Shard,
    note: NoteFailure,
) -> Voter:
    """The voter of one shard; it is given nothing of the others."""
    return Voter(
        search=_search(shard, features, model.longest_record),
        features=features,
        class_names=class_names,
        template=read_template(model.template),
        server=_server(model, class_names, note),
        examples=model.examples,
        longest_record=model.longest_record,
        is_logged=model.log_prompts_and_answers,
    )


def _choices(task: Task) -> tuple[str, ...]:
    """The answers that a model can choose from: the one place that knows what the task asks."""
    if task.question.kind != "choice":
        raise InputError(
            f"a language model is asked for one of several classes, and the task asks for "
            f"{task.question.describe(task.class_names)}",
            hint="take another kind of model for this task: docs/operations.md lists them",
        )
    return task.class_names


def _search(shard: Shard, features: Sequence[str], longest: int) -> NearestRecords | None:
    if not len(shard):
        return None
    texts = rows_as_texts(shard.rows, features, longest=longest)
    pairs = zip(texts, shard.labels.tolist(), strict=True)
    return search_in([LabelledText(text=text, label=str(label)) for text, label in pairs])


def _server(model: ChatModel, choices: Sequence[str], note: NoteFailure) -> ChatServer:
    longest = max(len(name.encode()) for name in choices)
    fields = {"model": model.model, "temperature": 0, "stream": False}
    if "max_completion_tokens" not in model.extra:
        fields["max_tokens"] = longest + _MORE_TOKENS  # no token is shorter than a byte
    return ChatServer(
        url=model.url,
        fields={**fields, **model.extra},
        api_key=None if model.api_key is None else model.api_key.get_secret_value(),
        timeout_seconds=model.timeout_seconds,
        vote_seconds=model.vote_seconds,
        retries=model.retries,
        backoff_seconds=model.backoff_seconds,
        calls_at_once=model.calls_at_once,
        note=note,
    )
