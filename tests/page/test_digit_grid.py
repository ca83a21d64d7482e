"""A drawing becomes what the models learned from: scikit-learn's way of making digits."""

from collections import Counter

import numpy as np
from playwright.sync_api import Page
from tests.page.drawn import DRAWN
from tests.page.federations import learned

GRID = """async (strokes) => {
  const { gridOf } = await import("/page/digit_grid.js");
  return gridOf(strokes.map((stroke) => stroke.map(([x, y]) => ({ x, y }))), 8);
}"""


def grid_of(page: Page, digit: str) -> list[int]:
    return list(page.evaluate(GRID, DRAWN[digit]))


def test_drawn_digits_are_what_most_models_take_them_for(digits_page: Page) -> None:
    rows = np.array([grid_of(digits_page, digit) for digit in DRAWN], dtype=float)
    votes = np.stack([model.predict(rows) for model in learned()[0]], axis=1)
    winners = [Counter(row.tolist()).most_common(1)[0][0] for row in votes]
    right = sum(winner == digit for winner, digit in zip(winners, DRAWN, strict=True))
    assert right >= 8, dict(zip(DRAWN, winners, strict=True))


def test_a_drawing_fills_the_height_with_as_much_ink_as_the_data_have(digits_page: Page) -> None:
    for digit in DRAWN:
        grid = np.array(grid_of(digits_page, digit)).reshape(8, 8)
        assert grid.min() >= 0
        assert grid.max() <= 16
        assert 220 <= grid.sum() <= 400, digit
        assert grid[0].sum() > 0, digit
        assert grid[7].sum() > 0, digit


def test_where_and_how_large_it_is_drawn_does_not_matter(digits_page: Page) -> None:
    small = [[(0.1 + 0.3 * x, 0.6 + 0.3 * y) for x, y in stroke] for stroke in DRAWN["3"]]
    assert digits_page.evaluate(GRID, small) == grid_of(digits_page, "3")


def test_an_empty_pad_is_an_empty_grid_and_a_dot_is_ink(digits_page: Page) -> None:
    assert sum(digits_page.evaluate(GRID, [])) == 0
    assert sum(digits_page.evaluate(GRID, [[(0.5, 0.5)]])) > 0


def test_only_square_images_are_drawn(digits_page: Page) -> None:
    size = """async (features) => (await import("/page/digit_grid.js")).gridSize(features)"""
    square = [f"pixel_{row}_{column}" for row in range(4) for column in range(4)]
    assert digits_page.evaluate(size, square) == 4
    assert digits_page.evaluate(size, ["first", "second"]) is None
    assert digits_page.evaluate(size, square[:-1]) is None
