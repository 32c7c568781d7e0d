"""Reads and writes small JSON files that others watch: whole or not at all.

The `json` package brings `re`, `enum` and `functools` with it: 8 ms and over 1 MB for each replica.
The C scanner beneath it needs none of them, and what we write is flat.
"""

from __future__ import annotations

import _json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How often a file that found no room is tried again.
AGAIN_SECONDS = 1.0


class _Dialect:
    """What the C scanner asks its caller for: plain JSON, no hooks."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}


def _read(text: str) -> Any:
    try:
        return _json.make_scanner(_Dialect)(text.strip(), 0)[0]  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError("not JSON") from None


def dumps(value: Any) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _json.encode_basestring(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(k)}:{dumps(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} is never written here")


def read(path: str) -> dict[str, Any] | None:
    """The object in the file; None where there is no such file, or it holds no JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            value = _read(file.read())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write(path: str, value: dict[str, Any]) -> None:
    """For state that only helps: replaced at once, but not forced to the disk."""
    temporary = path + ".new"
    with open(temporary, "wb") as file:
        file.write(dumps(value).encode("utf-8", "replace"))
    os.rename(temporary, path)


class Telling:
    """Writes files of a folder for which nothing waits. Where one finds no room the newest of it is
    owed, and tried again now and then: nobody else would ever write it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        #: By the file's name.
        self._owed: dict[str, dict[str, Any]] = {}
        self._next_try = 0.0

    def tell(self, name: str, value: dict[str, Any]) -> None:
        self._owed[name] = value
        self._write(time.monotonic())

    def look(self, now: float) -> float | None:
        """Try what is owed, if it is time to; seconds until the next try. None: nothing is owed."""
        if self._owed and now >= self._next_try:
            self._write(now)
        return self._next_try - now if self._owed else None

    def look_again(self, reserve: Reserve) -> None:
        """For the last time: what is owed finds room that was reserved for it."""
        if self._owed:
            reserve.lend()
            self._write(time.monotonic())

    def _write(self, now: float) -> None:
        self._next_try = now + AGAIN_SECONDS
        for name, value in list(self._owed.items()):
            try:
                write(f"{self._folder}/{name}", value)
            except OSError:
                continue  # a full disk, say
            del self._owed[name]


class Reserve:
    """Room for a last file, taken while there still is some.

    A disk that training filled must not cost the exit code. The blocks are allocated at the start;
    at the end they are overwritten in place, forced to the disk, and renamed.
    """

    SIZE = 32 * 1024
    #: For other files that are written at the end.
    LENT = 8 * 1024

    def __init__(self, path: str) -> None:
        self._path = path
        self._temporary = path + ".reserve"
        try:
            with open(self._temporary, "wb") as file:
                file.write(b" " * (self.SIZE + self.LENT))
        except OSError:
            pass  # full from the beginning: the end may still find room

    def lend(self) -> None:
        try:  # noqa: SIM105 - contextlib is not worth its import here
            os.truncate(self._temporary, self.SIZE)
        except OSError:
            pass

    def spend(self, value: dict[str, Any]) -> None:
        content = dumps(value).encode("utf-8", "replace")
        try:
            self._put(content, os.O_CREAT | os.O_WRONLY)
        except OSError:
            # A copy-on-write file system wants new blocks even to overwrite: give ours back first.
            if os.path.exists(self._temporary):
                os.unlink(self._temporary)
            self._put(content, os.O_CREAT | os.O_WRONLY)
        os.rename(self._temporary, self._path)
        directory = os.open(os.path.dirname(self._path), os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _put(self, content: bytes, flags: int) -> None:
        fd = os.open(self._temporary, flags, 0o644)
        try:
            os.write(fd, content)
            os.ftruncate(fd, len(content))
            os.fsync(fd)
        finally:
            os.close(fd)
