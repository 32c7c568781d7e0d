"""Admission and binding: the scheduler's decisions written down, and pods given their places.

A whole gang is admitted in one transaction. A pod of an admitted job is bound as soon as it
exists: to the address and ports that its place in the job has, and to whole GPUs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum, auto
from functools import cache

from regatta.api.errors import NoPorts
from regatta.controller.observe import ordinal_of
from regatta.engines.local.replicas.runspec import port_hold
from regatta.engines.local.scheduling.ledger import Ledger, need_of, places_needed
from regatta.engines.local.scheduling.machine import Machine
from regatta.engines.local.scheduling.name_holders import about_holders
from regatta.engines.local.scheduling.reservations import (
    ADDRESSES,
    BLOCKS,
    extend,
    gpu_is_free,
    place,
    port_of,
    reserve,
)
from regatta.engines.local.scheduling.scheduler import decide
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord, PodRecord, Reservation
from regatta.engines.local.store.writes import Transaction

NO_PORTS = "waits for free ports: every block is reserved by jobs ahead of it, or in use"
#: A supervisor holds one.
MANY_BLOCKS = 2
WAITS_FOR_REPLACED = "waits for the job it replaces to end"


class Bound(Enum):
    NOTHING = auto()
    SOME = auto()
    #: GPUs that it was admitted for are still in somebody's hands, perhaps another user's.
    LATER = auto()


def reserve_places(tx: Transaction, job_uid: str, count: int, *, anew: bool = False) -> bool:
    """Addresses and ports for so many replicas; False when none are free just now.

    What the job has already is kept or extended where possible, unless it must be another
    (`anew`), because somebody else took a port of it.
    """
    mine = tx.reservation(job_uid)
    if mine is not None and mine.count >= count and not anew:
        return True
    if mine is not None and not anew:
        others = [held for held in tx.reservations() if held != mine]
        longer = extend(mine, count, others, tx.places_of_live_pods())
        if longer is not None:
            tx.set_reservation(job_uid, longer)
            return True
    try:
        found = next_free(tx, count)
    except NoPorts:
        return False
    tx.set_reservation(job_uid, found)
    tx.set_counter("next_address", found.first_address + count)
    tx.set_counter("next_block", found.first_block + count)
    return True


def next_free(read: Queries, count: int) -> Reservation:
    """Raises NoPorts when so many are not free."""
    return reserve(
        count, read.reservations(), read.places_of_live_pods(), start=last_reserved(read)
    )


def scatter(tx: Transaction, home: str) -> None:
    """Let each home begin somewhere else, so that two of them on one machine seldom meet."""
    if tx.counter("next_block", -1) < 0:
        number = int.from_bytes(hashlib.sha256(home.encode()).digest()[:8])
        tx.set_counter("next_block", number % BLOCKS)
        tx.set_counter("next_address", number % ADDRESSES)


def last_reserved(tx: Queries) -> Reservation:
    return Reservation(int(tx.counter("next_address")), int(tx.counter("next_block")), 0)


def schedule(
    tx: Transaction, ledger: Ledger, machine: Machine, *, explain_again: bool
) -> tuple[set[str], bool]:
    """Admit what can start. Gives the jobs that changed, and whether old explanations are stale.

    A gang's first explanation is written at once; that its place moved from 41st to 40th is
    written only now and then (`explain_again`), or a long queue would cost a write per job per
    event.
    """
    about_ports = cache(_about_ports)
    changed: set[str] = set()
    queue, stale = [], False
    ending = ledger.names_still_ending()
    for entry in ledger:
        if not entry.waits:
            if entry.wanted is not None and entry.shape != entry.wanted:
                # Smaller than admitted: from now on it holds that, and what still lives.
                tx.set_shape(entry.uid, entry.wanted)
                changed.add(entry.uid)
            continue
        if not entry.reserved:
            record = tx.job(entry.uid)
            if record is None or not reserve_places(tx, entry.uid, places_needed(record.job)):
                if entry.waiting and not explain_again:
                    stale = True
                elif tx.set_waiting(entry.uid, f"{NO_PORTS}{about_ports()}"):
                    changed.add(entry.uid)
                continue
            changed.add(entry.uid)
        if (entry.namespace, entry.name) in ending:
            # Two trainings of one name would write the same checkpoints.
            if tx.set_waiting(entry.uid, WAITS_FOR_REPLACED):
                changed.add(entry.uid)
            continue
        queue.append(entry)
    if not queue:
        return changed, stale
    holders = [entry.holder() for entry in ledger]
    decision = decide(machine.capacity, holders, [entry.gang() for entry in queue])
    by_uid = {entry.uid: entry for entry in queue}
    for uid in decision.admit:
        wanted = by_uid[uid].wanted
        assert wanted is not None
        tx.admit(uid, wanted)
        changed.add(uid)
    for uid, why in decision.waiting.items():
        known = by_uid[uid].waiting
        if known == why:
            continue
        if known and not explain_again:
            stale = True
        elif tx.set_waiting(uid, why):
            changed.add(uid)
    return changed, stale


def _about_ports() -> str:
    """Who has more of them than a supervisor does."""
    blocks = range(BLOCKS)
    return about_holders({port_hold(port_of(block)).name for block in blocks}, MANY_BLOCKS)


def bind_pods(
    tx: Transaction,
    record: JobRecord,
    pods: Iterable[PodRecord],
    ledger: Ledger,
    machine: Machine,
) -> Bound:
    """Give every pod of an admitted job its place. Tells whether something was bound."""
    shape = record.shape
    if shape is None:
        return Bound.NOTHING
    waiting = [
        pod
        for pod in pods
        if not (pod.bound or pod.over or pod.stopping or pod.deleting)
        and pod.index < shape.get(pod.role, 0)
    ]
    if not waiting:
        return Bound.NOTHING
    reservation = tx.reservation(record.uid)
    if reservation is None or reservation.count < places_needed(record.job):
        return Bound.NOTHING
    in_use = ledger.gpus_in_use()
    asked = {pod.uid: need_of(pod.manifest).gpus for pod in waiting}
    free = [gpu for gpu in machine.gpus if gpu not in in_use] if any(asked.values()) else []
    free = [gpu for gpu in free if gpu_is_free(gpu)]
    if sum(asked.values()) > len(free):
        return Bound.LATER
    for pod in waiting:
        mine, free = tuple(free[: asked[pod.uid]]), free[asked[pod.uid] :]
        ordinal = ordinal_of(record.job, pod.role, pod.index)
        address, port_base = place(reservation, ordinal)
        tx.bind(pod, address, port_base, mine)
    return Bound.SOME
