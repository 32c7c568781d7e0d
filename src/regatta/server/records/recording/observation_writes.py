"""Observations become rows: of jobs that the records know, and of those that nobody announced.

One server records (`single_server`), so what was read at the beginning of a transaction still holds
at its end. A row that a person deleted stays deleted: only that the engine has let go is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, and_, delete, insert, select, update

from regatta.engines.inventory import PodView, RunView
from regatta.server.openpai_states import FINAL_STATES, STOPPED_BY_USER, State, SubState
from regatta.server.records.job_lists import searched
from regatta.server.records.job_rows import ReplicaRow, replicas_of
from regatta.server.records.job_tables import attempts, jobs, replicas
from regatta.server.records.moments import millis, said
from regatta.server.records.recording.observations import (
    OVER,
    Known,
    Observation,
    attempt_values,
    fingerprint,
    has_ended,
    job_values,
    replica_values,
    run_values,
    unowned,
)
from regatta.server.records.submits import ACCEPTED, ACCEPTING


class Farewell(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the engine has no more."""

    uid: str
    #: What its history still tells.
    run: RunView | None = None
    #: Whether somebody looked when it went; else until when.
    seen: bool = True
    seen_until: int | None = None


class Remembered(msgspec.Struct, frozen=True):
    """Of a job on record, what a recorder needs to know when it starts."""

    uid: str
    namespace: str
    name: str
    fingerprint: str
    settled: bool


def remembered(connection: Connection, engine: str) -> list[Remembered]:
    """All that the engine had when the records last heard of it."""
    query = select(
        jobs.c.engine_uid,
        jobs.c.namespace,
        jobs.c.engine_name,
        jobs.c.fingerprint,
        jobs.c.settled,
    ).where(jobs.c.engine == engine, jobs.c.submit_state == ACCEPTED, jobs.c.gone_at.is_(None))
    return [Remembered(*row) for row in connection.execute(query.where(jobs.c.engine_uid != ""))]


def unknown_of(connection: Connection, engine: str, uids: set[str]) -> set[str]:
    """Those of which nothing is on record, not even that they went."""
    query = select(jobs.c.engine_uid).where(jobs.c.engine == engine)
    return uids - set(connection.scalars(query))


def write_observation(connection: Connection, engine: str, observed: Observation, now: int) -> None:
    job = observed.job
    row = _row_of(connection, engine, observed)
    known = Known() if row is None else _known(row)
    values = {
        **job_values(job, known),
        "last_seen_at": now,
        "gone_at": None,
        "fingerprint": fingerprint(job),
        "settled": observed.settled,
    }
    if row is None:
        fresh = {**unowned(job, now), "engine": engine, **values}
        connection.execute(insert(jobs).values(**fresh))
        job_id = job.uid
    elif row.deleted_at is not None:
        seen = {"phase": values["phase"], "state": values["state"], "settled": observed.settled}
        _update(connection, row.id, engine_uid=job.uid, last_seen_at=now, **seen)
        return
    else:
        job_id = row.id
        _update(connection, job_id, **values, end_seen=True, notes="" if row.gone_at else row.notes)
    if observed.pods is not None:
        _write_replicas(connection, job_id, observed, now, fresh=row is None)
    if observed.settled:
        _give_up_replicas(connection, job_id)


def write_run(connection: Connection, engine: str, run: RunView, now: int) -> None:
    """A job that came and went while nobody looked, as the engine's history has it."""
    created = millis(run.created_at) or now
    connection.execute(
        insert(jobs).values(
            id=run.uid,
            engine=engine,
            engine_uid=run.uid,
            namespace=run.namespace,
            engine_name=run.name,
            name=run.name,
            search=searched("", run.name, ""),
            submit_state=ACCEPTED,
            submitted_at=created,
            notes="it came and went while nobody recorded; this is what the engine's history has",
            gone_at=now,
            settled=True,
            **run_values(run),
        )
    )


def write_farewell(connection: Connection, engine: str, farewell: Farewell, now: int) -> None:
    """What was written stays. What is not known of the end is said."""
    query = select(jobs).where(jobs.c.engine == engine, jobs.c.engine_uid == farewell.uid)
    row = connection.execute(query).one_or_none()
    if row is None or row.gone_at is not None:
        return
    values: dict[str, Any] = {"gone_at": now, "settled": True}
    if row.state not in FINAL_STATES:
        values |= _ending(row, farewell, now)
    if row.deleted_at is not None:
        values.pop("message", None)
        values.pop("notes", None)
    _update(connection, row.id, **values)
    _give_up_replicas(connection, row.id)
    ended = values.get("completed_at", row.completed_at)
    connection.execute(
        update(attempts)
        .where(attempts.c.job_id == row.id, attempts.c.outcome == "")
        .values(outcome=values.get("state", row.state), ended_at=ended)
    )


def _give_up_replicas(connection: Connection, job_id: str) -> None:
    """Nothing more will come: of those that have not ended on record, nobody saw how."""
    lost = and_(replicas.c.job_id == job_id, replicas.c.finished_at.is_(None))
    unclear = replicas.c.phase.not_in(("Succeeded", "Failed"))
    connection.execute(
        update(replicas)
        .where(lost, unclear)
        .values(phase="Unknown", reason="NotSeen", message="its end was not seen")
    )


def _ending(row: Row[Any], farewell: Farewell, now: int) -> dict[str, Any]:
    run = farewell.run
    if run is not None and has_ended(run):
        return run_values(run)
    over = {"sub_state": SubState.COMPLETED, "exit_code": STOPPED_BY_USER, "completed_at": now}
    if farewell.seen:
        message = f"deleted while it was {row.phase or 'new'}"
        return {**over, "state": State.STOPPED, "reason": "Deleted", "message": message}
    last = max(filter(None, (row.last_seen_at, farewell.seen_until)), default=row.submitted_at)
    asked = row.execution_type == "STOP"
    return {
        **over,
        "state": State.STOPPED if asked else State.UNKNOWN,
        "exit_code": STOPPED_BY_USER if asked else None,
        "completed_at": last,
        "end_seen": False,
        "notes": f"its end was not seen: it was {row.phase or 'new'} at {said(last)}, and gone at "
        f"{said(now)}",
    }


def _row_of(connection: Connection, engine: str, observed: Observation) -> Row[Any] | None:
    """By its uid, or, while its submit is on its way, by its name."""
    job = observed.job
    query = select(jobs).where(jobs.c.engine == engine)
    by_uid = connection.execute(query.where(jobs.c.engine_uid == job.uid)).one_or_none()
    if by_uid is not None:
        return by_uid
    by_name = query.where(
        jobs.c.submit_state == ACCEPTING,
        jobs.c.engine_uid.is_(None),
        jobs.c.namespace == job.namespace,
        jobs.c.engine_name == job.name,
    )
    return connection.execute(by_name.order_by(jobs.c.submitted_at.desc())).first()


def _known(row: Row[Any]) -> Known:
    return Known(**{name: getattr(row, name) for name in Known.__struct_fields__})


def _update(connection: Connection, job_id: str, **values: Any) -> None:
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))


def _write_replicas(
    connection: Connection, job_id: str, observed: Observation, now: int, *, fresh: bool
) -> None:
    """`fresh`: the job's row is as new as they are."""
    before = [] if fresh else replicas_of(connection, job_id)
    seen = [ReplicaRow(**replica_values(pod, now)) for pod in observed.pods or () if pod.uid]
    seen += _remembered(observed.pods or (), [*before, *seen], now)
    uids = {replica.uid for replica in seen}
    kept = [replica for replica in before if replica.uid not in uids]
    if len(kept) < len(before):
        whose = (replicas.c.job_id == job_id, replicas.c.uid.in_(uids))
        connection.execute(delete(replicas).where(*whose))
    if seen:
        connection.execute(insert(replicas), [_of(job_id, replica) for replica in seen])
    if not fresh:
        connection.execute(delete(attempts).where(attempts.c.job_id == job_id))
    tries = attempt_values(observed.job, [*kept, *seen], now)
    connection.execute(insert(attempts), [{"job_id": job_id, **row} for row in tries])


def _remembered(
    pods: Iterable[PodView], known: Sequence[ReplicaRow], now: int
) -> Iterator[ReplicaRow]:
    """What a cluster only remembers of a replica whose pod is gone, less than what was seen of it:
    it is the end of one whose end was not seen, and one more where none was seen at all."""
    for pod in pods:
        if pod.uid:
            continue
        told = ReplicaRow(**replica_values(pod, now))
        place = (told.role, told.replica_index, told.attempt)
        here = [row for row in known if (row.role, row.replica_index, row.attempt) == place]
        if not here:
            yield told
            continue
        last = max(here, key=lambda row: row.created_at or 0)
        if last.phase not in OVER and last.finished_at is None:
            yield msgspec.structs.replace(
                last,
                phase=told.phase,
                exit_code=told.exit_code,
                reason=told.reason,
                message=told.message,
                finished_at=told.finished_at,
            )


def _of(job_id: str, replica: ReplicaRow) -> dict[str, Any]:
    return {"job_id": job_id, **msgspec.structs.asdict(replica)}
