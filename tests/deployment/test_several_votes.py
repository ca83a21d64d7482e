"""Real processes whose teachers have a folder of models each: several votes, and fewer for few."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import json_of, run_process
from tests.deployment.running import CLASS_NAMES, DROPOUTS, FEATURES, TEACHERS, Running, rows, run
from tests.left_out import need_program

from dppp.service.ceremony.terms import make_terms
from dppp.service.local.federation import LocalFederation, make_local, teacher_name
from dppp.service.local.processes import free_ports

VOTES, FEW = 12, 3
QUERIES = 30


def write_records(path: Path, count: int, seed: int) -> Path:
    """Records whose class is the first feature."""
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FEATURES, "class"])
        for _ in range(count):
            label = int(random.integers(len(CLASS_NAMES)))
            first, second = label + random.normal() / 20, random.random()
            writer.writerow([f"{first:.4f}", f"{second:.4f}", CLASS_NAMES[label]])
    return path


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    """Five teachers with twelve votes each, but the last, which has few records and three votes."""
    need_program("nats-server", package="nats-server")
    root = tmp_path_factory.mktemp("several")
    votes = [VOTES] * (TEACHERS - 1) + [FEW]
    folders = []
    for place, count in enumerate(votes):
        table = write_records(root / f"records-{place}.csv", 50 * count, place)
        folders.append(root / f"models-{place}")
        json_of(f"train --data {table} --label class --out {folders[-1]} --votes {count}")
    terms = make_terms(
        name="several",
        data_id="records",
        class_names=CLASS_NAMES,
        features=FEATURES,
        epsilon=8.0,
        delta=1e-4,
        queries=QUERIES,
        colluders=1,
        dropouts=DROPOUTS,
        votes=VOTES,
        votes_of={teacher_name(TEACHERS, TEACHERS): FEW},
    )
    broker_port, gateway_port = free_ports(2)
    return make_local(
        root / "local",
        terms=terms,
        models=folders,
        broker_port=broker_port,
        gateway_port=gateway_port,
    )


def test_labels_are_right_where_one_vote_each_would_drown_and_the_gateway_says_how_many_there_are(
    several: LocalFederation,
) -> None:
    with run(several) as federation:
        about = federation.client.get("/api/task").json()
        assert about["votes"] == [VOTES] * (TEACHERS - 1) + [FEW]
        assert about["unit"] == "record"
        wanted = [place % len(CLASS_NAMES) for place in range(20)]
        right, counts = ask(federation, wanted)
        # All votes agree under a deviation of 5.4 per count. Even with a teacher missing, 39 votes
        # lose to noise once in a million.
        assert right == len(wanted)
        # And the counts are of votes: five teachers with one each would lead by five on average.
        leads = [sorted(each)[-1] - sorted(each)[-2] for each in counts]
        assert np.mean(leads) > 25


def ask(federation: Running, wanted: list[int]) -> tuple[int, list[list[int]]]:
    """How many labels are right, and the noisy counts of each."""
    answer = federation.client.post("/api/batches", json={"rows": rows(wanted)})
    batch = str(answer.json()["id"])
    assert federation.wait_for_end(batch)["stage"] == "released"
    found = federation.client.get(f"/api/batches/{batch}/labels").json()["labels"]
    pairs = zip(found, wanted, strict=True)
    return sum(each["label"] == CLASS_NAMES[label] for each, label in pairs), [
        each["counts"] for each in found
    ]


def test_a_teacher_does_not_start_with_a_model_that_was_exchanged(several: LocalFederation) -> None:
    config = several.teacher_configs[1]
    folder = several.folder.parent / "models-1"
    path = folder / "model-05.skops"
    original = path.read_bytes()
    path.write_bytes((folder / "model-06.skops").read_bytes())
    result = run_process(f"teacher run --config {config}")
    path.write_bytes(original)
    assert result.returncode == 2, result.stderr
    assert "model-05.skops is not the file that was trained" in result.stderr
    assert "hint: " in result.stderr
