"""How much running replicas use right now, for doors that ask often and from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path

from regatta.engines.local.replicas.runtime import RunState, Runtime, Usage

#: Asking about every job in turn (`top`) must not measure all of them every time.
FRESH = 0.5

Measured = dict[Path, tuple[RunState, Usage | None]]


class Meter:
    def __init__(self) -> None:
        # A runtime of its own: the loop's keeps track of child processes and is not shared.
        self._runtime = Runtime()
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._known: Measured = {}

    def measure(self, folders: Iterable[Path]) -> Measured:
        """State and use of every run that lives; pass all of them, whatever was asked for."""
        with self._lock:
            wanted = list(folders)
            stale = time.monotonic() - self._at > FRESH
            if stale or any(folder not in self._known for folder in wanted):
                usage = self._runtime.usage(wanted)
                self._known = {f: (self._runtime.inspect(f), usage.get(f)) for f in wanted}
                self._at = time.monotonic()
            return self._known
