"""Notebooks as pages: their words, their code, and what it printed when it was last run."""

import json
import re
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"^# (.+)$", flags=re.MULTILINE)


def title_of(page: str, path: Path) -> str:
    """The first heading, or the file's name."""
    found = _HEADING.search(page)
    return found[1] if found else path.stem


def page_of(path: Path) -> str:
    """A notebook as Markdown; pictures are in it, so that the page is one file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    if cell["cell_type"] != "code" or not source.strip():
        return []
    shown = [part for output in cell.get("outputs", ()) for part in _output(output)]
    return [_fenced("python", source), *shown]


def _output(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(_joined(data["image/png"]).split())
        return [f"![what the code above draws](data:image/png;base64,{picture})"]
    text = _joined(output.get("text", data.get("text/plain", ""))).rstrip()
    return [_fenced("text", text)] if text else []


def _fenced(language: str, text: str) -> str:
    """A block of code; its fence is longer than any in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
