"""Runs tests against one mutant in a process of its own, and finds out which tests to run.

This process imports what is costly and not ours (pytest, pydantic and the like) and nothing that
is mutated. Each run is a fork of it, so it starts in a tenth of a second, imports the file in its
changed form, and whatever the change does to it dies with it.
"""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jsonschema_rs  # noqa: F401  imported once here instead of in every fork
import msgspec  # noqa: F401
import pydantic  # noqa: F401
import pytest
import pytest_timeout  # noqa: F401
import yaml  # noqa: F401
from hypothesis import HealthCheck, settings
from tools.mutants.mutations import Mutant

#: A change can make a loop fill the memory; it shall fail alone.
MEMORY = 4 << 30
#: Some tests are timed: a run may take this many times what its tests took, and as many seconds.
PATIENCE, GRACE = 8.0, 10.0
#: As little of pytest as a test needs: most runs consist of its start.
_WITHOUT = ("cacheprovider", "unraisableexception", "threadexception")
_ARGUMENTS = ["-q", "-x", "--assert=plain", "-p", "pytest_timeout"]
_ARGUMENTS += [argument for plugin in _WITHOUT for argument in ("-p", f"no:{plugin}")]
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

# What tests draw at random is the same each time, and no test is too slow while it is watched.
settings.register_profile(
    "mutants", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("mutants")


@dataclass
class Coverage:
    """What each test runs of the files that are mutated, and how long it takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    #: Tests by file and line.
    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    def of(self, path: Path, lines: tuple[int, int]) -> set[str]:
        by_line = self.tests.get(str(path), {})
        return set().union(*(by_line.get(n, ()) for n in range(lines[0], lines[1] + 1)))


@dataclass(frozen=True)
class Trial:
    """One mutant's run, under way."""

    pid: int
    deadline: float
    #: The run writes the test that failed into it.
    report: int


def cover(paths: Sequence[Path], tests: Sequence[str], unfit: Sequence[str]) -> Coverage:
    """One run of all tests as the code is, with every line that each of them reaches."""
    recorder = _Recorder({str(path) for path in paths}, unfit)
    reader, writer = os.pipe()

    def run() -> int:
        code = int(pytest.main([*_ARGUMENTS, *tests], plugins=[recorder]))
        with os.fdopen(writer, "w") as told:
            json.dump([recorder.seconds, recorder.lines], told)
        return code

    with tempfile.TemporaryFile() as log:
        pid = _fork(run, log.fileno())
        os.close(writer)
        with os.fdopen(reader) as told:
            text = told.read()
        if os.waitpid(pid, 0)[1] != 0:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise SystemExit("mutants: the tests fail as the code is; mend that first")
    seconds, lines = json.loads(text)
    found = Coverage(seconds)
    for test, by_path in lines.items():
        for path, numbers in by_path.items():
            by_line = found.tests.setdefault(path, {})
            for number in numbers:
                by_line.setdefault(number, set()).add(test)
    return found


def start(
    module: str, tree: ast.Module, mutant: Mutant, tests: Sequence[str], seconds: float
) -> Trial:
    """Run these tests, in this order, with the mutant in the module's place.

    The mutants of a file share its tree: the change is made in the fork's copy of it alone.
    """
    reader, writer = os.pipe()

    def run() -> int:
        mutant.apply()
        sys.meta_path.insert(0, _Mutated(module, mutant.path, tree))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        return int(pytest.main([*_ARGUMENTS, *files], plugins=[_Chosen(tests, writer)]))

    pid = _fork(run)
    os.close(writer)
    return Trial(pid, time.monotonic() + seconds * PATIENCE + GRACE, reader)


def ended(trial: Trial) -> str | None:
    """None while it runs; then the test that noticed, `too long`, or nothing if none did."""
    pid, status = os.waitpid(trial.pid, os.WNOHANG)
    if pid == 0:
        if time.monotonic() < trial.deadline:
            return None
        os.kill(trial.pid, signal.SIGKILL)
        os.waitpid(trial.pid, 0)
        os.close(trial.report)
        return "too long"
    with os.fdopen(trial.report) as report:
        told = report.read().strip()
    return told or ("" if status == 0 else "crash")


def _fork(run: Callable[[], int], output: int | None = None) -> int:
    """Its pid. Whatever happens in it ends there, and is said to nobody but `output`."""
    gc.freeze()  # what is here already is no rubbish in any fork
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            output = os.open(os.devnull, os.O_WRONLY) if output is None else output
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = run()
        finally:
            os._exit(code)
    return pid


class _Mutated(importlib.abc.MetaPathFinder):
    """Finds one module, in its changed form."""

    def __init__(self, module: str, path: Path, tree: ast.Module) -> None:
        self.module, self.path, self.tree = module, path, tree

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        loader = _FromTree(name, str(self.path))
        loader.tree = self.tree
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


class _FromTree(importlib.machinery.SourceFileLoader):
    tree: ast.Module

    def get_code(self, name: str) -> CodeType:
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec", dont_inherit=True)


class _Chosen:
    """Runs the chosen tests only, the likeliest to notice first, and tells which one did."""

    def __init__(self, tests: Sequence[str], report: int) -> None:
        self.order = {test: number for number, test in enumerate(tests)}
        self.report = report

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            os.write(self.report, f"import of {report.nodeid}\n".encode())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self.report, f"{report.nodeid}\n".encode())


class _Recorder:
    """Notes which lines of some files each test runs."""

    def __init__(self, paths: set[str], unfit: Sequence[str]) -> None:
        self.paths, self.unfit = paths, tuple(unfit)
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.seen: dict[str, set[int]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not item.nodeid.startswith(self.unfit)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.seen.clear()
        began = time.monotonic()
        sys.settrace(self.enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.monotonic() - began
            self.lines[item.nodeid] = {path: sorted(seen) for path, seen in self.seen.items()}

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename not in self.paths:
            return None
        return self.line

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.seen[frame.f_code.co_filename].add(frame.f_lineno)
        return self.line
