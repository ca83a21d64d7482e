"""An organisation with two roles sends one file; nothing else gets in by it."""

import io
import zipfile
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.cli.test_ceremony_masks import INIT

from dppp.errors import FederationError
from dppp.service.ceremony.home import make_home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.parcel import read_requests_in, write_parcel


def archive_of(*entries: tuple[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def test_requests_come_out_as_they_went_in_with_a_readme(tmp_path: Path) -> None:
    both = [
        make_home(tmp_path / "b", name="hospital b"),
        make_home(tmp_path / "broker", name="hosting", role=Role.BROKER, hosts=["localhost"]),
    ]
    packed = write_parcel(both)
    assert read_requests_in(packed) == tuple(both)
    assert read_requests_in(both[0].to_bytes()) == (both[0],)
    assert write_parcel(both) == packed
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        readme = archive.read("README.txt").decode()
    assert all(each.spoken_fingerprint in readme for each in both)


def test_an_archive_with_anything_else_is_refused_as_a_whole(tmp_path: Path) -> None:
    request = make_home(tmp_path / "b", name="hospital b").to_bytes()
    good = ("a.json", request)
    for data, word in (
        (archive_of(good, ("../../key.pem", b"x")), "key.pem"),
        (archive_of(good, ("b.json", b"x" * 70_000)), "b.json"),
        (archive_of(("a.json", bytes(60_000)), how=zipfile.ZIP_DEFLATED), "a.json"),
        (archive_of(("README.txt", b"empty")), "no join request"),
        (archive_of(good)[:-30], "cannot be read"),
        (archive_of(("a.json", request[:-9] + b'"}\n')), "JSON|fields|base64|signed"),
        (archive_of(good, *((f"{place}.json", b"{}") for place in range(1_000))), "packs"),
    ):
        with pytest.raises(FederationError, match=word):
            read_requests_in(data)


def test_each_of_three_hospitals_carries_one_file_out_and_one_back(tmp_path: Path) -> None:
    """Also those two that have a second role; from nothing to a federation that all set up."""
    coordinator = tmp_path / "coordinator"
    json_of(INIT.format(folder=coordinator))
    homes = {"a": ["hospital-a"], "b": ["hospital-b", "broker"], "c": ["hospital-c", "aggregator"]}
    out = []
    for name in "abc":
        own = f"--name 'hospital {name}'"
        sent = json_of(f"join {tmp_path}/hospital-{name} {own}")["request_file"]
        together = f"--together-with {tmp_path}/hospital-{name}"
        if name == "b":
            other = f"join {tmp_path}/broker --name hosting --role broker --host localhost"
            sent = json_of(f"{other} {together}")["request_file"]
        if name == "c":
            other = f"join {tmp_path}/aggregator --name university --role aggregator"
            sent = json_of(f"{other} {together}")["request_file"]
        out.append(sent)
    assert [Path(each).name for each in out] == [
        "join-request.json",
        "join-requests.zip",
        "join-requests.zip",
    ]
    made = json_of(f"collect {coordinator} {' '.join(out)} --out {tmp_path}/made")
    assert len(made["joined"]) == 5
    back = [path.name for path in (tmp_path / "made").iterdir()]
    assert back == ["federation.json"]
    for home in (home for each in homes.values() for home in each):
        place = f"--ledger {tmp_path / home}.db --head {tmp_path / home}.head"
        ledger = place if home.startswith("hospital") else ""
        file, expected = made["federation_file"], made["federation_hash"]
        json_of(f"setup {tmp_path / home} --federation {file} --hash {expected} {ledger}")
    missing = f"join {tmp_path}/d --name 'hospital d' --together-with {tmp_path}/nothing"
    assert_refused(2, "cannot read", run_dppp(missing))
    assert not (tmp_path / "d").exists()
