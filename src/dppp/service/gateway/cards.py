"""The privacy card as the gateway hands it out: by the aggregator's own count of queries."""

from fastapi import Response

from dppp.protocol.task import Task
from dppp.service.ceremony.card.facts import make_card, short_lines
from dppp.service.ceremony.card.page import to_html, to_markdown
from dppp.service.ceremony.card.registry import to_registry_yaml
from dppp.service.gateway.schemas import CardLine

_FORMS = {
    "html": (to_html, "text/html; charset=utf-8"),
    "markdown": (to_markdown, "text/markdown; charset=utf-8"),
    "yaml": (to_registry_yaml, "application/yaml"),
}


CARD_KINDS: dict[str, dict[str, object]] = {
    kind.partition(";")[0]: {} for _, kind in _FORMS.values()
}
"""What may come, for the description of the gateway."""


def answer_card(task: Task, charged: int, form: str) -> Response:
    """The card in this form."""
    write, kind = _FORMS[form]
    return Response(write(make_card(task, charged=charged)), media_type=kind)


def card_in_short(task: Task) -> list[CardLine]:
    """What it says in a few lines, as an operator reads it before accepting the task."""
    return [CardLine(name=name, text=text) for name, text in short_lines(make_card(task))]
