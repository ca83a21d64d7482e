"""The documentation builds as a site without a warning, and the site asks no other host."""

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.left_out import need_module

ROOT = Path(__file__).parents[2]
FETCHED = {
    "link": "href",
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "form": "action",
    "object": "data",
    "embed": "src",
    "use": "href",
    "video": "src",
}
"""Elements whose address a browser fetches by itself, or sends to."""
IN_STYLE = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]?((?:https?:)?//\S+)")
IN_SCRIPT = re.compile(r"[\"'`]((?:https?:)?//[\w.-]+\.[a-z]+[^\"'`]*)[\"'`]")
NAMES_ONLY = ("http://www.w3.org/",)
"""Names of XML's vocabularies, which nobody fetches."""


class Addresses(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name == FETCHED.get(tag)]
        self.found += [value or "" for name, value in attrs if name == "srcset"]


def far_addresses(path: Path) -> list[str]:
    """What a browser that shows this file would fetch from another host."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        reader = Addresses()
        reader.feed(text)
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.DOTALL)
        styles = re.findall(r"<style[^>]*>(.*?)</style>", text, flags=re.DOTALL)
        found = [each for each in reader.found if re.match(r"(https?:)?//", each)]
        found += [each for script in scripts for each in IN_SCRIPT.findall(script)]
        text = "\n".join(styles)
    else:
        found = IN_SCRIPT.findall(text) if path.suffix == ".js" else []
    found += [first or second for first, second in IN_STYLE.findall(text)]
    return [each for each in found if not each.startswith(NAMES_ONLY)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_module("material", extra="docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_asks_no_other_host(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".js", ".css", ".svg")]
    assert len(files) > 40
    found = {path.relative_to(site).as_posix(): far_addresses(path) for path in files}
    assert not {name: far for name, far in found.items() if far}


def test_the_site_has_its_four_ways_in(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    tabs = re.search(r'<nav class="md-tabs".*?</nav>', first, flags=re.DOTALL)
    assert tabs is not None
    for way in ("Tutorials", "How-to", "Explanation", "Reference"):
        assert re.search(rf">\s*{way}\s*<", tabs[0])


def test_every_page_is_reached_from_the_first(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    reached = set(re.findall(r'href="([^"#]+\.html)', first)) | {"index.html", "404.html"}
    assert not pages - reached


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", '<script src="https://unpkg.com/x"></script>'),
        ("b.html", '<link rel="stylesheet" href="//fonts.example.org/css">'),
        ("c.html", "<style>@import 'https://example.org/a.css'</style>"),
        ("d.css", "a { background: url(https://example.org/a.png) }"),
        ("e.js", 'fetch("https://api.example.org/repos")'),
    ],
)
def test_an_address_of_another_host_is_found(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert far_addresses(tmp_path / name)


def test_a_link_that_a_reader_may_follow_is_no_such_address(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://pre-commit.com">elsewhere</a>')
    assert not far_addresses(tmp_path / "a.html")
