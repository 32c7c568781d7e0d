"""What every test run tells at its end: figures that tests recorded, such as how many histories."""

from __future__ import annotations

import signal
from collections import Counter

import pytest


def pytest_configure() -> None:
    """A run in the background of a script has SIGINT ignored, and so would all that tests start:
    no Ctrl-C could end it. A handler is not inherited, so theirs is the default again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for key, value in report.user_properties:
                if isinstance(value, int):
                    totals[key] += value
                else:
                    terminalreporter.write_line(f"{key}: {value}")
    for key, value in sorted(totals.items()):
        terminalreporter.write_line(f"{key}: {value:,}")
