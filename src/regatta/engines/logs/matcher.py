"""Looks for a person's regular expression in lines of a log, within bounds.

Some expressions take for ever on some lines, and Python holds its one lock while it searches: in
this process one of them would stop the engine and every door. So a process of its own searches,
and is ended when a list of lines takes it too long.
"""

from __future__ import annotations

import contextlib
import marshal
import re
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

from regatta.api.errors import BadRequest, PatternTooSlow, RegattaError

#: Of processor time, for one list of lines; a busy machine refuses no pattern.
SECONDS = 5.0
SCRIPT = str(Path(__file__).with_name("matcher_process.py"))


class Matcher:
    """One per reader. Its process starts with the first lines and ends with `close`, or with the
    matcher itself."""

    def __init__(self, pattern: str, seconds: float | None = None) -> None:
        """Raises RegattaError for what is no regular expression."""
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadRequest(
                f"grep: {pattern!r} is not a regular expression ({error}); "
                "write a backslash before characters such as ( [ * to mean them as they are"
            ) from None
        self._pattern = pattern
        self._seconds = SECONDS if seconds is None else seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes]], Matcher] | None = None

    def matches(self, texts: Sequence[str]) -> list[bool]:
        """For each line, whether the pattern is found in it. Raises PatternTooSlow."""
        if not texts:
            return []
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            marshal.dump(list(texts), process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            answer = b""
        else:
            answer = process.stdout.read(len(texts))
        if len(answer) < len(texts):
            raise self._gave_up(process)
        return [found == 1 for found in answer]

    def close(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = process = subprocess.Popen(
            [sys.executable, "-I", "-S", SCRIPT, str(self._seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        self._end = weakref.finalize(self, _end, process)
        assert process.stdin is not None
        marshal.dump(self._pattern, process.stdin)
        return process

    def _gave_up(self, process: subprocess.Popen[bytes]) -> RegattaError:
        code = process.wait()
        self.close()
        if code == -signal.SIGPROF:
            return PatternTooSlow(
                f"grep: the pattern {self._pattern!r} takes too long on a line; simplify it "
                "(one repetition inside another, as in (a+)+, is what takes long)"
            )
        return RegattaError(f"grep: the search ended early (exit status {code}); try it again")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(BrokenPipeError), process:  # closes its pipes and collects it
        pass
