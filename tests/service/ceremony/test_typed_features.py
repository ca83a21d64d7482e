"""Features by type: from a table of the coordinator, through terms.toml, to the columns."""

from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, run_dppp

from dppp.errors import InputError
from dppp.protocol.columns import CATEGORY, NUMBER, PLAIN, TEXT
from dppp.service.ceremony.terms import make_terms, read_terms

INIT = (
    "init {folder} --name cells --data-id d --class x --class y --epsilon 8 --delta 1e-5 "
    "--queries 10 --features-from {table}"
)


def test_the_rows_of_a_table_say_what_its_columns_are(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    notes = "\n".join(f'{place},south,"note {place}",{place}' for place in range(60))
    table.write_text(f"age,ward,note,visits\n,east,,1\n{notes}\n", encoding="utf-8")
    made = run_dppp(INIT.format(folder=tmp_path / "coordinator", table=table))
    assert made.returncode == 0, made.stderr
    columns = read_terms(tmp_path / "coordinator").columns
    assert [column.name for column in columns] == ["age", "ward", "note", "visits"]
    assert [column.type.kind for column in columns] == [NUMBER, CATEGORY, TEXT, NUMBER]
    assert [column.type.may_be_missing for column in columns] == [True, False, True, False]
    assert columns[1].type.values == ("east", "south")


def test_a_header_alone_names_plain_numbers(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("radius,texture\n", encoding="utf-8")
    assert run_dppp(INIT.format(folder=tmp_path / "c", table=table)).returncode == 0
    terms = read_terms(tmp_path / "c")
    assert terms.features == ("radius", "texture")
    assert [column.type for column in terms.columns] == [PLAIN, PLAIN]
    table.write_text("radius\n1\ninf\n", encoding="utf-8")
    refused = run_dppp(INIT.format(folder=tmp_path / "d", table=table))
    assert_refused(2, "line 3 has 'inf' in column 'radius', not a finite number", refused)


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        ({"name": "a", "kind": "date"}, "kind"),
        ({"name": "a", "kind": "category"}, "a category has its values"),
        ({"name": "b", "kind": "text"}, "each name may occur once only"),
        ({"name": "a", "kind": "text", "colour": 1}, "colour"),
    ],
)
def test_a_feature_that_cannot_be_is_one_line(feature: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        make_terms(
            name="n",
            data_id="d",
            class_names=("x", "y"),
            features=("b", feature),
            epsilon=8.0,
            delta=1e-5,
            queries=10,
        )
    assert reason in str(caught.value)
    assert "\n" not in caught.value.message
