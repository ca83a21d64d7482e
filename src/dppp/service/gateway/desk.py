"""What the gateway answers to queriers, apart from HTTP."""

import asyncio
import base64
import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict

from fastapi import Response
from fastapi.responses import StreamingResponse

from dppp.errors import (
    BatchStoreUnavailable,
    InputError,
    RunnerStopped,
    TooManyRows,
    TranscriptError,
)
from dppp.hashing import HASH_BYTES
from dppp.privacy.accounting import account
from dppp.protocol.events import Stage
from dppp.protocol.lead import chance_of_lead, lead_of
from dppp.protocol.messages import SealedQueries, require_query_ids
from dppp.protocol.receipt import RECEIPT_CHECKS, verify_receipt
from dppp.protocol.release import Release, largest_standard_error
from dppp.protocol.task import Task
from dppp.protocol.wire import decode
from dppp.service.batches.hub import BatchEvent, HubEvent
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.cards import answer_card
from dppp.service.gateway.event_stream import stream_events
from dppp.service.gateway.job import JobId
from dppp.service.gateway.jobs import Jobs
from dppp.service.gateway.own_views import OwnViews
from dppp.service.gateway.planner import plan_noise
from dppp.service.gateway.queriers import Querier
from dppp.service.gateway.schemas import (
    FEW_LABELS,
    BatchState,
    BudgetState,
    BudgetStep,
    Cell,
    ColumnTerms,
    Health,
    Label,
    Labels,
    NewBatch,
    PlannedNoise,
    PlanQuestion,
    QuestionTerms,
    RecentBatch,
    Rights,
    SomeQueries,
    StageTime,
    TaskTerms,
    TeacherView,
    Verification,
    WhichReleased,
)
from dppp.service.gateway.single_flight import IsGone, SingleFlight

_MOST_ENDED = 1_000
_MOST_WAITING = 32
"""Plans, and receipts to check, that wait for their turn."""


class QuerierDesk:
    """What the routes do, apart from HTTP."""

    def __init__(
        self,
        runner: BatchRunner,
        jobs: Jobs,
        views: OwnViews,
        most_rows: int,
        *,
        insecure_testing: bool = False,
    ) -> None:
        self.runner = runner
        self.jobs = jobs
        self._views = views
        self._most_rows = most_rows
        self._insecure_testing = insecure_testing
        self._ended: OrderedDict[JobId, RecentBatch] = OrderedDict()
        self._plans: SingleFlight[PlanQuestion, PlannedNoise] = SingleFlight(
            most_waiting=_MOST_WAITING, most_kept=1_000
        )
        self._verifications: SingleFlight[JobId, Verification] = SingleFlight(
            most_waiting=_MOST_WAITING, most_kept=1_000
        )

    def health(self) -> Health:
        """Whether this gateway can do its work."""
        if not (self.runner.is_alive and self._views.is_alive):
            raise RunnerStopped("the runner of batches has stopped", hint="restart the aggregator")
        if not self.runner.store_watch.is_usable:
            raise BatchStoreUnavailable("the store of batches is out of reach")
        online = sum(state.is_online for state in self.runner.teachers.values())
        return Health(status="ok", teachers_online=online)

    async def budget(self, querier: Querier) -> BudgetState:
        """What was spent of the task, and what is left, also to this querier."""
        task = self.runner.task
        charged = await self.jobs.charged()
        return BudgetState(
            queries=task.queries,
            charged=charged,
            left=max(0, task.queries - charged),
            epsilon=task.epsilon,
            epsilon_spent=await asyncio.to_thread(epsilon_spent, task, charged),
            delta=task.delta,
            yours=await self.jobs.charged(querier.name),
            left_to_you=max(0, await self.jobs.left(querier.name)),
        )

    async def budget_steps(self, querier: Querier, limit: int) -> list[BudgetStep]:
        """What the last batches of this querier cost, the oldest first.

        Of its own queries only: with others' in it, each step would tell when others asked.
        """
        batches = await self.recent(querier, limit)
        charged = await self.jobs.charged(querier.name)
        steps: list[BudgetStep] = []
        for batch in batches:  # the newest first, so what it cost is taken off the total
            before = max(0, charged - batch.state.charged)
            if batch.state.charged and batch.times:
                costs = [
                    await asyncio.to_thread(epsilon_spent, self.runner.task, each)
                    for each in (before, charged)
                ]
                steps.append(
                    BudgetStep(
                        at=batch.times[-1].at,
                        queries=charged,
                        epsilon_before=costs[0],
                        epsilon=costs[1],
                    )
                )
            charged = before
        return steps[::-1]

    async def card(self, form: str) -> Response:
        """The privacy card, with what was charged so far."""
        charged = await self.jobs.charged()
        return await asyncio.to_thread(answer_card, self.runner.task, charged, form)

    def rights(self, querier: Querier) -> Rights:
        """What this querier's token may do."""
        return Rights(name=querier.name, queries=querier.queries, transcripts=querier.transcripts)

    def teachers(self, querier: Querier) -> list[TeacherView]:
        """Who is there, and how each took part in this querier's batches."""
        names = [teacher.name for teacher in self.runner.task.teachers]
        attendance = self._views.of(querier.name).attendance
        return [
            TeacherView(
                teacher=index,
                name=names[index - 1],
                is_online=state.is_online,
                **asdict(attendance.of(index)),
            )
            for index, state in self.runner.teachers.items()
        ]

    def watch(self, querier: Querier) -> StreamingResponse:
        """What happens from now on to this querier's batches, and who comes and goes."""
        return stream_events(self._views.of(querier.name).hub)

    async def submit(self, querier: Querier, batch: NewBatch, key: str) -> BatchState:
        """Take rows, once for each key."""
        unknown = set(batch.classes or ()) - set(self.runner.task.class_names)
        if unknown:
            raise InputError(f"the task has no class {sorted(unknown)[0]!r}", hint="see /api/task")
        if batch.query_ids is None and batch.sealed is None:
            rows = _rows_of(batch, self.runner.task.features)
            self._require_few(len(rows))
            identifier = await self.jobs.submit(
                querier.name,
                rows,
                key=key,
                fresh=batch.fresh,
                insist=batch.insist,
                share=batch.share,
            )
        else:
            query_ids, sealed = await asyncio.to_thread(_sealed_of, batch)
            self._require_few(len(query_ids) // HASH_BYTES)
            identifier = await self.jobs.submit_sealed(
                querier.name, query_ids, sealed, key=key, insist=batch.insist, share=batch.share
            )
        return await self.jobs.state(querier.name, identifier)

    async def are_released(self, querier: Querier, asked: SomeQueries) -> WhichReleased:
        """Which queries were released before."""
        query_ids = _bytes_of("query_ids", asked.query_ids)
        self._require_few(len(query_ids) // HASH_BYTES)
        require_query_ids(query_ids)
        return WhichReleased(released=await self.jobs.are_released(querier.name, query_ids))

    def _require_few(self, rows: int) -> None:
        if rows > self._most_rows:
            raise TooManyRows(f"{rows:,} rows; at most {self._most_rows:,} at once")

    async def labels(self, querier: Querier, identifier: JobId) -> Labels:
        """The labels, once released."""
        task = self.runner.task
        answers = await self.jobs.answers(querier.name, identifier)
        batch = (await self.jobs.state(querier.name, identifier)).batch
        found = _labels(task, answers)
        return Labels(batch=batch, classes=list(task.class_names), labels=found)

    async def recent(self, querier: Querier, limit: int) -> list[RecentBatch]:
        """The last batches of this querier, the newest first."""
        found = await self.jobs.recent(querier.name, limit)
        return [await self._recent_batch(querier, identifier) for identifier in found]

    async def _recent_batch(self, querier: Querier, identifier: JobId) -> RecentBatch:
        """Read once when it is over: a page asks often, and a receipt may be long."""
        if identifier not in self._ended:
            found = await self._read_batch(querier, identifier)
            has_its_end = not found.times or found.times[-1].stage is found.state.stage
            if not found.state.stage.is_last or not has_its_end:
                return found
            self._ended[identifier] = found
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        return self._ended[identifier]

    async def _read_batch(self, querier: Querier, identifier: JobId) -> RecentBatch:
        state = await self.jobs.state(querier.name, identifier)
        times = self._views.of(querier.name).hub.stage_times.of(state.batch or "")
        answers: Sequence[Release] = ()
        if state.stage is Stage.RELEASED:
            answers = (await self.jobs.answers(querier.name, identifier))[:FEW_LABELS]
        return RecentBatch(
            state=state,
            times=[StageTime(stage=Stage(stage), at=at) for stage, at in times.items()],
            labels=_labels(self.runner.task, answers),
        )

    async def verification(
        self, querier: Querier, identifier: JobId, is_gone: IsGone
    ) -> Verification:
        """Check the receipt of a batch here, which proves nothing to the querier."""
        receipt = await self.jobs.receipt(querier.name, identifier)
        check = functools.partial(check_receipt, receipt, insecure_testing=self._insecure_testing)
        return await self._verifications.find(identifier, check, is_gone)

    async def plan(self, question: PlanQuestion, is_gone: IsGone) -> PlannedNoise:
        """One family of noise for a federation that might be."""
        return await self._plans.find(question, functools.partial(plan_noise, question), is_gone)

    async def follow(self, querier: Querier, identifier: JobId) -> StreamingResponse:
        """The events of one batch, to its end."""
        batch = (await self.jobs.state(querier.name, identifier)).batch

        async def ended() -> bool:
            return (await self.jobs.state(querier.name, identifier)).stage.is_last

        def is_of_batch(event: HubEvent) -> bool:
            return isinstance(event, BatchEvent) and event.batch == batch

        own = self._views.of(querier.name).hub
        return stream_events(own, is_wanted=is_of_batch, is_over=ended)


def _labels(task: Task, answers: Sequence[Release]) -> list[Label]:
    """With the noise of all teachers: where some dropped out there is less of it in a count.

    A mean is then over fewer votes, so that of a number is the largest that it can be.
    """
    names, question = task.class_names, task.question
    noise = task.noise.of_teachers(len(task.teachers))
    error = largest_standard_error(task) if question.kind == "number" else None
    return [
        Label(
            label=None if each.label is None else names[each.label],
            labels=None if each.labels is None else [names[place] for place in each.labels],
            value=each.value,
            standard_error=error if each.value is not None else None,
            counts=list(each.counts),
            flagged=each.is_flagged,
            lead_by_noise=chance_of_lead(noise, lead_of(each.counts))
            if question.kind == "choice"
            else None,
        )
        for each in answers
    ]


def _sealed_of(batch: NewBatch) -> tuple[bytes, SealedQueries | None]:
    """Query ids of all rows, and the sealed ones among them; form only."""
    if batch.query_ids is None or batch.rows is not None or batch.records is not None:
        raise InputError("give query_ids with sealed rows, or rows in the clear, not both")
    if batch.fresh:
        raise InputError(
            "sealed rows are asked afresh under another row key", hint="leave out fresh"
        )
    sealed = None if batch.sealed is None else _bytes_of("sealed", batch.sealed)
    query_ids = _bytes_of("query_ids", batch.query_ids)
    return query_ids, None if sealed is None else decode(sealed, SealedQueries)


def _bytes_of(what: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise InputError(f"{what} is not base64") from None


def _rows_of(batch: NewBatch, features: Sequence[str]) -> list[list[Cell]]:
    if (batch.rows is None) == (batch.records is None):
        raise InputError("give either rows or records, or query_ids with sealed rows")
    if batch.rows is not None:
        for place, row in enumerate(batch.rows):
            if len(row) != len(features):
                raise InputError(
                    f"row {place} has {len(row)} values; the task has {len(features)} features"
                )
        return batch.rows
    records = batch.records or []
    for place, record in enumerate(records):
        for name in record.keys() ^ set(features):
            word = "unknown" if name in record else "missing"
            raise InputError(f"record {place}: feature {name!r} is {word}", hint="see /api/task")
    return [[record[name] for name in features] for record in records]


def describe_task(task: Task) -> TaskTerms:
    """The terms of a task, for people."""
    trust = task.trust
    return TaskTerms(
        name=task.name,
        task_id=task.task_id.hex(),
        question=QuestionTerms(
            **asdict(task.question), description=task.question.describe(task.class_names)
        ),
        classes=list(task.class_names),
        features=list(task.features),
        columns=[
            ColumnTerms(
                name=column.name,
                kind=column.type.kind,  # type: ignore[arg-type]  # the type has checked it
                values=list(column.type.values),
                may_be_missing=column.type.may_be_missing,
            )
            for column in task.columns
        ],
        teachers=trust.teachers,
        colluders=trust.colluders,
        dropouts=trust.dropouts,
        threshold=trust.threshold,
        ballots_needed=trust.ballots_needed,
        epsilon=task.epsilon,
        delta=task.delta,
        queries=task.queries,
        noise=task.noise.name,
        variance=task.noise.variance,
        abstain_below=task.abstain_below,
        unit=task.unit,
        votes=list(task.votes),
        cryptosystem=task.cryptosystem,
        modulus_bits=None if task.masks is not None else task.plaintext_bits // task.s,
        security_bits=None if task.masks is None else task.masks.security_bits,
    )


@functools.lru_cache(maxsize=1024)
def epsilon_spent(task: Task, charged: int) -> float:
    """The ε that `charged` queries of a task cost at its δ."""
    if charged == 0:
        return 0.0
    spending = task.promise.spending(task.noise, min(charged, task.queries))
    return min(task.epsilon, account([spending], task.delta))


def check_receipt(receipt: bytes, *, insecure_testing: bool = False) -> Verification:
    """Every check of `dppp verify`, and which of them hold."""
    command = "dppp verify release.receipt --task THE-ID-THAT-A-TEACHER-TOLD-YOU"
    try:
        found = verify_receipt(receipt, insecure_testing=insecure_testing)
    except TranscriptError as error:
        holding = list(RECEIPT_CHECKS[: RECEIPT_CHECKS.index(error.check)])
        return Verification(
            is_verified=False,
            checks=holding,
            ballots=0,
            endorsements=0,
            reason=error.one_line,
            command=command,
        )
    return Verification(
        is_verified=True,
        checks=list(found.checks),
        ballots=found.ballots,
        endorsements=len(found.endorsers),
        reason=None,
        command=command,
    )
