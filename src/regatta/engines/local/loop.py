"""The engine's one thread: it notices, asks the brain, writes the answer down, carries it out.

Level-triggered: a job is looked at because something about it may have changed, and what happens
depends only on how things are. One turn is one transaction for all jobs that need a look, with
processes started and signalled after it is safe on disk. Nothing here decides about a job.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from regatta.api.errors import DatabaseLocked, DiskFull
from regatta.controller.observe import size_wanted
from regatta.controller.plan import Instant
from regatta.controller.reconcile import reconcile
from regatta.controller.retention import Retention
from regatta.engines.local.apply import apply_plan, delete_pod
from regatta.engines.local.children import children
from regatta.engines.local.clock import Clock
from regatta.engines.local.home import Home
from regatta.engines.local.housekeeping import Housekeeping
from regatta.engines.local.notices import Notices
from regatta.engines.local.recovery import jobs_to_look_at
from regatta.engines.local.replicas.gather import build_pod_run
from regatta.engines.local.replicas.heartbeats import Heartbeats
from regatta.engines.local.replicas.keeper import Processes
from regatta.engines.local.replicas.recording import record_run
from regatta.engines.local.replicas.runspec import RunSpec, gpu_hold, run_folder
from regatta.engines.local.replicas.runtime import RunState, Runtime
from regatta.engines.local.rubbish import Rubbish
from regatta.engines.local.scheduling.binding import Bound, bind_pods, schedule
from regatta.engines.local.scheduling.ledger import Ledger
from regatta.engines.local.scheduling.machine import Machine
from regatta.engines.local.scheduling.name_holders import about_holders
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.disk_full import says_full
from regatta.engines.local.store.records import JobRecord, PodRecord
from regatta.engines.local.store.secrets_file import forget_secrets
from regatta.engines.local.store.writes import Transaction
from regatta.engines.local.wakeups import Timers

log = logging.getLogger(__name__)

#: How soon a starting replica is looked at again; its running tells nobody.
STARTING_LOOK = 0.02
#: How often running replicas are looked at for progress and restarts in place.
PULSE = 1.0
#: Sleep no longer than this, so that the awake clock is kept and a wall clock that jumped is seen.
LONGEST_SLEEP = 10.0
#: Between refreshed explanations of a long queue.
EXPLAIN_AGAIN = 1.0
#: A job whose plan does not settle in so many rounds is looked at again a little later.
ROUNDS = 20
#: A job whose pass failed by a mistake of ours, or a store that cannot be written.
RETRY = 5.0

#: How soon GPUs that another program holds are looked at again; their release tells nobody.
GPU_LOOK = 0.2
WAITS_FOR_GPUS = "waits for GPUs that another program on this machine still holds"


class Loop:
    def __init__(
        self,
        home: Home,
        store: Store,
        runtime: Runtime,
        machine: Machine,
        clock: Clock,
        retention: Retention,
    ) -> None:
        self._housekeeping = Housekeeping(home, store, retention, clock)
        self._home, self._store, self._machine, self._clock = home, store, machine, clock
        self.ledger = Ledger()
        self.notices = Notices(home.path, store)
        self._processes = Processes(runtime, clock)
        self._heartbeats = Heartbeats()
        self._timers = Timers()
        self._dirty: set[str] = set()
        self._dirty_lock = threading.Lock()
        self._closing = False
        self._pulse_due = self._explain_due = clock.monotonic()
        self._explanations_stale = False
        self._drift: float | None = None
        #: Pods whose rows say more than has been carried out, gathered during a transaction.
        self._todo: dict[str, PodRecord] = {}
        #: Jobs of which only a folder and rows are left, and whether rows were removed.
        self._emptied: set[str] = set()
        self._removed = False
        #: On a full disk something is to be removed: the next turn may use the room kept for that.
        self._makes_room = False
        self._rubbish = Rubbish(home, store, runtime, self.notices, clock)
        #: Runs whose end was written in this transaction.
        self._ended_runs: list[Path] = []
        #: What was left by another engine has been looked at.
        self.looked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="regatta-engine", daemon=True)

    # Called from other threads

    def start(self) -> None:
        self._thread.start()

    def prime(self, records: Iterable[JobRecord]) -> None:
        """Before the first turn: who holds what, so that nothing is given away twice."""
        read, uids = self._store.read, list[str]()
        for record in records:
            reserved = read.reservation(record.uid) is not None
            self.ledger.note(record, read.pods(record.uid), reserved)
            uids.append(record.uid)
        self.look_at(*uids)  # all are known by now: a look wakes whoever waits to try again

    def look_at(self, *job_uids: str) -> None:
        with self._dirty_lock:
            self._dirty.update(job_uids)
        self._processes.wake()

    def close(self, *, end_all: bool = False) -> None:
        """Stop deciding. What runs, runs on, or is asked to end."""
        self._closing = True
        if self._thread.is_alive():
            self._processes.wake()
            self._thread.join()
        if end_all:
            self._processes.end_all()
        self._processes.close()

    # The thread

    def _run(self) -> None:
        while not self._closing:
            if not (self._dirty or self._processes.any_starting):
                self.looked.set()
            self._processes.wait(self._sleep())
            if self._closing:
                return
            try:
                self.turn()
                self._keep_house()
            except Exception:
                # A mistake of ours: the jobs of others must go on after it.
                log.exception("a turn failed; looking at everything again in %s s", RETRY)
                self._start_over(RETRY)

    def _keep_house(self) -> None:
        """When nothing else is to be done, or else nothing can be: it makes room."""
        idle = not self._dirty or self.notices.disk_is_full
        if idle and self._clock.monotonic() >= self._housekeeping.due:
            self.look_at(*self._housekeeping.step())

    def _start_over(self, pause: float) -> None:
        """No turn before it is known who holds what: places would be given twice."""
        while not self._closing:
            self._processes.wait(pause)
            self.ledger.clear()
            try:
                self.prime(jobs_to_look_at(self._store.read))
                return
            except Exception:
                log.exception("the job database cannot be read; trying again in %s s", RETRY)
                pause = RETRY

    def _sleep(self) -> float:
        if self._dirty:
            return 0.0
        now = self._clock.monotonic()
        due = [now + LONGEST_SLEEP, self._housekeeping.due]
        if self._processes.any_starting:
            due.append(now + STARTING_LOOK)
        if len(self._processes):
            due.append(self._pulse_due)
        rubbish = self._rubbish.next_look()
        if rubbish is not None:
            due.append(rubbish)
        if self._explanations_stale:
            due.append(self._explain_due)
        timer = self._timers.next()
        if timer is not None:
            due.append(timer)
        return max(min(due) - now, 0.0)

    def turn(self) -> None:
        """Notice everything that is new, and answer it."""
        self._store.stand_firm()
        now, tick = self._clock.now(), self._clock.monotonic()
        pulse = tick >= self._pulse_due
        if pulse:
            self._pulse_due = tick + PULSE
        news = self._processes.look(everybody=pulse)
        with self._dirty_lock:
            dirty, self._dirty = self._dirty, set()
        dirty |= self._due(now, tick)
        if pulse:
            running = [(w.job, w.folder) for w in self._processes.running()]
            dirty |= self._heartbeats.look(running, now.awake)
        explain = self._explanations_stale and tick >= self._explain_due
        if not (news or dirty or explain or self.notices.disk_is_full):
            self._remove_rubbish()
            return
        self._todo.clear()
        self._emptied.clear()
        self._removed = False
        self._ended_runs.clear()
        ended: list[str] = []
        makes_room, self._makes_room = self._makes_room, False
        try:
            with self._store.write(making_room=makes_room) as tx:
                for pod_uid, state in news:
                    dirty |= self._record(tx, pod_uid, state, now, ended)
                self._settle(tx, dirty, now, explain)
                # With every write, so that no recorded time is ever ahead of the clock.
                tx.set_counter("awake", now.awake)
        except DiskFull:
            self.notices.disk_full(news)
            self._carry_out(self._to_be_ended())
            self._start_over(0.0 if self._make_room(makes_room) else RETRY)
            return
        except DatabaseLocked as why:  # before anything was written
            self.notices.locked(str(why))
            self._makes_room = makes_room
            self._carry_out(self._to_be_ended())
            self._start_over(RETRY)
            self.look_at(*dirty)
            return
        self.notices.let_go()
        if (not makes_room and self.notices.disk_has_room()) or self._removed:
            self._store.keep_room()
        self._processes.heard(uid for uid, _ in news)
        self._processes.forget(ended)
        self._rubbish.remove_scratch(self._ended_runs)
        self._rubbish.add(self._emptied)
        self._carry_out(list(self._todo.values()))
        self._remove_rubbish()

    def _due(self, now: Instant, tick: float) -> set[str]:
        """Jobs whose timers are due: all of them when the machine slept or its clock was set."""
        drift = now.wall.timestamp() - tick
        jumped = self._drift is not None and abs(drift - self._drift) > 1.0
        self._drift = drift
        return self._timers.take_all() if jumped else self._timers.take_due(tick)

    def _settle(self, tx: Transaction, dirty: set[str], now: Instant, explain: bool) -> None:
        """Ask the brain about each job, and the scheduler about the queue, until all is quiet."""
        rounds: dict[str, int] = {}
        while True:
            while dirty:
                uid = dirty.pop()
                rounds[uid] = rounds.get(uid, 0) + 1
                if rounds[uid] > ROUNDS:
                    log.error("job %s does not settle", uid)
                    self._timers.set_due(uid, self._clock.monotonic() + 0.2)
                elif self._safely(tx, uid, now):
                    dirty.add(uid)
            dirty, self._explanations_stale = schedule(
                tx, self.ledger, self._machine, explain_again=explain
            )
            if explain:
                self._explain_due = self._clock.monotonic() + EXPLAIN_AGAIN
                explain = False
            if not dirty:
                return

    def _safely(self, tx: Transaction, uid: str, now: Instant) -> bool:
        """One job's trouble must not stop the others."""
        try:
            with tx.savepoint():
                return self._look_at_job(tx, uid, now)
        except sqlite3.OperationalError:
            raise  # the store's trouble (a full disk), not this job's
        except Exception:
            log.exception("job %s could not be looked at; trying again in %s s", uid, RETRY)
            self._timers.set_due(uid, self._clock.monotonic() + RETRY)
            return False

    def _look_at_job(self, tx: Transaction, uid: str, now: Instant) -> bool:
        """Observe, ask the brain, write its plan. True when another look is needed."""
        record = tx.job(uid)
        if record is None:
            self._forget(uid)
            return False
        pods, reservation = tx.pods(uid), tx.reservation(uid)
        beat = self._heartbeats.of(uid)
        revisions = tx.revisions(uid)
        seen = children(record, pods, revisions, reservation, beat.progress, beat.awake)
        plan = reconcile(record.job, seen, now)
        if plan.status is not None and plan.status.phase is not None and plan.status.phase.final:
            forget_secrets(self._home.job(uid))  # before it is on record: nothing would come back
        again = apply_plan(tx, record, plan, now)
        due = None if plan.look_again is None else self._clock.monotonic() + plan.look_again
        self._timers.set_due(uid, due)
        if again:
            record = tx.job(uid) or record
            pods = tx.pods(uid)
        if record.shape is not None and size_wanted(record.job) is None:
            tx.set_shape(uid, None)  # ending or suspended: it holds only what still lives
            record = replace(record, shape=None)
        entry = self.ledger.note(record, pods, reservation is not None)
        bound = bind_pods(tx, record, pods, self.ledger, self._machine)
        if bound is Bound.LATER:
            self._timers.set_due(uid, self._clock.monotonic() + GPU_LOOK)
            ours = self.ledger.gpus_in_use()
            others = [gpu_hold(gpu).name for gpu in self._machine.gpus if gpu not in ours]
            told = tx.set_waiting(uid, f"{WAITS_FOR_GPUS}{about_holders(others)}")
            # That it waits is told at once; who holds them changes as others like, at each look.
            again |= told and not record.waiting.startswith(WAITS_FOR_GPUS)
        if bound is Bound.SOME:
            pods, again = tx.pods(uid), True
            entry = self.ledger.note(record, pods)  # the next job must see these GPUs as taken
        again |= self._intend_starts(tx, record, pods)
        if again:
            return True
        if record.job.finished and not entry.live:
            tx.drop_reservation(uid)
            self._heartbeats.forget(uid)
            self._housekeeping.something_ended()
        self._note_todo(pods)
        if record.job.deleting:
            self._remove_when_empty(tx, record, pods, now)
        return False

    def _intend_starts(self, tx: Transaction, record: JobRecord, pods: Iterable[PodRecord]) -> bool:
        """A bound pod starts once the environment it names exists."""
        ready = [
            pod
            for pod in pods
            if pod.bound and pod.run == 0 and not (pod.over or pod.stopping or pod.deleting)
        ]
        if not ready:
            return False
        revisions = tx.revisions(record.uid)
        starting = [pod for pod in ready if pod.revision in revisions]
        for pod in starting:
            tx.intend_start(pod.uid)
        return bool(starting)

    def _note_todo(self, pods: Iterable[PodRecord]) -> None:
        for pod in pods:
            if pod.alive and self._processes.needs_attention(pod):
                self._todo[pod.uid] = pod

    def _remove_when_empty(
        self, tx: Transaction, record: JobRecord, pods: list[PodRecord], now: Instant
    ) -> None:
        for pod in pods:
            delete_pod(tx, pod, now.wall)
        if tx.has_live_pods(record.uid):
            return
        if self._home.job(record.uid).exists():
            self._emptied.add(record.uid)
            return
        tx.remove_job(record.uid)
        self._forget(record.uid)
        self._removed = True

    def _forget(self, uid: str) -> None:
        self.ledger.forget(uid)
        self._timers.set_due(uid, None)
        self._heartbeats.forget(uid)

    # Processes

    def _record(
        self, tx: Transaction, pod_uid: str, state: RunState, now: Instant, ended: list[str]
    ) -> set[str]:
        """Write what became of a run; the job to look at."""
        pod = tx.pod(pod_uid)
        if pod is None or pod.over:
            ended.append(pod_uid)
            return set()
        folder = self._folder(pod)
        if record_run(tx, pod, state, folder, now):
            # Its last report may be younger than the last pulse.
            self._heartbeats.look([(pod.job_uid, folder)], now.awake)
            self._heartbeats.forget_run(pod.job_uid, folder)
            ended.append(pod.uid)
            self._ended_runs.append(folder)
            self._housekeeping.replica_ended(pod.job_uid)
        return {pod.job_uid}

    def _to_be_ended(self) -> list[PodRecord]:
        """By what is on record already, so that it needs no room there."""
        pods = self._store.read.pods_not_over()
        return [pod for pod in pods if pod.stopping and self._processes.needs_attention(pod)]

    def _carry_out(self, pods: list[PodRecord]) -> None:
        for pod in pods:
            try:
                self._processes.carry_out(pod, self._folder(pod), self._build)
                self.notices.found_room(pod)
            except OSError as error:
                if says_full(error):
                    self.notices.waits_for_room(pod)
                else:
                    log.exception("%s: cannot be started or stopped now", pod.name)
                self._timers.set_due(pod.job_uid, self._clock.monotonic() + RETRY)

    def _remove_rubbish(self) -> None:
        if gone := self._rubbish.remove():
            self.look_at(*gone)

    def _make_room(self, kept_is_used: bool) -> bool:
        """On a full disk: what is to be removed makes room, and some is kept for removing it.
        Whether another try is worth it at once."""
        read = self._store.read
        doomed = {record.uid for record in read.unfinished() if record.job.deleting}
        live = {pod.job_uid for pod in read.pods_not_over() if self._lives(pod)}
        self._rubbish.add(uid for uid in doomed - live if self._home.job(uid).exists())
        removed = self._rubbish.remove()
        if removed:
            self._store.claim_room()
        self._makes_room = bool(doomed)
        return bool(removed) or (bool(doomed) and (not kept_is_used or self._store.spend_reserve()))

    def _lives(self, pod: PodRecord) -> bool:
        return pod.alive and not self.notices.has_ended(pod.uid)

    def _build(self, pod: PodRecord) -> RunSpec:
        return build_pod_run(self._store.read, pod, self._folder(pod), self._home.job(pod.job_uid))

    def _folder(self, pod: PodRecord) -> Path:
        return run_folder(self._home.pod(pod.job_uid, pod.uid), max(pod.run, 1))
