"""The tables of docs/evidence.md, as cells."""

from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "evidence.md"


def table_with_columns(*columns: str) -> list[list[str]]:
    """The rows of the only table whose header is these columns."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    starts = [place for place, line in enumerate(lines) if cells(line) == list(columns)]
    (start,) = starts
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
