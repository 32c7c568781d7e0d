"""The local engine: jobs as processes of this machine. The doors' way in.

Calls come from any thread. They read what is committed, or write an intention and wake the loop,
which alone starts and stops processes.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from regatta.api.errors import DiskFull, NotPossible
from regatta.api.job import Job
from regatta.controller.plan import Event
from regatta.engines.base import (
    Accepted,
    EventView,
    LogBatch,
    LogQuery,
    MachineView,
    PodView,
    Preview,
    Submission,
)
from regatta.engines.changing import (
    name_is_taken,
    next_generation,
    no_such_job,
    nothing_to_stop,
    refuse_when_deleting,
    scaled,
    suspended,
)
from regatta.engines.local.apply import delete_pod, mark_deleting, stop_pod
from regatta.engines.local.clock import Clock, SystemClock
from regatta.engines.local.home import Home, lock_home
from regatta.engines.local.logs.job_logs import read_logs
from regatta.engines.local.loop import Loop
from regatta.engines.local.recovery import jobs_to_look_at, sweep_leftovers
from regatta.engines.local.replicas.meter import Meter
from regatta.engines.local.replicas.runspec import run_folder
from regatta.engines.local.replicas.runtime import Runtime
from regatta.engines.local.scheduling.binding import (
    last_reserved,
    next_free,
    reserve_places,
    scatter,
)
from regatta.engines.local.scheduling.ledger import places_needed
from regatta.engines.local.scheduling.machine import Machine, find_machine
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord, PodRecord, Reservation
from regatta.engines.local.store.writes import Transaction
from regatta.engines.local.submit import prepare
from regatta.engines.local.views import machine_view, pod_view

#: Replaced jobs of one name whose logs are kept.
HISTORY = 5


class LocalEngine:
    """One per home, which it locks. Made ready to use: it has picked up what was left running."""

    def __init__(
        self,
        home: Home,
        *,
        machine: Machine | None = None,
        clock: Clock | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._home = home
        self._closed = False
        self._lock = lock_home(home)
        try:
            self._machine = find_machine() if machine is None else machine
            self._store = Store(home.database)
        except BaseException:
            os.close(self._lock)
            raise
        self._clock: Clock = SystemClock() if clock is None else clock
        self._clock.resume(self._store.read.counter("awake"))
        with self._store.write() as tx:
            scatter(tx, str(home.path))
        runtime = Runtime() if runtime is None else runtime
        self._meter = Meter()
        sweep_leftovers(home, self._store.read, runtime)
        self._loop = Loop(home, self._store, runtime, self._machine, self._clock)
        self._loop.prime(jobs_to_look_at(self._store.read))
        self._loop.start()

    def close(self) -> None:
        """Let go of the home. Running replicas run on."""
        if self._closed:
            return
        self._closed = True
        self._loop.close()
        self._store.close()
        os.close(self._lock)

    # Coming in

    def submit(self, submission: Submission) -> Accepted:
        # The rehearsal's places are for checks only; the job's own are reserved when it is written.
        prepared = self._prepare(submission, lambda count: last_reserved(self._store.read))
        job, now = prepared.job, self._clock.now().wall
        with self._store.write() as tx:
            replaced = self._make_room(tx, job, submission.replace)
            companions = msgspec.json.encode(prepared.companions)
            tx.add_job(job, prepared.context, companions, now)
            # Where no ports are free now, the scheduler reserves them when some are.
            reserve_places(tx, job.uid, places_needed(job))
            submitted = Event(type="Normal", reason="Submitted", message="waits for its turn")
            tx.add_event(job.uid, submitted, now)
        self._loop.look_at(job.uid, *([replaced] if replaced else []))
        return Accepted(job=job, warnings=prepared.warnings, replaced=replaced)

    def preview(self, submission: Submission) -> Preview:
        prepared = self._prepare(submission, lambda count: next_free(self._store.read, count))
        return prepare.preview(prepared)

    def _prepare(
        self, submission: Submission, where: Callable[[int], Reservation]
    ) -> prepare.Prepared:
        return prepare.prepare(submission, self._machine, where, self._clock.now())

    def _make_room(self, tx: Transaction, job: Job, replace_live: bool) -> str:
        """A finished job gives its name up and stays for its logs; a live one only if asked to.

        Whatever of it still runs is ended, and the new job waits for that (`schedule`).
        """
        old = tx.job_named(job.namespace, job.name)
        if old is None:
            return ""
        if not old.job.finished:
            if not replace_live:
                raise name_is_taken(old.job)
            _change_policy(tx, old.job, abort=True)
        else:
            # Servers that ran on: under a name that is another job's, nobody could end them.
            for pod in tx.pods(old.uid):
                stop_pod(tx, pod, self._clock.now().wall)
        tx.supersede(old.uid)
        for uid in tx.history(job.namespace, job.name)[HISTORY:]:
            stale = tx.job(uid)
            if stale is not None:
                mark_deleting(tx, stale.job, self._clock.now().wall)
                self._loop.look_at(uid)
        return old.uid

    # Reading

    def get(self, namespace: str, name: str) -> Job:
        return self._find(self._store.read, namespace, name).job

    def list(self, namespace: str | None) -> builtins.list[Job]:
        return [record.job for record in self._store.read.jobs(namespace)]

    def pods(self, namespace: str, name: str) -> builtins.list[PodView]:
        read = self._store.read
        record = self._find(read, namespace, name)
        pods = read.all_pods(record.uid)
        if not any(pod.alive for pod in pods):
            return [pod_view(record, pod, None, None) for pod in pods]
        live = [self._folder(pod) for pod in read.pods_not_over() if pod.alive]
        measured = self._meter.measure(live)
        views = []
        for pod in pods:
            state, use = measured.get(self._folder(pod), (None, None))
            views.append(pod_view(record, pod, state, use))
        return views

    def _folder(self, pod: PodRecord) -> Path:
        return run_folder(self._home.pod(pod.job_uid, pod.uid), pod.run)

    def events(
        self, namespace: str | None, name: str | None, after: int = 0
    ) -> builtins.list[EventView]:
        if namespace is not None and name is not None:
            self._find(self._store.read, namespace, name)
        return self._store.read.events(namespace, name, after)

    def logs(self, namespace: str, name: str, query: LogQuery) -> Iterator[LogBatch]:
        record = self._find(self._store.read, namespace, name)
        return read_logs(self._home, self._store, record, query)

    def machine(self) -> MachineView:
        return machine_view(self._machine, self._loop.ledger)

    def wait_for_change(self, version: int, timeout: float) -> int:
        return self._store.wait_for_change(version, timeout)

    # Changing

    def stop(self, namespace: str, name: str) -> Job:
        def change(tx: Transaction, record: JobRecord) -> None:
            if not record.job.finished:
                _change_policy(tx, record.job, abort=True)
                return
            running = [pod for pod in tx.pods(record.uid) if not pod.over]
            if not running:
                raise nothing_to_stop(record.job)
            for pod in running:
                stop_pod(tx, pod, self._clock.now().wall)

        return self._change(namespace, name, change)

    def delete(self, namespace: str, name: str) -> None:
        """With its records and logs, and those of jobs it replaced; what runs is ended first."""
        try:
            uids = self._mark_deleting(namespace, name)
        except DiskFull:
            self._store.reserve.spend()
            uids = self._mark_deleting(namespace, name)
        self._loop.look_at(*uids)
        self._wait_until_gone(uids[0])

    def _mark_deleting(self, namespace: str, name: str) -> builtins.list[str]:
        now = self._clock.now().wall
        with self._store.write() as tx:
            record = self._find(tx, namespace, name)
            older = [] if record.superseded else tx.history(namespace, record.job.name)
            uids = [record.uid, *older]
            for uid in uids:
                doomed = tx.job(uid)
                if doomed is None:
                    continue
                mark_deleting(tx, doomed.job, now)
                for pod in tx.pods(uid):
                    delete_pod(tx, pod, now)
        return uids

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        def change(tx: Transaction, record: JobRecord) -> None:
            job = scaled(record.job, role, replicas)
            prepare.refuse_what_never_fits(job, self._machine)
            if not reserve_places(tx, job.uid, places_needed(job)):
                raise NotPossible(f"no ports are free for {replicas} replicas of {role} just now")
            tx.set_job(job)

        return self._change(namespace, name, change)

    def suspend(self, namespace: str, name: str) -> Job:
        return self._change(namespace, name, _suspending(True))

    def resume(self, namespace: str, name: str) -> Job:
        return self._change(namespace, name, _suspending(False))

    def _change(
        self, namespace: str, name: str, change: Callable[[Transaction, JobRecord], None]
    ) -> Job:
        with self._store.write() as tx:
            record = self._find(tx, namespace, name)
            refuse_when_deleting(record.job)
            change(tx, record)
            after = tx.job(record.uid)
        self._loop.look_at(record.uid)
        assert after is not None
        return after.job

    def _wait_until_gone(self, uid: str, timeout: float = 2.0) -> None:
        """A list right after a delete no longer shows it, unless its processes are slow to end."""
        deadline = self._clock.monotonic() + timeout
        while (left := deadline - self._clock.monotonic()) > 0:
            version = self._store.version
            record = self._store.read.job(uid)
            if record is None or self._store.read.has_live_pods(uid):
                return
            self._store.wait_for_change(version, left)

    def _find(self, read: Queries, namespace: str, name: str) -> JobRecord:
        record = read.job_named(namespace, name)
        if record is None:
            raise no_such_job(namespace, name)
        return record


def _suspending(suspend: bool) -> Callable[[Transaction, JobRecord], None]:
    return lambda tx, record: tx.set_job(suspended(record.job, suspend))


def _change_policy(tx: Transaction, job: Job, **changes: bool) -> None:
    policy = replace(job.spec.run_policy, **changes)
    if policy != job.spec.run_policy:
        tx.set_job(next_generation(replace(job, spec=replace(job.spec, run_policy=policy))))
