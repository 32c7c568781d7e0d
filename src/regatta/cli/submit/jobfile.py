"""A job file's text, and the folder that its relative paths start at.

The file is not understood here; the engine does that, so that every door says the same.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path
from typing import IO

from regatta.api.job import API_VERSION, KIND
from regatta.api.source.limits import MAX_BYTES
from regatta.cli.outcomes import Exit, Stop

#: Tried in this order when a folder is given.
FILE_NAMES = ("job.yaml", "job.yml", "job.json")
_MOST_NAMED = 5
_LOOKED_AT = 16 * 1024
#: What a job file of ours says of itself, and one of OpenPAI's.
_JOBS = re.compile(rf"{KIND}|\btaskRoles\b".encode())


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
                f"Name the job file itself{_listed(job_files_in(file))}.",
            )
        path = found[0]
    try:
        with path.open("rb") as opened:
            text = _text(opened, str(path))
            regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        if _is_program(path, text):
            raise _a_program(file, path)
        # A pipe (`<(...)`) lies in /proc, where nobody wants to run.
        return text, str(path), absolute(path.parent if regular else ".")
    except OSError as error:
        raise Stop(
            Exit.INVALID,
            f"{file} cannot be read: {error.strerror}",
            _instead_of(file)
            or "Give the path of a job file, a folder that holds job.yaml, or - "
            "for standard input.",
        ) from error


def job_files_in(folder: str) -> list[str]:
    """Names of the job files that lie there, as far as a look at their beginnings tells."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for path in sorted(Path(folder).iterdir()):
            if path.suffix in (".yaml", ".yml", ".json") and path.is_file():
                with contextlib.suppress(OSError), path.open("rb") as opened:
                    if _JOBS.search(opened.read(_LOOKED_AT)):
                        found.append(path.name)
    return found[:_MOST_NAMED]


def _listed(names: list[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _instead_of(file: str) -> str:
    """What may have been meant by a file that is not there."""
    if file.startswith(("http://", "https://")):
        return f"Fetch it first: curl -fL {shlex.quote(file)} | regatta run -"
    path = Path(file)
    try:
        there = {other.name.lower(): other for other in path.parent.iterdir() if other.is_file()}
    except OSError:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(path.name.strip().lower(), there, n=1, cutoff=0.75)
    return f"Did you mean {there[near[0]]}?" if near and not path.exists() else ""


def _is_program(path: Path, text: str) -> bool:
    return path.suffix in (".py", ".sh") or text.startswith("#!")


def _a_program(file: str, path: Path) -> Stop:
    """With a line to paste: it runs the program by the job file beside it, or makes one first."""
    name, suffix = path.name, path.suffix
    words = {".py": ["python", name], ".sh": ["sh", name]}.get(suffix, [f"./{name}"])
    beside = next((other for other in FILE_NAMES if (path.parent / other).is_file()), None)
    job_file = shlex.quote(str(path.parent / (beside or FILE_NAMES[0])))
    if beside is not None:
        which = "The one beside it runs it so"
        line = f"regatta run {job_file} --command {shlex.quote(shlex.join(words))}"
    else:
        which = "This makes one, and runs it"
        made = shlex.quote(_smallest(path.stem, words))
        line = f"echo {made} > {job_file} && regatta run {job_file}"
    return Stop(
        Exit.INVALID,
        f"{file} is a program, not a job file",
        f"A job file, in YAML, says what runs, and how many of it. {which}:\n      {line}",
    )


def _smallest(stem: str, words: list[str]) -> str:
    """A whole job file in one line."""
    name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    name = name if name[:1].isalpha() and len(name) <= 50 else "mine"
    container = f"{{name: main, command: {json.dumps(words)}}}"
    return (
        f"{{apiVersion: {API_VERSION}, kind: {KIND}, metadata: {{name: {name}}}, spec: {{worker: "
        f"{{replicas: 1, template: {{spec: {{containers: [{container}]}}}}}}}}}}"
    )


def _text(opened: IO[bytes], source: str) -> str:
    raw = opened.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Stop(
            Exit.INVALID,
            f"{source} is larger than {MAX_BYTES // 1024} KiB, the most that a job file may have",
            "Name the job file; data belongs into other files.",
        )
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Stop(
            Exit.INVALID,
            f"{source} is not UTF-8 text but UTF-16",
            f"Save it as UTF-8: iconv -f UTF-16 -t UTF-8 {shlex.quote(source)} > NEW",
        )
    if b"\0" in raw:
        raise Stop(
            Exit.INVALID,
            f"{source} is no text",
            "Name the job file, which is YAML or JSON.",
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
