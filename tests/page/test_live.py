"""What the page shows of a federation at work."""

import functools
import re
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.page.asking import ask_by_drawing, ask_first_example
from tests.page.browsers import keep_screenshot
from tests.page.federations import found_digits, show
from tests.small_federation import cast_each_vote

from dppp.protocol.events import Stage
from dppp.protocol.receipt import verify_receipt
from dppp.service.batches.hub import BatchEvent


def test_a_failing_teacher_turns_grey_and_the_batch_is_released_all_the_same(
    browser: Browser,
) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        teacher = page.locator("[data-teacher='3']")
        expect(teacher).to_have_attribute("data-state", "on")
        ask_by_drawing(page, "0")
        shown.embedded.channel.silent |= {3}
        ask_by_drawing(page, "1")
        page.click("nav a[href='#live']")
        expect(teacher).to_have_attribute("data-state", "missed")
        expect(teacher).to_contain_text("missed 1")
        expect(page.locator("[data-teacher='2']")).to_have_attribute("data-state", "on")
        expect(page.locator(".release .mark").first).to_have_text("✓ verified")
        keep_screenshot(page, "live")
        shown.find_silent(3)
        expect(teacher).to_have_attribute("data-state", "off")
        expect(page.locator("#teachers-online")).to_have_text("6 of 7 online")


def test_a_batch_passes_its_stages_with_times(browser: Browser) -> None:
    """Of a federation of its own: a digit that another test drew would be free, without a batch."""
    with show(found_digits()) as shown, shown.opened(browser) as page:
        ask_by_drawing(page, "7")
        page.click("nav a[href='#live']")
        flight = page.locator(".flight").first
        expect(flight).to_contain_text("released")
        for stage in ("votes", "ballots", "tally", "endorsements", "answers", "release"):
            expect(flight.locator(f"[data-stage={stage}]")).to_have_attribute("data-state", "done")
        expect(flight.locator("[data-stage=ballots]")).to_contain_text("7/7")
        expect(flight.locator("[data-stage=release]")).to_contain_text(" s")


def test_in_a_dispute_the_stages_that_were_reached_stay_done(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        page.click("nav a[href='#live']")
        for stage in (Stage.VOTES, Stage.BALLOTS, Stage.TALLY, Stage.DISPUTE):
            event = BatchEvent(batch="ab" * 32, stage=stage, at=time.time(), queries=1)
            shown.in_its_loop(functools.partial(shown.view.take, event))
        expect(page.locator("#flight-status")).to_have_text("Batch at stage dispute")
        states = {"votes": "done", "ballots": "done", "tally": "done", "answers": "later"}
        for name, state in states.items():
            found = page.locator(f".flight [data-stage={name}]")
            expect(found).to_have_attribute("data-state", state)


def test_a_release_is_marked_verified_and_its_receipt_verifies_here(
    digits_page: Page, tmp_path: Path
) -> None:
    ask_by_drawing(digits_page, "4")
    digits_page.click("nav a[href='#live']")
    mark = digits_page.locator(".release .mark").first
    expect(mark).to_have_text("✓ verified")
    with digits_page.expect_download() as downloading:
        mark.click()
    assert downloading.value.suggested_filename.endswith(".receipt")
    saved = tmp_path / "release.receipt"
    downloading.value.save_as(saved)
    verified = verify_receipt(saved.read_bytes(), insecure_testing=True)
    counts = digits_page.locator(".release").first.locator(".bars output")
    assert int(counts.first.inner_text()) == max(verified.answers[0].counts)
    expect(digits_page.locator(".release").first.locator(".margin")).to_contain_text(
        re.compile("ahead by|a tie")
    )


def test_counts_that_votes_and_noise_hardly_give_are_said_to_be_so(browser: Browser) -> None:
    """Two teachers with their real keys, who cast twenty votes each where they have one."""
    parties = found_digits()
    for cheat in (parties.teachers[1], parties.teachers[2]):
        cast_each_vote(cheat, times=20)
    with show(parties) as shown, shown.opened(browser) as page:
        page.click("nav a[href='#ask']")
        ask_first_example(page)
        expect(page.locator("#answer .flagged")).to_contain_text("more than a vote")
        page.click("nav a[href='#live']")
        expect(page.locator(".release .flagged")).to_contain_text("more than a vote")


def test_honest_counts_are_not_flagged(digits_page: Page) -> None:
    ask_by_drawing(digits_page, "3")
    expect(digits_page.locator("#answer .mark")).to_have_text("✓ verified")
    expect(digits_page.locator(".flagged")).to_have_count(0)


def test_an_abort_is_shown_with_its_reason(browser: Browser) -> None:
    with show(found_digits(), deadline_seconds=4) as shown, shown.opened(browser) as page:
        shown.embedded.channel.silent |= {2, 5}
        page.click("nav a[href='#ask']")
        ask_first_example(page)
        expect(page.locator("#refusal-reason")).to_contain_text("aborted")
        page.click("nav a[href='#live']")
        expect(page.locator(".release").first).to_contain_text("missing: teachers 2, 5")
        expect(page.locator(".flight").first).to_contain_text("Aborted: ")
        keep_screenshot(page, "aborted")


def test_an_abstention_is_shown_as_no_answer(browser: Browser) -> None:
    with show(found_digits(abstain_below=1_000)) as shown, shown.opened(browser) as page:
        ask_by_drawing(page, "0")
        expect(page.locator("#answer-body")).to_contain_text("No answer")
        page.click("nav a[href='#live']")
        expect(page.locator(".release h3").first).to_have_text("abstained")


def test_the_page_comes_back_when_the_gateway_does(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser, "net::ERR_FAILED") as page:
        connection = page.locator("#connection")
        page.route("**/api/events", lambda route: route.abort())
        shown.in_its_loop(shown.embedded.runner.hub.end)  # as a gateway does that stops
        expect(connection).to_have_text("reconnecting …")
        page.unroute("**/api/events")
        expect(connection).to_have_text("live")
        ask_by_drawing(page, "7")
        page.click("nav a[href='#live']")
        expect(page.locator(".flight").first).to_contain_text("released")


STALE = """async () => {
  const { LiveState } = await import("/page/live_state.js");
  const state = new LiveState();
  const views = () => [{ teacher: 1, is_online: true }, { teacher: 2, is_online: true }];
  const online = () => [...state.teachers.values()].map((each) => each.is_online);
  state.apply({ kind: "teacher", teacher: 2, is_online: false, at: 4 });
  state.setTeachers(views(), 0);
  const first = online();
  state.setTeachers(views(), state.events);
  const asked = state.events;
  state.apply({ kind: "teacher", teacher: 1, is_online: false, at: 5 });
  state.setTeachers(views(), asked);
  const late = online();
  state.setTeachers(views(), state.events);
  return [first, late, online()];
}"""


def test_an_answer_older_than_an_event_does_not_undo_it(digits_page: Page) -> None:
    first, late, fresh = digits_page.evaluate(STALE)
    assert first == [True, False]
    assert late == [False, True]
    assert fresh == [True, True]


def test_the_privacy_card_comes_with_a_click(digits_page: Page) -> None:
    with digits_page.expect_download() as downloading:
        digits_page.click("#privacy-card")
    assert downloading.value.suggested_filename == "privacy-card.html"
    text = downloading.value.path().read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "What is not promised" in text
