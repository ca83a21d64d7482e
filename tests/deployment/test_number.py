"""Real processes that answer a question of a number: asked, released, written and verified."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from tests.cli.commands import json_of
from tests.deployment.running import COLLUDERS, DROPOUTS, FEATURES, TEACHERS, run
from tests.left_out import need_program

from dppp.service.ceremony.terms import make_terms
from dppp.service.local.federation import LocalFederation, make_local
from dppp.service.local.processes import free_ports


@pytest.fixture(scope="module")
def dosing(tmp_path_factory: pytest.TempPathFactory) -> LocalFederation:
    """Five teachers whose models say that the dose is ten times the first feature."""
    need_program("nats-server", package="nats-server")
    rows = np.array([[place, other] for place in range(10) for other in range(-3, 4)], dtype=float)
    terms = make_terms(
        name="dosing",
        data_id="records",
        class_names=("dose",),
        low=0.0,
        high=100.0,
        levels=20,
        features=FEATURES,
        epsilon=60.0,
        delta=1e-4,
        queries=20,
        colluders=COLLUDERS,
        dropouts=DROPOUTS,
    )
    broker_port, gateway_port = free_ports(2)
    return make_local(
        tmp_path_factory.mktemp("dosing") / "local",
        terms=terms,
        models=[LinearRegression().fit(rows, 10 * rows[:, 0]) for _ in range(TEACHERS)],
        broker_port=broker_port,
        gateway_port=gateway_port,
    )


def test_numbers_are_released_with_their_error_and_stand_in_a_receipt(
    dosing: LocalFederation, tmp_path: Path
) -> None:
    asked = tmp_path / "ask.csv"
    asked.write_text("first,second\n2,0\n5,1\n8,-1\n40,0\n", encoding="utf-8")
    with run(dosing) as federation:
        said = json_of(
            f"query --gateway {federation.local.gateway} --token-file {dosing.token_file} "
            f"--input {asked} --out {tmp_path}/doses.csv --receipts {tmp_path}/receipts"
        )
        about = federation.client.get("/api/task").json()["question"]
    assert (about["kind"], about["low"], about["high"], about["levels"]) == ("number", 0, 100, 20)
    assert (said["rows"], said["in_receipts"], said["abstained"]) == (4, 4, 0)
    with (tmp_path / "doses.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    errors = [float(each["standard_error"]) for each in found]
    assert all(0 < error < 20 for error in errors)
    for each, expected in zip(found, (20, 50, 80, 100), strict=True):  # the last one is clipped
        assert abs(float(each["value"]) - expected) < 8 * errors[0]
    verified = json_of(f"verify {tmp_path}/receipts/batch-0001.receipt")
    assert verified["question"] == "number"
    assert verified["values"] == pytest.approx([float(each["value"]) for each in found])
