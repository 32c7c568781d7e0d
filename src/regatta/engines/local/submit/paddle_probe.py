"""Asks a job's own interpreter about its PaddlePaddle, once, and remembers the answer.

The one who submits waits meanwhile, so all questions of a submission share one budget.

Importing Paddle costs a second and 300 MB, so it happens in a process of its own and only when
the interpreter or its packages have changed since the last time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from regatta.api.source.foreign_json import UNREADABLE

#: For all interpreters of a submission together; well below what a client waits for its answer.
BUDGET = 60.0

#: Runs in the job's interpreter, which may be old and has none of our packages. brpc's own flag
#: says yes where there is no parameter server; the wrapper class is the sign that tells.
_PROGRAM = """
import json, sys
import paddle
try:
    from paddle.base import core
except ImportError:
    from paddle.fluid import core
try:
    import google.protobuf as protobuf
    major = int(protobuf.__version__.split(".")[0])
except Exception:
    major = 0
sys.stdout.write("\\n" + json.dumps({
    "version": str(paddle.__version__),
    "has_servers": hasattr(core, "DistFleetWrapper"),
    "protobuf": major,
}) + "\\n")
"""


class Paddle(msgspec.Struct, frozen=True, kw_only=True):
    interpreter: str = ""
    version: str = ""
    has_servers: bool = False
    protobuf: int = 0
    #: The last line that the failed import wrote.
    error: str = ""
    timed_out: bool = False
    seconds: float = BUDGET


#: Interpreter, environment, working directory, seconds it may take.
Probe = Callable[[str, Mapping[str, str], str, float], Paddle]

_known: dict[tuple[object, ...], Paddle] = {}


class Probing:
    """The questions of one submission: each interpreter is asked once, however it answers, and
    all of them within one budget."""

    def __init__(self, probe: Probe, budget: float = BUDGET) -> None:
        self._probe = probe
        self._budget = budget
        self._deadline = time.monotonic() + budget
        self._asked: dict[tuple[object, ...], Paddle] = {}

    def __call__(self, interpreter: str, environment: Mapping[str, str], cwd: str) -> Paddle:
        key = _key(interpreter, environment)
        if key not in self._asked:
            self._asked[key] = self._ask(interpreter, environment, cwd)
        return self._asked[key]

    def _ask(self, interpreter: str, environment: Mapping[str, str], cwd: str) -> Paddle:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return Paddle(interpreter=interpreter, timed_out=True, seconds=self._budget)
        return self._probe(interpreter, environment, cwd, left)


def probe_paddle(
    interpreter: str, environment: Mapping[str, str], cwd: str, timeout: float = BUDGET
) -> Paddle:
    key = _key(interpreter, environment)
    if key not in _known:
        answer = _ask(interpreter, environment, cwd, timeout)
        if answer.timed_out:
            return answer  # a cold disk may be quicker the next time
        _known[key] = answer
    return _known[key]


def remembered() -> bytes:
    """All answers so far, for another process of the same account."""
    return msgspec.json.encode(list(_known.items()))


def remember(answers: bytes) -> None:
    read = msgspec.json.decode(answers or b"[]", type=list[tuple[Any, Paddle]])
    for key, answer in read:
        _known[_as_key(key)] = answer


def _as_key(read: Any) -> Any:
    """A key as it was before it became JSON."""
    return tuple(map(_as_key, read)) if isinstance(read, list) else read


def _ask(interpreter: str, environment: Mapping[str, str], cwd: str, timeout: float) -> Paddle:
    try:
        asked = subprocess.Popen(
            [interpreter, "-c", _PROGRAM],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # An interpreter may be a script that starts the real one: both have to end.
            start_new_session=True,
        )
    except OSError as error:
        return Paddle(interpreter=interpreter, error=str(error))
    with asked:
        try:
            out, err = asked.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(asked.pid, signal.SIGKILL)
            return Paddle(interpreter=interpreter, timed_out=True, seconds=timeout)
    lines = [line for line in out.decode(errors="replace").splitlines() if line.strip()]
    if asked.returncode == 0 and lines:
        try:
            answer = msgspec.json.decode(lines[-1], type=Paddle)
        except UNREADABLE:
            return Paddle(interpreter=interpreter, error=f"unexpected answer: {lines[-1][:200]}")
        return msgspec.structs.replace(answer, interpreter=interpreter)
    told = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    last = told[-1].strip()[:500] if told else f"it exited with {asked.returncode}"
    return Paddle(interpreter=interpreter, error=last)


def _key(interpreter: str, environment: Mapping[str, str]) -> tuple[object, ...]:
    """Changes when packages are installed or removed, or another path leads to other ones."""
    prefix = Path(interpreter).parent.parent
    folders = sorted(prefix.glob("lib*/python*/*-packages"))
    stamps = tuple((str(folder), _changed_at(folder)) for folder in folders)
    seen = tuple(environment.get(name, "") for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "HOME"))
    return (interpreter, _changed_at(Path(interpreter)), stamps, seen)


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
