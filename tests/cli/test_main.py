"""The command line as a whole: exit codes, one clear line and a hint, never a traceback."""

import json

import pytest
from tests.cli.commands import assert_refused, run_dppp, run_process


def test_the_version_is_printed() -> None:
    result = run_process("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("dppp ")


def test_help_without_arguments_names_the_commands() -> None:
    result = run_dppp("")
    assert result.returncode == 0
    for command in ("calibrate", "certify", "account", "demo"):
        assert command in result.stdout


@pytest.mark.parametrize("command", ["divine", "--divine", "calibrate --divine"])
def test_an_unknown_word_is_said_and_exit_2(command: str) -> None:
    assert_refused(2, "--help", run_process(command))


def test_a_real_process_refuses_bad_input_in_one_line() -> None:
    assert_refused(2, "epsilon", run_process("calibrate --epsilon -1 --delta 1e-5 --teachers 20"))


def test_the_hint_is_on_a_line_of_its_own() -> None:
    error, hint = run_dppp("calibrate --epsilon -1 --delta 1e-5 --teachers 20").stderr.splitlines()
    assert error == "dppp: epsilon must be greater than 0 and at most 500, got -1.0"
    assert hint == "hint: try 1"


def test_with_json_an_error_is_an_object_with_its_hint() -> None:
    result = run_dppp("calibrate --epsilon -1 --delta 1e-5 --teachers 20 --json")
    assert result.returncode == 2
    found = json.loads(result.stderr)
    assert found["error"].startswith("epsilon must be greater than 0")
    assert found["hint"] == "try 1"


def test_bad_input_without_a_hint_of_its_own_points_to_the_help_of_its_command() -> None:
    result = run_dppp("bench --teachers 3 --labels 0 --cryptosystem masks --json")
    assert json.loads(result.stderr)["hint"] == "see 'dppp bench --help'"
