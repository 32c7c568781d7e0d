"""What doors ask of this machine's jobs and want of them: reads of what is committed, and
intentions that the loop carries out. Blocks; `engine.py` is the asynchronous face."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from regatta.api.errors import NotPossible
from regatta.api.job import Job
from regatta.controller.changes import (
    no_job_but_runs,
    no_such_job,
    no_such_run,
    only_its_record,
    replaced,
    scaled,
    stopped,
    suspended,
)
from regatta.controller.plan import Event
from regatta.engines.base import Accepted, Gone, LogQuery, Preview, Shell, Submission
from regatta.engines.inventory import Capacity, EventView, PodView, ReplicaUse, RunView
from regatta.engines.local.apply import stop_pod
from regatta.engines.local.clock import Clock
from regatta.engines.local.home import Home
from regatta.engines.local.logs.job_logs import JobLog
from regatta.engines.local.loop import Loop
from regatta.engines.local.on_behalf.members_advice import advice_for
from regatta.engines.local.replicas.meter import Measured, Meter
from regatta.engines.local.replicas.runspec import run_folder
from regatta.engines.local.scheduling.binding import last_reserved, next_free, reserve_places
from regatta.engines.local.scheduling.ledger import places_needed
from regatta.engines.local.scheduling.machine import Machine
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.disk_full import telling_a_full_disk
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord, PodRecord, Reservation
from regatta.engines.local.store.secrets_file import withdraw_secrets, write_secrets
from regatta.engines.local.store.writes import Transaction
from regatta.engines.local.submit import prepare
from regatta.engines.local.views import node_view, pod_view, replica_use
from regatta.engines.one_run import the_run


class LocalJobs:
    """Calls come from any thread."""

    def __init__(
        self, home: Home, store: Store, loop: Loop, machine: Machine, clock: Clock
    ) -> None:
        self._home, self._store, self._loop = home, store, loop
        self._machine, self._clock = machine, clock
        self._meter = Meter()

    # Coming in

    def submit(self, submission: Submission, shell: Shell) -> Accepted:
        if arrived := self._arrived(self._store.read, submission.key):
            return arrived
        # The rehearsal's places are for checks only; the job's own are reserved when it is written.
        prepared = self._prepare(submission, shell, lambda _: last_reserved(self._store.read))
        job, now = prepared.job, self._clock.now().wall
        self._store.require_room(places_needed(job))
        with self._secrets_of(prepared), self._store.write() as tx:
            if arrived := self._arrived(tx, submission.key):
                withdraw_secrets(self._home.job(job.uid))
                return arrived
            former = self._make_room(tx, job, submission.replace)
            companions = msgspec.json.encode(prepared.companions)
            tx.add_job(job, prepared.context, companions, now)
            if submission.key:
                tx.keep_key(submission.key, job, now)
            # Where no ports are free now, the scheduler reserves them when some are.
            reserve_places(tx, job.uid, places_needed(job))
            submitted = Event(type="Normal", reason="Submitted", message="waits for its turn")
            tx.add_event(job.uid, submitted, now)
        self._loop.look_at(job.uid, *([former] if former else []))
        return Accepted(job=job, warnings=prepared.warnings, replaced=former)

    @contextmanager
    def _secrets_of(self, prepared: prepare.Prepared) -> Iterator[None]:
        """There before the job is, and gone where it does not come to be."""
        folder = self._home.job(prepared.job.uid)
        try:
            with telling_a_full_disk(self._home.path):
                write_secrets(folder, prepared.secrets)
            yield
        except BaseException:
            withdraw_secrets(folder)
            raise

    def _arrived(self, read: Queries, key: str) -> Accepted | None:
        """What a submission with this key made, when it came before."""
        made = read.submitted(key) if key else None
        if made is None:
            return None
        uid, name = made
        record = read.job(uid)
        if record is None:
            raise NotPossible(
                f"this submission arrived before, as job {name}, which was deleted since; to run "
                "it once more, submit it anew"
            )
        return Accepted(job=record.job)

    def arrived(self, key: str) -> RunView | None:
        """The run that a submission with this key made, if it is on record."""
        made = self._store.read.submitted(key)
        return self._store.read.run(made[0]) if made else None

    def preview(self, submission: Submission, shell: Shell) -> Preview:
        prepared = self._prepare(
            submission, shell, lambda count: next_free(self._store.read, count), dry_run=True
        )
        return prepare.preview(prepared)

    def _prepare(
        self,
        submission: Submission,
        shell: Shell,
        where: Callable[[int], Reservation],
        dry_run: bool = False,
    ) -> prepare.Prepared:
        now = self._clock.now()
        return prepare.prepare(submission, shell, self._machine, where, now, dry_run=dry_run)

    def _make_room(self, tx: Transaction, job: Job, replace_live: bool) -> str:
        """A finished job gives its name up and stays for its logs; a live one only if asked to.

        Whatever of it still runs is ended, and the new job waits for that (`schedule`).
        """
        old = tx.job_named(job.namespace, job.name)
        if old is None:
            return ""
        _write(tx, old.job, replaced(old.job, even_live=replace_live, by=job.uid))
        if old.job.finished:
            # Servers that ran on: under a name that is another job's, nobody could end them.
            for pod in tx.pods(old.uid):
                stop_pod(tx, pod, self._clock.now().wall)
        tx.supersede(old.uid, by=job.uid)
        return old.uid

    # Reading

    def get(self, namespace: str, name: str, uid: str = "") -> Job:
        return self._shown(self._find(self._store.read, namespace, name, uid))

    def find(self, namespace: str, name: str) -> Job | None:
        record = self._store.read.job_named(namespace, name)
        return self._shown(record) if record is not None else None

    def followed(self, uid: str, *, by_name: bool) -> Job | None:
        """The job that somebody follows; None once it is gone, or another has its name."""
        record = self._store.read.job(uid)
        if record is None or (record.superseded and by_name):
            return None
        return self._shown(record)

    def list(
        self, namespace: str | None, name: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        if namespace is not None and name is not None:
            job = self.find(namespace, name)
            return [job] if job is not None else []
        jobs = map(self._loop.notices.on_job, self._store.read.jobs(namespace, finished))
        return [job for job in jobs if name in (None, job.name)]

    def uids(self, namespace: str | None, name: str | None) -> builtins.list[str]:
        """Of the jobs that `list` tells, in the same order."""
        return self._store.read.uids(namespace, name)

    def history(
        self, namespace: str | None, name: str | None, uid: str, limit: int | None
    ) -> builtins.list[RunView]:
        if not uid:
            return self._store.read.runs(namespace, name, limit)
        run = the_run(uid, self._store.read.runs_that_begin(uid), namespace, name)
        if run is None:
            raise no_such_run(uid, namespace)
        return [run]

    def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        read = self._store.read
        record = self._find(read, namespace, name, uid)
        pods = read.all_pods(record.uid)
        if not any(pod.alive for pod in pods):
            return [pod_view(record, pod, None, None) for pod in pods]
        measured = self._meter.measure(self._live_folders(read.pods_not_over()))
        views = []
        for pod in pods:
            state, use = measured.get(self._folder(pod), (None, None))
            views.append(self._loop.notices.on_pod(pod_view(record, pod, state, use)))
        return views

    def capacity(self, namespace: str | None) -> Capacity:
        pods = self._store.read.pods_not_over()
        live = [pod for pod in pods if pod.alive and not pod.gone]
        machine, measured = self._meter.compare(self._live_folders(live))
        return Capacity(
            nodes=(node_view(self._machine, self._loop.ledger, machine),),
            replicas=tuple(self._replicas(namespace, live, measured)),
            notes=self.notices(),
        )

    def _replicas(
        self, namespace: str | None, live: builtins.list[PodRecord], measured: Measured
    ) -> Iterator[ReplicaUse]:
        read = self._store.read
        records: dict[str, JobRecord | None] = {}
        for pod in live:
            if pod.job_uid not in records:
                records[pod.job_uid] = read.job(pod.job_uid)
            record = records[pod.job_uid]
            if record is not None and namespace in (None, record.job.namespace):
                _, use = measured.get(self._folder(pod), (None, None))
                yield replica_use(record.job, pod, use)

    def _live_folders(self, pods: builtins.list[PodRecord]) -> builtins.list[Path]:
        return [self._folder(pod) for pod in pods if pod.alive]

    def _folder(self, pod: PodRecord) -> Path:
        return run_folder(self._home.pod(pod.job_uid, pod.uid), pod.run)

    def events(
        self,
        namespace: str | None,
        name: str | None,
        after: int = 0,
        uid: str = "",
        *,
        of_any: bool = False,
    ) -> builtins.list[EventView]:
        """`of_any`: also of a job that is no more, or not yet there."""
        if not of_any and namespace is not None and name is not None:
            self._find(self._store.read, namespace, name, uid)
        return self._store.read.events(namespace, name, after, uid=uid)

    def open_log(self, namespace: str, name: str, query: LogQuery, *, follow: bool) -> JobLog:
        record = self._find(self._store.read, namespace, name, query.uid)
        return JobLog(self._home, self._store, record, query, follow=follow)

    def news(
        self, uids: Iterable[str], known: dict[str, tuple[str, str]]
    ) -> builtins.list[Job | Gone]:
        """How these jobs are now, for one who knows the others. `known` is kept: uid → name."""
        read = self._store.read
        found: builtins.list[Job | Gone] = []
        for uid in uids:
            record = read.job(uid)
            if record is not None and not record.superseded:
                known[uid] = (record.job.namespace, record.job.name)
                found.append(self._shown(record))
            elif (name := known.pop(uid, None)) is not None and read.job_named(*name) is None:
                found.append(Gone(*name))
        return found

    def notices(self) -> tuple[str, ...]:
        return self._loop.notices.of_engine()

    def _shown(self, record: JobRecord) -> Job:
        return self._loop.notices.on_job(record.job)

    # Changing

    def stop(self, namespace: str, name: str) -> Job:
        def change(tx: Transaction, record: JobRecord) -> None:
            running = [pod for pod in tx.pods(record.uid) if not pod.over]
            _write(tx, record.job, stopped(record.job, runs_on=bool(running)))
            if record.job.finished:
                for pod in running:
                    stop_pod(tx, pod, self._clock.now().wall)

        return self._change(namespace, name, change)

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        def change(tx: Transaction, record: JobRecord) -> None:
            job = scaled(record.job, role, replicas)
            prepare.refuse_what_never_fits(job, self._machine, advice_for(record.context))
            self._store.require_room(places_needed(job))  # all replicas start again
            if not reserve_places(tx, job.uid, places_needed(job)):
                raise NotPossible(f"no ports are free for {replicas} replicas of {role} just now")
            tx.set_job(job)
            if replicas > record.job.spec.roles()[role].replicas:
                tx.ask_to_grow(job.uid)

        return self._change(namespace, name, change)

    def suspend(self, namespace: str, name: str, wanted: bool) -> Job:
        def change(tx: Transaction, record: JobRecord) -> None:
            job = suspended(record.job, wanted)
            if not wanted:
                self._store.require_room(places_needed(job))
            tx.set_job(job)

        return self._change(namespace, name, change)

    def _change(
        self, namespace: str, name: str, change: Callable[[Transaction, JobRecord], None]
    ) -> Job:
        with self._store.write() as tx:
            record = self._find(tx, namespace, name)
            change(tx, record)
            after = tx.job(record.uid)
        self._loop.look_at(record.uid)
        assert after is not None
        return after.job

    def _find(self, read: Queries, namespace: str, name: str, uid: str = "") -> JobRecord:
        """Whoever has the name; or that run of it, which must still be whole."""
        if not uid:
            record = read.job_named(namespace, name)
            if record is None:
                kept = read.runs(namespace, name, limit=1)
                raise (no_job_but_runs if kept else no_such_job)(namespace, name)
            return record
        record, run = read.job(uid), read.run(uid)
        if record is not None and (record.job.namespace, record.job.name) == (namespace, name):
            return record
        if run is not None and (run.namespace, run.name) == (namespace, name):
            raise only_its_record(run.uid, run.removed)
        raise no_such_run(uid, namespace)


def _write(tx: Transaction, job: Job, changed: Job) -> None:
    if changed is not job:
        tx.set_job(changed)
