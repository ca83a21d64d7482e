"""What `mkdocs build` does beyond its own: pages from the code, pages from the root, no far assets.

MkDocs loads this file by its path (mkdocs.yml, hooks) and calls the functions below by their names.
"""

import json
import re
from pathlib import Path
from typing import Any

from docs.hooks import command_line, configuration, http_interface, notebooks, python_interface
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FROM_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages that lie beside docs/, because that is where readers of a repository look for them."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FAR = re.compile(r"https?://(?:unpkg\.com|api\.github\.com)/")
"""Where Material's script would fetch diagrams and a repository's stars from; we have neither."""


def on_config(config: Any) -> Any:
    """Notebooks are listed among the tutorials, before the pages that mkdocs.yml names there."""
    (tutorials,) = [each for each in config["nav"] if "Tutorials" in each]
    listed = []
    for path in _notebooks():
        name = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        listed.append({notebooks.title_of(notebooks.page_of(path), path): name})
    tutorials["Tutorials"] = [*listed, *tutorials["Tutorials"]]
    return config


def _notebooks() -> list[Path]:
    return sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


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
    for path in _notebooks():
        name = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        made[name] = notebooks.page_of(path)
    for name in FROM_THE_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8")
        made["index.md" if name == "README.md" else name] = text
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links as they are right in the repository, made right for the site."""
    here = page.file.src_uri
    depth = here.count("/") + 1
    is_from_root = here == "index.md" or here in FROM_THE_ROOT

    def moved(match: re.Match[str]) -> str:
        target = match[2].removeprefix("docs/") if is_from_root else match[2]
        file, *anchor = target.split("#", 1)
        up = "" if is_from_root else "../" * depth
        if file.endswith(".ipynb"):
            file = file.removesuffix(".ipynb") + ".md"
        elif file.removeprefix(up) in FROM_THE_ROOT and file.startswith(up):
            name = file.removeprefix(up)
            file = "../" * (depth - 1) + ("index.md" if name == "README.md" else name)
        return f"{match[1]}{'#'.join([file, *anchor])}{match[3]}"

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
