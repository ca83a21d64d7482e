"""For everybody: keyboard only, narrow phones, light and dark with contrast, names for all."""

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.page.asking import ask_by_drawing
from tests.page.browsers import PHONE, keep_screenshot
from tests.page.federations import Shown

CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      const parts = numbers(colour);
      if (parts.length === 3 || parts[3] === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const isLeftOut = element.matches(":disabled, noscript, .unseen, .skip");
    if (!own || !element.checkVisibility() || isLeftOut) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([element.textContent.trim().slice(0, 40), ratio]);
  }
  return found;
}"""


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until this has the focus, as somebody without a mouse does."""
    for _ in range(120):
        if page.evaluate("(wanted) => document.activeElement?.matches(wanted)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never gets to {selector}")


def test_a_digit_can_be_drawn_and_asked_without_a_mouse(digits_page: Page) -> None:
    tab_to(digits_page, "nav a[href='#ask']")
    assert digits_page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    digits_page.keyboard.press("Enter")
    tab_to(digits_page, "#pad")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Space", *["ArrowDown"] * 8, "Space"):
        digits_page.keyboard.press(key)
    expect(digits_page.locator("#pad-status")).to_have_text("pen up")
    tab_to(digits_page, "#ask-now")
    digits_page.keyboard.press("Enter")
    expect(digits_page.locator("#answer")).to_be_visible()
    tab_to(digits_page, "nav a[href='#plan']")
    digits_page.keyboard.press("Enter")
    tab_to(digits_page, "#sliders input[name=epsilon]")
    before = digits_page.locator("#sliders input[name=epsilon]").get_attribute("aria-valuetext")
    digits_page.keyboard.press("ArrowLeft")
    after = digits_page.locator("#sliders input[name=epsilon]").get_attribute("aria-valuetext")
    assert before != after


def test_a_phone_never_scrolls_sideways(shown: Shown, browser: Browser) -> None:
    with shown.opened(browser, viewport=PHONE, has_touch=True) as page:
        ask_by_drawing(page, "6")
        for view in ("ask", "live", "plan"):
            page.click(f"nav a[href='#{view}']")
            page.wait_for_timeout(100)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], view
            keep_screenshot(page, f"phone-{view}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_enough(shown: Shown, browser: Browser, scheme: str) -> None:
    with shown.opened(browser, color_scheme=scheme) as page:
        ask_by_drawing(page, "8")
        for view in ("ask", "live", "plan"):
            page.click(f"nav a[href='#{view}']")
            page.wait_for_timeout(300)
            pale = [each for each in page.evaluate(CONTRASTS) if each[1] < 4.5]
            assert pale == [], view
            keep_screenshot(page, f"{scheme}-{view}")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 22, 27)") == (scheme == "dark")


def test_whatever_can_be_used_has_a_name_and_news_are_announced(digits_page: Page) -> None:
    unnamed = digits_page.evaluate("""() =>
      [...document.querySelectorAll("input, button, canvas, a")].filter((element) => {
        const hasText = element.textContent.trim() || element.getAttribute("aria-label");
        return !element.labels?.length && !hasText;
      }).map((element) => element.outerHTML)""")
    assert unnamed == []
    for place in ("connection", "flight-status", "ask-status", "plan-best"):
        assert digits_page.locator(f"#{place}").get_attribute("role") == "status"


def test_who_wants_less_motion_gets_none(shown: Shown, browser: Browser) -> None:
    with shown.opened(browser, reduced_motion="reduce") as page:
        page.wait_for_selector("#budget-bar span", state="attached")
        moving = page.evaluate(
            "getComputedStyle(document.querySelector('#budget-bar span')).transitionDuration"
        )
        assert moving == "0s"
