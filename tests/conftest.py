"""What a test wants to be read even when it passes, also when it ran in a worker of xdist."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as the property "say", once each."""
    reports = [
        report
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    said = [value for report in reports for name, value in report.user_properties if name == "say"]
    for line in dict.fromkeys(said):
        terminalreporter.write_line(str(line))
