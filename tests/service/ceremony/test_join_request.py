"""Join requests: signed by the one who joins, and refused when anything in them was changed."""

import base64
import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import nkeys
import pytest
from tests.service.ceremony.ceremonies import (
    AGGREGATOR,
    BROKER,
    TEACHERS,
    Ceremony,
    join_all,
    terms,
)

from dppp.errors import FederationError, InputError
from dppp.service.ceremony.coordinator import (
    collect,
    init_federation,
    read_authority,
    read_requests,
)
from dppp.service.ceremony.dealing import deal_federation
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.identity import Identity, Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.nkey import make_seed, public_nkey, require_nkey


def test_writing_and_reading_are_inverse(ceremony: Ceremony) -> None:
    for name in (*TEACHERS, AGGREGATOR, BROKER):
        path = ceremony.home(name).folder / "join-request.json"
        request = JoinRequest.from_bytes(path.read_bytes())
        assert request.to_bytes() == path.read_bytes()
        assert request.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    assert ceremony.home(BROKER).request().identity.hosts == ("localhost", "127.0.0.1")


def test_private_keys_stay_in_their_home(ceremony: Ceremony) -> None:
    sent = b"".join(path.read_bytes() for path in (ceremony.root / "coordinator").rglob("*.json"))
    sent += (ceremony.root / "dealt" / "federation.json").read_bytes()
    for name in TEACHERS:
        home = ceremony.home(name)
        assert home.nats_seed().encode() not in sent
        for key in (home.signing_key(), home.sealing_key()):
            assert base64.b64encode(key.private_bytes_raw()) not in sent
        assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
        for secret in ("signing.key", "sealing.key", "tls.key", "nats.seed"):
            assert stat.S_IMODE((home.folder / secret).stat().st_mode) == 0o600


def test_names_may_be_in_any_script(tmp_path: Path) -> None:
    for place, name in enumerate(("é" * 32, "病院", 'the "first" \\ one')):
        request = make_home(tmp_path / str(place), name=name)
        assert JoinRequest.from_bytes(request.to_bytes()).name == name
    long = terms().model_copy(update={"name": "病" * 60})
    init_federation(tmp_path / "coordinator", long)
    assert read_authority(tmp_path / "coordinator").pem


def test_joining_again_overwrites_nothing(tmp_path: Path) -> None:
    make_home(tmp_path / "home", name="one")
    before = {path.name: path.read_bytes() for path in (tmp_path / "home").iterdir()}
    with pytest.raises(InputError, match="nothing is overwritten"):
        make_home(tmp_path / "home", name="two")
    assert {path.name: path.read_bytes() for path in (tmp_path / "home").iterdir()} == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "somebody"}, "not its own"),
        ({"role": "aggregator"}, "a teacher has a sealing key, and nobody else"),
        ({"role": "king"}, "'king' is not a role\nhint: choose teacher, aggregator, broker"),
        ({"nkey": public_nkey(make_seed())}, "not its own"),
        ({"nkey": None}, "teachers and the aggregator have an nkey"),
        ({"sealing_key": base64.b64encode(bytes(32)).decode()}, "not signed by its own key"),
        ({"sealing_key": base64.b64encode(bytes(31)).decode()}, "32 bytes each"),
        ({"sealing_key": None}, "a teacher has a sealing key, and nobody else"),
        ({"signing_key": base64.b64encode(bytes(32)).decode()}, "not signed by its own key"),
        ({"signature": base64.b64encode(bytes(64)).decode()}, "not signed by its own key"),
        ({"signature": base64.b64encode(b"x" * 64).decode()}, "not signed by its own key"),
        ({"signature": ""}, "not signed by its own key"),
        ({"certificate_request": "-----BEGIN CERTIFICATE REQUEST-----"}, "cannot be read"),
        ({"more": 1}, "exactly the fields"),
    ],
)
def test_a_changed_request_is_refused(
    ceremony: Ceremony, change: dict[str, Any], says: str
) -> None:
    whole = json.loads(ceremony.home(TEACHERS[0]).request().to_bytes()) | change
    with pytest.raises(FederationError, match=says) as caught:
        JoinRequest.from_bytes((json.dumps(whole, indent=2) + "\n").encode())
    assert "\n" not in caught.value.one_line


def test_another_certificate_request_is_refused(ceremony: Ceremony) -> None:
    one, other = (json.loads(ceremony.home(name).request().to_bytes()) for name in TEACHERS[:2])
    one["certificate_request"] = other["certificate_request"]
    with pytest.raises(FederationError, match="not its own"):
        JoinRequest.from_bytes((json.dumps(one, indent=2) + "\n").encode())


@pytest.mark.parametrize("name", ["", " a", "a\nb", "x" * 65, "é" * 33, "a\x00", "\ud800"])
def test_names_are_printable_and_fit_a_certificate(tmp_path: Path, name: str) -> None:
    with pytest.raises(FederationError, match="1 to 64 printable"):
        make_home(tmp_path / "home", name=name)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("host", ["", "a b", "nats.example.org:4222", "UPPER.org", "-a", "a..b"])
def test_a_broker_names_hosts(tmp_path: Path, host: str) -> None:
    with pytest.raises(FederationError, match="host"):
        make_home(tmp_path / "home", name="b", role=Role.BROKER, hosts=[host])
    with pytest.raises(FederationError, match="--host"):
        make_home(tmp_path / "home", name="b", role=Role.BROKER)
    with pytest.raises(FederationError, match="nobody else has one"):
        make_home(tmp_path / "home", name="b", hosts=["nats.example.org"])


def test_an_nkey_has_a_checksum() -> None:
    good = public_nkey(make_seed())
    require_nkey(good)
    for bad in ("", good[:-1], good.lower(), "A" + good[1:], good[:10] + good[11:] + "A", "é" * 56):
        with pytest.raises(FederationError, match="begins with U"):
            require_nkey(bad)


def test_a_broker_with_an_nkey_is_refused() -> None:
    with pytest.raises(FederationError, match="a broker has none"):
        Identity(role=Role.BROKER, name="b", nkey=public_nkey(make_seed()), hosts=("h",))


SEED = make_seed(lambda count: bytes(range(count)))
OF_AN_ACCOUNT = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_ACCOUNT).decode()


@pytest.mark.parametrize(
    "seed",
    ["", "SU", SEED[:-1], SEED[:30], SEED.lower(), f"{SEED}A", "é" * 58, OF_AN_ACCOUNT]
    + [
        f"{SEED[:place]}{'A' if SEED[place] != 'A' else 'B'}{SEED[place + 1 :]}"
        for place in (9, 56)
    ],
)
def test_a_mistyped_seed_is_refused_and_not_repeated(tmp_path: Path, seed: str) -> None:
    make_home(tmp_path / "home", name="one")
    home = Home(folder=tmp_path / "home")
    (home.folder / "nats.seed").write_text(seed)
    with pytest.raises(FederationError, match="not the seed of a NATS user") as caught:
        home.nats_seed()
    assert not seed or seed not in str(caught.value)
    assert public_nkey(SEED).startswith("U")


def test_only_a_coordinators_folder_collects(tmp_path: Path) -> None:
    request = make_home(tmp_path / "home", name="one")
    with pytest.raises(InputError, match="a coordinator's folder\nhint: make one with `dppp init`"):
        collect(tmp_path / "home", [request])
    with pytest.raises(InputError, match="make the folder with `dppp init`"):
        deal_federation(tmp_path / "home", tmp_path / "dealt")


def test_collecting_again_changes_nothing(tmp_path: Path) -> None:
    join_all(tmp_path)
    before = read_requests(tmp_path / "coordinator")
    collect(tmp_path / "coordinator", before)
    assert read_requests(tmp_path / "coordinator") == before
    assert [each.name for each in before] == [*TEACHERS, AGGREGATOR, BROKER]


def test_two_of_one_name_or_key_or_role_are_refused_and_none_is_kept(tmp_path: Path) -> None:
    join_all(tmp_path)
    coordinator = tmp_path / "coordinator"
    before = read_requests(coordinator)
    namesake = make_home(tmp_path / "namesake", name=TEACHERS[0])
    fresh = make_home(tmp_path / "fresh", name="fresh")
    second = make_home(tmp_path / "second", name="second", role=Role.AGGREGATOR)
    for bad, says in ((namesake, "same name"), (second, "one aggregator")):
        with pytest.raises(FederationError, match=says):
            collect(coordinator, [fresh, bad])
        assert read_requests(coordinator) == before


def test_dealing_needs_everybody(tmp_path: Path) -> None:
    folder = tmp_path / "coordinator"
    init_federation(folder, terms())
    arrivals = (
        (make_home(tmp_path / "a", name="a"), "no aggregator"),
        (make_home(tmp_path / "g", name="g", role=Role.AGGREGATOR), "no broker"),
        (make_home(tmp_path / "b", name="b", role=Role.BROKER, hosts=["h"]), "at least 2"),
    )
    for request, says in arrivals:
        collect(folder, [request])
        with pytest.raises(FederationError, match=says):
            deal_federation(folder, tmp_path / "dealt")
    assert not (tmp_path / "dealt").exists()


def test_a_request_that_was_damaged_in_the_folder_is_named(tmp_path: Path) -> None:
    join_all(tmp_path)
    path = next((tmp_path / "coordinator" / "requests").iterdir())
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FederationError, match=path.name):
        read_requests(tmp_path / "coordinator")


def test_secrets_that_others_can_read_are_refused(tmp_path: Path) -> None:
    make_home(tmp_path / "home", name="one")
    home = Home(folder=tmp_path / "home")
    (home.folder / "signing.key").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        home.signing_key()
    (home.folder / "sealing.key").write_bytes((home.folder / "signing.key").read_bytes())
    with pytest.raises(InputError, match="not hold a private key of its kind"):
        home.sealing_key()
    with pytest.raises(InputError, match="dppp setup"):
        home.tls_context()
