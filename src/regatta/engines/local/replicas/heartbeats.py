"""Progress that running replicas report, and when a sign of life was last seen.

Replicas append to a file of their own; looking at its modification time is all that an idle
second costs. Kept in memory: after a restart of the engine the files are simply read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from regatta.api.job import Progress
from regatta.engines.local.replicas.progress_reader import read_progress
from regatta.engines.local.replicas.runspec import PROGRESS_FILE


class Beat(msgspec.Struct, frozen=True):
    progress: Progress | None = None
    awake: float | None = None


class Heartbeats:
    def __init__(self) -> None:
        self._beats: dict[str, Beat] = {}
        self._seen: dict[Path, int] = {}
        #: Per job, whose progress is shown: the first replica that reports any.
        self._speaker: dict[str, Path] = {}

    def of(self, job_uid: str) -> Beat:
        return self._beats.get(job_uid, Beat())

    def forget(self, job_uid: str) -> None:
        self._beats.pop(job_uid, None)
        self._speaker.pop(job_uid, None)

    def forget_run(self, job_uid: str, folder: Path) -> None:
        self._seen.pop(folder / PROGRESS_FILE, None)
        if self._speaker.get(job_uid) == folder / PROGRESS_FILE:
            del self._speaker[job_uid]

    def look(self, runs: Iterable[tuple[str, Path]], awake: float) -> set[str]:
        """Look at each (job uid, run folder); the jobs with news."""
        news = set()
        for job_uid, folder in runs:
            file = folder / PROGRESS_FILE
            try:
                written = file.stat().st_mtime_ns
            except OSError:
                continue
            if self._seen.get(file) == written:
                continue
            self._seen[file] = written
            shown = self.of(job_uid).progress
            if self._speaker.setdefault(job_uid, file) == file:
                shown = read_progress(folder) or shown
            self._beats[job_uid] = Beat(shown, awake)
            news.add(job_uid)
        return news
