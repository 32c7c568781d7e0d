"""Where output comes from: the pipes of processes, and the files that Paddle's launcher writes."""

from __future__ import annotations

import fcntl
import os
import select
import time

from .pump import Pump, Source

CHUNK = 64 * 1024
#: After the last process is dead its pipes end at once; this bounds the case in which they do not.
DRAIN_SECONDS = 5.0
LOOK_AT_FILES_SECONDS = 0.5


class Pipes:
    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._poll = select.poll()
        self._sources: dict[int, Source] = {}

    def watch(self, fd: int) -> None:
        """Also wake up for this descriptor, which carries no output."""
        self._poll.register(fd, select.POLLIN)

    def open(self, label: str) -> tuple[int, int]:
        """Write ends for a new process's stdout and stderr. Close them once it runs."""
        ends = []
        for stream in ("stdout", "stderr"):
            read, write = os.pipe()
            fcntl.fcntl(read, fcntl.F_SETFL, os.O_NONBLOCK)
            self._sources[read] = Source(stream, label)
            self._poll.register(read, select.POLLIN)
            ends.append(write)
        return ends[0], ends[1]

    def wait(self, seconds: float | None) -> None:
        """Move output into the log until there is a moment's rest, or a signal."""
        now = time.monotonic()
        for source in self._sources.values():
            left = self._pump.flush_silent(source, now)
            if left is not None:
                seconds = left if seconds is None else min(seconds, left)
        timeout = None if seconds is None else max(0, int(seconds * 1000) + 1)
        for fd, _ in self._poll.poll(timeout):
            if fd in self._sources:
                self._move(fd)

    def drain(self) -> None:
        """Everything that dead processes left in their pipes."""
        deadline = time.monotonic() + DRAIN_SECONDS
        for fd in list(self._sources):
            while fd in self._sources and time.monotonic() < deadline:
                if not self._move(fd):
                    break
            self._forget(fd)

    def _move(self, fd: int) -> bool:
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        except InterruptedError:
            return True
        if chunk:
            self._pump.feed(self._sources[fd], chunk)
        else:
            self._forget(fd)
        return bool(chunk)

    def _forget(self, fd: int) -> None:
        source = self._sources.pop(fd, None)
        if source is not None:
            self._pump.finish(source)
            self._poll.unregister(fd)
            os.close(fd)


class LauncherFiles:
    """`workerlog.<n>` of paddle.distributed.launch. Number 0 is on its stdout already."""

    def __init__(self, pump: Pump, folders: list[str]) -> None:
        self._pump = pump
        self._folders = folders
        self._seen: dict[str, tuple[Source, int]] = {}
        self._next_look = 0.0

    def look(self, now: float) -> float | None:
        """Read what is new, if it is time to; seconds until the next look."""
        if not self._folders:
            return None
        if now >= self._next_look:
            self.read()
            self._next_look = now + LOOK_AT_FILES_SECONDS
        for source, _ in self._seen.values():
            self._pump.flush_silent(source, now)
        return self._next_look - now

    def read(self) -> None:
        for folder in self._folders:
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue  # the replica uses no launcher
            for name in names:
                kind, _, number = name.partition(".")
                if kind == "workerlog" and number.isdigit() and int(number) > 0:
                    self._read_file(f"{folder}/{name}", number)

    def finish(self) -> None:
        self.read()
        for source, _ in self._seen.values():
            self._pump.finish(source)

    def _read_file(self, path: str, number: str) -> None:
        source, offset = self._seen.get(path) or (Source("stdout", f"[{number}] "), 0)
        try:
            with open(path, "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size < offset:
                    offset = 0  # the launcher began it anew
                file.seek(offset)
                while chunk := file.read(CHUNK):
                    self._pump.feed(source, chunk)
                    offset += len(chunk)
        except OSError:
            return
        self._seen[path] = (source, offset)
