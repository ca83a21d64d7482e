"""A change of members, typed: one file out and one file back for each."""

from pathlib import Path

from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.cli.test_ceremony_masks import HOMES, INIT, requests_of

HOSPITALS = [home for home in HOMES if home.startswith("hospital")]


def begin(root: Path) -> str:
    """Three hospitals that have accepted a task of 100 queries; its hash."""
    json_of(INIT.format(folder=root / "coordinator"))
    for home, options in HOMES.items():
        json_of(f"join {root / home} {options}")
    collected = f"collect {root / 'coordinator'} {requests_of(root, *HOMES)} --out {root / 'made'}"
    found = json_of(collected)
    for home in HOMES:
        own = f"--ledger {root / home}.db --head {root / home}.head"
        place = own if home in HOSPITALS else ""
        file = root / "made" / "federation.json"
        expected = found["federation_hash"]
        json_of(f"setup {root / home} --federation {file} --hash {expected} {place}")
    for home in HOSPITALS:
        config = root / home / "teacher.toml"
        json_of(f"teacher accept --config {config} --first-use-of-this-data")
    return str(found["task_id"])


def test_a_hospital_rotates_its_keys_and_another_joins(tmp_path: Path) -> None:
    old_task = begin(tmp_path)
    rotated = json_of(f"change rotate {tmp_path}/hospital-b --out {tmp_path}/b-new")
    json_of(f"join {tmp_path}/hospital-d --name 'hospital d'")
    propose = (
        f"change propose {tmp_path}/coordinator {rotated['request_file']} "
        f"{tmp_path}/hospital-d/join-request.json --federation {tmp_path}/made/federation.json "
        f"--out {tmp_path}/changed --queries"
    )
    assert_refused(2, "paid for 100 queries", run_dppp(f"{propose} 101"))
    shown = run_dppp(f"{propose} 100").stdout
    assert "hospital b  rotated" in shown
    assert "hospital d  added" in shown
    assert "0 of the 3" in shown
    file = tmp_path / "changed" / "change.json"
    found = json_of(f"change show {file}")
    expected = found["federation_hash"]
    for home in HOSPITALS:
        new = f"--new-home {tmp_path}/b-new" if home == "hospital-b" else ""
        out = f"--out {tmp_path}/{home}.consent"
        json_of(f"change sign {tmp_path / home} {file} --hash {expected} {new} {out}")
    refused = run_dppp(f"change show {file} --task {old_task}")
    assert_refused(1, "it takes 3", refused)
    consents = " ".join(f"{tmp_path}/{home}.consent" for home in HOSPITALS)
    assert json_of(f"change collect {tmp_path}/changed {consents}")["is_signed"]
    assert json_of(f"change show {file} --task {old_task}")["task_id"] == found["task_id"]
    assert_refused(1, "this change is of task", run_dppp(f"change show {file} --task {'0' * 64}"))
    for home in HOMES:
        new = "b-new" if home == "hospital-b" else f"{home}-new"
        old = f"--old-home {tmp_path / home}"
        json_of(f"change install {tmp_path / new} {file} --hash {expected} {old}")
    accepted = json_of(f"teacher accept --config {tmp_path}/b-new/teacher.toml")
    assert (accepted["index"], accepted["reserved"], len(accepted["tasks"])) == (
        2,
        {"epsilon": 8.0, "delta": 1e-5},
        2,
    )
    again = run_dppp(f"teacher accept --config {tmp_path}/b-new/teacher.toml --yes").stdout
    assert f"on what {old_task[:16]} had reserved: nothing new" in again
    assert "succeeded" in run_dppp(f"ledger show {tmp_path}/hospital-b.db").stdout
    own = f"--ledger {tmp_path}/d.db --head {tmp_path}/d.head"
    shown = run_dppp(f"change install {tmp_path}/hospital-d {file} --hash {expected} {own}").stdout
    assert "--first-use-of-this-data" in shown  # a newcomer, who has no old task
    config = tmp_path / "hospital-d" / "teacher.toml"
    assert json_of(f"teacher accept --config {config} --first-use-of-this-data")["index"] == 4
    again = run_dppp(f"teacher accept --config {config} --yes").stdout
    assert "for 100 queries, reserved as a whole" in again


def test_a_configuration_is_brought_or_given_and_never_both(tmp_path: Path) -> None:
    home = f"{tmp_path}/home {tmp_path}/change.json --hash {'0' * 64} --old-home {tmp_path}/old"
    refused = run_dppp(f"change install {home} --server tls://localhost:1")
    assert_refused(2, "brings its own configuration", refused)
