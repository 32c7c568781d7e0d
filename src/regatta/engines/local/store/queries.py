"""What can be asked of the store. Works on a reader's connection and inside a transaction alike."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

import msgspec

from regatta.api.job import Job, decode_job
from regatta.controller.world import PodPhase
from regatta.engines.inventory import EventView
from regatta.engines.local.store.records import Context, JobRecord, PodRecord, Reservation
from regatta.engines.local.store.run_queries import RunQueries, decode_status

decode_context = msgspec.json.Decoder(Context).decode
decode_shape = msgspec.json.Decoder(dict[str, int]).decode
decode_gpus = msgspec.json.Decoder(tuple[str, ...]).decode
decode_data = msgspec.json.Decoder(dict[str, str]).decode
decode_manifest = msgspec.json.Decoder(dict[str, Any]).decode


class Queries(RunQueries):
    # Jobs

    def job(self, uid: str) -> JobRecord | None:
        row = self._row("SELECT * FROM jobs WHERE uid = ?", uid)
        return _job_record(row) if row else None

    def job_named(self, namespace: str, name: str) -> JobRecord | None:
        """The job that has that name now."""
        row = self._row(
            "SELECT * FROM jobs WHERE namespace = ? AND name = ? AND superseded = 0",
            namespace,
            name,
        )
        return _job_record(row) if row else None

    def jobs(self, namespace: str | None = None, finished: int | None = None) -> list[Job]:
        """Jobs that have a name, in order of submission; of the finished ones at most so many,
        those that ended last."""
        # Left to itself, SQLite would read every finished job rather than sort a few.
        where, named, index = "1", [], "jobs_ended"
        if namespace is not None:
            where, named, index = "namespace = ?", [namespace], "jobs_ended_in"
        live = self._rows(
            "SELECT queued, document, status FROM jobs INDEXED BY jobs_live "
            f"WHERE finished = 0 AND superseded = 0 AND {where}",
            *named,
        )
        ended = self._rows(
            f"SELECT queued, document, status FROM jobs INDEXED BY {index} "
            f"WHERE finished = 1 AND superseded = 0 AND {where} ORDER BY ended_at DESC LIMIT ?",
            *named,
            -1 if finished is None else finished,
        )
        rows = sorted(live + ended, key=lambda row: -int(row["queued"]))
        del live, ended
        found = []
        while rows:  # what was read is not held as well
            row = rows.pop()
            found.append(compose(row["document"], row["status"]))
        return found

    def uids(self, namespace: str | None, name: str | None) -> list[str]:
        """Of jobs that have a name, in order of submission."""
        wanted = {"namespace = ?": namespace, "name = ?": name}
        asked = {where: value for where, value in wanted.items() if value is not None}
        rows = self._rows(
            "SELECT uid FROM jobs INDEXED BY jobs_by_name "
            f"WHERE {' AND '.join(['superseded = 0', *asked])} ORDER BY queued",
            *asked.values(),
        )
        return [row["uid"] for row in rows]

    def unfinished(self, namespace: str | None = None) -> list[JobRecord]:
        """Jobs the scheduler and the brain still have work with, replaced ones included."""
        rows = self._rows(
            "SELECT * FROM jobs WHERE finished = 0 AND (?1 IS NULL OR namespace = ?1) "
            "ORDER BY queued",
            namespace,
        )
        return [_job_record(row) for row in rows]

    def finished_with_timer(self) -> list[str]:
        """Finished jobs that have a time to live."""
        rows = self._rows("SELECT uid FROM jobs WHERE finished = 1 AND expires = 1")
        return [row["uid"] for row in rows]

    def job_uids(self) -> set[str]:
        return {row["uid"] for row in self._rows("SELECT uid FROM jobs")}

    def replaced(self, namespace: str, name: str) -> list[str]:
        """Uids of jobs that had that name and are still whole, newest first."""
        return [
            row["uid"]
            for row in self._rows(
                "SELECT uid FROM jobs WHERE namespace = ? AND name = ? AND superseded = 1 "
                "ORDER BY queued DESC",
                namespace,
                name,
            )
        ]

    def submitted(self, key: str) -> tuple[str, str] | None:
        """Uid and name of the job that a submission with this key made, here or no more."""
        row = self._row("SELECT job_uid, name FROM submissions WHERE key = ?", key)
        return (row["job_uid"], row["name"]) if row else None

    # Pods

    def pod(self, uid: str) -> PodRecord | None:
        row = self._row("SELECT * FROM pods WHERE uid = ?", uid)
        return _pod_record(row) if row else None

    def pods(self, job_uid: str) -> list[PodRecord]:
        """Pods the brain may see, in creation order."""
        return self._pods("job_uid = ? AND gone = 0", job_uid)

    def all_pods(self, job_uid: str) -> list[PodRecord]:
        """Every pod there ever was, the cleaned ones included."""
        return self._pods("job_uid = ?", job_uid)

    def pods_not_over(self) -> list[PodRecord]:
        rows = self._rows(
            "SELECT * FROM pods INDEXED BY pods_alive WHERE finished_at IS NULL ORDER BY rowid"
        )
        return [_pod_record(row) for row in rows]

    def has_live_pods(self, job_uid: str) -> bool:
        sql = "SELECT 1 FROM pods WHERE job_uid = ? AND finished_at IS NULL AND run > 0 LIMIT 1"
        return self._row(sql, job_uid) is not None

    def _pods(self, where: str, *values: object) -> list[PodRecord]:
        rows = self._rows(f"SELECT * FROM pods WHERE {where} ORDER BY rowid", *values)
        return [_pod_record(row) for row in rows]

    # What belongs to jobs

    def revisions(self, job_uid: str) -> frozenset[int]:
        rows = self._rows("SELECT revision FROM environments WHERE job_uid = ?", job_uid)
        return frozenset(row["revision"] for row in rows)

    def environment(self, job_uid: str, revision: int) -> tuple[str, dict[str, str]] | None:
        """Name and data of the environment of that revision."""
        row = self._row(
            "SELECT name, data FROM environments WHERE job_uid = ? AND revision = ?",
            job_uid,
            revision,
        )
        return (row["name"], decode_data(row["data"])) if row else None

    def reservation(self, job_uid: str) -> Reservation | None:
        row = self._row("SELECT * FROM reservations WHERE job_uid = ?", job_uid)
        return _reservation(row) if row else None

    def reservations(self) -> list[Reservation]:
        return [_reservation(row) for row in self._rows("SELECT * FROM reservations")]

    def places_of_live_pods(self) -> list[tuple[str, int]]:
        """Address and first port of every pod that is bound and not over."""
        rows = self._rows(
            "SELECT address, port_base FROM pods INDEXED BY pods_alive "
            "WHERE bound = 1 AND finished_at IS NULL"
        )
        return [(row["address"], row["port_base"]) for row in rows]

    def events(
        self,
        namespace: str | None,
        name: str | None,
        after: int = 0,
        *,
        uid: str = "",
        limit: int = 10_000,
    ) -> list[EventView]:
        """In order. Where there are more: the newest, or with `after` those that follow it."""
        if not uid and namespace is not None and name is not None:
            row = self._row(
                "SELECT uid FROM jobs WHERE namespace = ? AND name = ? AND superseded = 0",
                namespace,
                name,
            )
            uid = row["uid"] if row else "-"
        where: str = "e.job_uid = ?"
        values: list[str | None] = [uid]
        if not uid:
            where = "(e.job_uid IS NULL AND ?2 IS NULL OR j.superseded = 0 "
            where += "AND (?1 IS NULL OR j.namespace = ?1) AND (?2 IS NULL OR j.name = ?2))"
            values = [namespace, name]
        rows = self._rows(
            "SELECT e.*, j.namespace AS namespace, j.name AS job FROM events e "
            f"LEFT JOIN jobs j ON j.uid = e.job_uid WHERE {where} AND e.id > ? "
            f"ORDER BY e.id {'ASC' if after else 'DESC'} LIMIT ?",
            *values,
            after,
            limit,
        )
        if not after:
            rows.reverse()
        return [_event_view(row) for row in rows]

    def counter(self, name: str, default: float = 0.0) -> float:
        row = self._row("SELECT value FROM counters WHERE name = ?", name)
        return float(row["value"]) if row else default


def compose(document: bytes, status: bytes) -> Job:
    job = decode_job(document)
    return Job(metadata=job.metadata, spec=job.spec, status=decode_status(status))


def _job_record(row: sqlite3.Row) -> JobRecord:
    return JobRecord(
        job=compose(row["document"], row["status"]),
        context=decode_context(row["context"]),
        companions=row["companions"],
        superseded=bool(row["superseded"]),
        queued=row["queued"],
        admitted=row["admitted"],
        asked=row["asked"],
        shape=decode_shape(row["shape"]) if row["shape"] is not None else None,
        waiting=row["waiting"],
    )


def _pod_record(row: sqlite3.Row) -> PodRecord:
    return PodRecord(
        uid=row["uid"],
        job_uid=row["job_uid"],
        name=row["name"],
        role=row["role"],
        index=row["idx"],
        attempt=row["attempt"],
        revision=row["revision"],
        manifest=decode_manifest(row["manifest"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        run=row["run"],
        bound=bool(row["bound"]),
        address=row["address"],
        port_base=row["port_base"],
        gpus=decode_gpus(row["gpus"]),
        phase=PodPhase(row["phase"]),
        stopping=bool(row["stopping"]),
        deleting=bool(row["deleting"]),
        gone=bool(row["gone"]),
        exit_code=row["exit_code"],
        reason=row["reason"],
        message=row["message"],
        disruption=row["disruption"],
        restarts=row["restarts"],
        started_at=_time(row["started_at"]),
        finished_at=_time(row["finished_at"]),
    )


def _event_view(row: sqlite3.Row) -> EventView:
    return EventView(
        id=row["id"],
        at=datetime.fromisoformat(row["at"]),
        type=row["type"],
        reason=row["reason"],
        message=row["message"],
        job=row["job"] or "",
        namespace=row["namespace"] or "",
    )


def _reservation(row: sqlite3.Row) -> Reservation:
    return Reservation(row["first_address"], row["first_block"], row["count"])


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None
