"""A model that cannot vote stops its teacher at the start; later failures show on its machine."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.protocol.small import CLASS_NAMES, small
from tests.service.gateway.served import serve

from dppp.errors import ModelServerUnavailable, ModelUnusable
from dppp.learning.models import as_predict
from dppp.protocol.columns import CATEGORY, TEXT, Column, ColumnType
from dppp.protocol.votes import Predict, cast_votes
from dppp.service.process.monitoring import make_monitor
from dppp.service.teacher.metrics import TeacherMetrics
from dppp.service.teacher.models.http import load_http
from dppp.service.teacher.models.watching import ModelWatch

TASK = small().task
ROWS = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 5.0]])


def fitted(columns: int, names: Sequence[str] = CLASS_NAMES) -> Predict:
    rows = np.arange(6.0 * columns).reshape(6, columns)
    return as_predict(LogisticRegression().fit(rows, list(names) * 2), CLASS_NAMES)


class Watched:
    """A watch with its metric, and one model."""

    def __init__(self, predict: Callable[[Any], Any]) -> None:
        self.metrics = TeacherMetrics()
        self.watch = ModelWatch(self.metrics.model_failures.inc)
        self.predict = self.watch.watch(predict)

    def ask(self, rows: Any = ROWS) -> None:
        cast_votes(self.predict, rows, len(CLASS_NAMES), note=self.watch.note)

    @property
    def failures(self) -> float:
        found = self.metrics.registry.get_sample_value("dppp_model_failures_total")
        assert found is not None
        return found


def test_a_model_that_votes_is_taken() -> None:
    watched = Watched(fitted(2))
    watched.watch.try_all([watched.predict], TASK)
    assert watched.watch.is_well
    assert watched.failures == 0


def test_a_model_of_other_columns_is_refused_with_what_it_said() -> None:
    watched = Watched(fitted(3))
    with pytest.raises(ModelUnusable, match=r"3 features.*\nhint: .*features in their order"):
        watched.watch.try_all([watched.predict], TASK)


def test_a_model_that_knows_no_class_of_the_task_is_refused_by_its_number() -> None:
    watched = Watched(fitted(2, [f"other {name}" for name in CLASS_NAMES]))
    good = fitted(2)
    with pytest.raises(ModelUnusable, match=r"model 2 of 2 cannot vote.*other "):
        watched.watch.try_all([good, watched.predict], TASK)


def test_a_model_that_dislikes_one_row_is_taken() -> None:
    def picky(rows: Any) -> list[int | None]:
        if (rows[:, 0] == 0).any():
            raise ValueError("zero")
        return [0] * len(rows)

    Watched(picky).watch.try_all([picky], TASK)


def test_a_model_that_abstains_is_taken() -> None:
    watched = Watched(lambda rows: [None] * len(rows))
    watched.watch.try_all([watched.predict], TASK)


def test_made_up_rows_have_the_types_of_the_task() -> None:
    values = ColumnType(kind=CATEGORY, values=("east", "west"))
    task = replace(
        TASK,
        features=("ward", "note"),
        column_types=(values, ColumnType(kind=TEXT, may_be_missing=True)),
    )
    seen: list[list[object]] = []

    def model(rows: Any) -> list[int]:
        seen.extend(rows.tolist())
        return [0] * len(rows)

    assert isinstance(task.columns[0], Column)
    ModelWatch(lambda: None).try_all([model], task)
    assert seen == [["east", "text"], ["west", "text"], ["east", "text"]]


def test_a_model_server_that_is_away_at_the_start_can_be_waited_for() -> None:
    """Not a bad configuration: whoever supervises the process starts it again."""
    watch = ModelWatch(lambda: None)
    model = as_predict(load_http("http://127.0.0.1:9/predict", 1, watch.note_server), CLASS_NAMES)
    with pytest.raises(ModelServerUnavailable, match="start the model server"):
        watch.try_all([watch.watch(model)], TASK)


def test_failures_are_counted_and_logged_as_errors_and_health_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = {"is_broken": False}

    def model(rows: Any) -> list[int]:
        if state["is_broken"]:
            raise RuntimeError("no disk")
        return [1] * len(rows)

    watched = Watched(model)
    watched.ask()
    assert watched.watch.is_well
    state["is_broken"] = True
    with caplog.at_level(logging.ERROR, "dppp.teacher"):
        watched.ask()
    assert not watched.watch.is_well
    assert watched.failures == len(ROWS)
    assert {record.levelname for record in caplog.records} == {"ERROR"}
    assert "no disk" in vars(caplog.records[0])["reason"]
    state["is_broken"] = False
    watched.ask()
    assert watched.watch.is_well


def test_one_bad_row_is_counted_and_is_no_reason_to_be_unwell() -> None:
    def model(rows: Any) -> list[int]:
        if (rows[:, 0] == 1).any():
            raise ValueError("one")
        return [1] * len(rows)

    watched = Watched(model)
    watched.ask()
    assert watched.failures == 1
    assert watched.watch.is_well


def test_a_model_server_that_goes_away_is_counted_for_each_row() -> None:
    counted: list[int] = []
    watch = ModelWatch(lambda: counted.append(1))
    model = as_predict(load_http("http://127.0.0.1:9/predict", 1, watch.note_server), CLASS_NAMES)
    assert list(watch.watch(model)(ROWS)) == [None] * len(ROWS)
    assert len(counted) == len(ROWS)
    assert not watch.is_well


def test_twenty_thousand_failures_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    watch = ModelWatch(lambda: None)
    with caplog.at_level(logging.ERROR, "dppp.teacher"):
        for _ in range(20_000):
            watch.note("no")
    assert len(caplog.records) <= 20


def test_health_names_what_fails() -> None:
    checks = {"teacher": lambda: True, "model": lambda: False}
    with serve(make_monitor(TeacherMetrics().registry, checks)) as address:
        answer = httpx.get(f"{address}/health")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "failing": ["model"]}
