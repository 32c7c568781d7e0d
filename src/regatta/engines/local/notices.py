"""What the engine knows about jobs and cannot write down: that the disk is full, what cannot be
started because of that, who keeps us from writing, and what cannot be removed. It is shown with the
jobs it is about, and by the server itself, until it is over.

Told by the loop's thread, asked from those of doors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from regatta.api.job import Job
from regatta.controller.world import Exit, PodPhase
from regatta.engines.inventory import DISK_FULL, NOT_REMOVED, PodView
from regatta.engines.local.replicas.runtime import RunState
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.disk_full import WHAT_HELPS
from regatta.engines.local.store.records import PodRecord

log = logging.getLogger(__name__)

#: What a replica's view gives as its reason while its end is known and not on record.
NOT_RECORDED = "NotRecorded"


class Notices:
    def __init__(self, folder: Path, store: Store) -> None:
        self._folder, self._store = folder, store
        self._disk_is_full = False
        self._wrong_setting = self._locked = ""
        #: Ends that could not be recorded: by job how they are told, and by pod.
        self._told: dict[str, str] = {}
        self._ends: dict[str, Exit] = {}
        #: Replicas that find no room for their files, by pod.
        self._held_back: dict[str, PodRecord] = {}
        #: Jobs of which something cannot be ended or removed, and why.
        self._stuck: dict[str, str] = {}

    @property
    def disk_is_full(self) -> bool:
        return self._disk_is_full

    def has_ended(self, pod_uid: str) -> bool:
        """Though that is not on record."""
        return pod_uid in self._ends

    def wrong_setting(self, problem: str) -> None:
        """About what is kept, told once, before there is anybody to ask."""
        self._wrong_setting = (
            f"{problem} Nothing is removed until it is right and the server is started again "
            "(`regatta server stop`, and the next command starts it)."
        )
        log.warning("%s", self._wrong_setting)

    # Told by the loop

    def disk_full(self, news: Iterable[tuple[str, RunState]]) -> None:
        """Nothing can be recorded, and so not what is news about these pods."""
        told: dict[str, list[str]] = {}
        ends: dict[str, Exit] = {}
        for uid, state in news:
            pod = self._store.read.pod(uid) if state.exit is not None else None
            if pod is not None and state.exit is not None and not pod.over:
                ends[uid] = state.exit
                told.setdefault(pod.job_uid, []).append(_ended(pod, state.exit))
        if self._disk_is_full and ends.keys() == self._ends.keys():
            return
        if not self._disk_is_full:
            log.warning("%s", self._full("what becomes of jobs"))
        self._told = {uid: " and ".join(words) for uid, words in told.items()}
        self._ends, self._disk_is_full = ends, True
        self._tell_watchers()

    def disk_has_room(self) -> bool:
        """Whether that is news."""
        if not self._disk_is_full:
            return False
        log.warning("there is room again on the disk that holds %s", self._folder)
        self._disk_is_full, self._told, self._ends = False, {}, {}
        self._tell_watchers()
        return True

    def locked(self, why: str) -> None:
        """By another program; told once."""
        if not self._locked:
            log.warning("%s", why)
        self._locked = why

    def let_go(self) -> None:
        if self._locked:
            log.warning("the job database can be written again")
            self._locked = ""

    def waits_for_room(self, pod: PodRecord) -> None:
        """It cannot be started before there is some."""
        if pod.uid not in self._held_back:
            log.warning("%s", self._cannot_start(pod.name))
            self._held_back = {**self._held_back, pod.uid: pod}
            self._store.feed.tell_unwritten(frozenset({pod.job_uid}))

    def found_room(self, pod: PodRecord) -> None:
        if pod.uid in self._held_back:
            self._held_back = {uid: p for uid, p in self._held_back.items() if uid != pod.uid}
            self._store.feed.tell_unwritten(frozenset({pod.job_uid}))

    def cannot_remove(self, job_uid: str, why: OSError) -> None:
        text = f"{why.filename} cannot be removed ({why.strerror}). Remove it as a user who may"
        self._stands_in_the_way(job_uid, text)

    def cannot_end(self, job_uid: str, text: str) -> None:
        self._stands_in_the_way(job_uid, f"{text}. It is tried again")

    def _stands_in_the_way(self, job_uid: str, text: str) -> None:
        if self._stuck.get(job_uid) != text:
            log.warning("of deleted job %s: %s", job_uid, text)
            self._stuck = {**self._stuck, job_uid: text}
            self._store.feed.tell_unwritten(frozenset({job_uid}))

    def removed(self, job_uid: str) -> None:
        self._stuck = {uid: text for uid, text in self._stuck.items() if uid != job_uid}

    def _tell_watchers(self) -> None:
        unfinished = frozenset(record.uid for record in self._store.read.unfinished())
        self._store.feed.tell_unwritten(unfinished)

    # Asked by doors

    def on_job(self, job: Job) -> Job:
        """The job as it is shown."""
        stuck = self._stuck.get(job.uid)
        if stuck is not None:
            message = f"{stuck}; the job is gone soon after."
            return _troubled(job, NOT_REMOVED, message)
        if self._disk_is_full and (job.deleting or not job.finished):
            what = self._told.get(job.uid, "what becomes of the job")
            return _troubled(job, DISK_FULL, self._full(what))
        held = [f"{p.role}-{p.index}" for p in self._held_back.values() if p.job_uid == job.uid]
        if held and not job.finished:
            more = f" and {len(held) - 1} more" if len(held) > 1 else ""
            return _troubled(job, DISK_FULL, self._cannot_start(f"{held[0]}{more}"))
        return job

    def on_pod(self, pod: PodView) -> PodView:
        end = self._ends.get(pod.uid)
        if end is None or pod.finished_at is not None:
            return pod
        return replace(
            pod,
            phase=(PodPhase.SUCCEEDED if end.code == 0 else PodPhase.FAILED).value,
            exit_code=end.code,
            finished_at=end.finished_at,
            reason=NOT_RECORDED,
            message=end.message,
        )

    def of_engine(self) -> tuple[str, ...]:
        told: list[str] = []
        if self._disk_is_full:
            told.append(self._full("what becomes of jobs"))
        elif self._held_back:
            told.append(self._cannot_start("replicas"))
        told += filter(None, (self._locked, self._wrong_setting))
        return *told, *(f"a deleted job: {text}" for text in self._stuck.values())

    def _full(self, what: str) -> str:
        return (
            f"the disk that holds {self._folder} is full: {what} cannot be recorded. "
            f"{WHAT_HELPS}; it is recorded then."
        )

    def _cannot_start(self, what: str) -> str:
        return (
            f"the disk that holds {self._folder} is full: {what} cannot be started. {WHAT_HELPS}; "
            "it goes on then."
        )


def _troubled(job: Job, reason: str, message: str) -> Job:
    return replace(job, status=replace(job.status, reason=reason, message=message))


def _ended(pod: PodRecord, end: Exit) -> str:
    how = "" if end.code is None else f" with exit code {end.code}"
    return f"that {pod.role}-{pod.index} ended{how}"
