"""`dppp keys`: what is refused, in one clear line. What is dealt is in test_ceremony.py."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.small_federation import dealt_key

from dppp.protocol.messages import TaskId
from dppp.service.ceremony.share_envelope import seal_to

SEALED = seal_to(
    X25519PrivateKey.generate().public_key().public_bytes_raw(),
    dealt_key(3, 2).shares[1],
    TaskId(b"t" * 32),
)


def test_a_share_says_whose_it_is_without_being_opened(tmp_path: Path) -> None:
    file = tmp_path / "teacher.share"
    file.write_bytes(SEALED)
    found = json_of(f"keys inspect {file}")
    assert (found["index"], found["task_id"]) == (2, (b"t" * 32).hex())
    assert (b"t" * 32).hex() in run_dppp(f"keys inspect {file}").stdout


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (SEALED[:40], "cut short"),
        (b"-----BEGIN RSA PRIVATE KEY-----", "not a share from `dppp keys deal`"),
        (b"", "not a share from `dppp keys deal`"),
        (SEALED.replace(b" 2\n", b" 1\n", 1), "before 0.2.0"),
        (dealt_key(3, 2).public.to_bytes(), "not a share from `dppp keys deal`"),
        (None, "cannot read"),
    ],
    ids=["cut", "foreign", "empty", "of version 1", "a public key", "missing"],
)
def test_what_is_not_a_share_is_one_clear_line(
    tmp_path: Path, data: bytes | None, word: str
) -> None:
    file = tmp_path / "teacher.share"
    if data is not None:
        file.write_bytes(data)
    assert_refused(2, word, run_dppp(f"keys inspect {file}"))


def test_a_share_without_a_federation_cannot_be_dealt(tmp_path: Path) -> None:
    out = tmp_path / "dealt"
    assert_refused(2, "--federation", run_dppp(f"keys deal --out {out}"))
    terms = "--teachers 3 --threshold 2"
    refused = run_dppp(f"keys deal --federation {tmp_path} --out {out} {terms}")
    assert_refused(2, "--teachers", refused)
    assert not out.exists()
