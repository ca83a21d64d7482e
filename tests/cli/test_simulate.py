import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.commands import assert_refused, json_of, run_dppp


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "my.csv"
    data = load_breast_cancer()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["diagnosis", *map(str, data.feature_names)])
        for row, target in zip(data.data, data.target, strict=True):
            writer.writerow([data.target_names[target], *row])
    return path


def test_a_csv_gets_private_labels_without_python(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    found = json_of(
        f"simulate --data {table} --label diagnosis --teachers 12 --queries 10 --epsilon 20 "
        f"--out {out}"
    )
    assert found["certified"] is True
    assert found["simulated"] is False
    assert 0 <= found["accuracy_private"] <= 1
    assert found["accuracy_centralised"] > 0.8
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["private_label"] for row in rows} <= {"benign", "malignant"}
    assert len(rows) == 10


def test_a_simulation_without_cryptography_says_so(table: Path) -> None:
    command = f"simulate --data {table} --label diagnosis --no-cryptography --epsilon 20"
    shown = run_dppp(command)
    assert shown.returncode == 0, shown.stderr
    assert "protected nobody" in shown.stdout
    assert json_of(command)["certified"] is False


def test_much_budget_gives_nearly_the_votes_in_the_clear(table: Path) -> None:
    found = json_of(
        f"simulate --data {table} --label diagnosis --no-cryptography --epsilon 60 --delta 1e-3 "
        "--queries 100 --colluders 0 --dropouts 0"
    )
    assert found["accuracy_private"] > found["accuracy_plurality"] - 0.15


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no records"),
        ("a,b\n", "no records"),
        ("a,b\n1,x\n2,y\n", "no column 'kind'"),
        ("kind\nx\ny\n", "nothing to learn from"),
        ("a,kind\n1,x\n2\n", "line 3"),
        ("a,kind\n\n1,x\n\n2\n", "line 5"),
        ("a,kind\n1,x\ntwo,y\n", "expected a finite number"),
        ("a,kind\n1,x\nnan,y\n", "fill in"),
        ("a,kind\n1,x\n,y\n", "expected a finite number"),
        ("a,kind\n1,x\n2,\n", "no label"),
        ("a,kind\n1,x\n2,x\n", "two classes"),
        ("a,a,kind\n1,1,x\n2,2,y\n", "'a' twice"),
        ("a,kind\n1,x\n2,y\n", "too few"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    assert_refused(2, reason, run_dppp(f"simulate --data {path} --label kind"))


def test_a_missing_or_binary_file_is_one_line(tmp_path: Path) -> None:
    assert_refused(2, "cannot read", run_dppp(f"simulate --data {tmp_path}/no.csv --label kind"))
    path = tmp_path / "binary"
    path.write_bytes(np.arange(100, dtype=np.uint8)[::-1].tobytes() + b"\xff\xfe\x80")
    assert_refused(2, "CSV", run_dppp(f"simulate --data {path} --label kind"))


def test_a_promise_that_cannot_be_made_is_one_line(table: Path) -> None:
    command = f"simulate --data {table} --label diagnosis"
    assert_refused(2, "epsilon", run_dppp(f"{command} --epsilon 0"))
    assert_refused(2, "delta", run_dppp(f"{command} --delta 1"))
