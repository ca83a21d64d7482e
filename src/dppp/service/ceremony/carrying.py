"""A configuration taken along into a new home: what is the operator's own stays as it was.

Ledger, cap, model, broker, gateway and queriers are those of the old home; paths that were seen
from there are written in full. The federation, a teacher's epoch secrets and an aggregator's store
are new: the latter two belong to one task. Comments are not taken along.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dppp.errors import InputError
from dppp.service.ceremony.configurations import CONFIGURATIONS
from dppp.service.ceremony.federation_file import FederationFile
from dppp.service.ceremony.home import Home
from dppp.service.ceremony.identity import Role
from dppp.service.process.config import EPOCH_SECRETS
from dppp.service.stores.new_files import read_file

_PATHS = {
    "ledger": ("path", "head"),
    "model": ("path",),
    "gateway": ("tls_certificate", "tls_key"),
}
_SECRETS = {"ledger": ("url",), "store": ("url",)}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def carried_configuration(old: Home, new: Home, federation: FederationFile) -> str | None:
    """The old configuration under the new federation; a broker's is made anew."""
    role = new.request().role
    if role is Role.BROKER:
        return None
    path = old.folder / CONFIGURATIONS[role]
    try:
        tables = tomllib.loads(read_file(path).decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}", hint="correct it") from error
    _write_paths_in_full(tables, old.folder.absolute())
    tables |= {
        "home": ".",
        "federation": "federation.json",
        "federation_hash": federation.hash.hex(),
    }
    if role is Role.TEACHER:
        tables["masks"] = {"secrets": EPOCH_SECRETS}
    elif "path" in tables.get("store", {}):
        tables["store"] = {"path": "batches.db"}
    return f"# Taken along from {path.absolute()} by a change of members.\n{_document(tables)}"


def _write_paths_in_full(tables: dict[str, Any], folder: Path) -> None:
    for section, names in _PATHS.items():
        for name in names:
            if name in tables.get(section, {}):
                tables[section][name] = str(folder / tables[section][name])
    for section, names in _SECRETS.items():
        for name in names:
            kind, _, place = str(tables.get(section, {}).get(name, "")).partition(":")
            if kind == "file":
                tables[section][name] = f"file:{folder / place}"


def _document(tables: Mapping[str, Any]) -> str:
    plain = [f"{_key(k)} = {_value(v)}" for k, v in tables.items() if not isinstance(v, Mapping)]
    for name, table in tables.items():
        if isinstance(table, Mapping):
            plain += ["", f"[{_key(name)}]"]
            plain += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(plain) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(of)}" for k, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
