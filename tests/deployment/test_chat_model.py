"""Real processes whose teachers have a language model each, behind a chat server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deployment.running import TEACHERS, run
from tests.left_out import need_program
from tests.service.teacher.chat.chat_server import TEMPLATE, ChatServer, serving
from tests.service.teacher.chat.tickets import CLASSES, COLUMNS, tickets, write_tickets

from dppp.errors import InputError
from dppp.service.ceremony.terms import make_terms
from dppp.service.doctor.examination import examine
from dppp.service.local.federation import LocalFederation, make_local
from dppp.service.local.processes import free_ports
from dppp.service.process.config import TeacherConfig, read_config
from dppp.service.teacher.models.configured import require_models

VOTES = 8


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def local(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    """Five teachers with tickets of their own, and eight votes each."""
    need_program("nats-server", package="nats-server")
    root = tmp_path_factory.mktemp("chat")
    models = []
    for place in range(TEACHERS):
        home = root / f"teacher {place}"
        home.mkdir()
        write_tickets(home / "records.csv", tickets(80, seed=place))
        (home / "prompt.txt").write_text(TEMPLATE, encoding="utf-8")
        (home / "chat.key").write_text(f"secret-{place}", encoding="utf-8")
        models.append(f"""\
[model]
kind = "chat"
url = "{server.url}"
model = "tiny"
api_key = "file:{home}/chat.key"
records = "{home}/records.csv"
label = "class"
template = "{home}/prompt.txt"
""")
    terms = make_terms(
        name="tickets",
        data_id="tickets",
        class_names=CLASSES,
        features=tuple(
            {"name": each.name, "kind": each.type.kind, "may_be_missing": each.type.may_be_missing}
            for each in COLUMNS
        ),
        epsilon=60.0,
        delta=1e-4,
        queries=10,
        colluders=1,
        dropouts=1,
        votes=VOTES,
    )
    broker_port, gateway_port = free_ports(2)
    return make_local(
        root / "local",
        terms=terms,
        models=models,
        broker_port=broker_port,
        gateway_port=gateway_port,
    )


def test_language_models_label_tickets_from_one_end_to_the_other(
    local: LocalFederation, server: ChatServer
) -> None:
    with run(local) as federation:
        asked = [["my invoice please", None], ["router and wifi", 3.0], ["a refund", 1.0]]
        answer = federation.client.post("/api/batches", json={"rows": asked})
        assert answer.status_code == 202, answer.text
        batch = str(answer.json()["id"])
        assert federation.wait_for_end(batch)["stage"] == "released"
        assert federation.labels(batch) == ["Billing", "Network", "Billing"]
        logs = "".join(federation.log_of(f"teacher-{place + 1}") for place in range(TEACHERS))
    assert set(server.keys) == {f"Bearer secret-{place}" for place in range(TEACHERS)}
    assert len(server.prompts) == len(asked) * VOTES * TEACHERS
    for secret in ("invoice", "case1", "secret-", "HTTP Request"):
        assert secret not in logs


def test_doctor_says_that_votes_may_take_longer_than_a_batch(local: LocalFederation) -> None:
    """Else records that make a model slow would decide whether their teacher takes part."""
    path = local.teacher_configs[1]
    assert _said_of_model(path) == ["a language model is not asked here"]
    text = path.read_text(encoding="utf-8")
    longer = text.replace('label = "class"', 'label = "class"\nvote_seconds = 500')
    path.write_text(longer, encoding="utf-8")
    _, late = _said_of_model(path)
    assert "may take 4000 seconds of a batch" in late
    path.write_text(text, encoding="utf-8")


def _said_of_model(config: Path) -> list[str]:
    return [each.said for each in examine(config) if each.check == "model"]


def test_records_that_do_not_go_with_the_task_are_refused_before_its_price_is_reserved(
    local: LocalFederation,
) -> None:
    config = read_config(local.teacher_configs[0], TeacherConfig)
    require_models(config)
    records = local.folder.parent / "teacher 0" / "records.csv"
    records.write_text(
        records.read_text(encoding="utf-8").replace("Network", "Printers"), encoding="utf-8"
    )
    with pytest.raises(InputError, match="'Printers' is not a class of the task"):
        require_models(config)
