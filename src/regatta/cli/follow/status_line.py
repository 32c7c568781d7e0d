"""The one line at the bottom of a terminal that says how a job is doing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from datetime import datetime

from regatta.api.job import Job, Phase, Progress
from regatta.cli.show.ansi import Paint, harmless, plain
from regatta.cli.show.rows import phase_of, ready
from regatta.cli.show.times import age, since

BAR = 20


class Screen:
    """Lines that scroll, and on a terminal a status line that stays below them."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._status = ""

    def print(self, lines: Iterable[str]) -> None:
        text = "\n".join(lines)
        self._erase()
        sys.stdout.write(f"{text}\n")
        self._draw()

    def status(self, text: str) -> None:
        if self._live and text != self._status:
            self._erase()
            self._status = text
            self._draw()

    def clear(self) -> None:
        if self._status:
            self._erase()
            self._status = ""
            sys.stdout.flush()

    def _erase(self) -> None:
        if self._status:
            # A terminal that was made narrower has broken the line into several.
            above = (len(plain(self._status)) - 1) // _columns()
            sys.stdout.write("\r" + (f"\x1b[{above}A" if above > 0 else "") + "\x1b[J")

    def _draw(self) -> None:
        if self._status:
            sys.stdout.write(self._status)
        sys.stdout.flush()


def status_text(job: Job, now: datetime, paint: Paint, width: int | None = None) -> str:
    """Phase, time, replicas, then progress or the reason for waiting; cut to the terminal."""
    phase = phase_of(job)
    began = job.status.start_time or job.metadata.creation_timestamp
    parts = [age(since(began, now)), *(f"{name} {ready(job, name)}" for name in job.spec.roles())]
    room = max((width or _columns()) - len(phase) - 3, 0)
    return f"{paint.phase(phase)}  {_fitting(job, phase, parts, room)}"


def _fitting(job: Job, phase: str, parts: list[str], room: int) -> str:
    """Where there is little room the bar gives way, and the numbers stay."""
    progress = job.status.progress
    if phase in (Phase.RUNNING, Phase.SCALING) and progress is not None:
        texts = [_joined(parts, progress_text(progress, bar)) for bar in range(BAR, -1, -1)]
        return next((text for text in texts if len(text) <= room), texts[-1])[:room]
    reason = harmless(job.status.message.partition("\n")[0]) if phase != Phase.RUNNING else ""
    return _joined(parts, reason)[:room]


def _joined(parts: list[str], last: str) -> str:
    return "  ".join(part for part in (*parts, last) if part)


def _columns() -> int:
    return shutil.get_terminal_size().columns


def progress_text(progress: Progress, width: int = BAR) -> str:
    metrics = " ".join(f"{name} {value:.4g}" for name, value in progress.metrics.items())
    if not progress.total:
        return f"step {progress.step}  {metrics}".rstrip()
    if progress.step > progress.total:  # so that is not the total, and nothing is a share of it
        return f"step {progress.step}, more than its total of {progress.total}  {metrics}".rstrip()
    share = max(0.0, progress.step / progress.total)
    filled = round(share * width)
    bar = "█" * filled + "░" * (width - filled) + " " * bool(width)
    left = "" if progress.eta_seconds is None else f"  {age(progress.eta_seconds)} left"
    return f"{bar}{share:4.0%} {progress.step}/{progress.total}{left}  {metrics}".rstrip()
