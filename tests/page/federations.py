"""Federations to look at: real digits and real models, short keys that anyone can factor."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI
from playwright.sync_api import Browser, Page
from starlette.types import ASGIApp
from tests.page.browsers import DESK, Complaints
from tests.service.gateway.served import serve
from tests.small_federation import dealt_key, kept_certificate

from dppp.federation import Parties, create_federation
from dppp.learning.examples.local_models import digits, image_model, split_and_train
from dppp.learning.models import as_predict
from dppp.privacy.certificate import Certificate
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.service.gateway.embedded import Embedded, embed_gateway
from dppp.service.gateway.own_views import OwnView
from dppp.service.gateway.queriers import Querier, make_token

TEACHERS = 7
CLASSES = tuple("0123456789")
FEW_QUERIES = 2
QUERIER = "alice"


def certificate(queries: int) -> Certificate:
    return kept_certificate(
        "skellam",
        epsilon=20,
        delta=1e-4,
        teachers=TEACHERS,
        colluders=1,
        dropouts=1,
        queries=queries,
        classes=len(CLASSES),
    )


@functools.cache
def learned() -> tuple[tuple[Any, ...], tuple[tuple[float, ...], ...]]:
    """A model a teacher, and rows that none of them has seen."""
    records = digits()
    models, held_out = split_and_train(records, TEACHERS, make_model=image_model)
    return tuple(models), tuple(tuple(row) for row in records.rows[held_out[:40]].tolist())


def found_digits(
    *, queries: int = 30, abstain_below: int | None = None, models: Any = None
) -> Parties:
    chosen = certificate(queries)
    return create_federation(
        name="Digits",
        class_names=CLASSES,
        features=digits().features,
        certificate=chosen,
        models=models or [as_predict(model, CLASSES) for model in learned()[0]],
        abstain_below=abstain_below,
        key=dealt_key(TEACHERS, chosen.trust.threshold),
    )


@dataclass(frozen=True)
class Shown:
    """A page that is served, and everything behind it."""

    address: str
    token: str
    parties: Parties
    embedded: Embedded
    app: FastAPI

    @property
    def url(self) -> str:
        return f"{self.address}/#token={self.token}"

    @property
    def view(self) -> OwnView:
        """What the gateway passes on to this querier."""
        view: OwnView = self.app.state.views.of(QUERIER)
        return view

    def budget(self) -> dict[str, Any]:
        """What the gateway says is spent and left."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer: dict[str, Any] = httpx.get(f"{self.address}/api/budget", headers=headers).json()
        return answer

    def find_silent(self, teacher: int) -> None:
        """What the runner does by itself after twelve seconds of silence, now."""
        runner = self.embedded.runner
        self.in_its_loop(lambda: runner._set_online(teacher, is_online=False))

    def in_its_loop(self, call: Callable[[], None]) -> None:
        """Call something in the event loop of the gateway, from outside."""
        self.embedded.runner._loops[0].get_loop().call_soon_threadsafe(call)

    @contextmanager
    def opened(
        self, browser: Browser, expected: str = "nothing", **settings: Any
    ) -> Iterator[Page]:
        """The page in a tab of its own; whatever it complains about fails the test."""
        context = browser.new_context(**{"viewport": DESK, **settings})
        page = context.new_page()
        complaints = Complaints(expected)
        complaints.watch(page)
        page.set_default_timeout(60_000)
        page.goto(self.url)
        page.wait_for_selector("#teachers li, #ask:not([hidden])", state="attached")
        page.wait_for_selector("#connection[data-state=open]")
        yield page
        context.close()
        assert not complaints, "; ".join(complaints)


@contextmanager
def show(
    parties: Parties,
    *,
    deadline_seconds: int = 600,
    wrap: Any = None,
) -> Iterator[Shown]:
    """Serve a federation with its page; `wrap` may look at all that is sent."""
    token, digest = make_token()
    querier = Querier(
        name=QUERIER,
        token_sha256=digest,
        queries=parties.task.queries,
    )
    embedded = embed_gateway(
        parties,
        store=MemoryBatchStore(),
        queriers=[querier],
        deadline_seconds=deadline_seconds,
        page=True,
        examples=learned()[1][:5] if parties.task.name == "Digits" else (),
        insecure_testing=True,
    )
    app: ASGIApp = embedded.app if wrap is None else wrap(embedded.app)
    with serve(app) as address:
        yield Shown(address, token, parties, embedded, embedded.app)
