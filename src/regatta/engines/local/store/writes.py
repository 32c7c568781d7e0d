"""What can be changed in the store, inside one transaction.

Each method is one fact the engine learnt or one intention it has. A transaction sees its own
writes, so the engine reads back what it has just planned.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec

from regatta.api.job import Job, JobStatus, encode
from regatta.controller.plan import Event, NewEnvironment, NewPod
from regatta.controller.world import Exit, PodPhase
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import Context, JobRecord, PodRecord, Reservation

#: Enough to tell a job's story; a job that restarts for days must not fill the disk with it.
EVENTS_PER_JOB = 1000
#: Of a run's record, which is to stay small.
LONGEST_MESSAGE = 2000
#: How long the key of a submission is remembered.
KEY_LIFETIME = timedelta(days=2)


class Transaction(Queries):
    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.changed = False
        #: Jobs whose own rows this transaction wrote.
        self.touched: set[str] = set()

    def _change(self, sql: str, *values: object) -> int:
        cursor = self._connection.execute(sql, values)
        if cursor.rowcount:
            self.changed = True
        return cursor.rowcount

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo this part alone when it raises; the rest of the transaction stands."""
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # SQLite ends it itself when the disk is full
                self._connection.execute("ROLLBACK TO part")
            raise
        finally:
            if self._connection.in_transaction:
                self._connection.execute("RELEASE part")

    # Counters

    def set_counter(self, name: str, value: float) -> None:
        """Quiet: a counter alone is no change that anybody waits for."""
        self._connection.execute(
            "INSERT INTO counters (name, value) VALUES (?1, ?2) "
            "ON CONFLICT (name) DO UPDATE SET value = ?2",
            (name, float(value)),
        )

    def next_in_sequence(self) -> int:
        number = int(self.counter("sequence")) + 1
        self.set_counter("sequence", number)
        return number

    def raise_version(self) -> int:
        version = int(self.counter("version")) + 1
        self.set_counter("version", version)
        return version

    # Jobs

    def add_job(self, job: Job, context: Context, companions: bytes, at: datetime) -> JobRecord:
        self.touched.add(job.uid)
        queued = self.next_in_sequence()
        self._change(
            "INSERT INTO jobs (uid, namespace, name, document, status, context, companions, "
            "queued, version, created_at, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            job.uid,
            job.namespace,
            job.name,
            _document(job),
            encode(job.status),
            encode(context),
            companions,
            queued,
            self._next_version(),
            at.isoformat(),
            _expires(job),
        )
        self._change(
            "INSERT INTO runs (uid, namespace, name, mode, queued, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            job.uid,
            job.namespace,
            job.name,
            job.spec.mode.value,
            queued,
            at.isoformat(),
        )
        return JobRecord(job=job, context=context, companions=companions, queued=queued)

    def set_job(self, job: Job) -> None:
        """A new spec or new metadata. The status has its own writer."""
        self.touched.add(job.uid)
        self._change(
            "UPDATE jobs SET document = ?, finished = ?, expires = ?, version = ? WHERE uid = ?",
            _document(job),
            job.finished and not job.deleting,
            _expires(job),
            self._next_version(),
            job.uid,
        )

    def set_status(self, job: Job, status: JobStatus) -> None:
        self.touched.add(job.uid)
        final = status.phase is not None and status.phase.final
        ended = status.completion_time.isoformat() if status.completion_time else None
        self._change(
            "UPDATE jobs SET status = ?, finished = ?, "
            "ended_at = CASE WHEN ? THEN coalesce(?, created_at) END, version = ? WHERE uid = ?",
            encode(status),
            final and not job.deleting,
            final,
            ended,
            self._next_version(),
            job.uid,
        )
        if status.phase is None or not final:
            return
        self._change(
            "UPDATE runs SET mode = ?, started_at = ?, ended_at = coalesce(?, created_at), "
            "phase = ?, reason = ?, message = ? WHERE uid = ?",
            status.mode or job.spec.mode.value,
            status.start_time.isoformat() if status.start_time else None,
            ended,
            status.phase.value,
            status.reason,
            status.message[:LONGEST_MESSAGE],
            job.uid,
        )

    def supersede(self, job_uid: str, by: str) -> None:
        self.touched.add(job_uid)
        self._change("UPDATE jobs SET superseded = 1 WHERE uid = ?", job_uid)
        self._change("UPDATE runs SET replaced_by = ? WHERE uid = ?", by, job_uid)

    def admit(self, job_uid: str, shape: dict[str, int]) -> None:
        self._change(
            "UPDATE jobs SET shape = ?, admitted = ?, waiting = '' WHERE uid = ?",
            msgspec.json.encode(shape),
            self.next_in_sequence(),
            job_uid,
        )

    def ask_to_grow(self, job_uid: str) -> None:
        self._change("UPDATE jobs SET asked = ? WHERE uid = ?", self.next_in_sequence(), job_uid)

    def set_shape(self, job_uid: str, shape: dict[str, int] | None) -> None:
        """Hold less than before (or nothing) without going through the queue."""
        self._change(
            "UPDATE jobs SET shape = ? WHERE uid = ?",
            msgspec.json.encode(shape) if shape is not None else None,
            job_uid,
        )

    def set_waiting(self, job_uid: str, why: str) -> bool:
        sql = "UPDATE jobs SET waiting = ?1 WHERE uid = ?2 AND waiting <> ?1"
        return self._change(sql, why, job_uid) > 0

    def remove_job(self, job_uid: str) -> None:
        """Its run stays on record."""
        self.touched.add(job_uid)
        self._change("DELETE FROM jobs WHERE uid = ?", job_uid)

    # Runs

    def remove_run(self, uid: str) -> None:
        self._change("DELETE FROM runs WHERE uid = ?", uid)

    def remove_runs_named(self, namespace: str, name: str) -> None:
        self._change("DELETE FROM runs WHERE namespace = ? AND name = ?", namespace, name)

    def set_run_size(self, uid: str, size: int) -> None:
        """Quiet: nobody waits for it."""
        sql = "UPDATE runs SET bytes = ? WHERE uid = ? AND bytes IS NULL"
        self._connection.execute(sql, (size, uid))

    def note_removed(self, uid: str, why: str) -> None:
        """What of a run is removed now, or will be in a moment: all but its record, or its logs."""
        self._change("UPDATE runs SET removed = ?, bytes = 0 WHERE uid = ?", why, uid)

    def keep_key(self, key: str, job: Job, at: datetime) -> None:
        """That this submission has arrived; those of two days ago are not sent again any more."""
        self._connection.execute(
            "DELETE FROM submissions WHERE at < ?", ((at - KEY_LIFETIME).isoformat(),)
        )
        self._change(
            "INSERT INTO submissions (key, job_uid, name, at) VALUES (?, ?, ?, ?)",
            key,
            job.uid,
            job.name,
            at.isoformat(),
        )

    # Pods

    def add_pod(self, job_uid: str, uid: str, pod: NewPod, at: datetime) -> None:
        self._change(
            "INSERT INTO pods (uid, job_uid, name, role, idx, attempt, revision, manifest, "
            "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            uid,
            job_uid,
            pod.name,
            pod.role,
            pod.index,
            pod.attempt,
            pod.revision,
            msgspec.json.encode(pod.manifest),
            at.isoformat(),
        )

    def bind(self, pod: PodRecord, address: str, port_base: int, gpus: tuple[str, ...]) -> None:
        self._change(
            "UPDATE pods SET bound = 1, address = ?, port_base = ?, gpus = ? WHERE uid = ?",
            address,
            port_base,
            msgspec.json.encode(gpus),
            pod.uid,
        )

    def intend_start(self, pod_uid: str) -> None:
        """Written before the process exists; whoever finds it must start or find the process."""
        self._change("UPDATE pods SET run = 1, phase = 'Starting' WHERE uid = ?", pod_uid)

    def set_started(
        self,
        pod_uid: str,
        phase: PodPhase,
        started_at: datetime | None,
        restarts: int,
        waiting: str = "",
    ) -> None:
        """`waiting`: why nothing of it runs just now, as `Reason: more`."""
        reason, _, message = waiting.partition(": ")
        self._change(
            "UPDATE pods SET phase = ?1, started_at = ?2, restarts = ?3, reason = ?4, message = ?5 "
            "WHERE uid = ?6 AND finished_at IS NULL AND (phase <> ?1 OR started_at IS NOT ?2 "
            "OR restarts <> ?3 OR reason <> ?4 OR message <> ?5)",
            phase.value,
            started_at.isoformat() if started_at else None,
            restarts,
            reason,
            message,
            pod_uid,
        )

    def set_exit(
        self, pod: PodRecord, end: Exit, at: datetime, restarts: int = 0, disruption: str = ""
    ) -> None:
        phase = PodPhase.SUCCEEDED if end.code == 0 else PodPhase.FAILED
        self._change(
            "UPDATE pods SET phase = ?, exit_code = ?, reason = ?, message = ?, disruption = ?, "
            "restarts = max(restarts, ?), finished_at = ?, gone = deleting "
            "WHERE uid = ? AND finished_at IS NULL",
            phase.value,
            end.code,
            end.reason,
            end.message,
            disruption,
            restarts,
            (end.finished_at or at).isoformat(),
            pod.uid,
        )

    def intend_stop(self, pod_uid: str) -> None:
        self._change("UPDATE pods SET stopping = 1 WHERE uid = ? AND stopping = 0", pod_uid)

    def intend_delete(self, pod_uid: str) -> None:
        """Out of sight at once where nothing runs any more; otherwise when its end is recorded."""
        self._change(
            "UPDATE pods SET deleting = 1, gone = (finished_at IS NOT NULL), "
            "stopping = max(stopping, finished_at IS NULL) WHERE uid = ?",
            pod_uid,
        )

    # What belongs to jobs

    def add_environment(self, job_uid: str, environment: NewEnvironment) -> None:
        self._change(
            "INSERT OR IGNORE INTO environments (job_uid, revision, name, data) "
            "VALUES (?, ?, ?, ?)",
            job_uid,
            environment.revision,
            environment.name,
            msgspec.json.encode(environment.data),
        )

    def remove_environment(self, job_uid: str, name: str) -> None:
        self._change("DELETE FROM environments WHERE job_uid = ? AND name = ?", job_uid, name)

    def add_event(self, job_uid: str | None, event: Event, at: datetime) -> None:
        """`job_uid` None: about no job that is still there."""
        self._change(
            "INSERT INTO events (job_uid, at, type, reason, message) VALUES (?, ?, ?, ?, ?)",
            job_uid,
            at.isoformat(),
            event.type,
            event.reason,
            event.message,
        )

    def trim_events(self, job_uid: str | None) -> None:
        self._connection.execute(
            "DELETE FROM events WHERE job_uid IS ?1 AND id <= "
            "(SELECT id FROM events WHERE job_uid IS ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            (job_uid, EVENTS_PER_JOB),
        )

    def set_reservation(self, job_uid: str, reservation: Reservation) -> None:
        self._change(
            "INSERT INTO reservations (job_uid, first_address, first_block, count) "
            "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (job_uid) DO UPDATE "
            "SET first_address = ?2, first_block = ?3, count = ?4",
            job_uid,
            reservation.first_address,
            reservation.first_block,
            reservation.count,
        )

    def drop_reservation(self, job_uid: str) -> None:
        self._connection.execute("DELETE FROM reservations WHERE job_uid = ?", (job_uid,))

    def _next_version(self) -> int:
        return int(self.counter("version")) + 1


def _expires(job: Job) -> bool:
    return job.spec.run_policy.ttl_seconds_after_finished is not None


def _document(job: Job) -> bytes:
    return encode(Job(metadata=job.metadata, spec=job.spec))
