"""`dppp local`, as a newcomer types it: up, query, down, and up again."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.left_out import need_program

from dppp.service.local.processes import read_processes


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    need_program("nats-server", package="nats-server")
    folder = tmp_path / "federation"
    yield folder
    run_dppp(f"local down --folder {folder}")


def write_patients(path: Path) -> Path:
    """Fever in the hot, and cough in the young; `rash` in one of 150."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["temperature", "age", "fever", "cough", "rash"])
        for place in range(150):
            temperature, age = 35 + place % 7, place % 80
            writer.writerow(
                [temperature, age, int(temperature > 38), int(age < 40), int(place == 3)]
            )
    return path


@pytest.mark.parametrize("cryptosystem", [None, "paillier"])
def test_a_local_federation_answers_stops_gently_and_goes_on(
    folder: Path, tmp_path: Path, cryptosystem: str | None
) -> None:
    """Of several labels under masks, and of Breast Cancer's classes under paillier."""
    patients = write_patients(tmp_path / "patients.csv")
    option = f"--data {patients} --label fever,cough,rash --max-labels 2"
    if cryptosystem:
        option = f"--cryptosystem {cryptosystem}"
    up = json_of(f"local up --teachers 3 --queries 20 --folder {folder} {option}")
    assert up["cryptosystem"] == (cryptosystem or "masks")
    assert bool(list(folder.glob("dealt/*.share"))) is (cryptosystem == "paillier")
    ask = (
        f"query --gateway {up['gateway']} --token-file {up['token_file']} "
        f"--input {up['rows_to_ask']} --out {folder / 'labels.csv'}"
    )
    first = json_of(ask)
    assert first["rows"] == 20
    assert first["budget"]["left"] == 0
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        answers = [line["label" if cryptosystem else "labels"] for line in csv.DictReader(file)]
    classes = {"benign", "malignant"} if cryptosystem else {"fever", "cough", "rash", ""}
    assert {label for answer in answers for label in answer.split(";")} <= classes

    stopped = json_of(f"local down --folder {folder}")["stopped"]
    assert sorted(stopped) == ["aggregator", "broker", "teacher-1", "teacher-2", "teacher-3"]
    assert read_processes(folder) == []
    for name in ("teacher-1", "teacher-2", "teacher-3", "aggregator"):
        log = (folder / "logs" / f"{name}.log").read_text(encoding="utf-8")
        assert f"{name.split('-')[0]} stopped" in log, log

    again = json_of(f"local up --folder {folder}")
    assert (again["gateway"], again["cryptosystem"]) == (up["gateway"], up["cryptosystem"])
    assert json_of(ask)["budget"]["charged"] == 20  # released before: still known, still free


@pytest.fixture
def thesis(tmp_path: Path) -> Iterator[Path]:
    """A folder of something else, that must be as it was when the test is over."""
    (tmp_path / "thesis.tex").write_text("important")
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "important"


def test_no_federation_is_made_in_a_folder_of_something_else(thesis: Path) -> None:
    need_program("nats-server", package="nats-server")  # the command looks for it first
    assert_refused(2, "not empty", run_dppp(f"local up --folder {thesis}"))


def test_a_folder_of_something_else_has_nothing_to_stop(thesis: Path) -> None:
    assert_refused(2, "no local federation", run_dppp(f"local down --folder {thesis}"))
