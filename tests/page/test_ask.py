"""Asking on the page: draw, fill in, upload; the price before and after; the refusal."""

import csv
import math
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.page.asking import ask_by_drawing, ask_first_example
from tests.page.browsers import PHONE, keep_screenshot, refused
from tests.page.drawn import draw
from tests.page.federations import (
    CLASSES,
    FEW_QUERIES,
    TEACHERS,
    Shown,
    certificate,
    found_digits,
    learned,
    show,
)

from dppp.learning.examples.local_models import digits
from dppp.protocol.lead import chance_of_lead, lead_of


def write_csv(path: Path, rows: list[tuple[float, ...]], *, more: bool = False) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(["a note, quoted"] if more else []), *digits().features])
        writer.writerows([*(['say "hi"'] if more else []), *row] for row in rows)
    return path


def said_of(share: float) -> re.Pattern[str]:
    """The sentence that belongs beside a lead which noise alone gives this often."""
    often = "fewer than 0.1 %" if share < 0.001 else re.escape(f"{100 * share:.1f} %")
    ends = {0.01: "noise hardly explains it", 0.2: "doubt is in place", 1: "may well be noise"}
    meaning = next(words for most, words in ends.items() if share <= most)
    return re.compile(f"two leading classes had equal votes.*{often} of answers.*{meaning}")


PARTS = """([lines, count]) => [...document.querySelectorAll(lines)].flatMap((line) => {
  const counts = [...line.querySelectorAll(count)].map((each) => Number(each.textContent));
  const parts = [...line.querySelectorAll(".track > span")];
  return counts.map((each, place) => [each, Number(parts[place].style.getPropertyValue("--part"))]);
})"""


def assert_one_scale(page: Page, lines: str, count: str) -> None:
    """Every bar is as long as its count, held against the highest count of all lines."""
    found = page.evaluate(PARTS, [lines, count])
    widest = max(number for number, _ in found)
    assert len(found) > 2
    for number, part in found:
        assert part == pytest.approx(max(0, number) / widest)


def test_bars_of_different_releases_have_one_scale(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        for digit in ("3", "5"):
            ask_by_drawing(page, digit)
        page.click("nav a[href='#live']")
        expect(page.locator("#releases .release")).to_have_count(2)
        assert_one_scale(page, "#releases .release", ".bars output")


def test_on_a_phone_the_answer_is_where_one_looks(shown: Shown, browser: Browser) -> None:
    with shown.opened(browser, viewport=PHONE, has_touch=True) as page:
        ask_by_drawing(page, "7")
        expect(page.locator("#answer-title")).to_be_in_viewport()
        expect(page.locator("#answer-body .big")).to_be_in_viewport(ratio=1)
        keep_screenshot(page, "phone-answer")


def test_a_drawn_digit_gets_a_label_and_the_budget_goes_down_by_one(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser) as page:
        before = page.locator("#queries-left")
        expect(before).to_have_text("30")
        ask_by_drawing(page, "3")
        label = page.locator("#answer-body [data-label]")
        assert label.get_attribute("data-label") in CLASSES
        expect(page.locator("#answer-body .bars output")).to_have_count(10)
        expect(page.locator("#cost")).to_have_attribute("data-charged", "1")
        expect(page.locator("#cost dd")).to_contain_text(["before", "after", "30", "29", "0"])
        expect(page.locator("#answer .mark")).to_have_text("✓ verified")
        spread = math.sqrt(
            certificate(30).noise.variance * TEACHERS / certificate(30).trust.honest_shares
        )
        expect(page.locator("#answer-body")).to_contain_text(f"noise, about ±{spread:.3g}")
        counts = [int(each) for each in page.locator("#answer-body .bars output").all_inner_texts()]
        share = chance_of_lead(certificate(30).noise.of_teachers(TEACHERS), lead_of(counts))
        expect(page.locator("#answer-body .sureness")).to_contain_text(said_of(share))
        keep_screenshot(page, "ask")
        page.click("nav a[href='#live']")
        expect(before).to_have_text("29")


def draw_another(page: Page) -> None:
    page.click("#pad-clear")
    page.mouse.click(300, 400)


def test_with_too_few_queries_left_ask_is_off_and_what_was_released_stays_free(
    browser: Browser, tmp_path: Path
) -> None:
    with show(found_digits(queries=FEW_QUERIES)) as shown, shown.opened(browser) as page:
        page.click("nav a[href='#ask']")
        page.click("#ways >> text=CSV")
        rows = list(learned()[1][10:13])
        page.set_input_files("#file", write_csv(tmp_path / "three.csv", rows))
        expect(page.locator("#price")).to_contain_text("costs 3 queries, and 2 are left to you")
        expect(page.locator("#ask-now")).to_be_disabled()
        for digit in ("3", "5"):
            ask_by_drawing(page, digit)
        draw_another(page)
        expect(page.locator("#price")).to_contain_text("none are left to you")
        expect(page.locator("#ask-now")).to_be_disabled()
        ask_by_drawing(page, "5")
        expect(page.locator("#answer-links")).to_contain_text("Free")
        expect(page.locator("#refusal")).to_be_hidden()


def test_past_the_budget_the_page_says_no_politely(browser: Browser) -> None:
    """Somebody else with the same token was faster: the page believes that there is more."""
    with (
        show(found_digits(queries=FEW_QUERIES)) as shown,
        shown.opened(browser, refused(403)) as page,
    ):
        for digit in ("3", "5"):
            ask_by_drawing(page, digit)
        spent = shown.budget()
        page.route("**/api/budget", lambda route: route.fulfill(json={**spent, "left_to_you": 2}))
        page.reload()
        page.click("nav a[href='#ask']")
        draw_another(page)
        page.click("#ask-now")
        expect(page.locator("#refusal")).to_be_visible()
        expect(page.locator("#refusal-reason")).to_contain_text("0 are left")
        expect(page.locator("#refusal-reason")).to_contain_text("; ask for fewer, or for rows that")
        expect(page.locator("#refusal-next")).to_contain_text("nobody can add to it here")
        keep_screenshot(page, "refusal")


def test_the_fields_can_be_filled_by_an_example_and_asked(digits_page: Page) -> None:
    digits_page.click("nav a[href='#ask']")
    digits_page.click("#ways >> text=Fields")
    expect(digits_page.locator("#ask-now")).to_be_disabled()
    ask_first_example(digits_page)
    expect(digits_page.locator("#answer")).to_be_visible()


def test_a_csv_file_is_read_here_and_answered_row_by_row(digits_page: Page, tmp_path: Path) -> None:
    rows = list(learned()[1][10:13])
    digits_page.click("nav a[href='#ask']")
    digits_page.click("#ways >> text=CSV")
    digits_page.set_input_files("#file", write_csv(tmp_path / "ask.csv", rows, more=True))
    expect(digits_page.locator("#file-line")).to_have_text("3 rows read; not sent: a note, quoted")
    with digits_page.expect_request(lambda request: request.method == "POST") as posting:
        digits_page.click("#ask-now")
    assert posting.value.post_data_json == {"rows": [list(row) for row in rows]}
    shown = digits_page.locator("#answer-body table [data-label]")
    expect(shown).to_have_count(3)
    expect(digits_page.locator("#answer-body tbody td:first-child")).to_have_text(["1", "2", "3"])
    assert_one_scale(digits_page, "#answer-body tbody tr", ".highest")
    keep_screenshot(digits_page, "answers")
    with digits_page.expect_download() as downloading:
        digits_page.click("text=labels as CSV")
    with open(downloading.value.path(), newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["label"], *([text] for text in shown.all_inner_texts())]


def test_a_file_that_cannot_be_used_is_explained_by_line(digits_page: Page, tmp_path: Path) -> None:
    digits_page.click("nav a[href='#ask']")
    digits_page.click("#ways >> text=CSV")
    line = digits_page.locator("#file-line")
    for place, (text, reason) in enumerate(
        (
            ("", "empty"),
            ("a,b\n1,2\n", "no column “pixel_0_0” and 63 more"),
            (",".join(digits().features) + "\n", "no rows"),
            (
                ",".join(digits().features) + "\n" + "x," * 63 + "1\n",
                "line 2, column “pixel_0_0”: “x”",
            ),
        )
    ):
        path = tmp_path / f"bad-{place}.csv"
        path.write_text(text)
        digits_page.set_input_files("#file", path)
        expect(line).to_contain_text(reason)
        expect(digits_page.locator("#ask-now")).to_be_disabled()


def test_an_answer_that_is_lost_on_the_way_is_asked_for_again_and_charged_once(
    browser: Browser,
) -> None:
    with show(found_digits()) as shown, shown.opened(browser, "net::ERR_FAILED") as page:
        lost: list[str] = []

        def lose_two(route: Route) -> None:
            if len(lost) < 2:
                route.fetch()  # the gateway has it, and nobody hears of that
                lost.append(route.request.header_value("idempotency-key") or "")
                route.abort()
            else:
                route.continue_()

        page.route("**/api/batches", lose_two)
        ask_by_drawing(page, "3")
        expect(page.locator("#cost")).to_have_attribute("data-charged", "1")
        expect(page.locator("#price")).to_contain_text("29 of 30 left")
        assert len(set(lost)) == 1


def test_while_the_gateway_is_away_the_page_says_so_and_goes_on_when_it_is_back(
    browser: Browser,
) -> None:
    with show(found_digits()) as shown, shown.opened(browser, "net::ERR_FAILED") as page:
        page.route("**/api/batches/*", lambda route: route.abort())
        page.click("nav a[href='#ask']")
        draw(page, "3")
        page.click("#ask-now")
        expect(page.locator("#ask-status")).to_contain_text("not lost")
        draw(page, "1")
        expect(page.locator("#ask-now")).to_be_disabled()  # one at a time
        page.unroute("**/api/batches/*")
        expect(page.locator("#answer")).to_be_visible()
        expect(page.locator("#ask-now")).to_be_enabled()


def test_a_gateway_that_is_busy_is_asked_again(browser: Browser) -> None:
    with show(found_digits()) as shown, shown.opened(browser, refused(503)) as page:
        asked: list[Route] = []

        def refuse_first(route: Route) -> None:
            asked.append(route)
            if len(asked) == 1:
                route.fulfill(status=503, json={"detail": "64 batches are under way"})
            else:
                route.continue_()

        page.route("**/api/batches", refuse_first)
        ask_by_drawing(page, "3")
        assert len(asked) > 1


def test_a_stroke_of_the_pen_asks_the_gateway_for_nothing(digits_page: Page) -> None:
    digits_page.click("nav a[href='#ask']")
    expect(digits_page.locator("#price")).to_contain_text("left")
    asked: list[str] = []
    digits_page.on("request", lambda request: asked.append(request.url))
    draw(digits_page, "8")
    expect(digits_page.locator("#price")).to_contain_text("Costs 1 query at most")
    # The live view may check earlier releases meanwhile, and the browser fetch its icon.
    assert not [url for url in asked if not url.endswith(("/verification", "/page/icon.svg"))]
