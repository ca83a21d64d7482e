"""The page of configuration keys, with types and defaults, from the models that read the files."""

import inspect
import json
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dppp.service.process.config import AggregatorConfig, TeacherConfig

_INTRODUCTION = """# Configuration

`dppp setup` writes `teacher.toml` and `aggregator.toml`; [operations](../operations.md) walks
through both. Paths are relative to the file. A key that is not on this page is refused, and so is a
value of another type. A secret is never in the file: write `"env:NAME"` or `"file:PATH"` for where
it is. This page is made from the classes that read the files.
"""
_WORDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    SecretStr: "secret",
    dict: "table",
}
_LIMITS = (
    ("ge", "at least {}"),
    ("gt", "above {}"),
    ("le", "at most {}"),
    ("lt", "below {}"),
    ("min_length", "length at least {}"),
    ("max_length", "length at most {}"),
)


def page() -> str:
    """Markdown, one section per table of each file."""
    parts = [_INTRODUCTION]
    for file, model in (("teacher.toml", TeacherConfig), ("aggregator.toml", AggregatorConfig)):
        parts += [f"## {file}", "", *_sections(file, "", model)]
    return "\n".join(parts)


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of one table, as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _sections(file: str, table: str, model: type[BaseModel]) -> list[str]:
    rows, below = [], []
    for name, field in model.model_fields.items():
        key = field.alias or name
        path = f"{table}.{key}" if table else key
        models = _models_in(field.annotation)
        if not models:
            rows.append(f"| `{key}` | {_type(field)} | {_default(field)} |")
        for each in models:
            below += _table(file, path, each, field, many=len(models) > 1)
    found = ["| key | value | default |", "|---|---|---|", *rows, ""] if rows else []
    return [*found, *below]


def _table(
    file: str, path: str, model: type[BaseModel], field: FieldInfo, *, many: bool
) -> list[str]:
    is_list = get_origin(field.annotation) is tuple
    bracket = f"[[{path}]]" if is_list else f"[{path}]"
    kind = f', kind = "{_kind(model)}"' if many else ""
    needed = "" if not field.is_required() else " Required."
    said = inspect.cleandoc(model.__doc__ or "")
    title = f"### {file}: `{bracket}`{kind}"
    return [title, "", said + needed, "", *_sections(file, path, model)]


def _kind(model: type[BaseModel]) -> str:
    (kind,) = get_args(model.model_fields["kind"].annotation)
    return str(kind)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The tables that a value may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models_in(each)]


def _type(field: FieldInfo) -> str:
    said = _words(field.annotation)
    limits = [
        words.format(f"{getattr(each, name):,}")
        for each in field.metadata
        for name, words in _LIMITS
        if getattr(each, name, None) is not None
    ]
    return ", ".join([said, *limits])


def _words(annotation: Any) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(inside[0])
    if origin is Literal:
        return " or ".join(f'`"{each}"`' for each in inside)
    if origin in (Union, UnionType):
        return " or ".join(_words(each) for each in inside if each is not type(None))
    if origin is tuple:
        return f"list of {_words(inside[0])}"
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    return _WORDS[origin or annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    default = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if default is None or default is PydanticUndefined:
        return ""
    return f"`{json.dumps(default)}`"
