"""Processes of a local federation that are missing, have ended or were written down wrongly."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dppp.errors import InputError, LocalFailure
from dppp.service.local.federation import LocalFederation, read_local
from dppp.service.local.processes import (
    Started,
    find_nats_server,
    free_ports,
    read_processes,
    stop_all,
    wait_until_ready,
    write_processes,
)


@pytest.fixture
def local(tmp_path: Path) -> LocalFederation:
    broker_port, gateway_port = free_ports(2)
    return LocalFederation(
        folder=tmp_path, teachers=1, broker_port=broker_port, gateway_port=gateway_port
    )


BAD = {
    "no JSON": "{",
    "no list": "7",
    "no process": "[7]",
    "a field missing": '[{"name": "broker", "pid": 7}]',
    "everybody": '[{"name": "broker", "pid": -1, "since": null}]',
    "our group": '[{"name": "broker", "pid": 0, "since": 7}]',
    "text": '[{"name": "broker", "pid": "7", "since": 7}]',
}


@pytest.mark.parametrize("name", BAD)
def test_a_process_that_was_not_written_down_rightly_is_refused(name: str, tmp_path: Path) -> None:
    """Read only: were it not refused, stopping it would stop everything of this user."""
    (tmp_path / "processes.json").write_text(BAD[name])
    with pytest.raises(
        InputError, match=r"cannot read .*processes\.json[^\n]*\nhint: end.* by hand"
    ):
        read_processes(tmp_path)


def test_a_process_that_is_another_one_by_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        write_processes(tmp_path, [Started(name="broker", pid=other.pid, since=1)])
        assert [each.pid for each in read_processes(tmp_path)] == [other.pid]
        assert stop_all(tmp_path) == []
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0


@pytest.mark.parametrize(
    ("logged", "last"),
    [
        ("first\ndppp: no such model\n", "dppp: no such model"),
        ("first\ndppp: no model\nhint: name one\n", "dppp: no model; hint: name one"),
        ("", ""),
    ],
)
def test_a_process_that_has_ended_is_named_with_its_last_words(
    local: LocalFederation, logged: str, last: str
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_processes(local.folder, [Started(name="teacher-1", pid=ended.pid, since=1)])
    (local.folder / "logs").mkdir()
    (local.folder / "logs" / "teacher-1.log").write_text(logged)
    with pytest.raises(LocalFailure, match=f"teacher-1 ended: {last}\nhint: read .*log"):
        wait_until_ready(local, 1, 5)


def test_a_federation_that_is_not_ready_in_time_is_said(local: LocalFederation) -> None:
    with pytest.raises(LocalFailure, match=r"not ready after 0 s \(health: nothing\)"):
        wait_until_ready(local, 1, 0)


def test_a_missing_broker_is_said_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(InputError, match="apt-get install nats-server"):
        find_nats_server()


@pytest.mark.parametrize("text", [None, "{", "[]", json.dumps({"teachers": 1})])
def test_a_folder_without_a_local_federation_is_said(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "local.json").write_text(text)
    with pytest.raises(
        InputError, match=r"no local federation in .*\nhint: make one with `dppp local up`"
    ):
        read_local(tmp_path)
