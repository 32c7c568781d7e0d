"""What can be asked about runs: the small rows that outlive their jobs."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import NamedTuple

import msgspec

from regatta.api.job import JobStatus
from regatta.controller.retention import EndedRun
from regatta.engines.inventory import RunView

decode_status = msgspec.json.Decoder(JobStatus).decode


class Counts(NamedTuple):
    #: Jobs that have a name.
    live: int
    finished: int
    #: On record, those jobs' own included.
    runs: int
    #: The end of the run that ended first.
    oldest: datetime | None
    log_bytes: int


_SEEN = (
    "SELECT r.*, j.uid IS NOT NULL AS whole, coalesce(j.superseded = 0, 0) AS current, "
    "CASE WHEN r.ended_at IS NULL THEN j.status END AS status "
    "FROM runs r LEFT JOIN jobs j ON j.uid = r.uid"
)
_ENDED_IN = (
    "FROM runs r LEFT JOIN jobs j ON j.uid = r.uid WHERE r.namespace = ?1 "
    "AND r.ended_at IS NOT NULL AND coalesce(j.finished, 1) "
    "AND (?2 IS NULL OR r.ended_at < ?2)"
)


class RunQueries:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return self._connection.execute(sql, values).fetchall()

    def _row(self, sql: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def run(self, uid: str) -> RunView | None:
        row = self._row(f"{_SEEN} WHERE r.uid = ?", uid)
        return _run_view(row) if row else None

    def runs_that_begin(self, uid: str) -> list[RunView]:
        """Whose UID does."""
        # No character of a UID is behind ~, and a range is found by the index.
        rows = self._rows(f"{_SEEN} WHERE r.uid >= ? AND r.uid <= ? ORDER BY r.uid", uid, f"{uid}~")
        return [_run_view(row) for row in rows]

    def runs(
        self, namespace: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[RunView]:
        """The last submitted first."""
        asked = {"r.namespace": namespace, "r.name": name}
        given = {column: value for column, value in asked.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in given) or "1"
        rows = self._rows(
            f"{_SEEN} WHERE {where} ORDER BY r.queued DESC LIMIT ?",
            *given.values(),
            -1 if limit is None else limit,
        )
        return [_run_view(row) for row in rows]

    def unmeasured(self, limit: int) -> list[str]:
        """Runs that have ended and of which nothing runs any more, before their size is known."""
        rows = self._rows(
            "SELECT r.uid FROM runs r INDEXED BY runs_to_measure JOIN jobs j ON j.uid = r.uid "
            "WHERE r.ended_at IS NOT NULL AND r.bytes IS NULL AND j.finished = 1 AND NOT EXISTS "
            "(SELECT 1 FROM pods p INDEXED BY pods_alive WHERE p.job_uid = r.uid "
            "AND p.finished_at IS NULL AND p.run > 0) LIMIT ?",
            limit,
        )
        return [row["uid"] for row in rows]

    def measured(self) -> list[EndedRun]:
        """Runs of which nothing runs any more."""
        rows = self._rows(
            "SELECT uid, ended_at, bytes FROM runs WHERE ended_at IS NOT NULL AND bytes IS NOT NULL"
        )
        return [
            EndedRun(row["uid"], datetime.fromisoformat(row["ended_at"]), row["bytes"])
            for row in rows
        ]

    def without_size(self, limit: int) -> list[str]:
        """Jobs that live, or whose size was not looked at yet."""
        sql = "SELECT j.uid FROM jobs j JOIN runs r ON r.uid = j.uid AND bytes IS NULL "
        rows = self._rows(f"{sql} ORDER BY j.finished LIMIT ?", limit)
        return [row["uid"] for row in rows]

    def counts(self) -> Counts:
        jobs = self._row(
            "SELECT coalesce(sum(finished = 0), 0) AS live, coalesce(sum(finished), 0) AS finished "
            "FROM jobs WHERE superseded = 0"
        )
        runs = self._row(
            "SELECT count(*) AS number, min(ended_at) AS oldest, coalesce(sum(bytes), 0) AS bytes "
            "FROM runs"
        )
        assert jobs is not None
        assert runs is not None
        return Counts(
            jobs["live"], jobs["finished"], runs["number"], _time(runs["oldest"]), runs["bytes"]
        )

    def ended_in(
        self, namespace: str, before: datetime | None, limit: int
    ) -> list[tuple[str, bool]]:
        """Uid, and whether it is the job that has the name, of runs that ended (before a time)."""
        rows = self._rows(
            f"SELECT r.uid, coalesce(j.superseded = 0, 0) AS current {_ENDED_IN} "
            "ORDER BY r.queued LIMIT ?3",
            namespace,
            before.isoformat() if before else None,
            limit,
        )
        return [(row["uid"], bool(row["current"])) for row in rows]

    def count_ended_in(self, namespace: str, before: datetime | None) -> int:
        at = before.isoformat() if before else None
        row = self._row(f"SELECT count(*) AS number {_ENDED_IN}", namespace, at)
        return int(row["number"]) if row else 0


def _run_view(row: sqlite3.Row) -> RunView:
    status = decode_status(row["status"]) if row["status"] is not None else None
    phase = row["phase"]
    if status is not None:
        phase = status.phase.value if status.phase else "Pending"
    started = _time(row["started_at"])
    return RunView(
        namespace=row["namespace"],
        name=row["name"],
        uid=row["uid"],
        mode=row["mode"],
        phase=phase,
        reason=status.reason if status else row["reason"],
        message=status.message if status else row["message"],
        created_at=_time(row["created_at"]),
        started_at=status.start_time if status else started,
        ended_at=_time(row["ended_at"]),
        current=bool(row["current"]),
        whole=bool(row["whole"]),
        replaced_by=row["replaced_by"],
        removed=row["removed"],
        log_bytes=row["bytes"],
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None
