"""Events of jobs, and the recorder's own: how far it has come, and where it was blind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select, update

from regatta.engines.inventory import EventView
from regatta.server.records.job_tables import events, gaps, jobs, progress
from regatta.server.records.moments import millis, now_millis
from regatta.server.records.recording.observations import last_of

#: How far events were read, and when everything was last seen.
LAST_EVENT, LAST_SEEN = "event", "seen"
#: Milliseconds by which an event may seem to be older than its job: clusters tell whole seconds.
CLOCKS_DIFFER = 2_000
#: As a cluster's engine says that something happened again.
_TIMES = re.compile(r" \(x(\d+)\)$")


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    from_at: int
    until_at: int
    why: str


def write_events(connection: Connection, engine: str, told: Sequence[EventView]) -> list[EventView]:
    """Each once, however often it is told. Returns those of jobs that the records do not know."""
    unknown = []
    for event in told:
        job = _job_of(connection, engine, event)
        if job is None:
            unknown.append(event)
        elif job.deleted_at is None:
            _write(connection, job.id, event)
    return unknown


def read_progress(connection: Connection, engine: str, what: str) -> int | None:
    query = select(progress.c.value).where(progress.c.engine == engine, progress.c.what == what)
    found = connection.scalar(query)
    return int(found) if found is not None else None


def write_progress(connection: Connection, engine: str, what: str, value: int) -> None:
    which = (progress.c.engine == engine, progress.c.what == what)
    if not connection.execute(update(progress).where(*which).values(value=str(value))).rowcount:
        connection.execute(insert(progress).values(engine=engine, what=what, value=str(value)))


def write_gaps(connection: Connection, found: Sequence[Gap]) -> None:
    if found:
        connection.execute(insert(gaps), [msgspec.structs.asdict(gap) for gap in found])


def gaps_between(connection: Connection, first: int, last: int) -> list[Gap]:
    """Where nobody looked, of what touches that time."""
    query = select(gaps.c.from_at, gaps.c.until_at, gaps.c.why)
    query = query.where(gaps.c.until_at >= first, gaps.c.from_at <= last)
    found = connection.execute(query.order_by(gaps.c.from_at))
    return [Gap(from_at=row.from_at, until_at=row.until_at, why=row.why) for row in found]


def _job_of(connection: Connection, engine: str, event: EventView) -> Row[Any, Any, Any] | None:
    """Several may have had the name, one after another."""
    query = (
        select(jobs.c.id, jobs.c.created_at, jobs.c.deleted_at)
        .where(
            jobs.c.engine == engine,
            jobs.c.namespace == event.namespace,
            jobs.c.engine_name == event.job,
            jobs.c.engine_uid.is_not(None),
        )
        .order_by(jobs.c.created_at.desc())
    )
    happened = (millis(event.at) or now_millis()) + CLOCKS_DIFFER
    for row in connection.execute(query):
        if row.created_at is None or row.created_at <= happened:
            return row
    return None


def _write(connection: Connection, job_id: str, event: EventView) -> None:
    again = _TIMES.search(event.message)
    message = last_of(event.message[: again.start()] if again else event.message)
    row = {
        "engine_id": event.id,
        "at": millis(event.at),
        "type": event.type,
        "reason": event.reason,
        "message": message,
        "count": int(again[1]) if again else 1,
    }
    connection.execute(
        delete(events).where(events.c.job_id == job_id, events.c.engine_id == event.id)
    )
    if again:
        same = (events.c.type == event.type, events.c.reason == event.reason)
        connection.execute(
            delete(events).where(events.c.job_id == job_id, *same, events.c.message == message)
        )
    connection.execute(insert(events).values(job_id=job_id, **row))
