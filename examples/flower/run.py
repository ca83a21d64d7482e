"""A federation whose messages go through Flower, all on this machine: run.py FOLDER [FLOWER_BIN].

FLOWER_BIN is the folder of Flower's commands, if that is not where this Python is.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
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

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "app"))
from dppp_over_flower.line import receive_parcels, send_parcels

CLASSES = ("well", "ill")
TEACHERS = 5
START_SECONDS = 120
ROWS = [[36.4, 70.0], [39.6, 118.0], [36.9, 75.0], [40.1, 125.0]]


def make_federation(folder: Path) -> LocalFederation:
    """Homes, keys, ledgers: `dppp init` to `dppp teacher accept`, by one person for this once."""
    source = np.random.default_rng(1)
    sick = source.integers(0, 2, size=(TEACHERS, 80))
    records = np.stack([36.7 + 3 * sick, 72 + 48 * sick], axis=-1) + source.normal(size=(5, 80, 2))
    terms = make_terms(
        name="over Flower",
        data_id="records",
        class_names=CLASSES,
        features=("temperature", "pulse"),
        epsilon=30.0,
        delta=1e-5,
        queries=20,
        colluders=1,
        dropouts=1,
    )
    models = [
        LogisticRegression().fit(rows, np.array(CLASSES)[labels])
        for rows, labels in zip(records, sick, strict=True)
    ]
    ports = free_ports(2)
    return make_local(
        folder, terms=terms, models=models, broker_port=ports[0], gateway_port=ports[1]
    )


def start(stack: ExitStack, folder: Path, name: str, command: Sequence[str]) -> None:
    """A process with a log, ended with all that it starts when the stack is closed."""
    environment = os.environ | {
        "PATH": f"{Path(command[0]).parent}:{os.environ['PATH']}",  # Flower calls its own commands
        "FLWR_HOME": str(folder / "flower"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    stack.callback(process.wait)
    stack.callback(os.killpg, process.pid, signal.SIGTERM)


def deliver(line: Connection, sends: Sequence[Send], _now: int) -> list[Reply]:
    """A round: messages to teachers, and what they answer, through whatever is on the line."""
    parcels: dict[int, list[bytes]] = {}
    for send in sends:
        parcels.setdefault(send.teacher, []).append(send.data)
    send_parcels(line, parcels)
    answers = receive_parcels(line)
    return [(teacher, answer) for teacher, each in answers.items() for answer in each]


def main(folder: Path, flower: Path) -> None:
    local = make_federation(folder)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(folder / "aggregator.sock"))
        listener.listen()
        listener.settimeout(START_SECONDS)
        run_flower(stack, local, flower)
        line = stack.enter_context(Connection(listener.accept()[0].detach()))
        ask(local, line)
        send_parcels(line, {})


def run_flower(stack: ExitStack, local: LocalFederation, flower: Path) -> None:
    """A SuperLink; a SuperNode and a teacher for each site; and the app that carries."""
    folder = local.folder
    superlink, *nodes = free_ports(1 + local.teachers)
    begin = partial(start, stack, folder)
    link = [str(flower / "flower-superlink"), "--insecure", "--port", str(superlink)]
    begin("superlink", [*link, "--disable-runtime-dependency-installation"])
    for index, (config, port) in enumerate(zip(local.teacher_configs, nodes, strict=True), 1):
        place = config.with_name("teacher.sock")
        begin(f"teacher-{index}", [sys.executable, str(HERE / "teacher.py"), str(config), str(place)])
        node = [str(flower / "flower-supernode"), "--insecure", "--port", str(port)]
        node += ["--superlink", f"{LOCALHOST}:{superlink}"]
        begin(f"node-{index}", [*node, "--node-config", f'teacher={index} socket="{place}"'])
    wait_for(superlink)
    (folder / "flower").mkdir(exist_ok=True)
    connection = f'[superlink.here]\naddress = "{LOCALHOST}:{superlink}"\ninsecure = true\n'
    (folder / "flower" / "config.toml").write_text(connection, encoding="utf-8")
    settings = f'socket="{folder / "aggregator.sock"}"'
    begin("app", [str(flower / "flwr"), "run", str(HERE / "app"), "here", "-c", settings, "--stream"])


def wait_for(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return socket.create_connection((LOCALHOST, port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def ask(local: LocalFederation, line: Connection) -> None:
    """One batch, by the aggregator's role; the transcript is checked as an auditor would."""
    home = Home(folder=local.aggregator_config.parent)
    federation = home.federation(None)
    send_parcels(line, {local.teachers: []})
    print(f"{len(receive_parcels(line))} teachers behind Flower")
    with open_batch_store(local.folder / "batches.db") as store:
        aggregator = Aggregator(
            task=federation.task,
            public=federation.public,
            signer=signer_of(home.signing_key()),
            store=store,
        )
        outcome = Federation(aggregator=aggregator, deliver=partial(deliver, line)).ask(ROWS)
    assert outcome.transcript is not None
    verify_transcript(outcome.transcript.to_bytes())
    for row, release in zip(ROWS, outcome.answers, strict=True):
        print(row, CLASSES[release.label or 0], release.counts)
    print(f"transcript verified; teachers at fault: {dict(outcome.blamed)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so end what was started
    found = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(sys.executable).parent
    main(Path(sys.argv[1]).resolve(), found)
