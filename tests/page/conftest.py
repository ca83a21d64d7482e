"""A browser for the tests of a file, and a page over real digits."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.page.browsers import start_browser
from tests.page.federations import Shown, found_digits, show

# These machines are shared and noisy; whatever comes, comes within this.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One a file: while it lives, playwright's event loop keeps asyncio.run from other tests."""
    with start_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def shown() -> Iterator[Shown]:
    """A federation with budget enough for all tests that share it."""
    with show(found_digits()) as shown:
        yield shown


@pytest.fixture
def digits_page(shown: Shown, browser: Browser) -> Iterator[Page]:
    with shown.opened(browser) as page:
        yield page


@pytest.fixture
def soak_seconds() -> int:
    """An hour, or as the environment says."""
    return int(os.environ.get("DPPP_SOAK_PAGE_SECONDS", "3600"))
