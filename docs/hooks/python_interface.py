"""The page of the Python interface: every public name, its types and its docstring."""

import ast
import importlib
import inspect
import re
import textwrap
from typing import Any

import dppp

_INTRODUCTION = """# Python

Everything here comes from `from dppp import …` and has an example that a test runs. Below a class
are its fields, properties and methods. This page is made from the docstrings.
"""
_GROUPS = (
    ("Estimators", ("PrivateVotingClassifier", "PrivateVotingRegressor", "StudentClassifier")),
    (
        "Noise and what it costs",
        (
            "calibrate",
            "account",
            "Spending",
            "Certificate",
            "delta_at",
            "Trust",
            "Binomial",
            "DiscreteGaussian",
            "Polya",
            "Skellam",
        ),
    ),
    (
        "The protocol",
        (
            "create_federation",
            "Federation",
            "in_process",
            "Task",
            "Teacher",
            "Aggregator",
            "verify_transcript",
        ),
    ),
)
_SECTION = re.compile(r"^(\w+)\n-{3,}$", flags=re.MULTILINE)
_PARAMETER = re.compile(r"^(\w[\w, ]*) : (.*)$")


def page() -> str:
    """Markdown: the groups above, whatever else is public, and the exceptions."""
    names = [name for name in dppp.__all__ if name != "__version__"]
    errors = [name for name in names if dppp._HOMES[name] == "dppp.errors"]
    grouped = {name for _, group in _GROUPS for name in group} | set(errors)
    groups = (*_GROUPS, ("Others", tuple(name for name in names if name not in grouped)))
    parts = [_INTRODUCTION]
    for title, group in groups:
        present = [name for name in group if name in names]
        parts += [f"## {title}", ""] if present else []
        parts += [_entry(name) for name in present]
    return "\n".join([*parts, _exceptions(errors)])


def _entry(name: str) -> str:
    found = getattr(dppp, name)
    home = importlib.import_module(found.__module__).__name__
    parts = [f"### {name}", "", _code(name, found), "", f"In `{home}`.", "", _prose(found), ""]
    if inspect.isclass(found):
        parts += _members(name, found)
    return "\n".join(parts)


def _members(name: str, found: type) -> list[str]:
    """What a class adds to its signature: properties and methods of our own."""
    parts = []
    for key in sorted(set(dir(found))):
        if key.startswith("_") or not _is_ours(found, key):
            continue
        member = inspect.getattr_static(found, key)
        member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            parts += [f"#### {name}.{key}", "", f"*A property.* {_prose(member)}", ""]
        elif inspect.isfunction(member):
            parts += [f"#### {name}.{key}()", "", _code(key, member), "", _prose(member), ""]
    return parts


def _is_ours(found: type, key: str) -> bool:
    """Whether a class of dppp defines it; what comes from scikit-learn is documented there."""
    owner = next((each for each in found.__mro__ if key in vars(each)), None)
    return owner is not None and owner.__module__.startswith("dppp")


def _code(name: str, found: Any) -> str:
    called = found.__init__ if inspect.isclass(found) else found
    written = _written_types(called)
    signature = inspect.signature(called)
    lines, is_keyword = [], False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            lines.append("    *,")
            is_keyword = True
        lines.append(f"    {_parameter(each, written)},")
    returned = written.get("return") or _annotation(signature.return_annotation)
    body = "\n" + "\n".join(lines) + "\n" if lines else ""
    return f"```python\n{name}({body}){'' if inspect.isclass(found) else f' -> {returned}'}\n```"


def _written_types(called: Any) -> dict[str, str]:
    """Types as the source has them; a data class's `__init__` has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (OSError, TypeError):
        return {}
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found = {each.arg: ast.unparse(each.annotation) for each in every if each.annotation}
    return found | ({"return": ast.unparse(function.returns)} if function.returns else {})


def _parameter(each: inspect.Parameter, written: dict[str, str]) -> str:
    stars: dict[object, str] = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}
    prefix = stars.get(each.kind, "")
    said = f"{prefix}{each.name}: {written.get(each.name) or _annotation(each.annotation)}"
    if each.default is each.empty:
        return said
    shown = repr(each.default)
    is_plain = not re.search(r" at 0x|<factory>|<object", shown)
    return f"{said} = {shown if is_plain else '...'}"


def _annotation(found: Any) -> str:
    if found is inspect.Signature.empty or found is None:
        return "None"
    text = found if isinstance(found, str) else inspect.formatannotation(found)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)


def _prose(found: Any) -> str:
    """A docstring as Markdown: sections in bold, parameters as a list, examples as code."""
    text = inspect.getdoc(found) or ""
    text = _SECTION.sub(r"**\1**\n", text)
    lines: list[str] = []
    is_example = False
    for line in text.splitlines():
        begins = line.startswith(">>>")
        if begins and not is_example:
            lines += ["", "```python"]
            is_example = True
        elif is_example and not line.strip():
            lines.append("```")
            is_example = False
        parameter = None if is_example else _PARAMETER.match(line)
        lines.append(f"- `{parameter[1]}`: {parameter[2]}" if parameter else line)
    return "\n".join([*lines, "```"] if is_example else lines)


def _exceptions(names: list[str]) -> str:
    parts = [
        "## Exceptions and warnings",
        "",
        "Each has a `message`, and most have a `hint` that says what to do.",
        "",
        "| name | kind | when |",
        "|---|---|---|",
    ]
    for name in sorted(names):
        found = getattr(dppp, name)
        first = (inspect.getdoc(found) or "").split("\n\n")[0]
        kind = found.__bases__[0].__name__
        parts.append(f"| `{name}` | `{kind}` | {' '.join(first.split())} |")
    return "\n".join([*parts, ""])
