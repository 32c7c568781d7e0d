"""Staying with a job until it ends: its lines, its status, and what Ctrl-C means.

The first Ctrl-C detaches: the job goes on, and the commands to come back or to stop it are
printed. A second one, while that is still on the screen, stops the job; then its end is awaited.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from regatta.api.errors import JobNotFound, NotPossible, RegattaError
from regatta.api.job import Job, Phase
from regatta.cli.follow.lost_server import away
from regatta.cli.follow.status_line import Screen, status_text
from regatta.cli.follow.ticks import ticking
from regatta.cli.outcomes import BY_PHASE, Exit, Stop, replaced
from regatta.cli.settings import Settings
from regatta.cli.show.log_printer import LogPrinter
from regatta.cli.show.overview import left_running, summary_lines
from regatta.cli.show.rows import handle, phase_of, trouble
from regatta.cli.show.times import now
from regatta.engines.base import Gone, JobUpdate, LogBatch, LogQuery, Lost, Remark

#: How long a detached command stays to see a second Ctrl-C.
SECOND_CHANCE_SECONDS = 2.0
TICK_SECONDS = 0.1


class Attached:
    def __init__(self, settings: Settings, job: Job) -> None:
        self._settings = settings
        self._job = job
        self._paint = settings.paint
        self._screen = Screen(live=settings.terminal)
        self._printer = LogPrinter(self._paint, terminal=settings.terminal)
        roles = job.spec.roles().items()
        self._printer.expect([f"{name}-{i}" for name, role in roles for i in range(role.replicas)])
        self._interrupts = 0
        self._stopping = False
        self._said = ""
        self._trouble = ""

    def follow(self) -> Exit:
        """Until the job is over and its logs are drained, or the person leaves."""
        with self._catching_interrupts():
            for update in ticking(self._stream(), TICK_SECONDS):
                if self._interrupts and (left := self._interrupted()) is not None:
                    return left
                match update:
                    case LogBatch(lines) if lines:
                        self._screen.print([self._printer.line(line) for line in lines])
                    case Job():
                        self._changed(update)
                    case Gone():
                        self._screen.clear()
                        raise self._gone()
                    case Lost():
                        self._note(away(self._settings))
                    case Remark(text):
                        self._note(text)
                self._screen.status(status_text(self._job, now(), self._paint))
        self._screen.clear()
        return self._end()

    def _stream(self) -> Iterator[JobUpdate]:
        return self._settings.engine().follow(self._job.namespace, self._job.name, LogQuery())

    def _gone(self) -> Stop:
        try:
            other = self._settings.engine().get(self._job.namespace, self._job.name)
        except JobNotFound:
            return Stop(Exit.CONFLICT, f"job {self._job.name} was deleted meanwhile")
        return replaced(other.name, handle(other))

    def _changed(self, job: Job) -> None:
        if job.uid != self._job.uid:
            self._screen.clear()
            raise replaced(job.name, handle(job))
        self._job = job
        if (told := trouble(job)) != self._trouble:
            self._trouble = told
            if told:
                self._note(f"job {job.name}: {told}")
        if told:
            return
        phase, message = phase_of(job), job.status.message
        said = f"{phase}: {message}" if message and phase != Phase.RUNNING else phase
        if said != self._said and not job.finished:
            self._said = said
            # On a terminal the status line shows this; elsewhere a line has to.
            if not self._settings.terminal:
                self._note(f"job {job.name} is {said}")

    def _note(self, text: str) -> None:
        self._say([self._paint(f"-- {text}", "dim")])

    def _say(self, lines: Iterable[str]) -> None:
        self._screen.print([self._settings.page(lines)])

    def _interrupted(self) -> Exit | None:
        """What the Ctrl-Cs so far amount to: an exit, or None to go on following."""
        if self._stopping:
            return Exit.DETACHED if self._interrupts > 2 else None
        self._screen.clear()
        name, named = self._job.name, handle(self._job)
        self._screen.print(
            [
                f"Detached; job {name} goes on.",
                f"  follow it again:  regatta logs -f {named}",
                f"  stop it:          regatta stop {named}   (or press Ctrl-C again now)",
            ]
        )
        deadline = time.monotonic() + SECOND_CHANCE_SECONDS
        while self._interrupts < 2:
            if time.monotonic() > deadline:
                return Exit.DETACHED
            time.sleep(0.05)
        self._stopping = True
        self._screen.print([f"Stopping job {name}."])
        try:
            self._settings.engine().stop(self._job.namespace, name)
        except RegattaError as refused:
            # It has ended in the meantime, and that is what the stream tells next.
            if refused.code != NotPossible.code:
                raise
        return None

    def _end(self) -> Exit:
        pods = self._settings.engine().pods(self._job.namespace, self._job.name)
        lines = ["", *summary_lines(self._job, pods, self._paint)]
        self._say([*lines, *left_running(self._job, pods)])
        return BY_PHASE.get(self._job.status.phase or Phase.PENDING, Exit.FAILED)

    @contextmanager
    def _catching_interrupts(self) -> Iterator[None]:
        def count(*_: object) -> None:
            self._interrupts += 1

        before = signal.signal(signal.SIGINT, count)
        try:
            yield
        finally:
            self._screen.clear()
            signal.signal(signal.SIGINT, before)
