"""`dppp query` against a gateway over real HTTP: killed, badly fed, with a wrong token."""

import csv
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.protocol.small import CLASS_NAMES, FEATURES, small
from tests.service.gateway.served import serve
from tests.service.gateway.test_application import ALICE, BOB, QUERIERS
from tests.service.process.tls_keys import make_keys

import dppp.protocol.receipt
import dppp.service.gateway.application
from dppp.cli.verify import find_rows
from dppp.errors import GatewayError, InputError, KeyMaterialError
from dppp.protocol.batch_store import MemoryBatchStore
from dppp.protocol.lead import chance_of_lead, lead_of
from dppp.protocol.receipt import verify_receipt
from dppp.protocol.release import Release
from dppp.protocol.task import Task
from dppp.protocol.wire import encode
from dppp.service.gateway.embedded import Embedded, embed_gateway
from dppp.service.gateway.job import JobId
from dppp.service.gateway.jobs import Jobs
from dppp.service.querier.connection import GatewayConnection

Served = tuple[str, Embedded]
ROWS = [[1, 1], [0, 2], [2, 3], [1, 4], [0, 5]]


@pytest.fixture
def served() -> Iterator[Served]:
    embedded = embed_gateway(small(), store=MemoryBatchStore(), queriers=QUERIERS)
    with serve(embedded.app) as address:
        yield address, embedded


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join(FEATURES), *(",".join(map(str, row)) for row in ROWS)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def command(served: Served, table: Path, *more: str, token: str = ALICE) -> str:
    secret = table.with_name("token")
    secret.write_text(f"{token}\n", encoding="utf-8")
    out = table.with_name("labels.csv")
    asked = f"query --gateway {served[0]} --token-file {secret} --input {table} --out {out}"
    return " ".join([asked, *more])


def spent(served: Served) -> int:
    with GatewayConnection(served[0], ALICE) as gateway:
        return int(gateway.budget()["charged"])


def wait_until(condition: object, served: Served, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if spent(served) == condition:
            return
        time.sleep(0.1)
    raise AssertionError(f"{spent(served)} queries were spent, not {condition}")


def test_a_query_that_was_killed_in_the_middle_goes_on_and_every_row_is_charged_once(
    served: Served, table: Path
) -> None:
    # Teachers that are silent for 12 s count as offline, and a busy machine takes that long.
    asked = command(served, table, "--batch-size", "2", "--insist")
    parts = table.with_name("labels.csv.parts")
    served[1].channel.silent |= {1, 2, 3, 4, 5}
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", *asked.split()], stderr=subprocess.DEVNULL
    )
    wait_until(2, served)  # the first batch is under way, and nobody answers
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    assert parts.exists()
    assert not table.with_name("labels.csv").exists()
    served[1].channel.silent.clear()
    found = json_of(asked)
    assert found["rows"] == len(ROWS)
    assert spent(served) == len(ROWS)
    assert not parts.exists()
    with table.with_name("labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["row"] for line in lines] == ["1", "2", "3", "4", "5"]
    assert {line["label"] for line in lines} <= set(CLASS_NAMES)


def test_an_unfinished_query_with_other_rows_is_refused_until_its_file_is_removed(
    served: Served, table: Path
) -> None:
    parts = table.with_name("labels.csv.parts")
    parts.write_text('{"digest": "of other rows", "parts": [[0, 5, "key", 0]]}', encoding="utf-8")
    assert_refused(2, "belongs to other rows", run_dppp(command(served, table)))
    parts.write_text("not JSON", encoding="utf-8")
    assert_refused(2, "remove it to start again", run_dppp(command(served, table)))
    assert spent(served) == 0
    parts.unlink()
    assert json_of(command(served, table))["rows"] == len(ROWS)


BAD_TABLES = {
    "missing": (None, "cannot read"),
    "empty": (b"", "no rows"),
    "only a header": (b"first,second\n", "no rows"),
    "a column missing": (b"first,third\n1,2\n", "no column 'second'"),
    "text": (b"first,second\n1,2\n1,many\n", "line 3"),
    "text after empty lines": (b"first,second\n\n1,2\n\n1,many\n", "line 5"),
    "an empty cell": (b"first,second\n1,\n", "line 2"),
    "a short line": (b"first,second\n1\n", "line 2 of"),
    "infinite": (b"first,second\n1,inf\n", "finite"),
    "not a number": (b"first,second\nnan,1\n", "nothing in column 'first'"),
    "no text": (b"first,second\n\xff\xfe,1\n", "not a CSV file in UTF-8"),
    "a column twice": (b"first,second,first\n1,2,3\n", "'first' twice"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_clear_line_and_costs_nothing(
    served: Served, table: Path, name: str
) -> None:
    data, word = BAD_TABLES[name]
    table.unlink() if data is None else table.write_bytes(data)
    assert_refused(2, word, run_dppp(command(served, table)))
    assert spent(served) == 0
    assert not table.with_name("labels.csv.parts").exists()


def test_other_columns_are_kept_out_and_any_order_will_do(served: Served, table: Path) -> None:
    table.write_text("name,second,first\nann,7,1\nbob,8,2\n", encoding="utf-8-sig")
    assert json_of(command(served, table))["budget"]["charged"] == 2
    table.write_text("first,second\n1,7\n2,8\n", encoding="utf-8")
    assert json_of(command(served, table))["budget"]["charged"] == 2  # the same rows


def test_a_wrong_token_is_refused_and_leaves_nothing_behind(served: Served, table: Path) -> None:
    assert_refused(1, "401", run_dppp(command(served, table, token="guess")))  # noqa: S106
    assert not table.with_name("labels.csv.parts").exists()


def test_past_the_allowance_nothing_is_begun(served: Served, table: Path) -> None:
    refused = run_dppp(command(served, table, token=BOB))  # who may ask three
    assert refused.returncode == 1
    assert "3 are left for bob" in refused.stderr
    assert "\nhint: ask for fewer" in refused.stderr
    assert spent(served) == 0
    assert not table.with_name("labels.csv.parts").exists()


def test_a_token_in_the_environment_will_do_and_none_at_all_will_not(
    served: Served, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = command(served, table).replace(f"--token-file {table.with_name('token')} ", "")
    monkeypatch.delenv("DPPP_TOKEN", raising=False)
    assert_refused(2, "DPPP_TOKEN", run_dppp(asked))
    monkeypatch.setenv("DPPP_TOKEN", ALICE)
    assert json_of(asked)["rows"] == len(ROWS)


def test_a_batch_that_aborts_names_who_was_missing_and_the_same_command_asks_again(
    table: Path,
) -> None:
    embedded = embed_gateway(
        small(), store=MemoryBatchStore(), queriers=QUERIERS, deadline_seconds=3
    )
    with serve(embedded.app) as address:
        asked = command((address, embedded), table)
        embedded.channel.silent |= {2, 4}
        refused = run_dppp(asked)
        assert refused.returncode == 1
        assert "aborted" in refused.stderr
        assert "missing: teachers 2, 4" in refused.stderr
        embedded.channel.silent.clear()
        again = json_of(asked)
    assert again["rows"] == len(ROWS)
    assert again["budget"]["charged"] == 2 * len(ROWS)  # what was aborted stays charged


def test_a_gateway_that_is_away_is_named_when_patience_is_over() -> None:
    with (
        GatewayConnection("http://127.0.0.1:9", ALICE, patience_seconds=0) as gateway,
        pytest.raises(GatewayError, match="run this again later"),
    ):
        gateway.task()


def test_a_certificate_that_is_not_trusted_ends_it_at_once_until_its_authority_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = make_keys("127.0.0.1")
    (tmp_path / "tls.pem").write_bytes(keys.certificate + keys.key)
    (tmp_path / "authority.pem").write_text(keys.authority)
    embedded = embed_gateway(small(), store=MemoryBatchStore(), queriers=QUERIERS)
    with serve(embedded.app, tls=tmp_path / "tls.pem") as address:
        with (
            GatewayConnection(address, ALICE, patience_seconds=3600) as gateway,
            pytest.raises(GatewayError, match="SSL_CERT_FILE"),
        ):
            gateway.task()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        with GatewayConnection(address, ALICE) as gateway:
            assert gateway.task()


def test_without_the_right_labels_come_and_transcripts_are_refused_before_anything_is_charged(
    served: Served, table: Path
) -> None:
    table.write_text("first,second\n1,7\n", encoding="utf-8")
    proof = table.with_name("proof")
    refused = run_dppp(command(served, table, "--transcripts", str(proof), token=BOB))
    assert_refused(1, "transcripts = true", refused)
    assert spent(served) == 0
    assert not table.with_name("labels.csv.parts").exists()
    found = json_of(command(served, table, "--receipts", str(proof), token=BOB))
    assert found["in_receipts"] == 1
    assert [path.name for path in proof.iterdir()] == ["batch-0001.receipt"]
    assert verify_receipt(proof.joinpath("batch-0001.receipt").read_bytes(), insecure_testing=True)
    assert spent(served) == 1


def test_an_address_that_is_none_is_refused(served: Served, table: Path) -> None:
    asked = command(served, table).replace(served[0], "gateway.example.org")
    assert_refused(2, "https://host:port", run_dppp(asked))


def test_another_task_than_the_one_known_of_is_refused_before_anything_is_sent(
    served: Served, table: Path
) -> None:
    refused = run_dppp(command(served, table, "--task", "0" * 64))
    assert refused.returncode == 1
    assert "which is not the one that you gave; nothing was sent" in refused.stderr
    assert spent(served) == 0
    assert not table.with_name("labels.csv.rowkey").exists()
    assert_refused(2, "64 hexadecimal digits", run_dppp(command(served, table, "--task", "12")))


def test_labels_that_are_not_in_the_gateways_own_receipt_are_refused(
    served: Served, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = command(served, table, "--transcripts", str(table.with_name("proof")))
    honest = json_of(asked)
    assert honest["in_receipts"] == len(ROWS)
    assert honest["is_verified"] is False
    assert json_of(asked)["in_receipts"] == 0  # released before, so there is no receipt
    told = Jobs.answers

    async def lie(self: Jobs, querier: str, identifier: JobId) -> tuple[Release, ...]:
        first, *others = await told(self, querier, identifier)
        return (replace(first, label=((first.label or 0) + 1) % len(CLASS_NAMES)), *others)

    monkeypatch.setattr(Jobs, "answers", lie)
    refused = run_dppp(f"{asked} --fresh")
    assert refused.returncode == 1
    assert "its own receipt" in refused.stderr


@pytest.mark.parametrize("swapped", ["features", "class_names"])
def test_a_gateway_that_swaps_columns_or_classes_is_noticed(
    served: Served, table: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """The rows would be voted on with their columns exchanged, and every receipt would hold.

    But the task has another id then, and what is sealed for it opens for nobody.
    """

    def lie(task: Task) -> bytes:
        return encode(replace(task, **{swapped: getattr(task, swapped)[::-1]}))

    monkeypatch.setattr(dppp.service.gateway.application, "encode", lie)
    refused = run_dppp(command(served, table))
    assert refused.returncode == 1
    assert "422 these rows are sealed for another task" in refused.stderr
    assert not table.with_name("labels.csv").exists()


def test_a_row_twice_in_a_table_is_signed_by_the_receipt_of_the_first(
    served: Served, table: Path
) -> None:
    table.write_text("first,second\n1,1\n0,2\n1,1\n", encoding="utf-8")
    assert json_of(command(served, table, "--batch-size", "2"))["in_receipts"] == 3
    assert spent(served) == 2


def test_a_refusal_does_not_make_an_unfinished_query_begin_anew(
    served: Served, table: Path
) -> None:
    asked = command(served, table, "--batch-size", "4", "--insist")  # as above
    served[1].channel.silent |= {1, 2, 3, 4, 5}
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "dppp", *asked.split()], stderr=subprocess.DEVNULL
    )
    wait_until(4, served)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    refused = run_dppp(command(served, table, "--batch-size", "4", token=BOB))
    assert refused.returncode == 1
    served[1].channel.silent.clear()
    json_of(command(served, table, "--batch-size", "4"))
    assert spent(served) == len(ROWS)


def test_rows_released_before_are_marked_and_paid_for_once_when_asked_afresh(
    served: Served, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = functools.partial(verify_receipt, insecure_testing=True)
    monkeypatch.setattr(dppp.protocol.receipt, "verify_receipt", verify)
    whole = table.read_text(encoding="utf-8")
    table.write_text("\n".join(whole.split("\n")[:3]), encoding="utf-8")
    json_of(command(served, table))
    table.write_text(whole, encoding="utf-8")
    asked = command(served, table, "--task", served[1].runner.task.task_id.hex())
    refused = run_dppp(asked)
    assert refused.returncode == 1
    assert "2 labels stand in no receipt" in refused.stderr
    with table.with_name("labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["in_receipt"] for line in lines] == ["false"] * 2 + ["true"] * 3
    assert {line["flagged"] for line in lines} == {"false"}
    noise = served[1].runner.task.noise.of_teachers(5)
    for line in lines:
        counts = [int(value) for name, value in line.items() if name.startswith("count_")]
        said = float(line["lead_by_noise"])
        assert said == pytest.approx(chance_of_lead(noise, lead_of(counts)), rel=0.01)
    assert spent(served) == len(ROWS)
    assert json_of(f"{asked} --fresh")["in_receipts"] == len(ROWS)
    assert spent(served) == 2 * len(ROWS)


def test_a_receipt_tells_its_rows_to_whoever_has_them_and_their_secret(
    served: Served, table: Path
) -> None:
    proof, secrets = table.with_name("proof"), table.with_name("labels.csv.rowkey")
    asked = command(served, table, "--receipts", str(proof))
    assert json_of(asked)["row_key"] == str(secrets)
    assert secrets.stat().st_mode & 0o777 == 0o600
    receipt = proof / "batch-0001.receipt"
    verified = verify_receipt(receipt.read_bytes(), insecure_testing=True)
    assert find_rows(verified, table, secrets) == list(range(1, len(ROWS) + 1))
    other = table.with_name("other.rowkey")
    other.write_text(f"{'00' * 32}\n")
    other.chmod(0o600)
    assert find_rows(verified, table, other) == [None] * len(ROWS)
    json_of(f"{asked} --fresh")  # under a second secret; the first one's receipt is still known
    assert len(secrets.read_text().split()) == 2
    assert find_rows(verified, table, secrets) == list(range(1, len(ROWS) + 1))
    other.chmod(0o644)
    with pytest.raises(KeyMaterialError, match="can be read by others"):
        find_rows(verified, table, other)


def test_a_gateway_that_puts_its_own_key_among_the_teachers_is_refused_by_the_tasks_id(
    served: Served, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = served[1].runner.task
    own = X25519PrivateKey.generate().public_key().public_bytes_raw()

    def swap(task: Task) -> bytes:
        first, *others = task.teachers
        return encode(replace(task, teachers=(replace(first, row_key=own), *others)))

    monkeypatch.setattr(dppp.service.gateway.application, "encode", swap)
    taken: list[object] = []

    def take(*parts: object, **_: object) -> None:
        taken.append(parts)
        raise InputError("that is enough")  # so that nobody waits for an answer

    monkeypatch.setattr(Jobs, "submit_sealed", take)
    refused = run_dppp(command(served, table, "--task", task.task_id.hex()))
    assert refused.returncode == 1
    assert "nothing was sent" in refused.stderr
    assert not taken
    run_dppp(command(served, table))  # the control: without the id nothing is noticed before
    assert taken


def test_receipts_of_another_run_stay_where_they_are(served: Served, table: Path) -> None:
    kept = table.with_name("receipts")
    options = ("--receipts", str(kept))
    json_of(command(served, table, *options))
    first = (kept / "batch-0001.receipt").read_bytes()
    json_of(command(served, table, *options, "--fresh"))
    assert (kept / "batch-0001.receipt").read_bytes() == first
    assert (kept / "batch-0002.receipt").read_bytes() != first
