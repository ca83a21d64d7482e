"""CSV files as people have them are read in the browser, and faults are named by their line."""

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Error, Page

from dppp.cli.query import join_labels
from dppp.learning.cells import number_in

SPLIT = """async (text) => {
  const { splitCsv } = await import("/page/csv.js");
  return splitCsv(text).map(({ cells }) => cells);
}"""
COLUMN = """async (values) => {
  const { csvText } = await import("/page/csv.js");
  return csvText(["label", ...values].map((value) => [value]));
}"""
LABELS = """async (labels) => {
  const { answersCsv } = await import("/page/answers_file.js");
  return answersCsv("labels", [{ labels }]);
}"""
READ = """async ([text, columns]) => {
  const { readRows } = await import("/page/csv.js");
  const plain = { kind: "number", values: [], may_be_missing: false };
  const whole = (each) => (typeof each === "string" ? { name: each, ...plain } : each);
  return readRows(text, columns.map(whole));
}"""

CELLS = st.text(st.sampled_from('ab ",1.\n'), max_size=4)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=4))
def test_lines_are_split_as_python_splits_them(digits_page: Page, lines: list[list[str]]) -> None:
    for end in ("\n", "\r\n"):
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator=end).writerows(lines)
        assert digits_page.evaluate(SPLIT, file.getvalue()) == lines
        assert digits_page.evaluate(SPLIT, file.getvalue().removesuffix(end)) == lines


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values=st.lists(CELLS, max_size=4))
def test_labels_are_written_as_python_reads_them(digits_page: Page, values: list[str]) -> None:
    written = digits_page.evaluate(COLUMN, values)
    read = list(csv.reader(io.StringIO(written, newline="")))
    assert read == [["label"], *([value] for value in values)]


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_numbers_are_read_as_dppp_query_reads_them(digits_page: Page, mark: str) -> None:
    written = [
        *("1,5", "-1,5e2", "1,234.5", "1.234,5", "1.234.567", "1.234", "1,234", "1 234,5"),
        *("1\u202f234.5", "1'234", "12.5%", "12 %", "+.5", "5.", "1,23,4", "0x10", "1_0", "12 34"),
    ]
    for cell in written:
        wanted = number_in(cell, has_decimal_commas=mark != ",")
        file = f'a{mark}b\n"{cell}"{mark}x\n'
        if wanted is None:
            with pytest.raises(Error, match="is not a number"):
                digits_page.evaluate(READ, [file, ["a"]])
        else:
            assert digits_page.evaluate(READ, [file, ["a"]])["rows"] == [[wanted]], cell


def test_columns_are_found_by_name_and_others_are_not_sent(digits_page: Page) -> None:
    read = digits_page.evaluate(
        READ, ['\ufeffname, b ,a\nx,-1.5e1,.5\n\n"y, z",+2,3.\n', ["a", "b"]]
    )
    assert read == {"rows": [[0.5, -15], [3, 2]], "ignored": ["name"]}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty"),
        ("a,b\n", "no rows"),
        ("a\n1\n", "no column “b”"),
        ("a,b,a\n1,2,3\n", "“a” twice"),
        ("a,b\n1,2\n\n1\n", "line 4 has 1 values, the header 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 values, the header 2"),
        ('note,a,b\n"two\nlines",1,2\nx,1,?\n', "line 4, column “b”: “?” is not a number"),
        ("a,b\n1,\n", "line 2, column “b”: “” is not a number"),
        ("a,b\n1,0x10\n", "“0x10” is not a number"),
        ("a,b\n1,1e999\n", "“1e999” is not a number"),
        ("a,b\n1,NaN\n", "“NaN” is not a number"),
        ('a,b\n1,2\n"1,2\n', "line 3 has a stray quote"),
    ],
)
def test_a_fault_is_named_by_its_line(digits_page: Page, text: str, fault: str) -> None:
    with pytest.raises(Error, match=fault.replace("?", "[?]")):
        digits_page.evaluate(READ, [text, ["a", "b"]])


def test_a_long_note_is_no_trouble(digits_page: Page) -> None:
    text = 'note,a,b\n"' + 'so, ""he"" said\n' * 300_000 + '",1,2\n'
    assert digits_page.evaluate(READ, [text, ["a", "b"]])["rows"] == [[1, 2]]


TYPED = [
    {"name": "age", "kind": "number", "values": [], "may_be_missing": True},
    {"name": "ward", "kind": "category", "values": ["east", "süd"], "may_be_missing": False},
    {"name": "note", "kind": "text", "values": [], "may_be_missing": True},
]


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_typed_columns_are_read_with_what_is_missing(digits_page: Page, between: str) -> None:
    lines = [["ward", "note", "age"], ["süd", "a note", "1.5"], ["east", "", "NA"]]
    text = "\n".join(between.join(line) for line in lines)
    read = digits_page.evaluate(READ, [text, TYPED])
    assert read["rows"] == [[1.5, "süd", "a note"], [None, "east", None]]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("age,ward,note\n1,,x\n", "line 2, column “ward”: the value is missing"),
        ("age,ward,note\n1,north,x\n", "“north” is not one of east, süd"),
        ("age,ward,note\nold,east,x\n", "“old” is not a number"),
    ],
)
def test_a_cell_that_is_not_of_its_column_is_named(
    digits_page: Page, text: str, fault: str
) -> None:
    with pytest.raises(Error, match=fault):
        digits_page.evaluate(READ, [text, TYPED])


def test_several_labels_stand_in_a_cell_as_dppp_query_writes_them(digits_page: Page) -> None:
    for names in (["a", "b"], ["a;b", "c"], ['say "hi"', "c"], [" a", "b,c"], []):
        (_, *found) = csv.reader(io.StringIO(digits_page.evaluate(LABELS, names)))
        assert found == [[join_labels(names, names)]]
