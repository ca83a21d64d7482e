"""The federation file: one text, one meaning, and nothing in it that contradicts itself."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.ceremony.ceremonies import Ceremony, hold
from tests.small_federation import dealt_key

from dppp.errors import FederationChanged, FederationError, InputError
from dppp.paillier.keys import PublicKey
from dppp.service.ceremony.authority import make_tls_key, make_tls_request
from dppp.service.ceremony.coordinator import read_authority
from dppp.service.ceremony.dealing import deal_federation, share_files
from dppp.service.ceremony.federation_file import FederationFile, read_federation, read_hash
from dppp.service.ceremony.json_document import to_text


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Ceremony:
    """Another federation of the same names."""
    return hold(tmp_path_factory.mktemp("other"))


def read(data: bytes) -> FederationFile:
    return FederationFile.from_bytes(data, insecure_testing=True)


def test_writing_and_reading_are_inverse(ceremony: Ceremony) -> None:
    federation = ceremony.federation
    again = read(federation.to_bytes())
    assert again == federation
    assert again.hash == federation.hash
    assert len(federation.hash) == 32
    assert federation.subject_prefix == f"dppp.{federation.task.task_id.hex()[:16]}"


def test_teachers_are_in_the_order_of_their_names(ceremony: Ceremony) -> None:
    names = [member.name for member in ceremony.federation.teachers]
    assert names == sorted(names)
    assert [ceremony.federation.index_of(name) for name in names] == [1, 2, 3]
    with pytest.raises(FederationError, match="no teacher 'nobody'"):
        ceremony.federation.index_of("nobody")


def test_a_file_with_another_hash_is_refused(ceremony: Ceremony) -> None:
    path = ceremony.root / "dealt" / "federation.json"
    good = ceremony.federation.hash
    assert read_federation(path, good, insecure_testing=True) == ceremony.federation
    bad = bytes((good[0] ^ 1,)) + good[1:]
    with pytest.raises(FederationChanged, match="telephone"):
        read_federation(path, bad, insecure_testing=True)


def test_a_short_key_is_refused_unless_a_test_asks_for_it(ceremony: Ceremony) -> None:
    with pytest.raises(InputError, match="bits"):
        FederationFile.from_bytes(ceremony.federation.to_bytes())


def test_a_hash_is_read_as_people_type_it() -> None:
    assert read_hash("ab " * 32) == b"\xab" * 32
    for bad in ("", "ab", "zz" * 32, "ab" * 33):
        with pytest.raises(FederationError, match="64 hexadecimal digits"):
            read_hash(bad)


Change = Callable[[dict[str, Any], dict[str, Any]], object]

CHANGES: dict[str, tuple[Change, str]] = {
    "an unknown key": (lambda here, _: here.update(more=1), "exactly the fields"),
    "a missing key": (lambda here, _: here.pop("broker"), "exactly the fields"),
    "another kind": (
        lambda here, _: here.update(kind="dppp join request"),
        "not a dppp federation",
    ),
    "another version": (lambda here, _: here.update(version=2), "version 1"),
    "no text": (lambda here, _: here.update(authority=7), "must be text"),
    "no list": (lambda here, _: here.update(teachers={}), "must be a list"),
    "no object": (lambda here, _: here.update(broker=[]), "exactly the fields"),
    "no base64": (lambda here, _: here.update(task="!"), "not base64"),
    "no task": (lambda here, _: here.update(task="AAAA"), "not a task"),
    "no key": (lambda here, _: here.update(public_key="AAAA"), "public key"),
    "null for a key": (lambda here, _: here.update(public_key=None), "no public key"),
    "another's key": (lambda here, there: here.update(public_key=there["x"]), "not the task's"),
    "no certificate": (lambda here, _: here.update(authority="x"), "cannot be read"),
    "another authority": (
        lambda here, there: here.update(authority=there["authority"]),
        "not issued by this",
    ),
    "an authority that is none": (
        lambda here, _: here.update(authority=here["broker"]["certificate"]),
        "not a certificate authority",
    ),
    "one teacher less": (lambda here, _: here["teachers"].pop(), "different teachers"),
    "teachers in another order": (lambda here, _: here["teachers"].reverse(), "different teachers"),
    "another signing key": (
        lambda here, there: here["teachers"][0].update(
            signing_key=there["teachers"][0]["signing_key"]
        ),
        "different teachers or keys of theirs",
    ),
    "a sealing key of 31 bytes": (
        lambda here, _: here["teachers"][0].update(sealing_key=to_text(bytes(31))),
        "32 bytes",
    ),
    "a sealing key twice": (
        lambda here, _: here["teachers"][0].update(sealing_key=here["teachers"][1]["sealing_key"]),
        "different teachers or keys of theirs",
    ),
    "another's nkey": (
        lambda here, there: here["teachers"][0].update(nkey=there["teachers"][0]["nkey"]),
        "names somebody else",
    ),
    "a mistyped nkey": (
        lambda here, _: here["teachers"][0].update(
            nkey=here["teachers"][0]["nkey"].translate(str.maketrans("ABCDEF", "BCDEFA"))
        ),
        "not the public nkey",
    ),
    "another's certificate": (
        lambda here, _: here["teachers"][0].update(certificate=here["teachers"][1]["certificate"]),
        "names somebody else",
    ),
    "a certificate of another authority": (
        lambda here, there: here["teachers"][0].update(
            certificate=there["teachers"][0]["certificate"]
        ),
        "not issued by this",
    ),
    "another host": (lambda here, _: here["broker"].update(hosts=["evil.org"]), "somebody else"),
    "no host name": (lambda here, _: here["broker"].update(hosts=["a b"]), "neither a host name"),
    "a broker with an nkey": (
        lambda here, _: here["broker"].update(nkey=here["aggregator"]["nkey"]),
        "broker",
    ),
    "an aggregator without one": (
        lambda here, _: here["aggregator"].update(nkey=None),
        "broker",
    ),
    "hosts that are no texts": (
        lambda here, _: here["broker"].update(hosts=["localhost", 7]),
        "hosts must be a list of texts",
    ),
    "broker and aggregator in each other's place": (
        lambda here, _: here.update(aggregator=here["broker"], broker=here["aggregator"]),
        "an aggregator has an nkey, and a broker has none",
    ),
    "another signing key of the aggregator than the task's": (
        lambda here, _: here["aggregator"].update(signing_key=here["broker"]["signing_key"]),
        "different signing keys of the aggregator",
    ),
    "an aggregator named as a teacher": (
        lambda here, _: here["aggregator"].update(name=here["teachers"][0]["name"]),
        "same name",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_file_is_refused_with_a_reason(
    ceremony: Ceremony, other: Ceremony, what: str
) -> None:
    change, says = CHANGES[what]
    here = json.loads(ceremony.federation.to_bytes())
    there = json.loads(other.federation.to_bytes())
    there["x"] = to_text(dealt_key(3, 2).public.to_bytes())
    change(here, there)
    data = (json.dumps(here, indent=2) + "\n").encode()
    with pytest.raises(InputError, match=says) as caught:
        read(data)
    assert "\n" not in caught.value.one_line
    assert len(str(caught.value)) < 500


def test_a_second_text_of_the_same_meaning_is_refused(ceremony: Ceremony) -> None:
    data = ceremony.federation.to_bytes()
    for changed in (
        data + b"\n",
        data.replace(b"\n", b"\r\n"),
        json.dumps(json.loads(data)).encode(),
    ):
        with pytest.raises(FederationError, match="byte for byte"):
            read(changed)
    doubled = data.replace(b'{\n  "kind"', b'{\n  "version": 1,\n  "kind"', 1)
    with pytest.raises(FederationError, match="twice"):
        read(doubled)


def test_what_is_no_json_is_one_clear_line() -> None:
    for data in (b"", b"\xff", b"[" * 100_000, b"null", b"{}", b"[]", b"1", b'{"kind": NaN}'):
        with pytest.raises(FederationError) as caught:
            read(data)
        assert "\n" not in caught.value.one_line


@given(st.data())
def test_no_damage_gets_through(ceremony: Ceremony, data: st.DataObject) -> None:
    """A byte changed anywhere is refused, or is another file with another hash."""
    good = bytearray(ceremony.federation.to_bytes())
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= data.draw(st.integers(1, 255))
    try:
        found = read(bytes(good))
    except InputError:
        return
    assert found.hash != ceremony.federation.hash


def test_the_public_key_must_be_the_tasks(ceremony: Ceremony) -> None:
    foreign: PublicKey = dealt_key(3, 2).public
    with pytest.raises(InputError, match="not the task's"):
        replace(ceremony.federation, public=foreign)


def test_the_order_of_the_teachers_is_nobodys_choice(ceremony: Ceremony) -> None:
    """Everybody derives it, so a coordinator cannot deal two files of one meaning."""
    whole = ceremony.federation
    task = replace(whole.task, teachers=whole.task.teachers[::-1])
    with pytest.raises(FederationError, match="not in the order of their names"):
        replace(whole, task=task, teachers=whole.teachers[::-1])


def test_one_tls_key_for_two_is_refused(ceremony: Ceremony) -> None:
    authority = read_authority(ceremony.root / "coordinator")
    first, second, third = ceremony.federation.teachers
    key = make_tls_key()
    doubled = [
        replace(
            each,
            tls_certificate=authority.issue(
                make_tls_request(key, each.identity), each.identity, now=datetime.now(UTC)
            ),
        )
        for each in (first, second)
    ]
    with pytest.raises(FederationError, match="hospital b has the TLS key of somebody else"):
        replace(ceremony.federation, teachers=(*doubled, third))


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "federation.json"
    path.write_bytes(b"{}")
    with pytest.raises(FederationError, match=re.escape(f"{path}: dppp federation must have")):
        read_federation(path, None)


def test_a_file_far_too_long_is_not_even_read_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dppp.service.ceremony.json_document.SIZE_LIMIT", 1_000)
    with pytest.raises(FederationError, match="has at most 1,000 bytes"):
        read(b" " * 1_001)


def test_file_names_are_plain_and_distinct() -> None:
    names = ("Hôpital Nord", "a/b", "a b", "病院", "..")
    assert share_files(names) == (
        "hopital-nord.share",
        "a-b-2.share",
        "a-b-3.share",
        "teacher-4.share",
        "teacher-5.share",
    )


def test_dealing_again_overwrites_nothing(ceremony: Ceremony, tmp_path: Path) -> None:
    folder = ceremony.root / "dealt"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match="already"):
        deal_federation(ceremony.root / "coordinator", folder, key=dealt_key(3, 3))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
