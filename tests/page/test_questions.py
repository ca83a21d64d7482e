"""Questions of labels and of a number on the page: asked, answered, in files and in Live."""

import csv
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.page.browsers import PHONE, keep_screenshot
from tests.page.federations import show
from tests.page.questions import ask_of_labels, ask_of_number


def ask_by_fields(page: Page, weight: str, age: str) -> None:
    page.click("nav a[href='#ask']")
    page.click("#ways >> text=Fields")
    page.fill("#fields input[name=weight]", weight)
    page.fill("#fields input[name=age]", age)
    page.click("#ask-now")
    expect(page.locator("#answer")).to_be_visible()


def ask_by_file(page: Page, path: Path, rows: str) -> list[list[str]]:
    """Ask for all rows of a file, and fetch the answers as a file."""
    path.write_text(f"weight,age\n{rows}")
    page.click("#ways >> text=CSV")
    page.set_input_files("#file", path)
    page.click("#ask-now")
    expect(page.locator("#answer-body table")).to_be_visible()
    with page.expect_download() as downloading:
        page.click("text=as CSV")
    with open(downloading.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_labels_are_asked_for_shown_and_saved(browser: Browser, tmp_path: Path) -> None:
    with show(ask_of_labels()) as shown, shown.opened(browser) as page:
        ask_by_fields(page, "3", "5")
        answer = page.locator("#answer-body")
        expect(answer.locator(".big")).to_have_text("fever, cough")
        expect(answer.locator(".margin")).to_contain_text("2 of 4 labels passed")
        expect(answer.locator(".bars b.won")).to_have_text(["fever", "cough"])
        expect(answer.locator(".bars output")).to_have_count(4)
        expect(answer).to_contain_text("A label is released from 50 of 100 votes on")
        expect(answer.locator(".sureness")).to_have_count(0)
        keep_screenshot(page, "ask-labels")
        saved = ask_by_file(page, tmp_path / "rows.csv", "0,0\n7,0\n9,9\n")
        expect(answer.locator("th")).to_contain_text(["row", "labels", "highest count"])
        expect(answer.locator("td[data-label]")).to_have_text(["no label", "fever", "fever, cough"])
        assert saved == [["labels"], [""], ["fever"], ["fever;cough"]]
        keep_screenshot(page, "answers-labels")
        page.click("nav a[href='#live']")
        first = page.locator("#releases .release").first
        expect(first.locator("h3")).to_have_text("no label · fever · fever, cough")
        expect(page.locator(".release .mark", has_text="✓ verified")).to_have_count(2)
        keep_screenshot(page, "live-labels")


def test_a_number_is_asked_for_shown_with_its_noise_and_saved(
    browser: Browser, tmp_path: Path
) -> None:
    with show(ask_of_number()) as shown, shown.opened(browser) as page:
        ask_by_fields(page, "120", "5")
        answer = page.locator("#answer-body")
        value = float(answer.locator("[data-value]").get_attribute("data-value") or "nan")
        error = float(answer.locator("[data-error]").get_attribute("data-error") or "nan")
        assert abs(value - 1200) <= 6 * error  # once in 500 million
        expect(answer.locator(".margin")).to_contain_text("by noise in 95 of 100 answers")
        expect(answer.locator(".scale")).to_contain_text("2,000")
        expect(answer).to_contain_text("The mean of 100 votes of 5 teachers, each from 0 to 2,000")
        keep_screenshot(page, "ask-number")
        saved = ask_by_file(page, tmp_path / "rows.csv", "0,0\n110,0\n")
        expect(answer.locator("th")).to_contain_text(["row", "dose in mg", "noise"])
        expect(answer.locator("td[data-label]")).to_have_count(2)
        assert saved[0] == ["value", "standard_error"]
        assert abs(float(saved[2][0]) - 1100) <= 6 * float(saved[2][1])
        keep_screenshot(page, "answers-number")
        page.click("nav a[href='#live']")
        expect(page.locator("#releases .release .scale")).to_have_count(3)
        expect(page.locator(".release .margin").first).to_contain_text("95 of 100 answers")
        keep_screenshot(page, "live-number")


def test_a_task_of_numbers_says_that_plans_are_of_classes(browser: Browser) -> None:
    with show(ask_of_number()) as shown, shown.opened(browser, viewport=PHONE) as page:
        page.click("nav a[href='#plan']")
        expect(page.locator("#plan-question")).to_contain_text("This task asks for a number")
        expect(page.locator("#plan-question")).to_contain_text("dppp calibrate --levels")
        expect(page.locator("#sliders input[name=classes]")).to_have_attribute(
            "aria-valuetext", "2"
        )
        expect(page.locator(".family[data-state=done]")).to_have_count(6)
