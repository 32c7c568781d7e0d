"""The one line at the bottom of a terminal that says how a job is doing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from datetime import datetime

from regatta.api.job import Job, Phase, Progress
from regatta.cli.show.ansi import Paint, harmless
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
        if self._status:
            sys.stdout.write("\r\x1b[K")
        sys.stdout.write(f"{text}\n")
        self._draw()

    def status(self, text: str) -> None:
        if self._live and text != self._status:
            self._status = text
            sys.stdout.write("\r\x1b[K")
            self._draw()

    def clear(self) -> None:
        if self._status:
            self._status = ""
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()

    def _draw(self) -> None:
        if self._status:
            sys.stdout.write(self._status)
        sys.stdout.flush()


def status_text(job: Job, now: datetime, paint: Paint, width: int | None = None) -> str:
    """Phase, time, replicas, then progress or the reason for waiting; cut to the terminal."""
    phase = phase_of(job)
    began = job.status.start_time or job.metadata.creation_timestamp
    parts = [age(since(began, now)), *(f"{name} {ready(job, name)}" for name in job.spec.roles())]
    progress = job.status.progress
    if phase in (Phase.RUNNING, Phase.SCALING) and progress is not None:
        parts.append(progress_text(progress))
    elif phase != Phase.RUNNING and job.status.message:
        parts.append(harmless(job.status.message.partition("\n")[0]))
    room = (width or shutil.get_terminal_size().columns) - len(phase) - 3
    rest = "  ".join(part for part in parts if part)
    return f"{paint.phase(phase)}  {rest[: max(room, 0)]}"


def progress_text(progress: Progress) -> str:
    metrics = " ".join(f"{name} {value:.4g}" for name, value in progress.metrics.items())
    if not progress.total:
        return f"step {progress.step}  {metrics}".rstrip()
    if progress.step > progress.total:  # so that is not the total, and nothing is a share of it
        return f"step {progress.step}, more than its total of {progress.total}  {metrics}".rstrip()
    share = max(0.0, progress.step / progress.total)
    filled = round(share * BAR)
    bar = "█" * filled + "░" * (BAR - filled)
    left = "" if progress.eta_seconds is None else f"  {age(progress.eta_seconds)} left"
    return f"{bar} {share:4.0%} {progress.step}/{progress.total}{left}  {metrics}".rstrip()
