"""`progress(step, total, **metrics)`: how a training program says how far it is.

Runs inside the user's training environment: standard library only, Python 3.8 and up, no socket,
and it never raises. Outside a job it does nothing. Inside one it appends a line of JSON to the
file named in REGATTA_PROGRESS, which the engine reads as a heartbeat. Importing it costs next to
nothing: whoever imports anything of the package imports this too.
"""

from __future__ import annotations

import atexit
import math
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Reports closer together than this are held back; the last one always gets through.
EVERY_SECONDS = 0.2
LARGEST_FILE = 1024 * 1024
KEPT_OF_IT = 64 * 1024
MOST_METRICS = 32
LONGEST_NAME = 64

_written_at: float | None = None
_held_back: tuple[str, dict[str, Any]] | None = None


def progress(step: int, total: int | None = None, **metrics: Any) -> None:
    """Report that `step` (of `total`) is done, with numbers worth seeing (loss=0.3, ...)."""
    global _written_at, _held_back
    try:
        path = os.environ.get("REGATTA_PROGRESS")
        if not path:
            return
        record = _record(step, total, metrics)
        if _held_back is not None:  # what it named is named all the same
            record["not_numbers"] = {**_held_back[1]["not_numbers"], **record["not_numbers"]}
        now = time.monotonic()
        known = record["step"] is not None and record["total"] is not None
        last = known and record["step"] >= record["total"]
        if _written_at is not None and now - _written_at < EVERY_SECONDS and not last:
            _held_back = (path, record)
            return
        _written_at, _held_back = now, None
        _append(path, record)
    except Exception:  # noqa: BLE001 - a report is never worth a training run
        pass


def _record(step: int, total: int | None, metrics: dict[str, Any]) -> dict[str, Any]:
    numbers: dict[str, float] = {}
    odd: dict[str, str] = {}
    for name, value in list(metrics.items())[:MOST_METRICS]:
        try:
            number = float(value)  # tensors and numpy numbers know how
        except Exception:  # noqa: BLE001 - whatever the user's type raises
            number = math.nan
        if math.isfinite(number):  # JSON has no word for the others
            numbers[name[:LONGEST_NAME]] = number
        else:
            odd[name[:LONGEST_NAME]] = _shown(value)
    return {
        "step": _count("step", step, odd),
        "total": None if total is None else _count("total", total, odd),
        "metrics": numbers,
        "not_numbers": odd,
        "at": time.time(),
    }


def _count(name: str, value: Any, odd: dict[str, str]) -> int | None:
    try:
        count = int(value)
        if count >= 0:
            return count
    except Exception:  # noqa: BLE001 - whatever the user's type raises
        pass
    odd[name] = _shown(value)
    return None


def _shown(value: Any) -> str:
    """In a word: what a tensor has to say of itself may be long."""
    try:
        if isinstance(value, str):
            return repr(value)[:LONGEST_NAME]
        if value is None or isinstance(value, (bool, int)):
            return str(value)[:LONGEST_NAME]
        number = float(value)
        return str(number)
    except Exception:  # noqa: BLE001 - whatever the user's type raises
        kind = type(value).__name__[:LONGEST_NAME]
        return ("an " if kind[:1] in "aeiou" else "a ") + kind


def _append(path: str, record: dict[str, Any]) -> None:
    import json

    line = (json.dumps(record, separators=(",", ":")) + "\n").encode()
    # One short write at the end of the file: several processes of a replica may report at once.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.fstat(fd).st_size > LARGEST_FILE:
            _shorten(path)
            os.close(fd)
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(fd, line)
    finally:
        os.close(fd)


def _shorten(path: str) -> None:
    with open(path, "rb") as file:
        file.seek(-KEPT_OF_IT, os.SEEK_END)
        kept = file.read().partition(b"\n")[2]
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(kept)
        os.replace(temporary, path)
    except OSError:
        # Only the file may be this program's to write, not the folder that it lies in.
        with open(path, "r+b") as file:
            file.write(kept)
            file.truncate()


def _report_held_back() -> None:
    try:
        if _held_back is not None:
            _append(*_held_back)
    except Exception:  # noqa: BLE001
        pass


atexit.register(_report_held_back)
