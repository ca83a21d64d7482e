"""What `mkdocs build` does beyond its own: pages from the code, pages from the root, no far assets.

MkDocs loads this file by its path (mkdocs.yml, hooks) and calls the functions below by their names.
"""

import json
import re
from pathlib import Path
from typing import Any

from docs.hooks import command_line, configuration, http_interface, python_interface
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FROM_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages that lie beside docs/, because that is where readers of a repository look for them."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FAR = re.compile(r"https?://(?:unpkg\.com|api\.github\.com)/")
"""Where Material's script would fetch diagrams and a repository's stars from; we have neither."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made here, and those of the root."""
    document = http_interface.description()
    made = {
        "reference/command-line.md": command_line.page(),
        "reference/configuration.md": configuration.page(),
        "reference/http.md": http_interface.page(document),
        "reference/openapi.json": json.dumps(document, indent=1, sort_keys=True),
        "reference/python.md": python_interface.page(),
    }
    for name in FROM_THE_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8")
        made["index.md" if name == "README.md" else name] = text
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links as they are right in the repository, made right for the site."""
    folder = Path(page.file.src_uri).parent
    is_from_root = page.file.src_uri == "index.md" or page.file.src_uri in FROM_THE_ROOT
    depth = len(folder.parts)

    def moved(match: re.Match[str]) -> str:
        target = match[2]
        if is_from_root:
            target = target.removeprefix("docs/")
        for name in FROM_THE_ROOT:
            there = "../" * (depth + 1) + name
            if target.split("#")[0] == there:
                target = target.removeprefix("../")
        if is_from_root or target != match[2]:
            target = re.sub(r"^((?:\.\./)*)README\.md", r"\1index.md", target)
        return f"{match[1]}{target}{match[3]}"

    return _LINK.sub(moved, markdown)


def on_post_build(*, config: Any) -> None:
    """Leave nothing in the site's own files that would be fetched from another host."""
    assets = Path(config["site_dir"]) / "assets"
    for path in assets.rglob("*.map"):
        path.unlink()
    for path in assets.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        if _FAR.search(text):
            path.write_text(_FAR.sub("/not-fetched/", text), encoding="utf-8")
