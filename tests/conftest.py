"""Settings for all tests, and what a test wants to be read even when it passes."""

import os
import sys

import pytest
from hypothesis import settings

# These machines are shared and noisy, so no test asserts a time. Property tests try the same
# examples in every run, but for `make soak`, which tries new ones.
settings.register_profile("dppp", deadline=None, derandomize="DPPP_SOAK" not in os.environ)
settings.load_profile("dppp")


# A user's real ledger is never touched: nothing can be made in these places, by any process. A test
# of the default sets them to folders of its own.
for _variable in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
    os.environ[_variable] = "/dev/null/of-no-test"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as the property "say", once each, also from workers of xdist."""
    reports = [
        report
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    said = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "say"
    ]
    for line in dict.fromkeys(said):
        terminalreporter.write_line(str(line))


def pytest_sessionfinish() -> None:
    """Stop the PostgreSQL server of this process, if a test has started one."""
    if "tests.postgres" in sys.modules:
        sys.modules["tests.postgres"].remove_shared_server()
