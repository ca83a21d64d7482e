"""`dppp aggregator token`: what it prints is what the configuration takes."""

import shlex
import stat
import tomllib
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp

from dppp.service.gateway.queriers import hash_token
from dppp.service.process.config import Querier


@pytest.mark.parametrize("name", ["clinic", 'the "old" clinic', "Klinik [bold]Süd[/bold]"])
def test_the_lines_that_are_printed_are_an_entry_of_the_configuration(
    tmp_path: Path, name: str
) -> None:
    out = tmp_path / "clinic.token"
    told = run_dppp(f"aggregator token --name {shlex.quote(name)} --queries 70 --out {out}")
    assert told.returncode == 0, told.stderr
    (plain,) = tomllib.loads(told.stdout[told.stdout.index("[[queriers]]") :])["queriers"]
    querier = Querier(**plain)
    assert (querier.name, querier.queries) == (name, 70)
    assert querier.token_sha256 == hash_token(out.read_text(encoding="utf-8").strip())
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_token_has_an_allowance_that_the_operator_chose(tmp_path: Path) -> None:
    asked = f"aggregator token --name clinic --out {tmp_path / 'token'}"
    assert_refused(2, "--queries", run_dppp(asked))
    assert_refused(2, "--queries", run_dppp(f"{asked} --queries 0"))
    assert not (tmp_path / "token").exists()
    assert json_of(f"{asked} --queries 5")["queries"] == 5
