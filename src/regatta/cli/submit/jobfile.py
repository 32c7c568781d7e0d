"""A job file's text, and the folder that its relative paths start at.

The file is not understood here; the engine does that, so that every door says the same.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import IO

from regatta.api.source.limits import MAX_BYTES
from regatta.cli.outcomes import Exit, Stop

#: Tried in this order when a folder is given.
FILE_NAMES = ("job.yaml", "job.yml", "job.json")


def read_job_file(file: str) -> tuple[str, str, str]:
    """The text, what to call it in messages, and the folder that its relative paths start at."""
    if file == "-":
        return _text(sys.stdin.buffer, "standard input"), "-", absolute(".")
    path = Path(file)
    if path.is_dir():
        found = [path / name for name in FILE_NAMES if (path / name).is_file()]
        if not found:
            raise Stop(
                Exit.INVALID,
                f"{file} is a folder without a {FILE_NAMES[0]}",
                "Name the job file itself.",
            )
        path = found[0]
    try:
        with path.open("rb") as opened:
            text = _text(opened, str(path))
            regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        # A pipe (`<(...)`) lies in /proc, where nobody wants to run.
        return text, str(path), absolute(path.parent if regular else ".")
    except OSError as error:
        raise Stop(
            Exit.INVALID,
            f"{file} cannot be read: {error.strerror}",
            "Give the path of a job file, a folder that holds job.yaml, or - for standard input.",
        ) from error


def _text(opened: IO[bytes], source: str) -> str:
    raw = opened.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Stop(
            Exit.INVALID,
            f"{source} is larger than {MAX_BYTES // 1024} KiB, the most that a job file may have",
            "Name the job file; data belongs into other files.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(
            Exit.INVALID,
            f"{source} is not UTF-8 text (byte {error.start} is {raw[error.start]:#04x})",
            "Save the file as UTF-8.",
        ) from error


def absolute(path: str | Path) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError as gone:
        raise Stop(
            Exit.INVALID,
            "the current directory does not exist any more",
            "Change to another one (`cd`), and try again.",
        ) from gone
