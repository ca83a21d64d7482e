"""Settings for all tests, and what tests want to be read even when they pass."""

import pytest
from hypothesis import settings

# These machines are shared and noisy: no test asserts a time (CONVENTIONS.md, 28).
settings.register_profile("dppp", deadline=None)
settings.load_profile("dppp")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as the property "say", also in a worker of xdist, once each."""
    reports = [
        report
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    said = [value for report in reports for name, value in report.user_properties if name == "say"]
    for line in dict.fromkeys(said):
        terminalreporter.write_line(str(line))
