"""`dppp train`: from a CSV to a folder of models that votes."""

import csv
import hashlib
import json
import stat
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.service.ceremony.ceremonies import TEACHERS, Ceremony, hold_masked

from dppp.learning.frames import frame_of
from dppp.protocol.columns import Column, ColumnType
from dppp.service.teacher.models.folder import read_manifest
from dppp.service.teacher.models.loading import load_skops

RECORDS = 400
CLASSES = ("benign", "malignant")


def write_table(path: Path, columns: tuple[str, ...] = ("radius", "texture")) -> Path:
    """The class is the sign of the first column; a person has eight records."""
    rows = np.random.default_rng(4).normal(size=(RECORDS, len(columns)))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", *columns, "diagnosis"])
        for place, row in enumerate(rows):
            label = CLASSES[int(row[0] > 0)]
            writer.writerow([f"P{place // 8}", *(f"{each:.6f}" for each in row), label])
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("records") / "records.csv")


def train_command(table: Path, out: Path, more: str = "") -> str:
    return f"train --data {table} --label diagnosis --out '{out}' --person person {more}"


def test_every_vote_has_a_model_in_a_file_whose_hash_is_in_the_manifest(
    table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "models"
    said = json_of(train_command(table, out, "--votes 6"))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["unit"] == said["unit"] == "person"
    assert manifest["classes"] == list(CLASSES)
    assert manifest["columns"] == ["radius", "texture"]
    assert len(manifest["shards"]) == said["votes"] == 6
    assert sum(shard["records"] for shard in manifest["shards"]) == RECORDS
    for shard in manifest["shards"]:
        data = (out / shard["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == shard["sha256"]
        found = load_skops(out / shard["file"]).predict([[-2.0, 0.0], [2.0, 0.0]])
        assert found.tolist() == list(CLASSES)
    assert stat.S_IMODE((tmp_path / "shards.key").stat().st_mode) == 0o600


def test_the_same_key_deals_the_same_shards_and_another_key_deals_others(
    table: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    sizes = [
        [shard["records"] for shard in json_of(train_command(table, tmp_path / name))["shards"]]
        for name in ("a/models", "a/again", "b/models")
    ]
    assert sizes[0] == sizes[1] != sizes[2]


def test_auto_says_from_which_public_numbers_it_chose(table: Path, tmp_path: Path) -> None:
    """400 records of two classes leave 13 shards of 30; the noise alone would take more."""
    usual = json_of(train_command(table, tmp_path / "a", "--epsilon 1 --teachers 10"))
    assert usual["votes"] == 13
    assert "15 records for each of 2 classes" in usual["votes_reason"]
    assert "for 10 teachers, ε = 1, δ = 1e-05, 100 queries" in usual["votes_reason"]
    little = json_of(train_command(table, tmp_path / "b", "--epsilon 20 --teachers 50"))
    assert little["votes"] == 1
    whole = json_of(train_command(table, tmp_path / "c", "--unit teacher"))
    assert (whole["votes"], whole["unit"]) == (1, "teacher")


def test_a_shard_without_records_has_no_file(table: Path, tmp_path: Path) -> None:
    """Fifty persons on fifty votes: some shard is empty, and every vote has an entry."""
    json_of(train_command(table, tmp_path / "models", "--votes 50"))
    manifest = read_manifest(tmp_path / "models")
    empty = [shard for shard in manifest.shards if shard.records == 0]
    assert manifest.votes == 50
    assert empty
    assert all(shard.file is None and shard.sha256 is None for shard in empty)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--votes 51", "50 persons are too few for 51 votes"),
        ("--votes many", "--votes is auto or a number"),
        ("--unit teacher --votes 3", "everybody casts one vote"),
        ("--unit household", "the unit is record, person or teacher"),
        ("--id no_such_column", "no column 'no_such_column'"),
    ],
)
def test_what_cannot_be_trained_is_one_line_and_leaves_nothing(
    options: str, reason: str, table: Path, tmp_path: Path
) -> None:
    assert_refused(2, reason, run_dppp(train_command(table, tmp_path / "models", options)))
    assert not (tmp_path / "models").exists()


def test_a_unit_person_needs_the_column_that_names_persons(table: Path, tmp_path: Path) -> None:
    command = f"train --data {table} --label diagnosis --out {tmp_path / 'models'} --id person"
    result = run_dppp(f"{command} --unit person --votes 3")
    assert_refused(2, "nothing says whom the records are about", result)


def test_a_folder_with_models_is_never_overwritten(table: Path, tmp_path: Path) -> None:
    command = train_command(table, tmp_path / "models", "--votes 2")
    json_of(command)
    assert_refused(2, "nothing is overwritten", run_dppp(command))


def test_without_lasting_names_it_says_what_the_promise_leaves_out(
    table: Path, tmp_path: Path
) -> None:
    command = f"train --data {table} --label diagnosis --votes 2"
    named = run_dppp(f"{command} --person person --out {tmp_path / 'a'}")
    plain = write_table(tmp_path / "plain.csv")
    text = plain.read_text(encoding="utf-8").replace("P", "").replace("person", "number")
    plain.write_text(text, encoding="utf-8")
    unnamed = run_dppp(f"train --data {plain} --label diagnosis --votes 2 --out {tmp_path / 'b'}")
    assert (named.returncode, unnamed.returncode) == (0, 0), named.stderr + unnamed.stderr
    assert "stands for its name" not in named.stdout
    assert "stands for its name" in unnamed.stdout


def test_nowhere_to_write_is_one_line(table: Path) -> None:
    result = run_dppp(f"train --data {table} --label diagnosis --person person")
    assert_refused(2, "where the models go", result)


@pytest.fixture
def ceremony(tmp_path: Path) -> Ceremony:
    """Three teachers, of whom the second has four votes and the others two."""
    return hold_masked(
        tmp_path / "ceremony",
        class_names=("malignant", "benign"),
        features=("texture", "radius"),
        votes=2,
        votes_of={TEACHERS[1]: 4},
        unit="person",
    )


def test_with_a_configuration_votes_unit_columns_and_folder_are_those_of_the_task(
    ceremony: Ceremony, table: Path
) -> None:
    config = ceremony.set_up(TEACHERS[1]).configuration
    command = f"train --config '{config}' --data {table} --label diagnosis"
    said = json_of(f"{command} --person person")
    assert Path(said["folder"]) == config.parent / "models"
    assert (said["votes"], said["unit"]) == (4, "person")
    assert said["columns"] == ["texture", "radius"]
    accepted = json_of(f"teacher accept --config '{config}' --first-use-of-this-data")
    assert (accepted["votes"], accepted["unit"]) == (4, "person")


def test_what_does_not_go_with_the_task_is_refused_before_training(
    ceremony: Ceremony, table: Path, tmp_path: Path
) -> None:
    config = ceremony.set_up(TEACHERS[1]).configuration
    command = f"train --config '{config}' --label diagnosis --person person --data"
    assert_refused(2, "4 votes, not 3", run_dppp(f"{command} {table} --votes 3"))
    assert_refused(2, "one person, not", run_dppp(f"{command} {table} --unit record"))
    other = write_table(tmp_path / "other.csv", ("radius", "smoothness"))
    assert_refused(2, "no column 'texture'", run_dppp(f"{command} {other}"))
    text = table.read_text(encoding="utf-8").replace("benign", "harmless")
    (tmp_path / "named.csv").write_text(text, encoding="utf-8")
    assert_refused(2, "'harmless' is not a class", run_dppp(f"{command} {tmp_path}/named.csv"))
    assert not (config.parent / "models").exists()


def test_a_task_is_not_accepted_with_models_for_other_votes(
    ceremony: Ceremony, table: Path
) -> None:
    config = ceremony.set_up(TEACHERS[0]).configuration
    accept = f"teacher accept --config '{config}' --first-use-of-this-data"
    assert_refused(2, "not a folder of models", run_dppp(accept))
    json_of(train_command(table, config.parent / "models", "--votes 3"))
    refused = run_dppp(accept)
    assert_refused(2, "2 votes, and", refused)
    assert "hint: run `dppp train` again with --votes 2" in refused.stderr
    assert not (config.parent / "ledger.db").exists()


def test_a_task_with_several_votes_is_not_accepted_with_one_model(ceremony: Ceremony) -> None:
    config = ceremony.set_up(TEACHERS[0]).configuration
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('kind = "folder"', 'kind = "skops"'), encoding="utf-8")
    refused = run_dppp(f"teacher accept --config '{config}' --first-use-of-this-data")
    assert_refused(2, "names one model", refused)


def test_free_text_alone_is_trained_on_saved_loaded_and_simulated(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = {"billing": ["invoice", "refund", "card"], "network": ["router", "cable", "wifi"]}
    path = tmp_path / "tickets.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "queue"])
        for place in range(240):
            label = ["billing", "network"][place % 2]
            own, other = random.choice(words[label], 2), random.integers(10**6, size=6)
            text = "" if place == 5 else ", ".join([*own, *map(str, other), "and so on"])
            writer.writerow([text, label])
    said = json_of(f"train --data {path} --label queue --out {tmp_path}/models --votes 2")
    assert said["columns"] == ["ticket"]
    asked = frame_of([Column(name="ticket", type=ColumnType(kind="text"))], [["REFUND", "wifi"]])
    for shard in read_manifest(tmp_path / "models").shards:
        model = load_skops(tmp_path / "models" / str(shard.file))
        assert model.predict(asked).tolist() == ["billing", "network"]
    options = "--teachers 4 --queries 20 --votes 2 --no-cryptography"
    found = json_of(f"simulate --data {path} --label queue {options}")
    assert found["accuracy_plurality"] > 0.9
