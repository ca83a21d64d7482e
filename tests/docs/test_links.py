"""Links of every page lead somewhere: to a file that is there, and to a heading that is in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```+).*?^\1", flags=re.DOTALL | re.MULTILINE)
MADE_BY_THE_SITE = {
    f"docs/reference/{name}.md" for name in ("command-line", "configuration", "http", "python")
}


def prose_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """As GitHub and MkDocs both make them: only where the two agree is a link safe."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE)
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", each).strip() for each in headings]
    return {
        re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", each.lower()))
        for each in plain
        if each.isascii() and "  " not in re.sub(r"[^\w\s-]", "", each)
    }


def wrong_in(page: Path) -> list[str]:
    wrong = []
    for target in LINK.findall(prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if file.is_relative_to(ROOT) and file.relative_to(ROOT).as_posix() in MADE_BY_THE_SITE:
            continue
        is_there = file.exists() and (not anchor or anchor in anchors_of(file))
        wrong += [] if is_there else [target]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    assert not wrong_in(page)


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing\n[a](#one-thing) [b](#another) [c](none.md)\n```\n# no heading\n```\n"
        "[d](#no-heading) [e](https://example.org/#x)\n"
    )
    assert wrong_in(page) == ["#another", "none.md", "#no-heading"]
