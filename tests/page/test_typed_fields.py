"""A task of mixed columns on the page: a field by type, a choice of a category's values."""

from playwright.sync_api import Browser, expect
from tests.mixed_federation import CLASSES, SEEN, mixed_federation
from tests.page.federations import show


def test_a_row_of_mixed_columns_is_filled_in_and_asked(browser: Browser) -> None:
    with show(mixed_federation()) as shown, shown.opened(browser) as page:
        page.click("nav a[href='#ask']")
        page.click("#ways >> text=Fields")
        choices = page.locator("#fields select[name=ward] option").all_inner_texts()
        assert choices == ["choose", "east", "west", "süd"]
        assert page.locator("#fields input[name=age]").get_attribute("type") == "number"
        assert page.locator("#fields input[name=note]").get_attribute("type") == "text"
        expect(page.locator("#ask-now")).to_be_disabled()
        page.select_option("#fields select[name=ward]", "süd")
        expect(page.locator("#ask-now")).to_be_enabled()
        page.fill("#fields input[name=note]", "chest pain")
        page.click("#ask-now")
        expect(page.locator("#answer")).to_be_visible()
        label = page.locator("#answer-body [data-label]").get_attribute("data-label")
        assert label in CLASSES
        row = SEEN[0].iloc[0]
        assert (row["ward"], row["note"]) == ("süd", "chest pain")
        assert row["age"] != row["age"], "it was left empty, so it is missing"
