"""`dppp bench --deployment` on the smallest load: it measures, and leaves no process behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import assert_refused, run_dppp, run_process
from tests.left_out import need_program, only_in_soak
from tests.postgres import shared_server

SMALL = "--teachers 3 --classes 2 --modulus-bits 2048 --s 1 --singles 10 --labels 20"


@pytest.mark.slow
def test_deployments_under_both_cryptosystems_are_measured_against_their_parts_and_stopped(
    tmp_path: Path,
) -> None:
    need_program("nats-server", package="nats-server")
    folder = tmp_path / "load"
    result = run_process(f"bench --deployment {folder} {SMALL} --hosts 2 --json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert {path.name for path in (folder / "masks" / "logs").iterdir()} == {
        "aggregator.log",
        "broker.log",
        "teachers-1.log",
        "teachers-2.log",
    }
    for cryptosystem in ("masks", "paillier"):
        _assert_measured(found[cryptosystem])
    assert all(ratio > 0 for ratio in found["masks_over_paillier"].values())
    assert _running_in(folder) == []


def _assert_measured(found: dict[str, Any]) -> None:
    assert found["alone"]["batches"] == 1
    assert found["together_first_half"]["batches"] + found["together_second_half"]["batches"] == 9
    assert found["large"]["labels"] == 20
    assert all(ratio > 0 for ratio in found["ratios"].values())
    assert found["resident_megabytes"]["end"]["aggregator"] > 0
    assert (
        found["large"]["broker_bytes_received"]
        > 3 * found["bare_crypto"]["large"]["asked_bytes"][0]
    )
    assert found["bare_crypto"]["single"]["answers"] == [3, 3, 3]


@only_in_soak
def test_one_aggregator_and_two_are_measured_on_one_database(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    url = tmp_path / "url"
    url.write_text(shared_server().fresh_url(), encoding="utf-8")
    folder = tmp_path / "load"
    options = f"{SMALL} --cryptosystem masks --store file:{url}"
    result = run_process(f"bench --deployment {folder} {options} --json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["one"]["labels"], found["two"]["labels"]) == (5, 4)
    assert found["ratios"]["two_over_one_labels_per_second"] > 0
    assert "aggregator ready" in (folder / "logs" / "aggregator-2.log").read_text()
    assert _running_in(folder) == []


def test_two_aggregators_are_not_measured_on_a_file_or_with_two_tasks(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    file = tmp_path / "batches.db"
    file.touch()
    bench = f"bench --deployment {tmp_path / 'load'} {SMALL}"
    assert_refused(2, "PostgreSQL", run_dppp(f"{bench} --cryptosystem masks --store {file}"))
    file.write_text("postgresql://somebody@/nowhere")
    assert_refused(2, "one task", run_dppp(f"{bench} --store file:{file}"))


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    (tmp_path / "thesis.tex").write_text("important")
    assert_refused(2, "not empty", run_dppp(f"bench --deployment {tmp_path} {SMALL}"))


def _running_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it has just ended
        if str(folder) in command:
            found.append(command)
    return found
