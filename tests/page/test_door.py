"""How one gets in, and what cannot get in: tokens and the content security policy."""

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.page.browsers import Complaints
from tests.page.federations import Shown


def test_the_page_loads_without_a_complaint_and_hides_the_token(digits_page: Page) -> None:
    expect(digits_page.locator("#task-name")).to_have_text("Digits")
    expect(digits_page.locator("#teachers li")).to_have_count(7)
    assert "token" not in digits_page.url
    assert digits_page.evaluate("localStorage.length + document.cookie.length") == 0


def test_without_a_token_the_page_asks_for_one_and_a_wrong_one_is_refused(
    shown: Shown, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(shown.address)
    expect(page.locator("#views")).to_be_hidden()
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#door-message")).to_contain_text("does not know this token")
    expect(page.locator("#door-message")).not_to_contain_text("header")
    expect(page.locator("#about")).to_contain_text("organisations that may not share their data")
    expect(page.locator("#about")).to_be_in_viewport()
    page.fill("#token", shown.token)
    page.click("#door button")
    expect(page.locator("#live")).to_be_visible()
    page.reload()
    expect(page.locator("#live")).to_be_visible()  # this tab remembers
    page.close()


def test_no_script_runs_but_the_pages_own(shown: Shown, browser: Browser) -> None:
    page = browser.new_page()
    complaints = Complaints()
    complaints.watch(page)
    page.goto(shown.url)
    page.wait_for_selector("#live:not([hidden])")
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.injected = true";
      document.body.append(script);
      const add = (html) => document.body.insertAdjacentHTML("beforeend", html);
      add("<img src='data:,' onerror='window.injected = true'>");
      add("<p id='styled' style='color: rgb(1, 2, 3)'>x</p>");
    }""")
    page.wait_for_timeout(200)
    assert page.evaluate("window.injected") is None
    assert (
        page.evaluate("getComputedStyle(document.getElementById('styled')).color") != "rgb(1, 2, 3)"
    )
    with pytest.raises(Exception, match="fetch"):
        page.evaluate("fetch('http://127.0.0.1:9/')")
    assert any("Content Security Policy" in each for each in complaints)
    page.close()


def test_every_answer_has_the_policy_and_files_outside_the_page_are_not_served(
    shown: Shown,
) -> None:
    with httpx.Client(base_url=shown.address) as client:
        for path in ("/", "/page/main.js", "/page/page.css", "/api/task", "/health"):
            headers = client.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
        for path in ("/page/../gateway.py", "/page/%2e%2e%2fgateway.py", "/page/nothing.js"):
            assert client.get(path).status_code == 404


def test_nothing_on_the_page_comes_from_elsewhere(shown: Shown, browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(shown.url)
    page.wait_for_selector("#live:not([hidden])")
    assert asked
    assert all(url.startswith((shown.address, "data:")) for url in asked)
    page.close()
