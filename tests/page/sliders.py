"""Moving the plan's sliders as a person with a keyboard does."""

from playwright.sync_api import Locator, Page, expect


def set_sliders(page: Page, **words: str) -> None:
    """Move sliders one after another until they say so."""
    for name, word in words.items():
        _set_slider(page, name, word)


def _set_slider(page: Page, name: str, words: str) -> None:
    slider = page.locator(f"#sliders input[name={name}]")
    _press(slider, "Home", value=slider.get_attribute("min") or "")
    last = int(slider.get_attribute("max") or 0)
    while slider.get_attribute("aria-valuetext") != words:
        position = int(slider.input_value())
        assert position < last, f"{name} never says {words}"
        _press(slider, "ArrowRight", value=str(position + 1))


def _press(slider: Locator, key: str, *, value: str) -> None:
    """A key's effect comes after the press returns, and a page that is still on its way to another
    part takes the focus away: whoever does not look presses too often, or nowhere.
    """
    slider.press(key)
    for _ in range(10):
        try:
            expect(slider).to_have_value(value, timeout=2000)
            return
        except AssertionError:
            slider.press(key)
    raise AssertionError(f"{key} does not move the slider to {value}")
