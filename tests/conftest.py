"""Which tests share a worker, and what every test run tells at its end: figures that tests
recorded, such as how many histories."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from hypothesis import settings

#: A machine that others use is no mistake of the example's.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_configure() -> None:
    """A run in the background of a script has SIGINT ignored, and so would all that tests start:
    no Ctrl-C could end it. A handler is not inherited, so theirs is the default again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Takes longer to make than a test to run: clusters, and images for a container runtime. Those that
#: take longest are begun first.
DEAR = ("real_cluster", "deserted", "plane", "volcano", "native", "held", "bare", "store")
#: Of these there is one for all workers, who would wait for each other.
ONE_FOR_ALL = ("real_cluster",)


@pytest.hookimpl(tryfirst=True)  # the worker then looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something have a worker to themselves, so that it is made once; those that
    share something dear come first. Tests that train come next: the last ones to run should be
    short."""
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("xdist_group") is not None:
        return ""  # it says so itself
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs if info is not None else {}
    used = {name: definitions[-1] for name, definitions in found.items() if definitions}
    for name in DEAR:
        if name in used and used[name].scope != "function":
            return name if name in ONE_FOR_ALL else f"{name} of {used[name].baseid}"
    shared = sorted(name for name, fixture in used.items() if fixture.scope == "module")
    return f"{' and '.join(shared)} in {item.path}" if shared else ""


def _turn(item: pytest.Item) -> tuple[int, int]:
    mark = item.get_closest_marker("xdist_group")
    if mark is None:
        return len(DEAR), item.get_closest_marker("training") is None
    return next((n for n, name in enumerate(DEAR) if mark.args[0].startswith(name)), len(DEAR)), 0


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
