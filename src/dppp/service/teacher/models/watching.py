"""Whether a teacher's models work: tried before the first batch, and watched from then on.

Taking part must not depend on private data, so a model that fails costs its own vote and nothing
else, and nobody else hears of it. Its operator should: a model that cannot vote at all stops the
teacher at its start, and what fails later is counted, logged and seen in its health, here only.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from dppp.errors import ModelServerUnavailable, ModelUnusable
from dppp.protocol.columns import CATEGORY, NUMBER, Column
from dppp.protocol.inputs import Cell, Inputs, decode_rows, encode_rows, join_rows
from dppp.protocol.task import Task
from dppp.protocol.votes import Predict, cast_votes
from dppp.service.process.log_throttle import LogThrottle

log = logging.getLogger("dppp.teacher")

_TRIALS = 3
"""Made-up rows. A model may dislike one; one that fails on each of them has never voted."""


class ModelWatch:
    """The models of one teacher: what failed is counted and logged, and shows in its health."""

    def __init__(self, count: Callable[[], object]) -> None:
        """`count` is called for each vote that was not cast because a model failed."""
        self._count = count
        self._throttle = LogThrottle()
        self._failing: set[int] = set()
        self._watched = 0
        self._server_failures = 0
        self._is_trying = False
        self._said_in_trial = ""

    @property
    def is_well(self) -> bool:
        """Whether every model gave an answer when it was last asked about some rows."""
        return not self._failing

    def note(self, remark: str) -> None:
        """Why a vote was not cast; for this machine only, since it may quote a row."""
        self._count()
        if times := self._throttle.times("model"):
            log.error("model", extra={"reason": remark, "times": times})

    def note_server(self, remark: str, votes: int) -> None:
        """A model server gave no answers to these many rows."""
        self._server_failures += 1
        if self._is_trying:
            self._said_in_trial = remark
            return
        for _ in range(votes):
            self._count()
        if times := self._throttle.times("server"):
            log.error("model", extra={"reason": remark, "times": times})

    def watch(self, predict: Predict) -> Predict:
        """The same model, of which it is known whether it works."""
        place, self._watched = self._watched, self._watched + 1
        by_itself = 0  # rows that are asked one by one, since all at once failed

        def watched(rows: Any) -> Sequence[int | None]:
            nonlocal by_itself
            is_again, by_itself = by_itself > 0, max(0, by_itself - 1)
            failures = self._server_failures
            try:
                answers = predict(rows)
                if len(answers) != len(rows):
                    raise ValueError(f"{len(answers)} answers to {len(rows)} queries")
            except Exception:
                if not is_again:
                    self._failing.add(place)
                    by_itself = len(rows) if len(rows) > 1 else 0
                raise
            if failures == self._server_failures:
                self._failing.discard(place)
            else:
                self._failing.add(place)
            return answers

        return watched

    def try_all(self, models: Sequence[Predict], task: Task) -> None:
        """Refuse a model that cannot vote on rows of this task; nothing of it is counted."""
        inputs = _made_up(task.columns)
        for number, predict in enumerate(models, start=1):
            reasons: list[str] = []
            failures = self._server_failures
            self._is_trying = True
            cast_votes(
                predict,
                inputs,
                len(task.class_names),
                question=task.question,
                note=reasons.append,
            )
            self._is_trying = False
            whose = "the model" if len(models) == 1 else f"model {number} of {len(models)}"
            if self._server_failures > failures:
                raise ModelServerUnavailable(
                    f"{whose} gave no answer to made-up rows of the task: {self._said_in_trial}",
                    hint="start the model server first, and look at the url under [model]",
                )
            if len(reasons) >= _TRIALS:
                reason = reasons[0].splitlines()[0]
                raise ModelUnusable(
                    f"{whose} cannot vote on rows of this task, as made-up ones show: {reason}",
                    hint="it must take the task's features in their order and answer with the "
                    "task's classes; `dppp federation` shows both",
                )


def _made_up(columns: Sequence[Column]) -> Inputs:
    """Rows of the task that are nobody's."""
    rows = [[_cell(column, place) for column in columns] for place in range(_TRIALS)]
    return decode_rows(join_rows(encode_rows(rows, columns)), _TRIALS, columns)


def _cell(column: Column, place: int) -> Cell:
    if column.type.kind == NUMBER:
        return float(place)
    if column.type.kind == CATEGORY:
        return column.type.values[place % len(column.type.values)]
    return "text"
