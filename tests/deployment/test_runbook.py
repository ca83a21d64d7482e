"""The runbook of docs/operations.md: five hospitals, each on a host with a home of its own.

Hospital b also runs the broker and hospital c the aggregator. Every file that one sends to another
is copied here by hand, and nothing else is. Hospital e is behind a line of 4 Mbit/s, and none may
be missing.
"""

import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.cli.commands import json_of
from tests.deployment.namespaces import Network, network
from tests.left_out import need_module, need_program
from tests.service.process.tls_keys import make_keys

need_module("skops", extra="service")

from skops.io import dump

HOSPITALS = "abcde"
HOSTS = {
    "a": ["a.example.org"],
    "b": ["b.example.org", "nats.example.org"],
    "c": ["c.example.org"],
    "d": ["d.example.org"],
    "e": ["e.example.org"],
    "clinic": ["clinic.example.org"],
}
SLOW, SLOW_KILOBITS = "e", 4_000
PIXELS = [f"pixel {number}" for number in range(784)]
ROWS = 1_000
READY_SECONDS = 120
ASK_SECONDS = 300


class Runbook:
    """What is typed at each host."""

    def __init__(self, root: Path, hosts: Network, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.hosts, self._patch = root, hosts, monkeypatch
        for host in HOSTS:
            (root / host).mkdir()

    def type(self, host: str, command: str) -> dict[str, object]:
        """What needs no network is typed in this process, which is faster, at the host's home."""
        for name, value in self._environment(host).items():
            self._patch.setenv(name, value)
        with chdir(self.root / host):
            return json_of(command)

    def start(self, host: str, *command: str) -> None:
        self.hosts.start(
            host,
            *command,
            folder=self.root / host,
            log=self.log(host),
            environment={**os.environ, **self._environment(host)},
        )

    def ask(self, host: str, *command: str) -> str:
        """What needs the network: in a process of its own, there."""
        done = subprocess.run(  # noqa: S603 - our own command
            self.hosts.on(host, *command),
            cwd=self.root / host,
            env={**os.environ, **self._environment(host)},
            capture_output=True,
            text=True,
            check=False,
            timeout=ASK_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, sent: str, *receivers: str) -> None:
        for receiver in receivers:
            (self.root / receiver).parent.mkdir(exist_ok=True)
            shutil.copy(self.root / sent, self.root / receiver)

    def log(self, host: str) -> Path:
        return self.root / f"{host}.log"

    def lines(self, host: str, message: str) -> list[dict[str, object]]:
        found = [
            json.loads(line) for line in self.log(host).read_text().splitlines() if line[:1] == "{"
        ]
        return [line for line in found if line["message"] == message]

    def _environment(self, host: str) -> dict[str, str]:
        home = self.root / host
        return {
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
        }


@pytest.fixture
def runbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runbook]:
    need_program("nats-server", package="nats-server")
    with network(HOSTS) as hosts:
        yield Runbook(tmp_path, hosts, monkeypatch)


def agree(typed: Runbook) -> dict[str, object]:
    """Steps 1 to 4: terms, keys, requests, and the federation file."""
    (typed.root / "a" / "rows.csv").write_text(",".join(PIXELS), encoding="utf-8")
    typed.type(
        "a",
        "init coordinator --name cells --data-id 'breast 2026' --class malignant --class benign "
        "--features-from rows.csv --epsilon 8 --delta 1e-5 --queries 2000",
    )
    for host in HOSPITALS:
        typed.type(host, f"join hospital-{host} --name 'hospital {host}'")
    typed.type(
        "b",
        "join broker --name hosting --role broker --host nats.example.org "
        "--together-with hospital-b",
    )
    typed.type(
        "c", "join aggregator --name university --role aggregator --together-with hospital-c"
    )
    typed.send("b/broker/join-requests.zip", "a/received/b.zip")
    typed.send("c/aggregator/join-requests.zip", "a/received/c.zip")
    for host in "de":
        typed.send(f"{host}/hospital-{host}/join-request.json", f"a/received/{host}.json")
    received = " ".join(f"received/{name}" for name in ("b.zip", "c.zip", "d.json", "e.json"))
    typed.type("a", f"collect coordinator hospital-a/join-request.json {received}")
    made = typed.type("a", "collect coordinator --out made")
    typed.send("a/made/federation.json", *(f"{host}/federation.json" for host in HOSPITALS))
    return made


def set_up(typed: Runbook, federation_hash: object) -> None:
    """Steps 5 and 7: everybody sets up, and teachers accept."""
    checked = f"--federation federation.json --hash {federation_hash}"
    for host in HOSPITALS:
        typed.type(host, f"setup hospital-{host} {checked}")
    typed.type("b", f"setup broker {checked} --listen 0.0.0.0:4222")
    typed.type("c", f"setup aggregator {checked}")
    for host in HOSPITALS:
        dump(first_pixel(), typed.root / host / f"hospital-{host}" / "model.skops")
        typed.type(
            host,
            f"teacher accept --config hospital-{host}/teacher.toml --first-use-of-this-data",
        )


def first_pixel() -> LogisticRegression:
    rows = np.random.default_rng(1).random((40, len(PIXELS)))
    names = np.array(["benign", "malignant"])[(rows[:, 0] > 0.5).astype(int)]
    return LogisticRegression().fit(rows, names)


def open_gateway(typed: Runbook) -> None:
    """Step 8, before the aggregator runs: who may ask, and where."""
    made = typed.type("c", f"aggregator token --name clinic --queries {ROWS} --out clinic.token")
    keys = make_keys("c.example.org")
    (typed.root / "c" / "aggregator" / "gateway.pem").write_bytes(keys.certificate)
    (typed.root / "c" / "aggregator" / "gateway.key").write_bytes(keys.key)
    (typed.root / "clinic" / "authority.pem").write_text(keys.authority, encoding="utf-8")
    config = typed.root / "c" / "aggregator" / "aggregator.toml"
    text = config.read_text(encoding="utf-8").replace('"127.0.0.1:8080"', '"0.0.0.0:8080"')
    text = text.replace("# tls_certificate", "tls_certificate").replace("# tls_key", "tls_key")
    querier = ("name", "token_sha256", "queries")
    entry = "\n".join(f"{key} = {json.dumps(made[key])}" for key in querier)
    config.write_text(f"{text}\n[[queriers]]\n{entry}\n", encoding="utf-8")
    typed.send("c/clinic.token", "clinic/clinic.token")


def start_all(typed: Runbook) -> None:
    """The broker last: whoever does not find it tries again."""
    dppp = (sys.executable, "-m", "dppp")
    typed.start("c", *dppp, "aggregator", "run", "--config", "aggregator/aggregator.toml")
    for host in HOSPITALS:
        typed.start(host, *dppp, "teacher", "run", "--config", f"hospital-{host}/teacher.toml")
    nats = need_program("nats-server", package="nats-server")
    typed.start("b", nats, "-c", "broker/nats.conf")
    end = time.monotonic() + READY_SECONDS
    while len(typed.lines("c", "teacher online")) < len(HOSPITALS):
        assert time.monotonic() < end, typed.log("c").read_text()
        typed.hosts.require_running()
        time.sleep(0.2)


@pytest.mark.slow
def test_five_hosts_come_from_nothing_to_labels_though_one_has_a_slow_line(
    runbook: Runbook,
) -> None:
    made = agree(runbook)
    set_up(runbook, made["federation_hash"])
    open_gateway(runbook)
    runbook.hosts.make_slow(SLOW, SLOW_KILOBITS)
    start_all(runbook)
    for host in "ade":  # neither a broker nor an aggregator: nobody can dial them
        assert runbook.hosts.listening(host) == []
    with (runbook.root / "clinic" / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(PIXELS)
        table.writerows(np.random.default_rng(2).random((ROWS, len(PIXELS))).tolist())
    task = runbook.type("b", "federation federation.json")["task_id"]
    command = (
        "query --gateway https://c.example.org:8080 --token-file clinic.token --input rows.csv "
        f"--out labels.csv --receipts proof --task {task} --json"
    )
    said = runbook.ask(
        "clinic",
        "env",
        "SSL_CERT_FILE=authority.pem",
        sys.executable,
        "-m",
        "dppp",
        *shlex.split(command),
    )
    assert json.loads(said)["in_receipts"] == ROWS
    verified = runbook.type("clinic", f"verify proof/batch-0001.receipt --task {task}")
    assert verified["ballots"] == len(HOSPITALS)
    for host in HOSPITALS:
        spent = runbook.type(host, "ledger show data/dppp/ledger.db")
        assert isinstance(spent["data"], list)
        (data,) = spent["data"]
        assert [each["answered"] for each in data["tasks"]] == [ROWS]
    (released,) = runbook.lines("c", "batch released")
    answered = [line for line in runbook.lines(SLOW, "answered") if line.get("batch")]
    assert {line["batch"] for line in answered} == {released["batch"]}
    assert len(runbook.lines(SLOW, "broker reached again")) == 0  # its line never broke
