"""Settings for all tests, and what a run wants to be read at its end."""

import os
import sys

# Before anything imports numpy. As many tests run at once as there are processors, and numerical
# libraries that share them wait by spinning: some tests took ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from tests.left_out import IS_SOAK, describe_left_out

# These machines are shared and noisy, so no test asserts a time. Property tests try the same
# examples in every run, but for `make soak`, which tries new ones, more of them, and prints what
# repeats an example that failed.
settings.register_profile("dppp", deadline=None, derandomize=True)
settings.register_profile(
    "soak", deadline=None, derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile("soak" if IS_SOAK else "dppp")


# A user's real ledger is never touched: nothing can be made in these places, by any process. A test
# of the default sets them to folders of its own.
for _variable in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
    os.environ[_variable] = "/dev/null/of-no-test"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as the property "say", and what was left out; once each."""
    stats = terminalreporter.stats
    reports = [
        each for outcome in ("passed", "failed", "skipped") for each in stats.get(outcome, [])
    ]
    said = [
        str(value)
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "say"
    ]
    for line in [*dict.fromkeys(said), *describe_left_out(stats.get("skipped", []))]:
        terminalreporter.write_line(line)


def pytest_sessionfinish() -> None:
    """Stop the PostgreSQL server of this process, if a test has started one."""
    if "tests.postgres" in sys.modules:
        sys.modules["tests.postgres"].remove_shared_server()
