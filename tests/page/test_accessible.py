"""axe-core finds nothing serious on any view, light and dark, on a desk and on a phone.

Of its rules those for WCAG 2.1 A and AA, and its own best practices. The file of axe-core comes
with the pinned package axe-playwright-python, so no network is needed.
"""

import itertools
from typing import Any, Literal

from playwright.sync_api import Browser, Page, expect
from tests.left_out import need_module
from tests.page.asking import ask_by_drawing
from tests.page.browsers import DESK, PHONE
from tests.page.federations import Shown, found_digits, show
from tests.page.questions import ask_of_number
from tests.page.test_questions import ask_by_fields

need_module("axe_playwright_python", extra="dev")

from axe_playwright_python.sync_playwright import Axe  # it may be missing

SERIOUS = ("serious", "critical")
WINDOWS: dict[str, Any] = {"desk": DESK, "phone": PHONE}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Not a fault of a state: what is opened by a click and what a tab waits for has faded in by then.
SETTLED = "Promise.all(document.getAnimations().map((each) => each.finished))"


def faults(page: Page) -> list[str]:
    """What is serious, with the first element that has it."""
    page.evaluate(SETTLED)
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html']}"
        for each in found
        if each["impact"] in SERIOUS
    ]


def faults_in_every_look(page: Page, view: str) -> list[str]:
    """The same view light and dark, on a desk and on a phone."""
    found = []
    for window, scheme in itertools.product(WINDOWS, SCHEMES):
        page.set_viewport_size(WINDOWS[window])
        page.emulate_media(color_scheme=scheme)
        found += [f"{view}, {window}, {scheme}: {each}" for each in faults(page)]
    page.set_viewport_size(WINDOWS["desk"])
    return found


def test_axe_finds_nothing_serious_in_any_view(browser: Browser) -> None:
    """Of its own, since a digit that another test drew would be free, and no batch be shown."""
    with show(found_digits()) as shown, shown.opened(browser) as page:
        expect(page.locator("#welcome")).to_be_visible()
        assert faults_in_every_look(page, "the first visit") == []
        page.click("#welcome-close")
        ask_by_drawing(page, "8")
        assert faults_in_every_look(page, "ask") == []
        page.click("nav a[href='#live']")
        expect(page.locator(".flow")).to_be_visible()
        assert faults_in_every_look(page, "live") == []
        page.click("nav a[href='#plan']")
        expect(page.locator(".family[data-state=done]")).to_have_count(6)
        assert faults_in_every_look(page, "plan") == []


def test_axe_finds_nothing_serious_at_the_door(shown: Shown, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(shown.address)
    expect(page.locator("#door")).to_be_visible()
    assert faults(page) == []
    page.close()


def test_axe_finds_nothing_serious_where_a_number_is_asked_for(browser: Browser) -> None:
    with show(ask_of_number()) as shown, shown.opened(browser) as page:
        ask_by_fields(page, "120", "5")
        assert faults(page) == []


def test_axe_does_find_what_is_serious(digits_page: Page) -> None:
    digits_page.evaluate(
        "document.querySelector('#content').append(document.createElement('button'))"
    )
    assert any(each.startswith("button-name") for each in faults(digits_page))
