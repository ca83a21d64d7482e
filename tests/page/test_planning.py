"""The sliders: what they show is what the library computes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.page.browsers import keep_screenshot, refused
from tests.page.federations import Shown
from tests.page.sliders import set_sliders

from dppp.privacy.calibration import calibrate


@pytest.fixture
def plan_page(shown: Shown, browser: Browser) -> Iterator[Page]:
    """Sliders on their way pass federations that cannot be, which the gateway refuses."""
    with shown.opened(browser, refused(422)) as page:
        yield page


def open_plan(page: Page) -> None:
    page.click("nav a[href='#plan']")
    set_sliders(page, teachers="250", colluders="50", dropouts="25", epsilon="1")
    set_sliders(page, delta="1e-3", queries="1", margin="10.0 %")
    expect(page.locator(".family[data-state=done]")).to_have_count(6)


def test_the_plan_redraws_with_the_numbers_of_the_library(plan_page: Page) -> None:
    open_plan(plan_page)
    best = plan_page.locator("#plan-best")
    wanted = calibrate("polya", epsilon=1, delta=1e-3, teachers=250, classes=10)
    expect(best).to_contain_text("Pólya noise")
    expect(best).to_contain_text(f"{wanted.noise.variance:.3g}")
    before = best.inner_text()
    set_sliders(plan_page, epsilon="0.3")
    expect(best).not_to_have_text(before)
    expect(plan_page.locator(".family[data-state=done]")).to_have_count(6)
    less = calibrate("polya", epsilon=0.3, delta=1e-3, teachers=250, classes=10)
    expect(best).to_contain_text(f"{less.noise.variance:.3g}")
    keep_screenshot(plan_page, "plan")


def test_the_papers_promise_stands_against_what_it_delivers(plan_page: Page) -> None:
    open_plan(plan_page)
    delivered = calibrate(
        "discrete-gaussian", epsilon=1, delta=1e-3, teachers=250, calibration="paper"
    )
    assert not delivered.certified
    family = plan_page.locator("#family-discrete-gaussian-paper")
    expect(family).to_have_attribute("data-kept", "no")
    expect(family).to_contain_text("broken")
    shown = family.locator(".promise > span").all_inner_texts()
    assert float(shown[-1]) == pytest.approx(delivered.exact_delta, rel=0.01)
    expect(plan_page.locator("#family-binomial-paper")).to_contain_text("kept")


def test_noise_that_would_drown_the_votes_is_said_in_words(plan_page: Page) -> None:
    open_plan(plan_page)
    set_sliders(plan_page, epsilon="0.1")
    set_sliders(plan_page, queries="1,000")
    expect(plan_page.locator("#family-skellam-exact")).to_contain_text("drown")
    expect(plan_page.locator("#plan-best")).to_contain_text("Every noise tried here")
    expect(plan_page.locator("#family-binomial-paper")).to_contain_text("drowned in noise")


def test_the_headline_names_no_noise_before_all_are_worked_out(plan_page: Page) -> None:
    held: list[Route] = []

    def hold(
        route: Route,
    ) -> None:  # playwright keeps a mark on a handler, which builtins cannot have
        held.append(route)

    plan_page.route("**/api/plan?*noise=polya*", hold)
    plan_page.click("nav a[href='#plan']")
    expect(plan_page.locator(".family[data-state=done]")).to_have_count(5)
    expect(plan_page.locator("#plan-best")).to_have_text("Working out each noise …")
    expect(plan_page.locator("#plan-lead")).to_have_text("")
    for route in held:
        route.continue_()
    expect(plan_page.locator(".family[data-state=done]")).to_have_count(6)
    expect(plan_page.locator("#plan-best")).to_contain_text("with the least noise")


def test_votes_of_each_teacher_have_one_slider_and_make_the_lead_needed_smaller(
    plan_page: Page,
) -> None:
    open_plan(plan_page)
    expect(plan_page.locator("#sliders input[name=votes]")).to_have_count(1)
    lead = plan_page.locator("#plan-lead")
    expect(lead).to_contain_text("beside 250 votes in all")
    set_sliders(plan_page, votes="4")
    expect(lead).to_contain_text("beside 1,000 votes in all")
