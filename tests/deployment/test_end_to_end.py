"""Real processes and a real broker with TLS: from a CSV file to labels that verify."""

import csv
import json
import re
from pathlib import Path

import httpx
import pytest
from tests.cli.commands import json_of
from tests.deployment.running import CLASS_NAMES, QUERIES, TEACHERS, Running, wait_for, write_rows

LABELS = [0, 1, 2, 2, 1, 0, 1, 1, 0, 2]


@pytest.fixture
def asked(federation: Running, tmp_path: Path) -> str:
    """A query command, without where its output goes."""
    write_rows(tmp_path / "rows.csv", LABELS)
    return (
        f"query --gateway {federation.local.gateway} --token-file {federation.local.token_file} "
        f"--input {tmp_path / 'rows.csv'} --batch-size 4"
    )


def test_a_file_of_rows_becomes_right_labels_with_transcripts_that_verify(
    federation: Running, asked: str, tmp_path: Path
) -> None:
    before = federation.charged()
    found = json_of(f"{asked} --out {tmp_path / 'labels.csv'} --transcripts {tmp_path / 'proof'}")
    assert found["rows"] == len(LABELS)
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    # Wrong once in sixty times (running.py): four or more of ten once in a hundred thousand.
    right = [line["label"] == CLASS_NAMES[label] for line, label in zip(lines, LABELS, strict=True)]
    assert sum(right) >= 7, lines
    transcripts = sorted((tmp_path / "proof").iterdir())
    assert len(transcripts) == 3
    verified = [json_of(f"verify {transcript}") for transcript in transcripts]
    assert {each["cryptosystem"] for each in verified} == {federation.cryptosystem}
    assert all(each["are_sums_checked"] for each in verified)
    assert [name for each in verified for name in each["labels"]] == [
        line["label"] for line in lines
    ]
    assert [each["ballots"] for each in verified] == [TEACHERS] * 3
    assert federation.charged() == [count + len(LABELS) for count in before]
    assert not (tmp_path / "labels.csv.parts").exists()


def test_the_same_command_again_is_free(federation: Running, asked: str, tmp_path: Path) -> None:
    """By the same row secrets; another file of secrets would be another querier."""
    asked = f"{asked} --row-key {tmp_path / 'rowkey'}"
    json_of(f"{asked} --out {tmp_path / 'one.csv'}")
    before = federation.charged()
    json_of(f"{asked} --out {tmp_path / 'two.csv'}")
    assert federation.charged() == before
    first, again = (
        list(csv.reader((tmp_path / name).read_text(encoding="utf-8").splitlines()))
        for name in ("one.csv", "two.csv")
    )
    assert [line[:-1] for line in first] == [line[:-1] for line in again]
    assert {line[-1] for line in again[1:]} == {"false"}  # released before: in no new receipt


def test_every_teachers_health_and_the_aggregators_are_good(federation: Running) -> None:
    health = httpx.get(f"{federation.local.gateway}/health", timeout=10).json()
    assert health["status"] == "ok"
    assert health["teachers_online"] == TEACHERS


def test_logs_are_json_and_hold_no_secret_and_no_input(federation: Running) -> None:
    batch = federation.submit(1, 2)
    state = federation.wait_for_end(batch)
    folder = federation.local.folder
    secrets = [federation.local.token_file.read_text(encoding="utf-8").strip()]
    secrets += [path.read_text(encoding="utf-8").strip() for path in folder.glob("*/nats.seed")]
    secrets += [
        "".join(path.read_text(encoding="utf-8").splitlines()[1:-1])
        for path in folder.glob("*/*.key")
    ]
    assert len(secrets) == 1 + (TEACHERS + 1) + 2 * (TEACHERS + 2) + TEACHERS + 1
    for log in (folder / "logs").iterdir():
        text = log.read_text(encoding="utf-8")
        for secret in secrets:
            assert secret not in text
        if log.stem != "broker":
            lines = [json.loads(line) for line in text.splitlines()]
            assert {"time", "level", "logger", "message"} <= lines[0].keys()
            said = {line["message"] for line in lines if line.get("batch") == state["batch"]}
            steps = {"batch asked for", "batch started", "batch released"}
            assert said == (steps if log.stem == "aggregator" else {"answered"})


def test_metrics_count_what_happened(federation: Running) -> None:
    teacher, aggregator = (
        _monitor(federation, config)
        for config in (federation.local.teacher_configs[0], federation.local.aggregator_config)
    )
    wait_for(lambda: _get(f"{teacher}/health") == 200, "the teacher's health")
    wait_for(lambda: _get(f"{aggregator}/health") == 200, "the aggregator's health")
    federation.wait_for_teachers(TEACHERS)
    before = [_metrics(address)["dppp_queries_left"] for address in (teacher, aggregator)]
    assert before[0] == QUERIES - federation.charged()[0]
    federation.wait_for_end(federation.submit(1))
    metrics = _metrics(teacher)
    asked = {"masks": "cast request", "paillier": "ballot request"}[federation.cryptosystem]
    assert metrics[f'dppp_answers_total{{message="{asked}"}}'] == 1
    assert metrics["dppp_queries_left"] == before[0] - 1
    assert metrics["dppp_certificate_seconds"] > 700 * 86_400
    wait_for(lambda: _metrics(aggregator)["dppp_queries_left"] == before[1] - 1, "the event")
    assert _metrics(aggregator)["dppp_certificate_seconds"] > 700 * 86_400


def _monitor(federation: Running, config: Path) -> str:
    """Restart a process with a monitor; where that listens."""
    (port,) = _free_port()
    text = config.read_text(encoding="utf-8")
    changed = re.sub(r"^# (listen = )\"127.*$", rf'\1"127.0.0.1:{port}"', text, flags=re.MULTILINE)
    assert changed != text
    config.write_text(changed, encoding="utf-8")
    federation.kill(config.parent.name)
    federation.restart(config.parent.name)
    return f"http://127.0.0.1:{port}"


def _metrics(address: str) -> dict[str, float]:
    lines = httpx.get(f"{address}/metrics", timeout=10).text.splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def _get(address: str) -> int | None:
    try:
        return httpx.get(address, timeout=5).status_code
    except httpx.HTTPError:
        return None


def _free_port() -> list[int]:
    from dppp.service.local.processes import free_ports

    return free_ports(1)
