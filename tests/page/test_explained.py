"""What the page says of itself: the first visit, the batch as a picture, ε over time, the card."""

import functools
import re
import time

import httpx
from playwright.sync_api import Browser, Page, expect
from tests.page.asking import ask_by_drawing
from tests.page.browsers import PHONE, keep_screenshot
from tests.page.federations import TEACHERS, Shown, found_digits, show

from dppp.protocol.events import Stage
from dppp.service.batches.hub import BatchEvent


def test_a_first_visit_explains_itself_until_it_is_read_and_can_be_opened_again(
    shown: Shown, browser: Browser
) -> None:
    with shown.opened(browser, viewport=PHONE) as page:
        welcome, opener = page.locator("#welcome"), page.locator("#welcome-open")
        expect(welcome).to_be_visible()
        expect(welcome.locator("li h3")).to_have_text(
            ["What this is", "Who sees what", "What ε costs"]
        )
        expect(welcome).to_contain_text("7 organisations that may not share their records")
        expect(welcome).to_contain_text("even if 1 teacher and the aggregator pool")
        expect(welcome).to_contain_text("ε = 20 (δ = 1e-4) for 30 queries")
        expect(opener).to_have_attribute("aria-expanded", "true")
        keep_screenshot(page, "phone-welcome")
        page.click("nav a[href='#ask']")
        expect(welcome).to_be_hidden()  # not in the way of asking
        page.click("nav a[href='#live']")
        expect(welcome).to_be_visible()
        welcome.locator("#welcome-close").press("Enter")
        expect(welcome).to_be_hidden()
        expect(opener).to_be_focused()
        page.reload()
        expect(page.locator("#live")).to_be_visible()
        expect(welcome).to_be_hidden()
        page.click("nav a[href='#plan']")
        opener.press("Enter")
        expect(welcome).to_be_visible()
        expect(page.locator("#welcome-title")).to_be_focused()
        page.keyboard.press("Escape")
        expect(welcome).to_be_hidden()
        expect(opener).to_have_attribute("aria-expanded", "false")


def test_at_the_door_nothing_is_explained_in_front_of_the_token(
    shown: Shown, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(shown.address)
    expect(page.locator("#token")).to_be_focused()
    expect(page.locator("#welcome")).to_be_hidden()
    expect(page.locator("#welcome-open")).to_be_hidden()
    page.close()


def test_a_batch_is_a_picture_with_the_sizes_of_its_ballots(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        page.click("#welcome-close")
        ask_by_drawing(page, "7")
        page.click("nav a[href='#live']")
        flow = page.locator(".flow li")
        expect(flow.locator("b")).to_have_text(
            ["Teachers vote", "Sealed ballots", "The list, signed", "Noisy counts"]
        )
        expect(flow.locator(".dots i.in")).to_have_count(TEACHERS)
        (ledger, *_) = shown.parties.ledgers.values()
        headers = {"Authorization": f"Bearer {shown.token}"}
        (batch,) = httpx.get(f"{shown.address}/api/batches", headers=headers).json()
        ballot = ledger.find_ballot(bytes.fromhex(batch["state"]["batch"]))
        assert ballot is not None
        expect(flow.nth(1)).to_contain_text(f"7 × {len(ballot)} B")
        expect(flow.nth(2)).to_contain_text(re.compile(r"7 ballots; \d signed, 5 needed"))
        expect(flow.nth(3)).to_contain_text("1 query × 10 counts")
        for place in range(4):
            expect(flow.nth(place)).to_contain_text(re.compile(r"\+\d+\.\d\d s"))
            expect(flow.nth(place)).to_have_attribute("data-state", "on")
        keep_screenshot(page, "flow")


def test_what_is_not_there_yet_is_drawn_as_such(digits_page: Page, shown: Shown) -> None:
    digits_page.click("nav a[href='#live']")
    for stage, done in ((Stage.VOTES, 0), (Stage.BALLOTS, 1), (Stage.BALLOTS, 2)):
        event = BatchEvent(
            batch="cd" * 32,
            stage=stage,
            at=time.time(),
            queries=1,
            done=done,
            of=TEACHERS,
            teacher=done or None,
            size_bytes=1500,
        )
        shown.in_its_loop(functools.partial(shown.view.take, event))
    flow = digits_page.locator(".flight").first.locator(".flow li")
    expect(flow.locator(".dots i.in")).to_have_count(2)
    expect(flow.nth(1)).to_contain_text("2 × 1.5 kB")
    expect(flow.nth(2)).to_have_attribute("data-state", "later")
    expect(flow.nth(3)).to_contain_text("still sealed")


def test_epsilon_is_drawn_over_time_as_the_accountant_says(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        expect(page.locator("#spent")).to_be_hidden()
        for digit in ("3", "5"):
            ask_by_drawing(page, digit)
        page.click("nav a[href='#live']")
        headers = {"Authorization": f"Bearer {shown.token}"}
        steps = httpx.get(f"{shown.address}/api/budget/steps", headers=headers).json()
        assert [each["queries"] for each in steps] == [1, 2]
        assert steps[0]["epsilon_before"] == 0
        assert steps[0]["epsilon"] == steps[1]["epsilon_before"]
        assert steps[1]["epsilon"] == shown.budget()["epsilon_spent"]
        expect(page.locator("#spent-line")).to_have_text(
            f"Your 2 queries cost ε = {steps[1]['epsilon']:.3g}."
        )
        spoken = page.locator("#spent svg").get_attribute("aria-label") or ""
        assert spoken.startswith("ε over time, of 20: ")
        assert spoken.count(" at ") == 2


def test_the_privacy_card_is_read_in_place(digits_page: Page) -> None:
    lines = digits_page.locator("#card-lines")
    expect(lines.locator("dt")).to_have_text(
        ["Protects", "Price", "Against", "Ballots", "Not promised"]
    )
    expect(lines).to_contain_text("ε = 20, δ = 0.0001 in total for 30 queries")
    expect(lines).to_contain_text("any 1 of 7 teachers")
