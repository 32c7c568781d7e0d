"""Where output comes from: the pipes of processes, and the files that Paddle's launcher writes."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import select
import stat
import sys
import time

from .pump import Pump, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from io import FileIO

CHUNK = 64 * 1024
#: After the last process is dead its pipes end at once; this bounds the case in which they do not.
DRAIN_SECONDS = 5.0
LOOK_AT_FILES_SECONDS = 0.5
#: One a process of the launcher: more than a machine has trainers. We are outside the limits of the
#: program that lays them there.
MOST_FILES = 256
#: Nobody lists more of a folder.
MOST_ENTRIES = 4096
#: One with so many is listed again a second later, one with twice as many after two.
ENTRIES_A_SECOND = 1024
#: Of one file; a program can make one that takes hours to read, and must end when it is told to.
MOST_A_LOOK = 16 * 1024 * 1024
#: For all that is unread of them when the programs have ended: nobody bounds us any more. With all
#: else that is done at the end less than the engine waits before it ends us (`keeper.py`).
FINISH_SECONDS = 10.0
#: Enough of what was said last to find the place in a file where it was said.
LAST_HEARD = 1024
SEARCHED = 1024 * 1024


class Echo:
    """What the first program has said on its stdout since it was started. Paddle's launcher
    repeats its first trainer there, and stops repeating when it is asked to end."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.size, self.last = 0, b""

    def hear(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.last = (self.last + chunk)[-LAST_HEARD:]


class Pipes:
    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._poll = select.poll()
        self._sources: dict[int, Source] = {}
        self.echo = Echo()

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
            source = self._sources[fd]
            if not source.label and source.stream == b"stdout":
                self.echo.hear(chunk)
            self._pump.feed(source, chunk)
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
    """`workerlog.<n>` of paddle.distributed.launch. Number 0 is on its stdout already, but for
    what its trainer says after the launcher was asked to end."""

    def __init__(
        self, pump: Pump, folders: list[str], echo: Echo, account: int | None = None
    ) -> None:
        """`account`: whose programs, with other rights than ours, write there; our own number
        where they are somebody's in a container."""
        self._pump = pump
        #: By path.
        self._folders = {path: _LauncherFolder(path) for path in folders}
        self._remarked: set[str] = set()
        self._opener = _plain_file if account is None else _opener_of(account)
        self._echo = echo
        #: How large each number 0 was when the launcher was started: it appends.
        self._repeated_from: dict[str, int] = {}
        self._seen: dict[str, tuple[Source, int]] = {}
        self._next_look = 0.0
        #: When what is still unread stays so.
        self._deadline = float("inf")

    def begin(self) -> None:
        """Programs are about to be started."""
        self._deadline = float("inf")
        self._echo.begin()
        self._repeated_from = {folder: _size(f"{folder}/workerlog.0") for folder in self._folders}

    def look(self, now: float) -> float | None:
        """Read what is new, if it is time to; seconds until the next look."""
        if not self._folders:
            return None
        if now >= self._next_look:
            for folder in self._folders.values():
                folder.look(now, self._seen)
            self._read_listed(MOST_A_LOOK)
            self._next_look = now + LOOK_AT_FILES_SECONDS
        for source, _ in self._seen.values():
            self._pump.flush_silent(source, now)
        return self._next_look - now

    def read(self) -> None:
        """All that is there."""
        for folder in self._folders.values():
            folder.list(time.monotonic(), self._seen)
        self._read_listed(sys.maxsize)

    def _read_listed(self, most: int) -> None:
        """`most`: so many bytes of a file; the rest is for later."""
        for path, folder in self._folders.items():
            for name, number in folder.files:
                self._read_file(f"{path}/{name}", number, most)
            if folder.remark and path not in self._remarked:
                self._remarked.add(path)
                self._pump.remark(folder.remark)

    def finish(self) -> None:
        """Of one end, which may ask for it more than once."""
        now = time.monotonic()
        if now > self._deadline:
            return
        self._deadline = min(self._deadline, now + FINISH_SECONDS)
        self.read()
        for source, _ in self._seen.values():
            self._pump.finish(source)
        for folder, start in self._repeated_from.items():
            self._read_unsaid(f"{folder}/workerlog.0", start)
        self._repeated_from = {}

    def _read_unsaid(self, path: str, start: int) -> None:
        """What the launcher would have repeated next."""
        source = Source("stdout")
        try:
            with open(path, "rb", buffering=0, opener=self._opener) as file:
                self._feed(source, file, self._said_until(file, start), sys.maxsize)
        except OSError:
            return
        self._pump.finish(source)

    def _said_until(self, file: FileIO, start: int) -> int:
        size, last = self._echo.size, self._echo.last
        file.seek(start + size - len(last))
        if file.read(len(last)) == last:
            return start + size
        # It said something of its own as well, so how much it said tells nothing.
        end = file.seek(0, os.SEEK_END)
        near = file.seek(max(start, end - SEARCHED))
        written = file.read(SEARCHED)
        while last:
            place = written.rfind(last)
            if place >= 0:
                return near + place + len(last)
            last = last.partition(b"\n")[2]
        return end

    def _read_file(self, path: str, number: str, most: int) -> None:
        source, offset = self._seen.get(path) or (Source("stdout", f"[{number}] "), 0)
        try:
            with open(path, "rb", buffering=0, opener=self._opener) as file:
                if os.fstat(file.fileno()).st_size < offset:
                    offset = 0  # the launcher began it anew
                offset = self._feed(source, file, offset, most)
        except OSError:
            return
        self._seen[path] = (source, offset)

    def _feed(self, source: Source, file: FileIO, offset: int, most: int) -> int:
        """What stands there from this place on, at most so much; where that ended."""
        until = min(offset + most, sys.maxsize)
        while offset < until:
            offset = _data_from(file, offset)
            chunk = file.read(CHUNK)
            if not chunk:
                break
            if time.monotonic() > self._deadline:
                self._pump.remark(
                    f"{os.path.basename(str(file.name))} was too long to be read to its end"
                )
                break
            self._pump.feed(source, chunk)
            offset += len(chunk)
        return offset


class _LauncherFolder:
    """Which of its files are read."""

    def __init__(self, path: str) -> None:
        self._path = path
        #: Name and number of each.
        self.files: list[tuple[str, str]] = []
        self._next_listing = 0.0
        #: Why there may be some that are not read.
        self.remark = ""

    def look(self, now: float, followed: Container[str]) -> None:
        """List it, if it is time to."""
        if now >= self._next_listing:
            self.list(now, followed)

    def list(self, now: float, followed: Container[str]) -> None:
        """`followed`: the paths of those that were read before. They stay: we would have to
        remember ever more if others could take their place."""
        try:
            with os.scandir(self._path) as entries:
                names = [entry.name for entry in itertools.islice(entries, MOST_ENTRIES + 1)]
        except OSError:
            return  # the replica uses no launcher
        self._next_listing = now + len(names) / ENTRIES_A_SECOND
        if len(names) > MOST_ENTRIES:
            # The lowest numbers may be among those that were not listed.
            names = [f"workerlog.{number}" for number in range(1, MOST_FILES + 1)]
            self.remark = (
                f"the folder of the launcher's files has more than {MOST_ENTRIES} entries: "
                f"of workerlog.N only numbers up to {MOST_FILES} are looked for from here on"
            )
        kept = [file for file in self.files if f"{self._path}/{file[0]}" in followed]
        found = set(filter(None, map(_numbered, names)))
        fresh = sorted(found.difference((int(number), name) for name, number in kept))
        room = MOST_FILES - len(kept)
        self.files = kept + [(name, name.partition(".")[2]) for _, name in fresh[:room]]
        if len(fresh) > room and not self.remark:
            self.remark = (
                f"there are more than {MOST_FILES} of the launcher's files (workerlog.N): "
                f"{MOST_FILES} are read, the lowest numbers first, and the others are not"
            )


def _numbered(name: str) -> tuple[int, str] | None:
    """Number 0 is read elsewhere."""
    kind, _, number = name.partition(".")
    is_number = kind == "workerlog" and number.isascii() and number.isdigit()
    return (int(number), name) if is_number and int(number) > 0 else None


def _data_from(file: FileIO, offset: int) -> int:
    """Where the next of what was written begins. A program makes a hole of terabytes in no time,
    and reading its zeros would take hours."""
    try:
        return os.lseek(file.fileno(), offset, os.SEEK_DATA)
    except OSError as error:
        # Nothing but a hole; or a file system that knows none.
        return file.seek(0, os.SEEK_END) if error.errno == errno.ENXIO else file.seek(offset)


def _plain_file(path: str, flags: int) -> int:
    """What a program puts in its place may have nobody at its other end, or no end at all."""
    fd = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", path)
    return fd


def _opener_of(account: int) -> Callable[[str, int], int]:
    """For files of programs that may not read all that we may: no way leads from there to another
    file. A link is one, and where others may write also a move, which asks no owner."""
    anybodys = account == os.getuid()

    def opens(path: str, flags: int) -> int:
        fd = _plain_file(path, flags | os.O_NOFOLLOW)
        found = os.fstat(fd)
        if found.st_nlink != 1 or not (anybodys or found.st_uid == account):
            os.close(fd)
            raise OSError(errno.EACCES, "not a file of its own", path)
        return fd

    return opens


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
