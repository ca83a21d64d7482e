import csv
import gzip
import random
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


def test_a_private_accuracy_stands_beside_what_one_has_without_it(table: Path) -> None:
    command = f"simulate --data {table} --label diagnosis --no-cryptography --epsilon 0.3"
    found = json_of(command)
    assert found["held_out"] == 113
    assert found["accuracy_expected"] < found["accuracy_majority"] < found["accuracy_single"]
    assert found["accuracy_single_worst"] <= found["accuracy_single"]
    assert 0 < found["accuracy_local"] < 1
    assert found["worth_it"] is False
    assert found["worth_it_to_a_teacher"] is False
    changes = {(each["asker"], each["change"]) for each in found["advice"]}
    assert ("an outsider", "queries") in changes
    assert ("a teacher", "epsilon") in changes
    shown = run_dppp(command)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    assert all(" ".join(sentence.split()) in text for sentence in found["verdict"])
    assert "it would be worth it with ε =" in text
    assert "Traceback" not in shown.stderr
    assert "Warning" not in shown.stderr


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
        ("a,kind\n1,x\ninf,y\n", "line 3 has 'inf' in column 'a', not a finite number"),
        ("a,b,kind\n1e400,2,x\n1,-inf,y\n", "line 3 has '-inf' in column 'b'"),
        ("a,b,kind\n1e308,2,x\n1,2,y\n", "'1e308' in column 'a', too large to learn from"),
        ("a,kind\n,x\n,y\n", "nothing to learn from"),
        ("a,kind\n1,\n2,\n", "no record of"),
        ("a,kind\n1,x\n2,\n", "two classes"),
        ("a,kind\n1,x\n2,x\n", "two classes"),
        ("a,a,kind\n1,1,x\n2,2,y\n", "'a' twice"),
        ("a,kind\n1,x\n2,y\n", "too few"),
        ("a,kind\ntwo,x\n,y\n", "too few"),
        ("kind,a\n" + "".join(f"{n / 8},1\n" for n in range(90)), "an amount"),
        ("kind,a\n" + "".join(f"{n},1\n" for n in range(900)), "an amount"),
        ("kind,a\n" + "".join(f"{n:x}z,1\n" for n in range(90)), "too many for classes"),
        ("0,tcp,0,kind\n1,udp,2,x\n", "put a line of names above it"),
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


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers, a category, words, dates and a bool; in each of them something is missing."""
    path = tmp_path_factory.mktemp("mixed") / "mixed.csv"
    source = random.Random(7)  # noqa: S311 - a made-up table
    lines = ["age,ward,note,admitted,smokes,number,clinic,,outcome"]
    for number in range(600):
        age, ward = source.randint(18, 80), source.choice(["north", "south", "east"])
        note = source.choice(["stable, no complaints", "chest pain at night", "cough since monday"])
        is_ill = age + 40 * ("pain" in note) + 15 * (ward == "north") > 65
        cells = [age, ward, f'"{note}"', f"2024-0{source.randint(1, 9)}-11", source.random() < 0.4]
        shown = ["" if source.random() < 0.07 else str(cell) for cell in cells]
        label = "" if number in (3, 10) else "ill" if is_ill else "well"
        lines.append(",".join([*shown, str(number), "A", str(number), label]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_of_mixed_columns_with_missing_cells_is_learned_from(
    mixed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels.csv"
    command = f"simulate --data {mixed} --label outcome --teachers 10 --epsilon 8 --queries 20"
    found = json_of(f"{command} --out {out}")
    assert found["records"] == 598
    assert found["accuracy_centralised"] > found["accuracy_majority"] + 0.15
    assert found["accuracy_plurality"] > found["accuracy_majority"] + 0.1
    assert any("2 records have no label (the first in line 5)" in note for note in found["notes"])
    assert any("'number' looks like an identifier" in note for note in found["notes"])
    assert "a column without a name is left out" in found["notes"]
    same = "the column 'clinic' holds the same in every record: nothing to learn from"
    assert same in found["notes"]
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["ward"] for row in rows} <= {"north", "south", "east", ""}
    assert len(rows) == 20


def test_columns_are_left_out_or_chosen_by_name(mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    command = f"simulate --data {mixed} --label outcome --no-cryptography --queries 5 --out {out}"
    found = json_of(f"{command} --drop number,admitted,clinic")
    assert not any("identifier" in note for note in found["notes"])
    assert out.read_text(encoding="utf-8").splitlines()[0] == (
        "record,private_label,age,ward,note,smokes"
    )
    json_of(f"{command} --columns note,age")
    assert out.read_text(encoding="utf-8").splitlines()[0] == "record,private_label,note,age"
    assert_refused(2, "no column 'numbr', 'x'", run_dppp(f"{command} --drop numbr,x"))
    assert_refused(2, "is the label", run_dppp(f"{command} --columns outcome,age"))


def test_the_same_table_is_read_however_it_is_written(mixed: Path, tmp_path: Path) -> None:
    with mixed.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    semicolons, tabs = tmp_path / "semicolons.csv", tmp_path / "tabs.tsv.gz"
    with semicolons.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            [
                [cell.replace(".", ",") if place == 0 else cell for place, cell in enumerate(row)]
                for row in rows
            ]
        )
    with gzip.open(tabs, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    options = "--label outcome --no-cryptography --teachers 10 --epsilon 8 --queries 20"
    wanted = json_of(f"simulate --data {mixed} {options}")
    for path in (semicolons, tabs):
        found = json_of(f"simulate --data {path} {options}")
        assert found["accuracy_plurality"] == wanted["accuracy_plurality"]


@pytest.mark.parametrize("place", ["missing/labels.csv", "taken"])
def test_labels_are_written_to_a_file_in_a_folder_that_is_there(tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").mkdir()
    command = f"simulate --data {tmp_path}/none.csv --label price --out {tmp_path / place}"
    assert_refused(2, "folder", run_dppp(command))
    assert not (tmp_path / "missing").exists()


def write_persons(path: Path, persons: int, each: int) -> Path:
    """A person's records have one class, which says nothing but who it is: easy if one leaked."""
    random = np.random.default_rng(3)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "x", "y", "kind"])
        for person in range(persons):
            place, kind = random.normal(size=2) * 100, "ab"[int(random.integers(2))]
            for _ in range(each):
                x, y = place + random.normal(size=2) * 0.01
                writer.writerow([f"P{person}", x, y, kind])
    return path


def test_no_person_is_both_trained_on_and_asked_about(tmp_path: Path) -> None:
    """The class of a person is a coin: whoever knows it has seen the person's other records."""
    table = write_persons(tmp_path / "persons.csv", persons=150, each=4)
    command = (
        f"simulate --data {table} --label kind --teachers 4 --queries 20 --no-cryptography "
        "--votes 1 --epsilon 40"
    )
    by_person = json_of(f"{command} --person who")
    assert by_person["unit"] == "person"
    assert by_person["held_out"] % 4 == 0
    assert by_person["accuracy_centralised"] < 0.75


def test_persons_who_are_too_few_are_refused(tmp_path: Path) -> None:
    table = write_persons(tmp_path / "persons.csv", persons=8, each=40)
    command = f"simulate --data {table} --label kind --teachers 8 --queries 20 --person who"
    assert_refused(2, "8 persons", run_dppp(command))


def test_the_result_says_how_many_votes_there_are_and_why(table: Path) -> None:
    command = f"simulate --data {table} --label diagnosis --teachers 5 --no-cryptography"
    found = json_of(f"{command} --epsilon 2")
    assert set(found["votes"]) == {3}
    assert "15 records for each of 2 classes" in found["votes_reason"]
    assert set(json_of(f"{command} --epsilon 2 --votes 2")["votes"]) == {2}


@pytest.fixture(scope="module")
def doses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A number and three labels that follow from two others."""
    path = tmp_path_factory.mktemp("doses") / "doses.csv"
    source = random.Random(5)  # noqa: S311 - a made-up table
    lines = ["age,weight,dose,fever,cough,pain"]
    for _ in range(400):
        age, weight = source.uniform(18, 80), source.uniform(40, 120)
        labels = (age > 50, weight > 80, age + weight > 120)
        cells = [f"{age:.1f}", f"{weight:.1f}", f"{weight / 4 + age / 20:.2f}"]
        lines.append(",".join([*cells, *(str(int(each)) for each in labels)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


SMALL = "--teachers 4 --queries 5 --epsilon 20 --no-cryptography --votes 2"


def test_a_number_has_errors_beside_what_one_has_without(doses: Path, tmp_path: Path) -> None:
    out = tmp_path / "doses.csv"
    command = f"simulate --data {doses} --label dose --drop fever,cough,pain --low 5 --high 40"
    found = json_of(f"{command} --out {out} {SMALL}")
    assert found["question"] == "number"
    assert not any(name.startswith("accuracy_") for name in found)
    assert found["error_centralised"] < found["error_single"] < found["error_majority"]
    assert found["error_plurality"] < found["error_expected"] < found["error_local"]
    assert found["error_private"] > 0
    assert found["r2_expected"] <= 1
    assert found["standard_error"] > 0
    with out.open(encoding="utf-8") as file:
        answers = [float(row["private_label"]) for row in csv.DictReader(file)]
    assert len(answers) == 5
    assert all(5 <= answer <= 40 for answer in answers)
    shown = run_dppp(f"{command} {SMALL}")
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    assert "always the mean" in text
    assert "of the squared error explained than" in text
    assert "Warning" not in shown.stderr


def test_several_labels_are_columns_of_zeros_and_ones(doses: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    found = json_of(
        f"simulate --data {doses} --label fever,cough,pain --drop dose --max-labels 2 --out {out} "
        f"{SMALL}"
    )
    assert found["question"] == "labels"
    assert found["measure"] == "of the labels right"
    assert 0 <= found["subset_accuracy_private"] <= found["accuracy_private"] <= 1
    assert found["accuracy_majority"] < found["accuracy_centralised"]
    with out.open(encoding="utf-8") as file:
        said = [row["private_label"] for row in csv.DictReader(file)]
    assert all(set(each.split(";")) <= {"fever", "cough", "pain", ""} for each in said)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--label dose", "ask for a number with --low and --high"),
        ("--label dose --low 5", "both ends of its range"),
        ("--label dose --low 5 --high 40 --max-labels 2", "not of both"),
        ("--label fever --label-share 0.5", "give --max-labels too"),
        ("--label fever,dose --max-labels 2", "each column holds 0 or 1"),
        ("--label fever,cough", "no column 'fever,cough'"),
        ("--label fever,cough --max-labels 3", "1 to the number of labels"),
        ("--label dose --low 40 --high 5", "the lower one first"),
    ],
)
def test_a_question_that_cannot_be_meant_is_one_line(
    doses: Path, options: str, reason: str
) -> None:
    assert_refused(2, reason, run_dppp(f"simulate --data {doses} {options} {SMALL}"))
