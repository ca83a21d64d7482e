"""Ten digits as a hand would draw them on the pad, in parts of its width and height."""

import math
from collections.abc import Sequence

from playwright.sync_api import Page

Stroke = Sequence[tuple[float, float]]


def _arc(  # noqa: PLR0917 - an ellipse has as many numbers as it has
    x: float, y: float, across: float, down: float, begin: float, end: float
) -> Stroke:
    """Part of an ellipse, in degrees clockwise from the right."""
    steps = [math.radians(begin + (end - begin) * step / 16) for step in range(17)]
    return [(x + across * math.cos(each), y + down * math.sin(each)) for each in steps]


DRAWN: dict[str, Sequence[Stroke]] = {
    "0": [_arc(0.5, 0.5, 0.2, 0.32, -90, 270)],
    "1": [[(0.38, 0.35), (0.52, 0.2), (0.52, 0.8)]],
    "2": [[*_arc(0.5, 0.36, 0.18, 0.17, 190, 380), (0.32, 0.8), (0.7, 0.8)]],
    "3": [[*_arc(0.48, 0.35, 0.17, 0.15, 200, 450), *_arc(0.48, 0.65, 0.2, 0.16, -80, 160)]],
    "4": [[(0.5, 0.18), (0.3, 0.58), (0.72, 0.58)], [(0.58, 0.38), (0.56, 0.85)]],
    "5": [[(0.68, 0.2), (0.36, 0.2), (0.34, 0.45), *_arc(0.49, 0.62, 0.19, 0.18, -110, 150)]],
    "6": [[(0.6, 0.18), (0.4, 0.42), *_arc(0.5, 0.64, 0.17, 0.17, 190, 550)]],
    "7": [[(0.3, 0.2), (0.7, 0.2), (0.45, 0.82)], [(0.36, 0.52), (0.66, 0.52)]],
    "8": [_arc(0.5, 0.34, 0.14, 0.15, 90, 450), _arc(0.5, 0.66, 0.17, 0.17, -90, 270)],
    "9": [[*_arc(0.5, 0.36, 0.16, 0.16, 0, 360), (0.66, 0.5), (0.6, 0.68), (0.45, 0.82)]],
}


def draw(page: Page, digit: str) -> None:
    """With the mouse, on the pad."""
    pad = page.locator("#pad")
    pad.wait_for()  # a link to its view was clicked, which is shown a moment later
    box = pad.bounding_box()
    assert box is not None
    for stroke in DRAWN[digit]:
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point, steps=2)
        page.mouse.up()
