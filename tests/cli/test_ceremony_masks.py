"""A federation under masks, typed: nobody deals a key, and no share is anywhere."""

import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

from dppp.service.stores.epoch_secrets import open_epoch_secrets

DPPP = (sys.executable, "-m", "dppp")
INIT = (
    "init {folder} --name cells --data-id 'breast 2026' --class malignant --class benign "
    "--epsilon 8 --delta 1e-5 --queries 100 --noise skellam --feature radius"
)
HOMES = {
    "hospital-b": "--name 'hospital b'",
    "hospital-a": "--name 'hospital a'",
    "hospital-c": "--name 'hospital c'",
    "university": "--name university --role aggregator",
    "hosting": "--name hosting --role broker --host nats.example.org",
}


def requests_of(root: Path, *homes: str) -> str:
    return " ".join(str(root / home / "join-request.json") for home in homes)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody has joined, and the coordinator has all requests but that of one teacher."""
    root = tmp_path_factory.mktemp("typed")
    json_of(f"{INIT.format(folder=root / 'coordinator')} --epoch-seconds 3600")
    for home, options in HOMES.items():
        json_of(f"join {root / home} {options}")
    early = [home for home in HOMES if home != "hospital-c"]
    json_of(f"collect {root / 'coordinator'} {requests_of(root, *early)}")
    return root


@pytest.fixture(scope="module")
def made(joined: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("made") / "root"
    shutil.copytree(joined, root)
    last = requests_of(root, "hospital-c")
    said = json_of(f"collect {root / 'coordinator'} {last} --out {root / 'made'}")
    return root, said


@pytest.fixture
def copied(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> tuple[Path, str]:
    root, said = made
    shutil.copytree(root, tmp_path / "copy")
    return tmp_path / "copy", said["federation_hash"]


def setup_command(root: Path, home: str, expected: str) -> str:
    place = f"--ledger {root / home / 'ledger.db'} --head {root / home / 'head.json'}"
    ledger = place if home.startswith("hospital") else ""
    return (
        f"setup {root / home} --federation {root}/made/federation.json --hash {expected} {ledger}"
    )


def test_masks_are_what_terms_say_unless_told_otherwise(joined: Path) -> None:
    terms = tomllib.loads((joined / "coordinator" / "terms.toml").read_text())
    assert (terms["cryptosystem"], terms["epoch_seconds"]) == ("masks", 3600)
    assert not {"modulus_bits", "s"} & set(terms)


def test_the_last_collect_makes_the_federation_file_and_nothing_else(
    made: tuple[Path, dict[str, Any]],
) -> None:
    root, said = made
    assert [path.name for path in (root / "made").iterdir()] == ["federation.json"]
    assert stat.S_IMODE((root / "made" / "federation.json").stat().st_mode) == 0o644
    assert len(said["joined"]) == len(HOMES)
    assert not list(root.glob("**/*.share"))
    assert json.loads((root / "made" / "federation.json").read_text())["public_key"] is None


def test_no_file_is_made_before_all_have_joined_nor_twice(
    joined: Path, made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    fewer = tmp_path / "fewer"
    json_of(INIT.format(folder=fewer))
    json_of(f"collect {fewer} {requests_of(joined, 'hospital-a', 'university', 'hosting')}")
    assert_refused(2, "at least 2", run_dppp(f"collect {fewer} --out {tmp_path / 'out'}"))
    assert_refused(2, "nothing to collect", run_dppp(f"collect {fewer}"))
    assert not (tmp_path / "out").exists()
    root, _ = made
    again = f"collect {root / 'coordinator'} --out {root / 'made'}"
    assert_refused(2, "nothing is overwritten", run_dppp(again))


def test_collecting_says_what_comes_next(joined: Path) -> None:
    shown = run_dppp(f"collect {joined / 'coordinator'} {requests_of(joined, 'hospital-a')}").stdout
    assert "by telephone" in shown
    assert f"dppp collect {joined / 'coordinator'} --out" in shown


def test_nobody_deals_a_key_for_masks(joined: Path, tmp_path: Path) -> None:
    refused = run_dppp(
        f"keys deal --federation {joined / 'coordinator'} --out {tmp_path / 'dealt'}"
    )
    assert_refused(2, "need no dealer", refused)
    assert "dppp collect" in refused.stderr
    assert not (tmp_path / "dealt").exists()


def test_collect_makes_no_file_for_paillier(joined: Path, tmp_path: Path) -> None:
    folder = tmp_path / "coordinator"
    json_of(f"{INIT.format(folder=folder)} --cryptosystem paillier")
    refused = run_dppp(f"collect {folder} {requests_of(joined, *HOMES)} --out {tmp_path / 'out'}")
    assert_refused(2, "dppp keys deal", refused)
    assert not (tmp_path / "out").exists()


def test_a_cryptosystem_takes_only_its_own_options(tmp_path: Path) -> None:
    init = INIT.format(folder=tmp_path / "folder")
    for options, word in (
        ("--s 4", "masks has no s"),
        ("--modulus-bits 2048", "masks has no modulus_bits"),
        ("--cryptosystem paillier --epoch-seconds 3600", "paillier has no epoch_seconds"),
        ("--cryptosystem paillier --labels-per-batch 5", "paillier has no labels_per_batch"),
        ("--cryptosystem rot13", "cryptosystem"),
        ("--epoch-seconds 59", "epoch_seconds"),
    ):
        assert_refused(2, word, run_dppp(f"{init} {options}"))
    assert not (tmp_path / "folder").exists()


def test_anybody_sees_the_ring_and_its_bits_of_security(made: tuple[Path, dict[str, Any]]) -> None:
    root, said = made
    file = root / "made" / "federation.json"
    found = json_of(f"federation {file}")
    assert found["federation_hash"] == said["federation_hash"]
    assert (found["cryptosystem"], found["epoch_seconds"]) == ("masks", 3600)
    assert found["ring_degree"] in (1024, 2048)
    assert found["security_bits"] >= 128
    assert (found["key_id"], found["modulus_bits"], found["s"]) == (None, None, None)
    shown = run_dppp(f"federation {file}").stdout
    degree, bits = found["ring_degree"], found["security_bits"]
    for word in ("masks", f"degree {degree:,}", f"{bits} bits of security", "1 hours each"):
        assert word in shown
    assert "silent colluders can stop a batch" in shown  # of 3 teachers 3 endorse, and 1 colludes


def test_everybody_sets_up_without_a_share_and_a_teacher_accepts(copied: tuple[Path, str]) -> None:
    root, expected = copied
    done = json_of(setup_command(root, "hospital-b", expected))
    assert (done["index"], done["role"], len(done["checked"])) == (2, "teacher", 2)
    for home in ("university", "hosting"):
        json_of(setup_command(root, home, expected))
    assert not (root / "hospital-b" / "key.share").exists()
    config = root / "hospital-b" / "teacher.toml"
    assert tomllib.loads(config.read_text())["masks"] == {"secrets": "epoch-secrets.db"}
    accepted = json_of(f"teacher accept --config {config} --first-use-of-this-data")
    assert accepted["cryptosystem"] == "masks"
    assert accepted["security_bits"] >= 128
    shown = run_dppp(f"teacher accept --config {config}").stdout
    assert f"{accepted['security_bits']} bits of security" in shown


def test_a_teacher_that_stops_for_good_forgets_the_secrets_of_its_epochs(
    copied: tuple[Path, str],
) -> None:
    root, expected = copied
    json_of(setup_command(root, "hospital-b", expected))
    config, file = root / "hospital-b" / "teacher.toml", root / "hospital-b" / "epoch-secrets.db"
    assert_refused(2, "no secrets of epochs", run_dppp(f"teacher forget --config {config}"))
    assert not file.exists()
    with open_epoch_secrets(file) as secrets:
        secrets.put_once(bytes(32), 7, b"of an epoch that nobody looks after")
    assert json_of(f"teacher forget --config {config}") == {"file": str(file), "deleted": 1}
    assert b"nobody looks after" not in file.read_bytes()
    assert "0 secrets deleted" in run_dppp(f"teacher forget --config {config}").stdout


def test_setup_takes_no_share_under_masks(copied: tuple[Path, str]) -> None:
    root, expected = copied
    (root / "some.share").write_bytes(b"a share of something")
    refused = run_dppp(
        f"{setup_command(root, 'hospital-a', expected)} --share {root / 'some.share'}"
    )
    assert_refused(2, "leave out --share", refused)
    assert not (root / "hospital-a" / "teacher.toml").exists()


def accept_on_a_terminal(config: Path, answer: bytes) -> tuple[int, str]:
    """`dppp teacher accept` in a process of its own, with somebody at the keyboard."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(  # noqa: S603 - our own command
            [*DPPP, "teacher", "accept", "--config", str(config), "--first-use-of-this-data"],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stdout + done.stderr


def test_an_operator_sees_the_privacy_card_before_it_says_yes(copied: tuple[Path, str]) -> None:
    root, expected = copied
    json_of(setup_command(root, "hospital-b", expected))
    config = root / "hospital-b" / "teacher.toml"
    code, shown = accept_on_a_terminal(config, b"n\n")
    assert code == 1
    for word in ("Privacy card of cells", "ε = 8", "dppp card ", "Right answers: one dishonest"):
        assert word in shown
    assert not (root / "hospital-b" / "ledger.db").exists()
    code, shown = accept_on_a_terminal(config, b"y\n")
    assert code == 0
    assert shown.index("Privacy card of cells") < shown.index("accepted the task cells")
    assert (root / "hospital-b" / "ledger.db").exists()
    spent = run_dppp(
        f"card {root}/made/federation.json --ledger {root / 'hospital-b' / 'ledger.db'}"
    ).stdout
    for word in ("university; untrusted", "hosting at nats.example.org", "nothing yet"):
        assert word in spent
