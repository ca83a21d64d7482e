"""A thousand events a second do not freeze the page, and it forgets what it need not keep."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect
from tests.page.browsers import is_soak
from tests.page.federations import TEACHERS, Shown, found_digits, show

from dppp.service.events import BatchEvent, Event, Stage, TeacherEvent

AT_ONCE = 50
WATCH_FRAMES = """() => {
  window.frames_seen = { count: 0, longest: 0, last: performance.now() };
  const tick = (now) => {
    const seen = window.frames_seen;
    seen.count += 1;
    seen.longest = Math.max(seen.longest, now - seen.last);
    seen.last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""


def batches() -> Iterator[Event]:
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
        yield event(Stage.SHARES, 1)
        yield TeacherEvent(teacher=1 + number % TEACHERS, is_online=bool(number % 3), at=now)
        yield event(Stage.RELEASED)


@contextmanager
def flood(shown: Shown, events_a_second: int = 1_000) -> Iterator[Callable[[], int]]:
    """Tell the hub of the gateway so many events a second; how many were told so far."""
    told = 0
    stop = threading.Event()
    events = batches()

    def tell(several: list[Event]) -> None:
        for event in several:
            shown.embedded.runner.hub.tell(event)

    def run() -> None:
        nonlocal told
        begin = time.monotonic()
        while not stop.is_set():
            several = list(itertools.islice(events, AT_ONCE))
            shown.in_its_loop(lambda several=several: tell(several))
            told += AT_ONCE
            time.sleep(max(0, begin + told / events_a_second - time.monotonic()))

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


@pytest.fixture
def flooded(browser: Browser) -> Iterator[tuple[Shown, Page]]:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        yield shown, page


def test_under_a_thousand_events_a_second_frames_are_drawn_and_clicks_work(
    flooded: tuple[Shown, Page], record_property: Callable[[str, object], None]
) -> None:
    shown, page = flooded
    page.evaluate(WATCH_FRAMES)
    with flood(shown) as told:
        wait_for_events(page, 4_000, 300)
        for view in ("plan", "ask", "live"):  # a frozen page would not follow
            page.click(f"nav a[href='#{view}']")
            expect(page.locator(f"#{view}")).to_be_visible()
        seen, frames = events_seen(page), page.evaluate("window.frames_seen")
        record_property(
            "say",
            f"page: {told():,} events told, {seen:,} drawn in {frames['count']} frames, "
            f"the longest gap between two {frames['longest']:.0f} ms",
        )
    assert frames["count"] > 20
    assert seen > 10 * page.locator(".flight").count()
    assert page.locator(".flight").count() <= 3


def test_twenty_thousand_events_leave_memory_as_it_was(
    flooded: tuple[Shown, Page], record_property: Callable[[str, object], None]
) -> None:
    shown, page = flooded
    tools = page.context.new_cdp_session(page)
    with flood(shown, events_a_second=3_000):
        wait_for_events(page, 3_000, 300)  # whatever grows at first has grown
        before, nodes_before = heap_bytes(tools), nodes(page)
        wait_for_events(page, 23_000, 300)
        after, nodes_after = heap_bytes(tools), nodes(page)
    record_property(
        "say",
        f"page: heap {before / 2**20:.2f} MiB before and {after / 2**20:.2f} MiB after 20,000 "
        f"events, {nodes_before} and {nodes_after} elements",
    )
    assert after < before + 2 * 2**20
    assert nodes_after < nodes_before + 50


@pytest.mark.skipif(not is_soak(), reason="an hour: make soak, or DPPP_SOAK=1")
def test_an_hour_of_load_leaves_memory_as_it_was(
    flooded: tuple[Shown, Page],
    record_property: Callable[[str, object], None],
    soak_seconds: int,
) -> None:
    shown, page = flooded
    tools = page.context.new_cdp_session(page)
    sizes = []
    with flood(shown):
        wait_for_events(page, 5_000, 300)
        for _ in range(12):
            sizes.append(heap_bytes(tools))
            page.wait_for_timeout(soak_seconds * 1_000 / 12)
        sizes.append(heap_bytes(tools))
    shown_sizes = ", ".join(f"{size / 2**20:.2f}" for size in sizes)
    record_property("say", f"page: heap in MiB over {soak_seconds} s of load: {shown_sizes}")
    assert max(sizes[1:]) < sizes[0] + 4 * 2**20
