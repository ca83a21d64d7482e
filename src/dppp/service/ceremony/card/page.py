"""A card for a person: Markdown, and HTML that needs nothing outside it.

Every word is escaped, ours and others': a task's names may hold any printable character. In
Markdown a backslash takes a mark's meaning away; addresses, which some readers turn into links by
themselves, lose theirs by an entity.
"""

import html
import re

from dppp.service.ceremony.card.facts import Card, Section

_STYLE = (
    "body{font:14px/1.45 sans-serif;max-width:56em;margin:1.5em auto;padding:0 1em;color:#222;"
    "background:#fff}h1{font-size:1.4em}h2{font-size:1.05em;margin:1em 0 .2em}"
    "table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #ccc;padding:2px 8px;"
    "text-align:left;vertical-align:top;overflow-wrap:anywhere}th{width:22%;font-weight:600}"
    "ul{margin:.2em 0}@page{margin:10mm}@media print{body{font-size:8.5px;line-height:1.25;"
    "max-width:none;margin:0;padding:0}h1{font-size:1.5em;margin:0}h2{margin:.6em 0 .1em}"
    "td,th{padding:0 4px}}"
)
_TITLE = "Privacy card"


def to_markdown(card: Card) -> str:
    """Headings and tables."""
    parts = [f"# {_TITLE}: {escape_markdown(card.task.name)}"]
    for section in card.sections:
        parts += ["", f"## {escape_markdown(section.title)}", "", *_markdown_lines(section)]
    return "\n".join(parts) + "\n"


def to_html(card: Card) -> str:
    """One page, without scripts."""
    title = f"{_TITLE}: {html.escape(card.task.name)}"
    body = "".join(_html_section(section) for section in card.sections)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1>{body}</body></html>\n"
    )


def escape_markdown(text: str) -> str:
    """The text as it is, whatever it holds, in one line."""
    line = re.sub(r"\s+", " ", text)
    plain = re.sub(r"([\\`*_{}\[\]<>#|~!$^])", r"\\\1", line.replace("&", "&amp;"))
    return re.sub(r"(?i)(://|@|\bwww(?=\.))", lambda found: _as_entities(found[0]), plain)


def _as_entities(text: str) -> str:
    return "".join(f"&#{ord(letter)};" for letter in text)


def _markdown_lines(section: Section) -> list[str]:
    rows = [(escape_markdown(name), escape_markdown(value)) for name, value in section.lines]
    if not any(name for name, _ in rows):
        return ["| |", "|---|", *(f"| {value} |" for _, value in rows)]
    return ["| | |", "|---|---|", *(f"| **{name}** | {value} |" for name, value in rows)]


def _html_section(section: Section) -> str:
    rows = [(html.escape(name), html.escape(value)) for name, value in section.lines]
    head = f"<h2>{html.escape(section.title)}</h2>"
    if not any(name for name, _ in rows):
        return f"{head}<ul>{''.join(f'<li>{value}</li>' for _, value in rows)}</ul>"
    lines = "".join(f"<tr><th scope='row'>{name}</th><td>{value}</td></tr>" for name, value in rows)
    return f"{head}<table>{lines}</table>"
