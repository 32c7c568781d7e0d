"""How much the machine and running replicas use right now, for doors that ask often and from
several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path

from regatta.engines.local.replicas.procfs import SHORTEST, comparable
from regatta.engines.local.replicas.runtime import RunState, Runtime, Usage
from regatta.engines.local.scheduling.machine import Load, load

#: Asking about every job in turn (`top`) must not measure all of them every time.
FRESH = 0.5
#: Who asks for the first time waits so long for a second reading.
WINDOW = SHORTEST + 0.05

Measured = dict[Path, tuple[RunState, Usage | None]]


class Meter:
    def __init__(self) -> None:
        # A runtime of its own: the loop's keeps track of child processes and is not shared.
        self._runtime = Runtime()
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._known: Measured = {}
        self._load = Load()
        self._machine = Usage(None, 0)

    def measure(self, folders: Iterable[Path]) -> Measured:
        """State and use of every run that lives; pass all of them, whatever was asked for. What
        was never read before has no CPU number yet."""
        with self._lock:
            return self._measure(list(folders))

    def compare(self, folders: Iterable[Path]) -> tuple[Usage, Measured]:
        """The machine's use and the runs', each from two readings."""
        with self._lock:
            wanted = list(folders)
            measured = self._measure(wanted)
            uses = [self._machine, *(use for _, use in measured.values() if use is not None)]
            if any(use.cpu_percent is None for use in uses):
                time.sleep(WINDOW)
                measured = self._look(wanted)
            return self._machine, measured

    def _measure(self, wanted: list[Path]) -> Measured:
        stale = time.monotonic() - self._at > FRESH
        if stale or any(folder not in self._known for folder in wanted):
            return self._look(wanted)
        return self._known

    def _look(self, wanted: list[Path]) -> Measured:
        usage = self._runtime.usage(wanted)
        self._known = {f: (self._runtime.inspect(f), usage.get(f)) for f in wanted}
        now, before = load(), self._load
        percent = now.cpu_percent_since(before) if comparable(before.at, now.at) else None
        self._machine = Usage(percent, now.memory_used)
        if now.at - before.at >= SHORTEST:
            self._load = now
        self._at = now.at
        return self._known
