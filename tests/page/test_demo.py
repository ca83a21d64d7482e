"""`dppp demo --web --data digits` as a person meets it; makes the pictures of docs/usage.md."""

import pytest
from playwright.sync_api import Browser, expect
from tests.cli.demo.served_demo import serve_demo
from tests.page.asking import ask_by_drawing, left
from tests.page.browsers import DESK, Complaints, keep_screenshot, refused
from tests.page.sliders import set_sliders

DRAWN = "0473"


@pytest.mark.slow
def test_a_person_draws_digits_looks_at_the_budget_and_plans(browser: Browser) -> None:
    complaints = Complaints(refused(422))  # sliders on their way pass what cannot be
    with serve_demo("--data", "digits") as demo:
        context = browser.new_context(viewport={"width": DESK["width"], "height": DESK["height"]})
        page = context.new_page()
        complaints.watch(page)
        page.goto(demo.url)
        expect(page.locator("#teachers li")).to_have_count(25)
        expect(page.locator("#welcome")).to_be_visible()
        keep_screenshot(page, "readme-welcome")
        page.click("#welcome-close")
        before = left(page)
        labels = []
        for digit in DRAWN:
            ask_by_drawing(page, digit)
            labels.append(page.locator("#answer-body [data-label]").get_attribute("data-label"))
        keep_screenshot(page, "readme-ask")
        page.click("nav a[href='#live']")
        expect(page.locator("#queries-left")).to_have_text(str(before - len(DRAWN)))
        expect(page.locator(".release .mark", has_text="✓ verified")).to_have_count(len(DRAWN))
        keep_screenshot(page, "readme-live")
        page.click("nav a[href='#plan']")
        set_sliders(page, teachers="250", colluders="50", dropouts="25", epsilon="0.3")
        set_sliders(page, delta="1e-3", queries="1", margin="10.0 %")
        expect(page.locator(".family[data-state=done]")).to_have_count(6)
        keep_screenshot(page, "readme-plan")
        context.close()
    assert not complaints
    # 21 or more of the 25 vote for each; noise turns one of them about once in two hundred times.
    assert sum(label == digit for label, digit in zip(labels, DRAWN, strict=True)) >= 3, labels
