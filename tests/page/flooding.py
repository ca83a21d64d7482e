"""A page under a flood of events, and what it then takes."""

import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import CDPSession, Page
from tests.page.federations import TEACHERS, Shown

from dppp.protocol.events import Stage
from dppp.service.batches.hub import BatchEvent, HubEvent, TeacherEvent

AT_ONCE = 50


def batches() -> Iterator[HubEvent]:
    """Batches without end, each through all its stages, while teachers come and go."""
    for number in itertools.count():
        batch, now = f"{number:064x}", time.time()

        def event(stage: Stage, done: int = 0, batch: str = batch, now: float = now) -> BatchEvent:
            of = TEACHERS if done else 0
            teacher = done or None
            return BatchEvent(
                batch=batch, stage=stage, at=now, queries=1, done=done, of=of, teacher=teacher
            )

        yield event(Stage.VOTES)
        yield from (event(Stage.BALLOTS, teacher) for teacher in range(1, TEACHERS + 1))
        yield event(Stage.TALLY)
        yield event(Stage.ANSWERS, 1)
        yield TeacherEvent(teacher=1 + number % TEACHERS, is_online=bool(number % 3), at=now)
        yield event(Stage.RELEASED)


@contextmanager
def flood(shown: Shown, events_per_second: int = 1_000) -> Iterator[Callable[[], int]]:
    """Tell the querier's view this many events per second; how many were told so far."""
    told = 0
    stop = threading.Event()
    events = batches()

    def tell(several: list[HubEvent]) -> None:
        for event in several:
            shown.view.take(event)

    def run() -> None:
        nonlocal told
        begin = time.monotonic()
        while not stop.is_set():
            several = list(itertools.islice(events, AT_ONCE))
            shown.in_its_loop(functools.partial(tell, several))
            told += AT_ONCE
            time.sleep(max(0, begin + told / events_per_second - time.monotonic()))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: told
    finally:
        stop.set()
        thread.join()


def events_seen(page: Page) -> int:
    return int(page.locator("#connection").get_attribute("data-events") or 0)


def wait_for_events(page: Page, count: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while events_seen(page) < count:
        assert time.monotonic() < until, f"{events_seen(page)} of {count} events came"
        page.wait_for_timeout(100)


def heap_bytes(tools: CDPSession) -> int:
    tools.send("HeapProfiler.collectGarbage")
    return int(tools.send("Runtime.getHeapUsage")["usedSize"])


def nodes(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))
