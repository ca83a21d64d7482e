"""A thousand events a second do not freeze the page, and it forgets what it need not keep."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.page.federations import Shown, found_digits, show
from tests.page.flooding import events_seen, flood, heap_bytes, nodes, wait_for_events

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


@pytest.fixture
def flooded(browser: Browser) -> Iterator[tuple[Shown, Page]]:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        yield shown, page


def test_under_a_thousand_events_per_second_frames_are_drawn_and_clicks_work(
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
    with flood(shown, events_per_second=3_000):
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
