"""A federation whose messages go through Flower, all on this machine: run.py FOLDER FLOWER.

FOLDER is new; FLOWER is where Flower's commands are, in an environment of its own.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from dppp import Federation
from dppp.federation import Reply
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.events import Send
from dppp.protocol.signing import signer_of
from dppp.protocol.transcript import verify_transcript
from dppp.service.ceremony.home import Home
from dppp.service.ceremony.terms import make_terms
from dppp.service.local.federation import LOCALHOST, LocalFederation, make_local
from dppp.service.local.processes import free_ports
from dppp.service.stores.batches import open_batch_store

sys.path.insert(0, str(Path(__file__).parent / "app"))
from dppp_over_flower.line import receive_parcels, send_parcels

HERE = Path(__file__).parent
CLASSES = ("well", "ill")
TEACHERS = 5
ROWS = [[36.4, 70.0], [39.6, 118.0], [36.9, 75.0], [40.1, 125.0]]
START_SECONDS = 120
Begin = Callable[[str, Sequence[str]], "subprocess.Popen[bytes]"]


def main(folder: Path, flower: Path) -> None:
    local = make_federation(folder)
    with ExitStack() as stack, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "aggregator.sock"))
        listener.listen()
        listener.settimeout(1)
        begin = partial(start, stack, folder, flower)
        start_sites(begin, local)
        app = start_app(begin, folder)
        with accept(listener, app) as line:
            ask(local, line)
            send_parcels(line, {})  # there is nothing more to carry


def make_federation(folder: Path) -> LocalFederation:
    """Homes, keys, ledgers: `dppp init` to `dppp teacher accept`, by one person for this once."""
    source = np.random.default_rng(1)
    sick = source.integers(0, 2, size=(TEACHERS, 80))
    measured = np.stack([36.7 + 3 * sick, 72 + 48 * sick], axis=-1)
    records = measured + source.normal(size=measured.shape)
    terms = make_terms(
        name="over Flower",
        data_id="records",
        class_names=CLASSES,
        features=("temperature", "pulse"),
        epsilon=40.0,
        delta=1e-5,
        queries=len(ROWS),
        colluders=1,
        dropouts=1,
    )
    models = [
        LogisticRegression().fit(rows, np.array(CLASSES)[labels])
        for rows, labels in zip(records, sick, strict=True)
    ]
    broker, gateway = free_ports(2)  # neither is started
    return make_local(folder, terms=terms, models=models, broker_port=broker, gateway_port=gateway)


def start(
    stack: ExitStack, folder: Path, flower: Path, name: str, command: Sequence[str]
) -> "subprocess.Popen[bytes]":
    """A process with a log; it and all that it starts end with the stack."""
    environment = os.environ | {
        "PATH": f"{flower}{os.pathsep}{os.environ['PATH']}",  # Flower calls its own commands
        "FLWR_HOME": str(folder / "flower"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - commands of this file
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    stack.callback(process.wait)
    stack.callback(end, process)
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)


def start_sites(begin: Begin, local: LocalFederation) -> None:
    """The SuperLink, and at each site a SuperNode and, beside it, a teacher."""
    superlink, *ports = free_ports(1 + local.teachers)
    link = f"{LOCALHOST}:{superlink}"
    server = ["flower-superlink", "--insecure", "--disable-runtime-dependency-installation"]
    begin("superlink", [*server, "--port", str(superlink)])
    for index, (config, port) in enumerate(zip(local.teacher_configs, ports, strict=True), 1):
        place = config.with_name("teacher.sock")
        here = f'teacher={index} socket="{place}"'
        node = ["flower-supernode", "--insecure", "--superlink", link, "--port", str(port)]
        begin(f"site-{index}-teacher", teacher_command(config, place))
        begin(f"site-{index}-node", [*node, "--node-config", here])
    wait_for(superlink)
    settings = local.folder / "flower"
    settings.mkdir(exist_ok=True)
    known = f'[superlink.here]\naddress = "{link}"\ninsecure = true\n'
    (settings / "config.toml").write_text(known, encoding="utf-8")


def teacher_command(config: Path, place: Path) -> list[str]:
    return [sys.executable, str(HERE / "teacher.py"), str(config), str(place)]


def start_app(begin: Begin, folder: Path) -> "subprocess.Popen[bytes]":
    """What a user of Flower does: submit an app, which Flower takes to all sites and starts."""
    place = folder / "aggregator.sock"
    run = ["flwr", "run", str(HERE / "app"), "here", "--stream"]
    return begin("app", [*run, "--run-config", f'socket="{place}"'])


def wait_for(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((LOCALHOST, port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def accept(listener: socket.socket, app: "subprocess.Popen[bytes]") -> Connection:
    """The line on which the ServerApp calls."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and app.poll() is None:
        try:
            return Connection(listener.accept()[0].detach())
        except TimeoutError:
            continue
    raise SystemExit("Flower did not start the app; read the logs in the folder")


def ask(local: LocalFederation, line: Connection) -> None:
    """One batch, by the aggregator's role; the transcript is checked as an auditor would."""
    home = Home(folder=local.aggregator_config.parent)
    federation = home.federation(None)
    send_parcels(line, {local.teachers: []})
    found = receive_parcels(line)
    print(f"{len(found)} teachers behind Flower", flush=True)
    if len(found) < local.teachers:
        raise SystemExit("a site did not answer; read its logs in the folder")
    with open_batch_store(local.folder / "batches.db") as store:
        aggregator = Aggregator(
            task=federation.task,
            public=federation.public,
            signer=signer_of(home.signing_key()),
            store=store,
        )
        outcome = Federation(aggregator=aggregator, deliver=partial(deliver, line)).ask(ROWS)
    assert outcome.transcript is not None, "every row is new"
    verify_transcript(outcome.transcript.to_bytes())
    for row, release in zip(ROWS, outcome.answers, strict=True):
        print(row, CLASSES[release.label or 0], release.counts)
    print(f"transcript verified; at fault: {sorted(outcome.blamed) or 'nobody'}")


def deliver(line: Connection, sends: Sequence[Send], _now: int) -> list[Reply]:
    """A round: messages to teachers, and what they answer, by whatever is on the line."""
    parcels: dict[int, list[bytes]] = {}
    for send in sends:
        parcels.setdefault(send.teacher, []).append(send.data)
    send_parcels(line, parcels)
    answers = receive_parcels(line)
    return [(teacher, answer) for teacher, each in answers.items() for answer in each]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so end what was started
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
