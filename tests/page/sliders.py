"""Moving the plan's sliders as a person with a keyboard does."""

from playwright.sync_api import Page


def set_sliders(page: Page, **words: str) -> None:
    """Move sliders one after another until they say so."""
    for name, word in words.items():
        _set_slider(page, name, word)


def _set_slider(page: Page, name: str, words: str) -> None:
    slider = page.locator(f"#sliders input[name={name}]")
    slider.wait_for()  # what is not shown yet takes no focus, and the keys would go elsewhere
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(60):
        if slider.get_attribute("aria-valuetext") == words:
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"{name} never says {words}")
