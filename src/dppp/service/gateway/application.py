"""The HTTP gateway of an aggregator: queriers post rows, watch, and fetch labels and receipts.

Everything under /api needs a querier's token. A querier is shown its own batches only: no id,
stage, time, label or refusal of another's. Two things about others remain, and docs/operations.md
says so: what is left of the task's budget, and how busy the gateway is.

Labels and noisy counts leave here; an input or a single vote does not. A full transcript holds all
ballots, encrypted, and whoever gets the key later can read them: it is for tokens with the right to
it. All this is kept by this process. The aggregator's operator reads rows that come in the clear,
as from the page, and none that a querier's own program sealed (`dppp query`). It could answer
anything: only a check on the querier's own machine (`dppp verify`) does without trusting it.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPBearer

from dppp import __version__
from dppp.errors import (
    Abandoned,
    AllowanceExceeded,
    BatchAborted,
    BatchStoreUnavailable,
    Busy,
    DpppError,
    InputError,
    JobChanged,
    JobUnknown,
    NotReleased,
    RunnerStopped,
    TeachersMissing,
    TooManyRows,
    TranscriptsNotAllowed,
    UncertifiedError,
)
from dppp.protocol.wire import encode
from dppp.service.batches.runner import BatchRunner
from dppp.service.gateway.cards import CARD_KINDS, card_in_short
from dppp.service.gateway.desk import QuerierDesk, describe_task
from dppp.service.gateway.job import JobId
from dppp.service.gateway.jobs import Jobs
from dppp.service.gateway.middleware import (
    QUERIER,
    RETRY_SECONDS,
    Admission,
    BodyLimit,
    SafeHeaders,
    most_values_of,
)
from dppp.service.gateway.own_views import OwnViews
from dppp.service.gateway.page_files import add_page
from dppp.service.gateway.queriers import Querier
from dppp.service.gateway.schemas import (
    BatchState,
    BudgetState,
    BudgetStep,
    CardLine,
    CardQuestion,
    Examples,
    Health,
    Labels,
    NewBatch,
    PlannedNoise,
    PlanQuestion,
    Problem,
    RecentBatch,
    RecentQuestion,
    Rights,
    SomeQueries,
    TaskTerms,
    TeacherView,
    Verification,
    WhichReleased,
)

_STATUS = (
    (JobUnknown, 404),
    (JobChanged, 409),
    (NotReleased, 409),
    (BatchAborted, 410),
    (AllowanceExceeded, 403),
    (TranscriptsNotAllowed, 403),
    (Abandoned, 503),
    (Busy, 503),
    (TeachersMissing, 503),
    (BatchStoreUnavailable, 503),
    (RunnerStopped, 503),
    (TooManyRows, 413),
    (InputError, 422),
    (UncertifiedError, 422),
    (DpppError, 500),
)

_STORE_AWAY = BatchStoreUnavailable(
    "the aggregator's store cannot be used now",
    hint="send the same again later, under the same Idempotency-Key: what was taken is charged "
    "once",
)

BatchName = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="As the post answered.")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$"),
]


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in codes}


def make_gateway(
    *,
    runner: BatchRunner,
    jobs: Jobs,
    queriers: Sequence[Querier],
    most_rows: int,
    most_body_bytes: int = 64 * 2**20,
    page: bool = False,
    examples: Sequence[Sequence[float]] = (),
    insecure_testing: bool = False,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """The application; `runner` is started by whoever serves it.

    With `page` it shows the page at /; `examples` are rows that anybody with a token may see.
    """
    views = OwnViews(
        runner.hub,
        owners_of=jobs.owners_of,
        queriers=[querier.name for querier in queriers],
        teachers=runner.teachers,
    )

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        async with views, nullcontext() if lifespan is None else lifespan(app):
            yield

    app = FastAPI(
        title="dppp gateway",
        version=__version__,
        summary="Ask a federation for labels; pay from its privacy budget.",
        docs_url=None,  # pages of scripts from elsewhere; /openapi.json is the description
        redoc_url=None,
        lifespan=live,
    )
    app.state.views = views
    _translate_errors(app)
    most_values = most_values_of(runner.task.columns, most_rows)
    app.add_middleware(BodyLimit, most_bytes=most_body_bytes, most_values=most_values)
    app.add_middleware(Admission, queriers=queriers)
    app.add_middleware(SafeHeaders)
    desk = QuerierDesk(runner, jobs, views, most_rows, insecure_testing=insecure_testing)
    bearer = HTTPBearer(auto_error=False, description="A querier's token.")

    def known(request: Request, _: Annotated[object, Depends(bearer)]) -> Querier:
        """Whom `Admission` let in; the bearer is here for /openapi.json."""
        querier: Querier = request.scope[QUERIER]
        return querier

    _add_reads(app, desk, known)
    _add_prices(app, desk, known)
    _add_planning(app, desk, known, examples)
    _add_batches(app, desk, known)
    _add_releases(app, desk, known)
    if page:
        add_page(app)
    return app


Known = Callable[..., Querier]


def _add_reads(app: FastAPI, desk: QuerierDesk, known: Known) -> None:
    """What anybody with a token may look at."""

    @app.get("/health", responses=_problems(503))
    async def health() -> Health:
        """Whether this gateway can do its work."""
        return desk.health()

    @app.get("/api/task", responses=_problems(401))
    async def task(_: Annotated[Querier, Depends(known)]) -> TaskTerms:
        """What all parties agreed on."""
        return describe_task(desk.runner.task)

    @app.get(
        "/api/task/terms",
        responses=_problems(401)
        | {200: {"content": {"application/octet-stream": {}}, "description": "The task itself."}},
        response_class=Response,
    )
    async def terms(_: Annotated[Querier, Depends(known)]) -> Response:
        """The task as it is hashed, with the keys to seal rows to: compare its id."""
        return Response(encode(desk.runner.task), media_type="application/octet-stream")

    @app.get("/api/rights", responses=_problems(401))
    async def rights(querier: Annotated[Querier, Depends(known)]) -> Rights:
        """What your token may do."""
        return desk.rights(querier)

    @app.get("/api/teachers", responses=_problems(401))
    async def teachers(querier: Annotated[Querier, Depends(known)]) -> list[TeacherView]:
        """Who is there, and how each took part in your batches."""
        return desk.teachers(querier)

    @app.get("/api/events", responses=_problems(401), response_class=StreamingResponse)
    async def events(querier: Annotated[Querier, Depends(known)]) -> StreamingResponse:
        """Your batches and which teachers are online, from now on, as server-sent events."""
        return desk.watch(querier)


def _add_prices(app: FastAPI, desk: QuerierDesk, known: Known) -> None:
    """What is promised, and what it cost so far."""

    @app.get(
        "/api/card",
        responses=_problems(401, 422, 503)
        | {200: {"content": CARD_KINDS, "description": "In the form asked for."}},
        response_class=Response,
    )
    async def card(
        question: Annotated[CardQuestion, Query()], _: Annotated[Querier, Depends(known)]
    ) -> Response:
        """What is promised, to whom and at what price: a page, or a registry's entry."""
        return await desk.card(question.form)

    @app.get("/api/budget", responses=_problems(401, 503))
    async def budget(querier: Annotated[Querier, Depends(known)]) -> BudgetState:
        """What was spent, and what is left."""
        return await desk.budget(querier)

    @app.get("/api/budget/steps", responses=_problems(401, 422, 503))
    async def budget_steps(
        querier: Annotated[Querier, Depends(known)],
        question: Annotated[RecentQuestion, Query()],
    ) -> list[BudgetStep]:
        """What your last batches cost, one after the other, the oldest first."""
        return await desk.budget_steps(querier, question.limit)

    @app.get("/api/card/lines", responses=_problems(401))
    async def card_lines(_: Annotated[Querier, Depends(known)]) -> list[CardLine]:
        """The privacy card in a few lines."""
        return card_in_short(desk.runner.task)


def _add_planning(
    app: FastAPI, desk: QuerierDesk, known: Known, examples: Sequence[Sequence[float]]
) -> None:
    """What costs no budget: plans, and examples to ask about."""

    @app.get("/api/plan", responses=_problems(401, 422, 503))
    async def plan(
        request: Request,
        question: Annotated[PlanQuestion, Query()],
        _: Annotated[Querier, Depends(known)],
    ) -> PlannedNoise:
        """One family of noise for a federation that might be."""
        return await desk.plan(question, request.is_disconnected)

    @app.get("/api/examples", responses=_problems(401))
    async def rows(_: Annotated[Querier, Depends(known)]) -> Examples:
        """Rows to try the task with; often none."""
        return Examples(rows=[list(row) for row in examples])


def _add_batches(app: FastAPI, desk: QuerierDesk, known: Known) -> None:
    """From rows to labels."""
    own = _problems(401, 404, 422, 503)

    @app.post(
        "/api/batches", status_code=202, responses=_problems(400, 401, 403, 409, 413, 422, 503)
    )
    async def post(
        batch: NewBatch, querier: Annotated[Querier, Depends(known)], key: Key = None
    ) -> BatchState:
        """Ask for labels. The same rows under the same Idempotency-Key are charged once."""
        return await desk.submit(querier, batch, key or secrets.token_urlsafe(24))

    @app.post("/api/released", responses=_problems(400, 401, 413, 422, 503))
    async def are_released(
        asked: SomeQueries, querier: Annotated[Querier, Depends(known)]
    ) -> WhichReleased:
        """Which queries were released before, so that asking again costs nothing."""
        return await desk.are_released(querier, asked)

    @app.get("/api/batches", responses=_problems(401, 422, 503))
    async def recent(
        querier: Annotated[Querier, Depends(known)],
        question: Annotated[RecentQuestion, Query()],
    ) -> list[RecentBatch]:
        """Your last batches, the newest first."""
        return await desk.recent(querier, question.limit)

    @app.get("/api/batches/{batch}", responses=own)
    async def state(batch: BatchName, querier: Annotated[Querier, Depends(known)]) -> BatchState:
        """How far a batch is."""
        return await desk.jobs.state(querier.name, JobId(bytes.fromhex(batch)))

    @app.get("/api/batches/{batch}/events", responses=own, response_class=StreamingResponse)
    async def progress(
        batch: BatchName, querier: Annotated[Querier, Depends(known)]
    ) -> StreamingResponse:
        """How a batch goes on, as server-sent events, to its end."""
        return await desk.follow(querier, JobId(bytes.fromhex(batch)))


def _add_releases(app: FastAPI, desk: QuerierDesk, known: Known) -> None:
    """What a batch came to."""
    own = _problems(401, 404, 409, 410, 422, 503)

    @app.get("/api/batches/{batch}/labels", responses=own)
    async def labels(batch: BatchName, querier: Annotated[Querier, Depends(known)]) -> Labels:
        """The labels, once released."""
        return await desk.labels(querier, JobId(bytes.fromhex(batch)))

    file: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/octet-stream": {}}, "description": "For dppp verify."}
    }

    @app.get("/api/batches/{batch}/receipt", responses=own | file, response_class=Response)
    async def receipt(batch: BatchName, querier: Annotated[Querier, Depends(known)]) -> Response:
        """What it takes to check the release, without any ballot: give it to `dppp verify`."""
        data = await desk.jobs.receipt(querier.name, JobId(bytes.fromhex(batch)))
        return Response(data, media_type="application/octet-stream")

    @app.get(
        "/api/batches/{batch}/transcript",
        responses=own | _problems(403) | file,
        response_class=Response,
    )
    async def transcript(batch: BatchName, querier: Annotated[Querier, Depends(known)]) -> Response:
        """Everything needed to check the release, with all ballots, for auditors' tokens only."""
        querier.require_transcripts()
        data = await desk.jobs.transcript(querier.name, JobId(bytes.fromhex(batch)))
        return Response(data, media_type="application/octet-stream")

    @app.get("/api/batches/{batch}/verification", responses=own)
    async def verification(
        request: Request, batch: BatchName, querier: Annotated[Querier, Depends(known)]
    ) -> Verification:
        """What `dppp verify` says here about the receipt: the aggregator's word, not a proof."""
        identifier = JobId(bytes.fromhex(batch))
        return await desk.verification(querier, identifier, request.is_disconnected)


def _translate_errors(app: FastAPI) -> None:
    """Our exceptions and FastAPI's: what was wrong in a line, and what to do."""

    @app.exception_handler(DpppError)
    async def ours(_: Request, error: DpppError) -> JSONResponse:
        code = next(code for kind, code in _STATUS if isinstance(error, kind))
        headers = {"Retry-After": RETRY_SECONDS} if code == 503 else None
        if isinstance(error, BatchStoreUnavailable):
            error = _STORE_AWAY  # its own words name the operator's database, host and disk
        return JSONResponse({"detail": error.message, "hint": error.hint}, code, headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        is_json = first["type"] != "json_invalid"
        return JSONResponse({"detail": f"{where}: {first['msg']}"}, 422 if is_json else 400)
