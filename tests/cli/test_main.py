"""The command line as a whole: exit codes, one clear line, never a traceback."""

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
def test_an_unknown_word_is_one_line_and_exit_2(command: str) -> None:
    assert_refused(2, "--help", run_process(command))


def test_a_real_process_refuses_bad_input_in_one_line() -> None:
    assert_refused(2, "epsilon", run_process("calibrate --epsilon -1 --delta 1e-5 --teachers 20"))
