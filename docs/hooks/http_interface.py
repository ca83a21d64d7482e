"""The page of the HTTP interface, from the gateway's own OpenAPI description."""

import json
from typing import Any

from dppp.federation import create_federation
from dppp.privacy.calibration import calibrate
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.service.gateway.embedded import embed_gateway

_INTRODUCTION = """# HTTP

What a querier's program speaks to an aggregator's gateway. Everything under `/api` needs a
querier's token, as `Authorization: Bearer TOKEN`. `dppp query` does all of this, seals the rows and
checks the receipt; a program that posts rows in the clear lets the aggregator read them. What went
wrong is an object with `detail` and mostly `hint`. The gateway serves the same description at
`/openapi.json`, and this page is made from it: [openapi.json](openapi.json).
"""


def description() -> dict[str, Any]:
    """The OpenAPI document of a gateway over a federation that is made for it."""
    classes = ["well", "ill"]
    parties = create_federation(
        name="triage",
        class_names=classes,
        features=["temperature"],
        certificate=calibrate("polya", epsilon=8, delta=1e-5, teachers=4, queries=10, classes=2),
        models=[lambda rows: [0] * len(rows)] * 4,
    )
    app = embed_gateway(parties, store=MemoryBatchStore(), queriers=()).app
    found: dict[str, Any] = app.openapi()
    return found


def page(document: dict[str, Any]) -> str:
    """Markdown, one section per path and verb, then the objects."""
    parts = [_INTRODUCTION]
    for path, verbs in document["paths"].items():
        for verb, what in verbs.items():
            parts += [f"## {verb.upper()} {path}", "", what.get("description", ""), ""]
            parts += [*_parameters(what), *_body(what), *_answers(what)]
    parts += ["## Objects", ""]
    for name, schema in document["components"]["schemas"].items():
        parts += _object(name, schema)
    return "\n".join(parts)


def _parameters(what: dict[str, Any]) -> list[str]:
    rows = [
        f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | "
        f"{_default(each['schema'], is_required=each.get('required', False))} |"
        for each in what.get("parameters", ())
    ]
    return ["| parameter | in | value | default |", "|---|---|---|---|", *rows, ""] if rows else []


def _body(what: dict[str, Any]) -> list[str]:
    content = what.get("requestBody", {}).get("content", {})
    return [f"Body: {kind}, {_type(each['schema'])}.\n" for kind, each in content.items()]


def _answers(what: dict[str, Any]) -> list[str]:
    rows = []
    for code, each in what["responses"].items():
        kinds = [
            f"{kind}{': ' + _type(body['schema']) if body.get('schema') else ''}"
            for kind, body in each.get("content", {}).items()
        ]
        rows.append(f"| {code} | {each['description']} | {', '.join(kinds)} |")
    return ["| answer | | content |", "|---|---|---|", *rows, ""]


def _object(name: str, schema: dict[str, Any]) -> list[str]:
    needed = set(schema.get("required", ()))
    rows = [
        f"| `{key}` | {_type(each)} | {_default(each, is_required=key in needed)} | "
        f"{' '.join(each.get('description', '').split())} |"
        for key, each in schema.get("properties", {}).items()
    ]
    table = ["| field | value | default | |", "|---|---|---|---|", *rows, ""] if rows else []
    return [f"### {name}", "", schema.get("description", ""), "", *table]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(_type(each) for each in schema.get("anyOf") or schema["oneOf"])
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _default(schema: dict[str, Any], *, is_required: bool) -> str:
    if is_required:
        return "*required*"
    return f"`{json.dumps(schema['default'])}`" if schema.get("default") is not None else ""
