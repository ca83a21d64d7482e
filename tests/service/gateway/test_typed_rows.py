"""Rows of typed columns through a gateway: in the clear, and sealed by `dppp query`."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.mixed_federation import CLASSES, SEEN, mixed_federation
from tests.service.gateway.test_application import ALICE, Served, ask, serve_embedded

ROWS: list[Any] = [[47.5, "süd", "chest pain"], [None, "east", None], [30, "west", "fine, thanks"]]


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_embedded(parties=mixed_federation()) as served:
        yield served


def test_the_terms_say_what_every_feature_is(served: Served) -> None:
    columns = served.client().get("/api/task").json()["columns"]
    assert [each["kind"] for each in columns] == ["number", "category", "text"]
    assert columns[1]["values"] == ["east", "west", "süd"]
    assert [each["may_be_missing"] for each in columns] == [True, False, True]


def test_rows_by_type_reach_every_model_as_a_data_frame(served: Served) -> None:
    client = served.client()
    state = ask(client, ROWS)
    assert (state["stage"], state["charged"]) == ("released", 3)
    [shape] = {(*each.columns, len(each)) for each in SEEN}
    assert shape == ("age", "ward", "note", 3)
    assert all(each["age"].isna().tolist() == [False, True, False] for each in SEEN)
    records = [dict(zip(("age", "ward", "note"), row, strict=True)) for row in ROWS]
    again = client.post("/api/batches", json={"records": records})
    assert again.json()["charged"] == 0, "the same rows by their names are known"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1, "north", "x"], "'north' is not one of its values"),
        ([1, None, "x"], "column 'ward': the value is missing"),
        (["1", "east", "x"], "column 'age': expected a number"),
        ([1, "east", 5], "column 'note': expected text"),
        ([1, "east", "x" * 65_537], "65,536 at most"),
        ([1, "east", True], "rows"),
    ],
)
def test_a_cell_of_another_type_is_refused_and_charges_nothing(
    served: Served, row: list[Any], reason: str
) -> None:
    client = served.client()
    refused = client.post("/api/batches", json={"rows": [row]})
    assert refused.status_code == 422
    assert reason in refused.json()["detail"]
    assert client.get("/api/budget").json()["charged"] == 0


def test_a_query_takes_the_same_rows_from_a_file(served: Served, tmp_path: Path) -> None:
    table, out, token = tmp_path / "rows.csv", tmp_path / "labels.csv", tmp_path / "token"
    token.write_text(ALICE, encoding="utf-8")
    lines = "note;ward;more;age\nchest pain;süd;1;47,5\n;east;2;NA\nfine, thanks;west;3;30\n"
    table.write_text(lines, encoding="utf-8")
    command = (
        f"query --gateway {served.address} --token-file {token} --input {table} --out {out} "
        f"--receipts {tmp_path}/receipts --task {served.parties.task.task_id.hex()}"
    )
    found = json_of(command)
    assert (found["rows"], found["in_receipts"]) == (3, 3)
    with out.open(encoding="utf-8") as file:
        assert {row["label"] for row in csv.DictReader(file)} <= set(CLASSES)
    table.write_text("age,ward,note\nold,north,x\n,east,y\n", encoding="utf-8")
    refused = run_dppp(command)
    assert_refused(2, "'old' in column 'age', expected a number", refused)
    assert "'north' in column 'ward', which is not one of east, west, süd" in refused.stderr
