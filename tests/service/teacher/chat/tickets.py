"""Made-up support tickets, and teachers' configurations over them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.service.teacher.chat.chat_server import TEMPLATE

from dppp.protocol.columns import Column, ColumnType
from dppp.protocol.inputs import MixedRows
from dppp.protocol.votes import Predict
from dppp.service.process.config import ChatModel, Section, read_config
from dppp.service.teacher.models.chat.voters import make_voters

CLASSES = ("Billing", "Network")
COLUMNS = (
    Column(name="ticket", type=ColumnType(kind="text")),
    Column(name="seats", type=ColumnType(kind="number", may_be_missing=True)),
)
WORDS = {"Billing": "invoice refund payment card", "Network": "router cable wifi ping"}
KEY = b"a teacher's own shard key, 32 by"
VOTES = 4

Record = tuple[str, str, str]
"""Ticket, seats, class."""


def tickets(count: int = 40, seed: int = 0) -> list[Record]:
    random = np.random.default_rng(seed)
    found = []
    for place in range(count):
        label = CLASSES[place % 2]
        words = [*random.choice(WORDS[label].split(), 3), *random.choice(["please", "my", "it"], 4)]
        found.append((f"{' '.join(words)} case{place}", str(place), label))
    return found


def write_tickets(path: Path, records: Sequence[Record]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "seats", "class"])
        writer.writerows(records)
    return path


class _Config(Section):
    model: ChatModel


def chat_model(folder: Path, url: str, records: Sequence[Record], **more: Any) -> ChatModel:
    """As it is read from a configuration in this folder, with a key that is known."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tickets(folder / "records.csv", records)
    (folder / "shards.key").write_bytes(KEY)
    (folder / "prompt.txt").write_text(TEMPLATE, encoding="utf-8")
    given = {
        "kind": "chat",
        "url": url,
        "model": "tiny",
        "records": "records.csv",
        "label": "class",
        "template": "prompt.txt",
        "examples": 3,
        "backoff_seconds": 0.0,
        **more,
    }
    lines = [f"{name} = {_toml(value)}" for name, value in given.items()]
    (folder / "model.toml").write_text("[model]\n" + "\n".join(lines), encoding="utf-8")
    return read_config(folder / "model.toml", _Config).model


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def voters_of(model: ChatModel, votes: int = VOTES, unit: str = "record") -> tuple[Predict, ...]:
    return make_voters(model, class_names=CLASSES, columns=COLUMNS, votes=votes, unit=unit)


def asked(*texts: str) -> MixedRows:
    return MixedRows(COLUMNS, [list(texts), [None] * len(texts)])
