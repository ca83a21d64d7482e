"""Asking on the page as a person does."""

from playwright.sync_api import Page, expect
from tests.page.drawn import draw


def ask_by_drawing(page: Page, digit: str) -> None:
    """Draw, ask, and wait for the answer."""
    page.click("nav a[href='#ask']")
    page.click("#ways >> text=Draw")
    page.click("#pad-clear")
    draw(page, digit)
    page.click("#ask-now")
    expect(page.locator("#answer")).to_be_visible()


def ask_first_example(page: Page) -> None:
    """Fill the fields with an example, and ask."""
    page.click("#ways >> text=Fields")
    page.click("#example")
    page.click("#ask-now")


def left(page: Page) -> int:
    """The queries left, as the live view says."""
    return int(page.locator("#queries-left").inner_text())
