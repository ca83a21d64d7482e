"""A change of members between real processes: a key rotates, and the same budget goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import json_of, run_dppp
from tests.left_out import need_program

TEACHERS = ("teacher-1", "teacher-2", "teacher-3")
EVERYBODY = (*TEACHERS, "aggregator", "broker")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    need_program("nats-server", package="nats-server")
    yield tmp_path
    for folder in ("old", "new"):
        run_dppp(f"local down --folder {tmp_path / folder}")


def query(folder: Path, up: dict[str, object], rows: Path, out: str, more: str = "") -> str:
    return (
        f"query --gateway {up['gateway']} --token-file {folder / 'token'} --input {rows} "
        f"--out {folder / out} {more}"
    )


def some_rows(rows: Path, out: Path, first: int, last: int) -> Path:
    header, *lines = rows.read_text().splitlines()
    out.write_text("\n".join([header, *lines[first:last]]) + "\n")
    return out


@pytest.mark.slow
def test_the_new_task_answers_what_is_left_and_the_old_transcripts_verify(root: Path) -> None:
    old, new = root / "old", root / "new"
    up = json_of(f"local up --teachers 3 --queries 20 --folder {old}")
    rows = Path(str(up["rows_to_ask"]))
    before = some_rows(rows, root / "before.csv", 0, 8)
    json_of(query(old, up, before, "labels.csv", f"--transcripts {root / 'proof'}"))
    old_task = json_of(f"federation {old}/dealt/federation.json")["task_id"]
    json_of(f"local down --folder {old}")

    new.mkdir()
    rotated = json_of(f"change rotate {old}/teacher-2 --out {new}/teacher-2")["request_file"]
    made = json_of(
        f"change propose {old}/coordinator {rotated} --federation {old}/dealt/federation.json "
        f"--queries 12 --out {new}/coordinator"
    )
    file, expected = made["change_file"], made["federation_hash"]
    for name in TEACHERS:
        own = f"--new-home {new / name}" if name == "teacher-2" else ""
        out = f"--out {root / name}.consent"
        json_of(f"change sign {old / name} {file} --hash {expected} {own} {out}")
    json_of(
        f"change collect {new}/coordinator " + " ".join(f"{root / n}.consent" for n in TEACHERS)
    )
    listen = f"--listen {_listen(old / 'broker' / 'nats.conf')}"
    for name in EVERYBODY:
        more = listen if name == "broker" else ""
        home = f"--hash {expected} --old-home {old / name} {more}"
        json_of(f"change install {new / name} {file} {home}")
    for name in TEACHERS:
        accepted = json_of(f"teacher accept --config {new / name}/teacher.toml")
        assert [task["left"] for task in accepted["tasks"]] == [0, 12]
    for name in ("local.json", "token"):
        shutil.copy(old / name, new / name)

    up = json_of(f"local up --folder {new}")
    after = some_rows(rows, root / "after.csv", 8, 20)
    answered = json_of(query(new, up, after, "labels.csv", f"--receipts {root / 'receipts'}"))
    assert (answered["rows"], answered["budget"]["left"]) == (12, 0)
    refused = run_dppp(query(new, up, before, "more.csv"))
    assert refused.returncode == 1
    assert "0 are left" in refused.stderr
    (receipt,) = (root / "receipts").glob("*.receipt")
    json_of(f"verify {receipt} --task {made['task_id']}")
    (transcript,) = (root / "proof").glob("*.transcript")
    json_of(f"verify {transcript} --task {old_task}")
    assert run_dppp(f"verify {receipt} --task {old_task}").returncode == 1


def _listen(configuration: Path) -> str:
    text = configuration.read_text()
    port = text.split("\nport: ")[1].split("\n")[0]
    return f"127.0.0.1:{port}"
