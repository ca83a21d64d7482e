"""A real browser for tests: Debian's chromium, headless, without network of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.left_out import need_program

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-precise-memory-info",
)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
DESK = {"width": 1200, "height": 900}
PHONE = {"width": 360, "height": 740}


@contextmanager
def start_browser() -> Iterator[Browser]:
    program = need_program("chromium", package="chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


class Complaints(list[str]):
    """What a page said on the console, or threw; a browser complains of each failed request."""

    def __init__(self, expected: str = "nothing") -> None:
        super().__init__()
        self._expected = expected

    def watch(self, page: Page) -> None:
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.append(str(error)))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and self._expected not in message.text:
            self.append(message.text)


def refused(status: int) -> str:
    """How a browser complains of a request that is refused."""
    return f"the server responded with a status of {status} "


def keep_screenshot(page: Page, name: str) -> None:
    """An artefact of the test run, for people."""
    page.wait_for_timeout(300)  # what fades has faded
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
