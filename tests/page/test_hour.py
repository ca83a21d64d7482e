"""A page that is open for an hour, while the federation answers and events flood it, stays flat."""

import csv
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page
from tests.left_out import only_in_soak
from tests.page.federations import Shown, found_digits, learned, show
from tests.page.flooding import events_seen, flood, heap_bytes, nodes, wait_for_events
from tests.page.plain_browser import PlainBrowser, open_plainly

SAMPLES = 60
PAUSE_SECONDS = 1.0
MEBIBYTE = 2**20
REPORT = Path(__file__).parents[2] / "build" / "page_hour.csv"


@contextmanager
def asking(shown: Shown, every_seconds: float) -> Iterator[Callable[[], int]]:
    """Ask real queries, as the page's own querier, one after another; how many were released."""
    released = 0
    stop = threading.Event()
    failures: list[Exception] = []

    def ask(client: httpx.Client) -> None:
        nonlocal released
        row = list(learned()[1][released % 40])
        row[0] = 1 / (2 + released)  # so that no two are the same question
        posted = client.post("/api/batches", json={"rows": [row]}).raise_for_status().json()
        while posted["stage"] not in ("released", "aborted"):
            stop.wait(0.1)
            posted = client.get(f"/api/batches/{posted['id']}").raise_for_status().json()
        assert posted["stage"] == "released", posted
        released += 1

    def run() -> None:
        headers = {"Authorization": f"Bearer {shown.token}"}
        try:
            with httpx.Client(base_url=shown.address, headers=headers, timeout=60) as client:
                while not stop.wait(every_seconds):
                    ask(client)
        except (httpx.HTTPError, AssertionError) as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: released
    finally:
        stop.set()
        thread.join()
        assert not failures, failures


def quarters(sizes: Sequence[int]) -> list[float]:
    """The mean of each quarter of the samples, in MiB."""
    each = len(sizes) // 4
    return [statistics.fmean(sizes[at * each : (at + 1) * each]) / MEBIBYTE for at in range(4)]


def in_words(sizes: Sequence[float]) -> str:
    return ", ".join(f"{size:.2f}" for size in sizes)


@dataclass(frozen=True)
class Sample:
    """The page at one moment."""

    heap_bytes: int
    process_bytes: int
    elements: int
    events: int
    released: int


def watch(shown: Shown, page: Page, plain: PlainBrowser, seconds: int) -> list[Sample]:
    """Samples at even distances, under a thousand events a second and real queries.

    Heap and elements of a page that is inspected. Its process grows, most likely by what the
    inspector keeps; so the process is that of the same page in a browser that nobody inspects.
    """
    tools = page.context.new_cdp_session(page)
    samples = []
    with flood(shown), asking(shown, PAUSE_SECONDS) as released:
        wait_for_events(page, 30_000, 300)  # whatever grows at first has grown
        for _ in range(SAMPLES):
            page.wait_for_timeout(seconds * 1_000 / SAMPLES)
            samples.append(
                Sample(
                    heap_bytes=heap_bytes(tools),
                    process_bytes=plain.page_bytes,
                    elements=nodes(page),
                    events=events_seen(page),
                    released=released(),
                )
            )
    return samples


def keep(samples: Sequence[Sample]) -> None:
    """An artefact of the test run, for people."""
    REPORT.parent.mkdir(exist_ok=True)
    with REPORT.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(Sample))
        writer.writerows(astuple(sample) for sample in samples)


@only_in_soak
def test_an_hour_of_load_leaves_memory_as_it_was(
    browser: Browser, record_property: Callable[[str, object], None], soak_seconds: int
) -> None:
    budget = 100 + int(soak_seconds / PAUSE_SECONDS)
    with (
        show(found_digits(queries=budget)) as shown,
        shown.opened(browser) as page,
        open_plainly(shown.url) as plain,
    ):
        samples = watch(shown, page, plain, soak_seconds)
        assert len(shown.view.hub._watchers) == 2  # both have followed to the end
    keep(samples)
    first, last = samples[0], samples[-1]
    heap = quarters([sample.heap_bytes for sample in samples])
    process = quarters([sample.process_bytes for sample in samples])
    record_property(
        "say",
        f"page: {soak_seconds} s of load, {last.events:,} events drawn, {last.released:,} queries "
        f"released; means of four quarters: heap {in_words(heap)} MiB, its whole process "
        f"{in_words(process)} MiB; {first.elements} and {last.elements} elements",
    )
    assert last.released > first.released
    assert heap[3] < heap[0] + 0.5
    assert process[3] < process[0] + 10
    assert last.elements < first.elements + 100
