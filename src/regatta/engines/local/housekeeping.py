"""Keeps what has ended within its bounds: a little at a time, in the loop's own thread.

What goes is the brain's to say (`controller/retention.py`). Here sizes are measured, once, when
nothing of a run is left running; rows and folders are removed in small batches; and what was
removed, and why, is told as events. Of a job that lives only the logs of past tries are looked at.
What the clock said at the last look is kept, so that one that was set is noticed.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from datetime import UTC, datetime
from typing import NamedTuple

from regatta.api.amounts import readable
from regatta.api.errors import DatabaseLocked, DiskFull
from regatta.controller.plan import Event, Instant
from regatta.controller.retention import (
    ClockSeen,
    EndedTry,
    Retention,
    days,
    look_at_clock,
    next_look,
    overdue,
    past_tries,
    share_of_past_tries,
    without_age,
)
from regatta.engines.local.clock import Clock
from regatta.engines.local.folders import remove_some, size_on_disk
from regatta.engines.local.home import Home
from regatta.engines.local.on_behalf.own_folders import remove_pod
from regatta.engines.local.store.database import Store

log = logging.getLogger(__name__)

#: After something ended, and while there is more to do.
SOON, NEXT = 2.0, 0.1
#: A store that cannot be written is tried again.
LATER = 600.0
#: Folders that one step measures, and runs that one step removes.
MEASURED, REMOVED = 100, 100
#: How long others may have to wait for that.
SECONDS = 0.05


class Task(NamedTuple):
    uid: str
    #: The whole run, or its logs alone.
    whole: bool
    why: str


class Housekeeping:
    def __init__(self, home: Home, store: Store, bounds: Retention, clock: Clock) -> None:
        self._home, self._store, self._bounds, self._clock = home, store, bounds, clock
        self._tasks: list[Task] = []
        #: Jobs that live, and of which a replica has ended since they were looked at.
        self._tried = {record.uid for record in store.read.unfinished()}
        #: By the monotonic clock. While nothing ends: when the next run is too old.
        self.due = self._too_old_at = clock.monotonic() + SOON

    def something_ended(self) -> None:
        self.due = min(self.due, self._clock.monotonic() + SOON)

    def replica_ended(self, job_uid: str) -> None:
        self._tried.add(job_uid)
        self.something_ended()

    def step(self) -> set[str]:
        """Measure some, or decide, or remove some. The jobs of which something was removed."""
        try:
            more, touched = self._step()
            self.due = self._clock.monotonic() + NEXT if more else self._too_old_at
        except (DatabaseLocked, DiskFull, sqlite3.Error) as why:
            ours = isinstance(why, sqlite3.Error)
            told = "what has ended could not be tidied up; trying again later: %s"
            log.warning(told, why, exc_info=ours)
            touched = set()
            self.due = self._clock.monotonic() + LATER
        return touched

    def _step(self) -> tuple[bool, set[str]]:
        if uids := self._store.read.unmeasured(MEASURED):
            sizes, enough = dict[str, int](), self._clock.monotonic() + SECONDS
            for uid in uids:
                sizes[uid] = size_on_disk(self._home.job(uid))
                if self._clock.monotonic() > enough:
                    break
            with self._store.write(making_room=True) as tx:
                for uid, size in sizes.items():
                    tx.set_run_size(uid, size)
            return True, set()
        enough = self._clock.monotonic() + SECONDS
        while self._tried:
            self._forget_tries(self._tried.pop())
            if self._clock.monotonic() > enough:
                return True, set()
        if not self._tasks:
            self._tasks = self._decide()
        done = self._empty_some()
        if done:
            self._write_down(done)
        return bool(self._tasks), {task.uid for task in done}

    def _forget_tries(self, job_uid: str) -> None:
        record = self._store.read.job(job_uid)
        if record is None or record.job.finished:
            return  # all of it is looked at together
        pods = {pod.uid: pod for pod in self._store.read.all_pods(job_uid) if pod.over}
        names = [f"{pod.role}-{pod.index}" for pod in pods.values()]
        if len(names) == len(set(names)):
            return
        folders = {uid: self._home.pod(job_uid, uid) for uid in pods}
        sizes = {uid: size_on_disk(folder) for uid, folder in folders.items()}
        tries = [EndedTry(uid, name, sizes[uid]) for uid, name in zip(pods, names, strict=True)]
        gone = [uid for uid in past_tries(tries, self._bounds) if not remove_pod(folders[uid])]
        if not gone:
            return
        freed, most = sum(sizes[uid] for uid in gone), share_of_past_tries(self._bounds)
        message = (
            f"the logs of {len(gone)} past {'try' if len(gone) == 1 else 'tries'} "
            f"({readable(freed)}) were removed: those of the job took more than "
            f"{readable(most or 0)} (a tenth of retention.size)"
        )
        event = Event(type="Normal", reason="LogsRemoved", message=message)
        with self._store.write(making_room=True) as tx:
            if tx.job(job_uid) is not None:
                tx.add_event(job_uid, event, self._clock.now().wall)
                tx.trim_events(job_uid)

    def _empty_some(self) -> list[Task]:
        """Those whose folders are gone now. They go before rows do: on a full disk that makes the
        room for it, and what dies in between is found again."""
        enough = self._clock.monotonic() + SECONDS
        done: list[Task] = []
        while self._tasks and len(done) < REMOVED:
            task = self._tasks[0]
            try:
                if self._is_over(task):
                    folder = self._home.job(task.uid)
                    if not remove_some(folder, lambda: self._clock.monotonic() > enough):
                        break
                    done.append(task)
            except OSError as stuck:
                log.warning("of run %s, %s cannot be removed: %s", task.uid, stuck.filename, stuck)
            self._tasks.pop(0)
        return done

    def _is_over(self, task: Task) -> bool:
        run = self._store.read.run(task.uid)
        over = run is not None and run.ended_at is not None
        return over and not self._store.read.has_live_pods(task.uid)

    def _decide(self) -> list[Task]:
        bounds, instant = self._bounds, self._clock.now()
        if bounds.age is not None and self._doubts(instant):
            bounds = without_age(bounds)
        runs, now = self._store.read.measured(), instant.wall
        self._too_old_at = self._clock.monotonic() + next_look(runs, bounds, now)
        found = overdue(runs, bounds, now)
        old = f"ended more than {days(bounds.age or 0)} ago (retention.age)"
        many = f"more than {bounds.runs} runs had ended (retention.runs)"
        large = f"those of runs that had ended took more than {readable(bounds.size or 0)} "
        large += "(retention.size)"
        return [
            *(Task(uid, True, old) for uid in found.too_old),
            *(Task(uid, True, many) for uid in found.too_many),
            *(Task(uid, False, large) for uid in found.logs),
        ]

    def _doubts(self, now: Instant) -> bool:
        """Whether what the clock says of ages is not to be believed yet."""
        read = self._store.read
        last = None
        if seen := read.counter("seen_wall"):
            wall = datetime.fromtimestamp(seen, UTC)
            last = ClockSeen(Instant(wall, read.counter("seen_awake")), read.counter("believed"))
        found = look_at_clock(last, self._bounds, now)
        # What cannot be kept on a full disk is found again at the next look.
        with contextlib.suppress(DiskFull), self._store.write() as tx:
            tx.set_counter("awake", now.awake)
            tx.set_counter("seen_wall", now.wall.timestamp())
            tx.set_counter("seen_awake", now.awake)
            tx.set_counter("believed", found.believed_from)
            if last is not None and found.believed_from > last.believed_from:
                tx.add_event(None, _doubted(last, found), now.wall)
                tx.trim_events(None)
        return found.believed_from > now.awake

    def _write_down(self, done: list[Task]) -> None:
        now = self._clock.now().wall
        gone: dict[tuple[bool, str], list[str]] = {}
        with self._store.write(making_room=True) as tx:
            for task in done:
                run = tx.run(task.uid)
                if run is None or run.ended_at is None:  # a person was faster
                    continue
                if task.whole:
                    tx.remove_job(task.uid)
                    tx.remove_run(task.uid)
                    gone.setdefault((True, task.why), []).append(f"{run.namespace}/{run.name}")
                    continue
                if not run.current:  # its own events are read by few
                    gone.setdefault((False, task.why), []).append(f"{run.namespace}/{run.name}")
                why = f"its logs ({readable(run.log_bytes or 0)}) were removed: {task.why}"
                tx.note_removed(task.uid, why)
                if run.whole:
                    event = Event(type="Normal", reason="LogsRemoved", message=why)
                    tx.add_event(task.uid, event, now)
            for (whole, why), names in gone.items():
                tx.add_event(None, _removed(names, why, whole=whole), now)
            tx.trim_events(None)


def _doubted(last: ClockSeen, found: ClockSeen) -> Event:
    message = (
        f"the clock is {days((found.at.wall - last.at.wall).total_seconds())} ahead of when the "
        "server last looked at it: if it is wrong, set it right. For "
        f"{days(found.believed_from - found.at.awake)} of the server's time no run is removed for "
        "its age (retention.age)"
    )
    return Event(type="Warning", reason="ClockJumped", message=message)


def _removed(names: list[str], why: str, *, whole: bool) -> Event:
    some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    number = "1 run" if len(names) == 1 else f"{len(names)} runs"
    if whole:
        message = f"removed {number} with record and logs ({some}): {why}"
        return Event(type="Normal", reason="RunsRemoved", message=message)
    earlier = number.replace("run", "earlier run")
    message = f"removed the logs of {earlier} ({some}): {why}"
    return Event(type="Normal", reason="LogsRemoved", message=message)
