"""`dppp keys`: files, modes, refusals, one clear line."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_one_failure

from dppp.paillier.keys import PublicKey, check_key_share
from dppp.paillier.sealing import unseal_share

DEAL = ("keys", "deal", "--teachers", "3", "--threshold", "2")


def run(
    *arguments: str | Path, phrase: str | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "DPPP_PASSPHRASE"}
    if phrase is not None:
        environment["DPPP_PASSPHRASE"] = phrase
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("ceremony")
    lines = folder / "passphrases"
    lines.write_text("first passphrase\nsecond passphrase\nthird passphrase\n")
    out = folder / "keys"
    result = run(*DEAL, "--out", out, "--passphrase-file", lines, "--json")
    assert result.returncode == 0, result.stderr
    return out, json.loads(result.stdout)


def test_deal_writes_a_key_and_sealed_shares_that_belong_to_it(dealt: tuple[Path, Any]) -> None:
    out, result = dealt
    public = PublicKey.from_bytes((out / "public.key").read_bytes())
    assert result["key_id"] == public.key_id.hex()
    assert (public.teachers, public.threshold, public.s) == (3, 2, 1)
    assert public.modulus_bits == 2048
    assert any("dealer" in warning for warning in result["warnings"])
    for index, word in enumerate(("first", "second", "third"), start=1):
        sealed = (out / result["share_files"][index - 1]).read_bytes()
        share = unseal_share(sealed, f"{word} passphrase".encode())
        assert share.index == index
        check_key_share(public, share)


def test_shares_can_be_read_by_their_owner_only(dealt: tuple[Path, Any]) -> None:
    out, result = dealt
    for name in result["share_files"]:
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600


def test_nothing_is_overwritten(dealt: tuple[Path, Any]) -> None:
    out, _ = dealt
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    result = run(*DEAL, "--out", out, phrase="a long passphrase")
    assert result.returncode == 2
    assert "already" in result.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_inspect_shows_the_public_key(dealt: tuple[Path, Any]) -> None:
    out, result = dealt
    shown = json.loads(run("keys", "inspect", out / "public.key", "--json").stdout)
    assert shown["key_id"] == result["key_id"]
    assert shown["decryption"] == "root"
    assert result["key_id"] in run("keys", "inspect", out / "public.key").stdout


def test_inspect_opens_a_share_with_the_right_passphrase_only(dealt: tuple[Path, Any]) -> None:
    out, result = dealt
    share = out / result["share_files"][1]
    closed = json.loads(run("keys", "inspect", share, "--json").stdout)
    assert (closed["index"], closed["opened"]) == (2, False)
    opened = run("keys", "inspect", share, "--json", phrase="second passphrase")
    assert json.loads(opened.stdout)["opened"] is True
    wrong = run("keys", "inspect", share, phrase="first passphrase")
    assert wrong.returncode == 2
    assert_one_failure(wrong)
    assert "passphrase is wrong" in wrong.stderr


def test_truncated_foreign_and_missing_files_are_one_clear_line(
    dealt: tuple[Path, Any], tmp_path: Path
) -> None:
    out, result = dealt
    share = (out / result["share_files"][0]).read_bytes()
    public = (out / "public.key").read_bytes()
    files = {
        "cut.share": share[:50],
        "cut.key": public[:-3],
        "long.key": public + b"\0",
        "foreign": b"-----BEGIN RSA PRIVATE KEY-----",
        "empty": b"",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in (*files, "missing"):
        failed = run("keys", "inspect", tmp_path / name, phrase="first passphrase")
        assert failed.returncode == 2, name
        assert_one_failure(failed)
        assert failed.stdout == "", name


def test_material_dealt_before_0_2_0_is_refused_with_what_to_do(
    dealt: tuple[Path, Any], tmp_path: Path
) -> None:
    out, result = dealt
    for name in ("public.key", result["share_files"][0]):
        old = tmp_path / "old"
        old.write_bytes((out / name).read_bytes().replace(b" 2\n", b" 1\n", 1))
        refused = run("keys", "inspect", old, phrase="first passphrase")
        assert refused.returncode == 2
        assert_one_failure(refused)
        assert "before 0.2.0" in refused.stderr
        assert "dppp keys deal" in refused.stderr


def test_a_key_file_takes_the_place_of_a_passphrase(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"\n\0 raw bytes, lines and all\n" * 2)
    out = tmp_path / "keys"
    result = run(*DEAL, "--out", out, "--key-file", key)
    assert result.returncode == 0, result.stderr
    assert "same passphrase" in result.stderr
    opened = run("keys", "inspect", out / "teacher-3.share", "--key-file", key, "--json")
    assert json.loads(opened.stdout)["opened"] is True
    both = run(*DEAL, "--out", tmp_path / "b", "--key-file", key, "--passphrase-file", key)
    assert both.returncode == 2


@pytest.mark.parametrize(
    ("change", "phrase", "says"),
    [
        ((), None, "no passphrase"),
        ((), "short", "longer"),
        (("--threshold", "4"), "a long passphrase", "threshold"),
        (("--threshold", "1"), "a long passphrase", "threshold"),
        (("--modulus-bits", "1024"), "a long passphrase", "choose an even number from 2048"),
        (("--s", "0"), "a long passphrase", "s is 0"),
        (("--decryption", "guess"), "a long passphrase", "guess"),
        (("--passphrase", "on the command line"), None, "passphrase"),
        (("--passphrase-file", "two-lines"), None, "2 lines"),
    ],
)
def test_bad_terms_are_exit_2_and_leave_nothing_behind(
    tmp_path: Path, change: tuple[str, ...], phrase: str | None, says: str
) -> None:
    (tmp_path / "two-lines").write_text("one passphrase\nanother one\n")
    out = tmp_path / "keys"
    result = run(*DEAL, "--out", out, *change, phrase=phrase, folder=tmp_path)
    assert result.returncode == 2
    assert_one_failure(result)
    assert says in result.stderr
    assert not out.exists()


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run(*DEAL, "--out", tmp_path / "file" / "keys", phrase="a long passphrase")
    assert result.returncode == 2
    assert "\ndppp: cannot write" in f"\n{result.stderr}"
