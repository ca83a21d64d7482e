"""The secrets of epochs: on disk before use, the same for all processes, gone when forgotten."""

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.service.stores import epoch_secrets_process
from tests.service.stores.epoch_secrets_process import TASK, offered
from tests.service.stores.full_disk import no_file_longer_than

from dppp import calibrate, create_federation
from dppp.errors import EpochSecretsUnavailable, InputError, KeyMaterialError
from dppp.protocol.signing import signer_of
from dppp.protocol.with_masks.keys import KeyRing
from dppp.service.stores.epoch_secrets import SqliteEpochSecrets, open_epoch_secrets

OTHER_TASK = b"\x08" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "epoch-secrets.db"


@pytest.fixture
def secrets(path: Path) -> Iterator[SqliteEpochSecrets]:
    with open_epoch_secrets(path) as opened:
        yield opened


def on_disk(path: Path) -> bytes:
    """All bytes of the file and of whatever SQLite has put beside it."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.iterdir()))


def test_the_first_secret_of_an_epoch_counts_and_is_there_after_a_restart(path: Path) -> None:
    with open_epoch_secrets(path) as secrets:
        assert secrets.put_once(TASK, 1, b"first") == b"first"
        assert secrets.put_once(TASK, 1, b"second") == b"first"
        assert secrets.put_once(OTHER_TASK, 1, b"other") == b"other"
    with open_epoch_secrets(path) as secrets:
        assert secrets.get(TASK, 1) == b"first"
        assert secrets.get(OTHER_TASK, 1) == b"other"
        assert secrets.get(TASK, 2) is None


def test_commits_wait_for_the_disk_and_deleted_bytes_are_overwritten(
    secrets: SqliteEpochSecrets,
) -> None:
    with secrets._file.transaction() as connection:
        found = [
            connection.execute(f"PRAGMA {each}").fetchone()[0]
            for each in ("journal_mode", "synchronous", "secure_delete")
        ]
    assert found == ["truncate", 2, 1]


def test_a_stored_secret_cannot_be_changed(secrets: SqliteEpochSecrets, path: Path) -> None:
    secrets.put_once(TASK, 1, b"first")
    other = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="written once"):
        other.execute("UPDATE epoch_secret SET secret = x'00'")
    other.close()


def test_what_is_forgotten_is_in_no_byte_of_the_file_and_its_journal(
    secrets: SqliteEpochSecrets, path: Path
) -> None:
    kept = {epoch: random.Random(epoch).randbytes(36) for epoch in range(20_000, 20_005)}  # noqa: S311
    for epoch, secret in kept.items():
        secrets.put_once(TASK, epoch, secret)
        secrets.put_once(OTHER_TASK, epoch, secret[::-1])
    assert all(secret in on_disk(path) for secret in kept.values())  # or nothing below says much
    secrets.forget_before(TASK, 20_003)
    for epoch, secret in kept.items():
        is_there = epoch >= 20_003
        assert (secrets.get(TASK, epoch) == secret) is is_there
        assert (secret in on_disk(path)) is is_there
        assert secret[::-1] in on_disk(path)


def test_forgetting_thousands_leaves_none_behind_in_moved_or_freed_pages(
    secrets: SqliteEpochSecrets, path: Path
) -> None:
    made = random.Random(1)  # noqa: S311
    kept = {epoch: made.randbytes(36) for epoch in made.sample(range(10_000), 2_000)}
    rows = [(TASK, epoch, secret) for epoch, secret in kept.items()]
    for at in range(0, len(rows), 100):
        with secrets._file.transaction() as connection:
            connection.executemany("INSERT INTO epoch_secret VALUES (?, ?, ?)", rows[at : at + 100])
    for before in (1, 2_500, 2_501, 7_000, 9_990):
        secrets.forget_before(TASK, before)
        found = on_disk(path)
        left = {epoch for epoch, secret in kept.items() if secret[4:-4] in found}
        assert left == {epoch for epoch in kept if epoch >= before}


def test_forgetting_nothing_writes_nothing(secrets: SqliteEpochSecrets, path: Path) -> None:
    secrets.put_once(TASK, 5, b"kept")
    before = path.stat().st_mtime_ns
    secrets.forget_before(TASK, 5)
    assert path.stat().st_mtime_ns == before


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    script = epoch_secrets_process.__file__
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, script, str(path), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_of_two_processes_that_race_both_get_the_same_secrets(path: Path) -> None:
    racers = [start(path, name, 40) for name in ("one", "two")]
    said = [racer.communicate(timeout=60)[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert said[0] == said[1]
    with open_epoch_secrets(path) as secrets:
        for epoch in range(40):
            assert secrets.get(TASK, epoch) in (offered("one", epoch), offered("two", epoch))


def test_what_was_said_to_be_stored_is_there_after_kill_9(path: Path) -> None:
    with start(path, "one", 100_000) as killed:
        assert killed.stdout is not None
        said = [killed.stdout.readline().split() for _ in range(25)]
        killed.kill()
        said += [line.split() for line in killed.stdout.read().splitlines()]
    with open_epoch_secrets(path) as secrets:
        whole = [line for line in said if len(line) == 2 and len(line[1]) == 80]
        assert len(whole) >= 25
        assert [secrets.get(TASK, int(epoch)) for epoch, _ in whole] == [
            bytes.fromhex(secret) for _, secret in whole
        ]


def test_a_full_disk_is_said_and_nothing_is_half_stored(
    secrets: SqliteEpochSecrets, path: Path
) -> None:
    secrets.put_once(TASK, 1, b"first")
    with (
        no_file_longer_than(path.stat().st_size),
        pytest.raises(EpochSecretsUnavailable, match="nothing was sent"),
    ):
        secrets.put_once(TASK, 2, bytes(100_000))
    assert secrets.get(TASK, 2) is None
    assert secrets.put_once(TASK, 2, b"later") == b"later"


def test_nobody_else_on_the_machine_reads_secrets(path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open_epoch_secrets(path) as secrets:
            secrets.put_once(TASK, 1, b"first")
            modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert len(modes) == 2  # the file and its journal, which is empty
    assert set(modes.values()) == {0o600}, modes
    path.chmod(0o640)
    with pytest.raises(KeyMaterialError, match="chmod 600"):
        SqliteEpochSecrets(path)


def test_a_file_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"somebody's letter, longer than the header of SQLite" * 20)
    path.chmod(0o600)
    with pytest.raises(InputError, match="does not hold the secrets of epochs"):
        SqliteEpochSecrets(path)
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(InputError, match="does not hold the secrets of epochs"):
        SqliteEpochSecrets(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(EpochSecretsUnavailable, match=r"nowhere/secrets\.db"):
        SqliteEpochSecrets(tmp_path / "nowhere" / "secrets.db")


def test_a_teachers_key_ring_leaves_nothing_of_an_epoch_that_is_over(
    secrets: SqliteEpochSecrets, path: Path
) -> None:
    """As its station does it in a quiet moment: nobody has to send anything."""
    promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    task = create_federation(
        name="fruit",
        class_names=["apple", "pear"],
        features=["weight"],
        certificate=promise,
        models=[lambda rows: [1] * len(rows)] * 4,
    ).task
    signer = signer_of(Ed25519PrivateKey.generate())
    ring = KeyRing(task=task, index=1, signer=signer, secrets=secrets)
    assert task.masks is not None
    length, now = task.masks.epoch_seconds, 1_000_000_000
    epoch = task.epoch_at(now)
    ring.publish(epoch, now=now)
    stored = secrets.get(task.task_id, epoch)
    assert stored is not None
    ring.forget(now=now + length)
    assert stored in on_disk(path)  # batches of the last epoch may still be under way
    ring.forget(now=now + 2 * length)
    assert secrets.get(task.task_id, epoch) is None
    for at in range(len(stored) - 16):
        assert stored[at : at + 16] not in on_disk(path)


def test_who_stops_for_good_forgets_the_last_epochs_too_and_they_are_gone_from_the_disk(
    path: Path,
) -> None:
    kept = [bytes([value]) * 68 for value in (11, 12)]
    with open_epoch_secrets(path) as secrets:
        for epoch, secret in enumerate(kept):
            secrets.put_once(TASK, epoch, secret)
        assert all(secret in on_disk(path) for secret in kept)
        assert (secrets.forget_all(), secrets.forget_all()) == (2, 0)
    assert not any(secret in on_disk(path) for secret in kept)
