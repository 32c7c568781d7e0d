"""Asks a job's own interpreter about its PaddlePaddle, once, and remembers the answer.

Importing Paddle costs a second and 300 MB, so it happens in a process of its own and only when
the interpreter or its packages have changed since the last time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

TIMEOUT = 60.0

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
    seconds: float = TIMEOUT


Probe = Callable[[str, Mapping[str, str], str], Paddle]

_known: dict[tuple[object, ...], Paddle] = {}


def probe_paddle(
    interpreter: str, environment: Mapping[str, str], cwd: str, timeout: float = TIMEOUT
) -> Paddle:
    key = _key(interpreter, environment)
    if key not in _known:
        answer = _ask(interpreter, environment, cwd, timeout)
        if answer.timed_out:
            return answer  # a cold disk may be quicker the next time
        _known[key] = answer
    return _known[key]


def _ask(interpreter: str, environment: Mapping[str, str], cwd: str, timeout: float) -> Paddle:
    try:
        done = subprocess.run(
            [interpreter, "-c", _PROGRAM],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Paddle(interpreter=interpreter, timed_out=True, seconds=timeout)
    except OSError as error:
        return Paddle(interpreter=interpreter, error=str(error))
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    if done.returncode == 0 and lines:
        try:
            answer = msgspec.json.decode(lines[-1], type=Paddle)
        except msgspec.MsgspecError:
            return Paddle(interpreter=interpreter, error=f"unexpected answer: {lines[-1][:200]}")
        return msgspec.structs.replace(answer, interpreter=interpreter)
    told = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    last = told[-1].strip()[:500] if told else f"it exited with {done.returncode}"
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
