"""Settings for all tests, and what a test wants to be read even when it passes."""

import sys

import pytest
from hypothesis import settings

# These machines are shared and noisy: no test asserts a time (CONVENTIONS.md, 28).
settings.register_profile("dppp", deadline=None)
settings.load_profile("dppp")


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
