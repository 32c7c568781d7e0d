"""Writes down what became of a run: that it started, how it ended, and what is worth an event."""

from __future__ import annotations

from pathlib import Path

from regatta.controller.plan import Event, Instant
from regatta.controller.policies.attempts import may_move
from regatta.controller.world import Exit, PodPhase
from regatta.engines.local.replicas.keeper import ENDED_BY_FORCE
from regatta.engines.local.replicas.leftovers import in_words, left_of
from regatta.engines.local.replicas.runtime import RunPhase, RunState
from regatta.engines.local.scheduling.binding import reserve_places
from regatta.engines.local.scheduling.ledger import places_needed
from regatta.engines.local.store.records import PodRecord
from regatta.engines.local.store.writes import Transaction

#: Ends that are no fault of the program, by the supervisor's reason.
DISRUPTIONS = {"PortTaken": "a port was taken by somebody else", "GpuTaken": "a GPU was taken"}
#: The reason of an event about processes that outlived their replica.
NOT_ENDED = "NotEnded"


def record_run(
    tx: Transaction, pod: PodRecord, state: RunState, folder: Path, now: Instant
) -> bool:
    """Whether it has ended."""
    if state.phase is not RunPhase.EXITED:
        phase = PodPhase.RUNNING if state.phase is RunPhase.RUNNING else PodPhase.STARTING
        tx.set_started(pod.uid, phase, state.started_at, state.restarts, state.waiting)
        return False
    end = state.exit or Exit(code=None, reason="Unknown", message="it left no exit record")
    disruption = "" if pod.stopping else DISRUPTIONS.get(end.reason, "")
    if state.started_at is not None:
        tx.set_started(pod.uid, pod.phase, state.started_at, state.restarts)
    tx.set_exit(pod, end, now.wall, state.restarts, disruption)
    if end.reason == "PortTaken":
        _reserve_anew(tx, pod, now)
    if end.reason == ENDED_BY_FORCE:
        _warn(tx, pod, end.reason, end.message, now)
    if left := in_words(left_of(folder)):
        _warn(tx, pod, NOT_ENDED, left, now)
    return True


def _reserve_anew(tx: Transaction, pod: PodRecord, now: Instant) -> None:
    """Somebody took a port of ours: the next attempt gets others."""
    record = tx.job(pod.job_uid)
    if record is None or not may_move(record.job):
        return
    reserve_places(tx, record.uid, places_needed(record.job), anew=True)
    first, last = pod.ports or (0, 0)
    message = f"one of its ports {first} to {last} is in use by another program; taking other ports"
    _warn(tx, pod, "PortTaken", message, now)


def _warn(tx: Transaction, pod: PodRecord, reason: str, message: str, now: Instant) -> None:
    event = Event(type="Warning", reason=reason, message=f"{pod.name}: {message}")
    tx.add_event(pod.job_uid, event, now.wall)
