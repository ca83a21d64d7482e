"""`dppp demo --web` as it is typed: real ballots, a page, a label, and a quiet end by Ctrl-C."""

import signal
import time

import httpx
import pytest
from tests.cli.commands import assert_refused, run_dppp
from tests.cli.demo.served_demo import serve_demo


@pytest.mark.slow
def test_the_demo_serves_a_page_that_answers_and_stops_by_ctrl_c() -> None:
    with serve_demo() as demo:
        headers = {"Authorization": f"Bearer {demo.token}"}
        with httpx.Client(base_url=demo.address, headers=headers, timeout=60) as client:
            assert "<!doctype html>" in client.get("/").text
            assert client.get("/api/task").json()["cryptosystem"] == "masks"
            row = client.get("/api/examples").json()["rows"][0]
            batch = client.post("/api/batches", json={"rows": [row]}).json()["id"]
            while client.get(f"/api/batches/{batch}").json()["stage"] != "released":
                time.sleep(0.2)
            verified = client.get(f"/api/batches/{batch}/verification").json()
            assert verified["is_verified"] is True
            with client.stream("GET", "/api/events") as stream:  # somebody watches to the end
                watched = stream.iter_lines()
                next(watched)
                for _ in range(2):  # an impatient hand
                    demo.process.send_signal(signal.SIGINT)
                list(watched)
        _, errors = demo.process.communicate(timeout=60)
        assert (demo.process.returncode, errors) == (0, "")


def test_a_demo_of_other_data_is_refused_with_what_there_is() -> None:
    refused = run_dppp("demo --web --no-browser --data mnist")
    assert_refused(2, "choose breast-cancer or digits", refused)
