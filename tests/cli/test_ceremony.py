"""From nothing to a teacher that has accepted its task, under paillier, typed; and refusals."""

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp, run_process

from dppp.service.ceremony.home import Home

INIT = (
    "init {folder} --name cells --data-id 'breast 2026' --class malignant --class benign "
    "--epsilon 8 --delta 1e-5 --queries 100 --noise skellam --cryptosystem paillier "
    "--modulus-bits 2048 --s 2"
)
HOMES = {
    "hospital-b": "--name 'hospital b'",
    "hospital-a": "--name 'hospital a'",
    "hospital-c": "--name 'hospital c'",
    "university": "--name university --role aggregator",
    "hosting": "--name hosting --role broker --host nats.example.org",
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Everything up to the dealt key; what each command said, by command."""
    root = tmp_path_factory.mktemp("typed")
    (root / "rows.csv").write_text("radius, texture\n1,2\n")
    said = {
        "init": json_of(
            f"{INIT.format(folder=root / 'coordinator')} --features-from {root}/rows.csv"
        )
    }
    for home, options in HOMES.items():
        said[home] = json_of(f"join {root / home} {options}")
    requests = " ".join(str(root / home / "join-request.json") for home in HOMES)
    said["collect"] = json_of(f"collect {root / 'coordinator'} {requests}")
    said["deal"] = json_of(f"keys deal --federation {root / 'coordinator'} --out {root / 'dealt'}")
    return root, said


@pytest.fixture
def copied(typed: tuple[Path, dict[str, Any]], tmp_path: Path) -> tuple[Path, str]:
    root, said = typed
    shutil.copytree(root, tmp_path / "copy")
    return tmp_path / "copy", said["deal"]["federation_hash"]


def setup_command(root: Path, home: str, expected: str, share: str | None = None) -> str:
    """The ledger of a teacher is in its home here, never in that of whoever runs the tests."""
    place = f"--ledger {root / home / 'ledger.db'} --head {root / home / 'head.json'}"
    sealed = f" --share {root / 'dealt' / share} {place}" if share else ""
    file = root / "dealt" / "federation.json"
    return f"setup {root / home} --federation {file} --hash '{expected}'{sealed}"


def test_both_ends_see_the_same_fingerprint(typed: tuple[Path, dict[str, Any]]) -> None:
    _, said = typed
    collected = {each["name"]: each["fingerprint"] for each in said["collect"]["joined"]}
    assert collected == {said[home]["name"]: said[home]["fingerprint"] for home in HOMES}
    assert {len(bytes.fromhex(fingerprint)) * 8 for fingerprint in collected.values()} == {128}


def test_teachers_are_numbered_by_name_and_warned_of_the_dealer(
    typed: tuple[Path, dict[str, Any]],
) -> None:
    root, said = typed
    dealt = said["deal"]
    assert [(each["index"], each["share_file"]) for each in dealt["teachers"]] == [
        (1, "hospital-a.share"),
        (2, "hospital-b.share"),
        (3, "hospital-c.share"),
    ]
    assert any("dealer" in warning for warning in dealt["warnings"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root / "dealt").iterdir()}
    assert modes["federation.json"] == 0o644
    assert {modes[each["share_file"]] for each in dealt["teachers"]} == {0o600}
    assert stat.S_IMODE((root / "coordinator" / "authority.key").stat().st_mode) == 0o600


def test_a_share_says_whose_it_is(typed: tuple[Path, dict[str, Any]]) -> None:
    root, said = typed
    found = json_of(f"keys inspect {root / 'dealt' / 'hospital-c.share'}")
    assert (found["index"], found["task_id"]) == (3, said["deal"]["task_id"])


def test_a_key_is_dealt_once_and_where_it_can_be_written(
    typed: tuple[Path, dict[str, Any]],
) -> None:
    root, _ = typed
    deal = f"keys deal --federation {root / 'coordinator'} --out"
    before = {path.name: path.read_bytes() for path in (root / "dealt").iterdir()}
    assert_refused(2, "already", run_dppp(f"{deal} {root / 'dealt'}"))
    assert {path.name: path.read_bytes() for path in (root / "dealt").iterdir()} == before
    refused = run_dppp(f"{deal} {root / 'rows.csv' / 'dealt'}")
    assert refused.returncode == 2
    said, hint = refused.stderr.splitlines()[-2:]
    assert said == f"dppp: the folder {root / 'rows.csv'} is not a folder"
    assert hint.startswith("hint: ")


def test_anybody_can_look_at_the_federation(typed: tuple[Path, dict[str, Any]]) -> None:
    root, said = typed
    file = root / "dealt" / "federation.json"
    found = json_of(f"federation {file}")
    assert found["federation_hash"] == said["deal"]["federation_hash"]
    assert found["features"] == ["radius", "texture"]
    assert found["certificate"]["certified"] is True
    assert found["certificate"]["epsilon"] == 8
    assert [each["name"] for each in found["members"]] == ["hospital a", "hospital b", "hospital c"]
    assert (found["cryptosystem"], found["modulus_bits"], found["ring_degree"]) == (
        "paillier",
        2048,
        None,
    )
    shown = run_dppp(f"federation {file}").stdout
    words = ("hospital c", "nats.example.org", "ε = 8", "kept", "paillier", "2048 bits")
    for word in (found["federation_hash"], *words):
        assert word in shown


def test_everybody_sets_up_and_a_teacher_accepts(copied: tuple[Path, str]) -> None:
    root, expected = copied
    spaced = " ".join(expected[place : place + 8] for place in range(0, 64, 8))
    done = json_of(setup_command(root, "hospital-b", spaced, "hospital-b.share"))
    assert (done["index"], done["role"], len(done["checked"])) == (2, "teacher", 3)
    for home in ("university", "hosting"):
        assert (
            "checked: the federation hash" in run_dppp(setup_command(root, home, expected)).stdout
        )
    config = root / "hospital-b" / "teacher.toml"
    assert done["ledger"] == str(root / "hospital-b" / "ledger.db")
    refused = run_dppp(f"teacher accept --config {config}")
    assert_refused(1, "--first-use-of-this-data", refused)
    accepted = json_of(f"teacher accept --config {config} --first-use-of-this-data")
    assert accepted["reserved"] == accepted["cap"] == {"epsilon": 8.0, "delta": 1e-5}
    assert (accepted["queries"], accepted["is_new_ledger"]) == (100, True)
    shown = run_process(f"teacher accept --config {config}")
    assert shown.returncode == 0, shown.stderr
    for word in ("hospital b, teacher 2", "ε = 8", "breast 2026", "100 queries", "left  ε = 0"):
        assert word in shown.stdout
    assert json_of(f"ledger show {root / 'hospital-b' / 'ledger.db'}")["teacher"] == "hospital b"


def test_setup_refuses_what_was_not_compared(copied: tuple[Path, str]) -> None:
    root, expected = copied
    good = setup_command(root, "hospital-a", expected, "hospital-a.share")
    assert_refused(2, "no --hash", run_dppp(good.replace(f"--hash '{expected}'", "")))
    assert_refused(2, "64 hexadecimal", run_dppp(good.replace(expected, expected[:-1])))
    assert_refused(1, "telephone", run_dppp(good.replace(expected, "0" * 64)))
    other = setup_command(root, "hospital-a", expected, "hospital-b.share")
    assert_refused(2, "ask the dealer", run_dppp(other))
    assert_refused(2, "--share", run_dppp(setup_command(root, "hospital-a", expected)))
    assert_refused(2, "cannot read", run_dppp(good.replace("federation.json", "none.json")))
    assert not (root / "hospital-a" / "teacher.toml").exists()
    assert run_dppp(good).returncode == 0
    assert_refused(2, "nothing is overwritten", run_dppp(good))


def test_setup_names_the_one_ledger_of_the_user_and_what_to_say(
    copied: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, expected = copied
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = setup_command(root, "hospital-a", expected, "hospital-a.share").partition(" --ledger")
    assert_refused(2, "give both", run_dppp(f"{command[0]} --ledger {tmp_path / 'one.db'}"))
    shown = run_dppp(command[0]).stdout
    for place in ("data/dppp/ledger.db", "state/dppp/ledger.head"):
        assert str(tmp_path / place) in shown
        assert str(tmp_path / place) in (root / "hospital-a" / "teacher.toml").read_text()
    accept = next(line for line in shown.splitlines() if line.startswith("dppp teacher accept"))
    assert accept.endswith("--first-use-of-this-data")
    assert json_of(accept.removeprefix("dppp "))["is_new_ledger"] is True
    other = setup_command(root, "hospital-b", expected, "hospital-b.share").partition(" --ledger")
    shown = run_dppp(other[0]).stdout
    assert "is there already" in shown
    assert "--first-use" not in shown
    refused = run_dppp(f"teacher accept --config {root / 'hospital-b' / 'teacher.toml'}")
    assert_refused(1, "[ledger] in teacher.toml", refused)


def test_a_changed_federation_file_is_one_clear_line(copied: tuple[Path, str]) -> None:
    root, expected = copied
    file = root / "dealt" / "federation.json"
    whole = json.loads(file.read_text())
    changes: tuple[Callable[[], object], ...] = (
        lambda: file.write_text(json.dumps({**whole, "more": 1})),
        lambda: file.write_text(json.dumps(whole)),
        lambda: file.write_text("{"),
        lambda: file.write_bytes(b"\xff\xfe"),
    )
    for change in changes:
        change()
        assert_refused(2, "", run_dppp(f"federation {file}"))
        sealed = "hospital-a.share"
        assert_refused(2, "", run_dppp(setup_command(root, "hospital-a", expected, sealed)))


def test_certificates_are_renewed_as_the_runbook_says(copied: tuple[Path, str]) -> None:
    root, expected = copied
    home = root / "hospital-b"
    assert_refused(2, "dppp setup", run_dppp(f"renew request {home}"))
    run_dppp(setup_command(root, "hospital-b", expected, "hospital-b.share"))
    before = json_of(f"federation {home / 'federation.json'}")
    asked = json_of(f"renew request {home}")
    shown = run_dppp(f"renew request {home}").stdout
    assert asked["fingerprint"] in shown.replace(" ", "")
    sign = f"renew sign {root / 'coordinator'} {asked['request_file']} --out {root / 'renewed'}"
    (renewed,) = json_of(sign)["renewed"]
    assert (renewed["name"], renewed["fingerprint"]) == ("hospital b", asked["fingerprint"])
    assert_refused(2, "nothing is overwritten", run_dppp(sign))
    other = json_of(f"renew request {home}")
    assert other["fingerprint"] == asked["fingerprint"]
    done = run_dppp(f"renew install {home} {renewed['certificate_file']}")
    assert "valid until" in done.stdout
    after = json_of(f"federation {home / 'federation.json'}")
    assert after["federation_hash"] == before["federation_hash"] == expected
    assert after["own_certificate_valid_until"] >= before["own_certificate_valid_until"]
    assert after["own_certificate_valid_until"] == renewed["certificate_valid_until"]
    assert_refused(2, "nobody joined", run_dppp(_sign_for_another(root, asked["request_file"])))


def _sign_for_another(root: Path, request: str) -> str:
    """Another federation's coordinator is asked."""
    folder = root / "another"
    json_of(f"{INIT.format(folder=folder)} --feature a")
    json_of(f"join {root / 'hospital-x'} --name 'hospital x'")
    json_of(f"collect {folder} {root / 'hospital-x' / 'join-request.json'}")
    json_of(f"renew request {root / 'hospital-b'}")
    return f"renew sign {folder} {request} --out {root / 'never'}"


def test_accept_refuses_past_the_cap_and_other_data(copied: tuple[Path, str]) -> None:
    root, expected = copied
    run_dppp(setup_command(root, "hospital-a", expected, "hospital-a.share"))
    config = root / "hospital-a" / "teacher.toml"
    text = config.read_text()
    for old, new, code, word in (
        ("epsilon = 8.0", "epsilon = 7.5", 1, "the task costs"),
        ('id = "breast 2026"', 'id = "lungs"', 2, "'lungs'"),
        ('log_level = "info"', 'loglevel = "info"', 2, "loglevel is not known"),
    ):
        config.write_text(text.replace(old, new))
        assert_refused(code, word, run_dppp(f"teacher accept --config {config}"))
    assert not (root / "hospital-a" / "ledger.db").exists()


def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    init = INIT.format(folder=folder)
    for command, word in (
        (init, "--feature"),
        (f"{init} --feature a --features-from b.csv", "--feature"),
        (f"{init} --features-from {tmp_path}/none.csv", "cannot read"),
        (f"{init.replace('--class benign', '')} --feature a", "at least two names"),
        (f"{init.replace('skellam', 'laplace')} --feature a", "noise"),
        (f"{init.replace('--epsilon 8', '--epsilon 0')} --feature a", "epsilon"),
        (f"join {home} --name ''", "printable"),
        (f"join {home} --name b --role broker", "--host"),
        (f"join {home} --name b --role king", "king"),
        (f"collect {tmp_path} {tmp_path}/none.json", "cannot read"),
        (f"keys deal --federation {tmp_path} --out {home}", "dppp init"),
    ):
        assert_refused(2, word, run_dppp(command))
    assert not home.exists()
    assert not folder.exists()


def test_secrets_are_never_printed(tmp_path: Path) -> None:
    result = run_dppp(f"join {tmp_path / 'home'} --name one")
    home = Home(folder=tmp_path / "home")
    assert home.nats_seed() not in result.stdout + repr(home) + repr(home.request())
    assert "PRIVATE" not in result.stdout
