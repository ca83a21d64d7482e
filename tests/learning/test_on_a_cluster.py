"""Training and simulating large federations goes where joblib is told to: here to a Dask cluster.

A process of its own runs it, since a cluster leaves threads and event loops behind.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.left_out import need_module

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_250_shards_trained_by_a_dask_cluster_vote_as_those_trained_here() -> None:
    need_module("distributed", extra="dev")
    script = ROOT / "tests" / "learning" / "on_a_cluster.py"
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["agree"] is True
    assert (found["shards"], found["own_processes"]) == (250, 1)
    assert found["other_processes"] >= 1, "the cluster trained nothing"
    assert found["right_by_plurality"] > 0.8, "votes that agree because they say nothing"
