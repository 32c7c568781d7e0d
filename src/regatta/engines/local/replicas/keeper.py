"""The engine's hold on running replicas: it starts, adopts, watches and stops them.

Whatever the store says should run is either found running or started; the same code serves a pod
that was planned a moment ago and one that an engine killed yesterday had planned.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from regatta.api.errors import InvalidJob
from regatta.controller.world import Exit
from regatta.engines.local.clock import Clock
from regatta.engines.local.replicas.runspec import RunSpec
from regatta.engines.local.replicas.runtime import RunPhase, RunState, Runtime, Supervisor
from regatta.engines.local.store.disk_full import ROOM_FOR_REPLICA, has_room, says_full
from regatta.engines.local.store.records import PodRecord

log = logging.getLogger(__name__)

Build = Callable[[PodRecord], RunSpec]

#: Kubernetes' own.
DEFAULT_GRACE = 30.0
#: How late a supervisor may be with ending its replica: one that is halted does nothing about it,
#: any other may be waiting for the kernel or for a container runtime.
HALTED_SECONDS, WORKING_SECONDS = 5.0, 30.0
#: The reason of an end that a supervisor had no part in.
ENDED_BY_FORCE = "EndedByForce"


class Watched(msgspec.Struct):
    """A run this engine knows to exist."""

    pod: str
    job: str
    run_id: str
    folder: Path
    pidfd: int | None = None
    #: The last state that was told.
    told: RunState | None = None
    #: It is not on record: a full disk, perhaps.
    unheard: bool = False
    #: Its supervisor has ended (or cannot be watched by a descriptor): look at it.
    look: bool = True
    signalled: bool = False
    #: When it was asked to end, and how long that may take.
    asked_at: float | None = None
    grace: float = DEFAULT_GRACE
    #: Why its supervisor was killed, once it was.
    forced: str = ""

    @property
    def starting(self) -> bool:
        """It may run any moment. One that pauses before it is tried again does not."""
        told = self.told
        return told is None or (told.phase is not RunPhase.RUNNING and not told.waiting)

    @property
    def runs_without_folder(self) -> bool:
        """Somebody removed it: nobody could say how it ends, nor tell it to."""
        return not (self.starting or self.look or self.folder.exists())


class Processes:
    """Used by the engine's own thread only, but for `wake`."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._watched: dict[str, Watched] = {}
        self._selector = selectors.DefaultSelector()
        self._closed = False
        self._wake_lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)

    def __contains__(self, pod_uid: object) -> bool:
        return pod_uid in self._watched

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def any_starting(self) -> bool:
        return any(watched.starting for watched in self._watched.values())

    def running(self) -> list[Watched]:
        return [w for w in self._watched.values() if not w.starting]

    def needs_attention(self, pod: PodRecord) -> bool:
        """The store says more about it than has been carried out."""
        watched = self._watched.get(pod.uid)
        return watched is None or (pod.stopping and not watched.signalled)

    def carry_out(self, pod: PodRecord, folder: Path, build: Build) -> None:
        """Make true what the store says: it runs, or it was asked to stop. OSError: not now, such
        as on a disk that has no room for its files."""
        watched = self._watched.get(pod.uid)
        if watched is None:
            run_id, grace = f"{pod.uid}/{pod.run}", grace_of(pod)
            watched = Watched(pod.uid, pod.job_uid, run_id, folder, grace=grace)
            self._watched[pod.uid] = watched
            if self._runtime.inspect(folder).phase is RunPhase.NOT_STARTED:
                if pod.stopping:
                    # A supervisor of an engine that was killed may still be on its way.
                    self._runtime.stop(folder, 0)
                    watched.told = _never_started("Stopped", "it was stopped before it started")
                    return
                self._start(watched, pod, build)
            self._watch(watched)
        if pod.stopping and not watched.signalled:
            self._runtime.stop(folder, watched.grace)
            watched.signalled = True
            self._note_asked(watched)

    def wait(self, timeout: float) -> None:
        """Sleep until a supervisor ends, somebody wakes us, or the time is over."""
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._drain()
                continue
            watched: Watched = key.data
            watched.look = True
            self._unwatch(watched)

    def wake(self) -> None:
        with self._wake_lock, contextlib.suppress(BlockingIOError):  # full: it is awake already
            if not self._closed:  # the number may be another file's by then
                os.write(self._wake_write, b"x")

    def look(self, everybody: bool) -> list[tuple[str, RunState]]:
        """Runs whose state is news, by pod uid. It is told until it is `heard`, and an end until
        it is forgotten."""
        news = []
        for watched in list(self._watched.values()):
            if watched.told is not None and watched.told.phase is RunPhase.EXITED:
                news.append((watched.pod, watched.told))
                continue
            if not (watched.look or watched.starting or watched.unheard or everybody):
                continue
            self._force_if_late(watched)
            if watched.runs_without_folder:
                _ask_to_end(watched)
                self._note_asked(watched)
                continue
            try:
                state = self._runtime.inspect(watched.folder)
            except OSError as error:  # out of descriptors, perhaps; the next look may see more
                log.warning("cannot look at %s: %s", watched.folder, error)
                continue
            except msgspec.MsgspecError as error:
                state = _never_started("Unknown", f"its exit record cannot be read: {error}")
            if state.phase is RunPhase.LOST:
                if not self._swept(watched):
                    continue
                state = msgspec.structs.replace(state, phase=RunPhase.EXITED)
                if watched.forced:
                    end = Exit(code=None, reason=ENDED_BY_FORCE, message=watched.forced)
                    state = msgspec.structs.replace(state, exit=end)
            elif state.phase is RunPhase.NOT_STARTED:
                # Its supervisor died before it claimed anything, so nothing of it ever ran; or
                # all that it wrote is gone.
                if watched.starting and not has_room(watched.folder, ROOM_FOR_REPLICA):
                    # It found no room for its claim: whoever hears of this starts it again.
                    self.forget([watched.pod])
                    news.append((watched.pod, state))
                    continue
                why = "its supervisor ended before the process was started"
                if not watched.starting:
                    if not self._swept(watched):
                        continue
                    why = "its folder in the state folder was removed while it ran"
                state = _never_started("SupervisorLost", why)
            elif watched.look:
                # It lives on: another supervisor had the claim. Watch that one.
                self._watch(watched)
            if watched.unheard or state != watched.told:
                watched.told, watched.unheard = state, True
                news.append((watched.pod, state))
        self._runtime.reap()
        return news

    def _swept(self, watched: Watched) -> bool:
        try:
            self._runtime.sweep(watched.run_id, watched.folder)
        except Exception:  # one replica's trouble must not stop the others
            log.exception("cannot end what is left of %s", watched.folder)
            return False
        return True

    def heard(self, pod_uids: Iterable[str]) -> None:
        """What was told of them last is safe in the store."""
        for uid in pod_uids:
            if uid in self._watched:
                self._watched[uid].unheard = False

    def forget(self, pod_uids: Iterable[str]) -> None:
        """Their end is safe in the store."""
        for uid in pod_uids:
            watched = self._watched.pop(uid, None)
            if watched is not None:
                self._unwatch(watched)

    def end_all(self) -> None:
        """Ask every supervisor to end its replica, within its own grace period. For runs whose
        folders are gone: nothing can be written there, and nobody reads how they ended."""
        for watched in self._watched.values():
            _ask_to_end(watched)

    def close(self) -> None:
        """Let go without ending anything."""
        for watched in self._watched.values():
            self._unwatch(watched)
        self._watched.clear()
        self._selector.close()
        with self._wake_lock:
            self._closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _note_asked(self, watched: Watched) -> None:
        if watched.asked_at is None:
            watched.asked_at = self._clock.monotonic()

    def _force_if_late(self, watched: Watched) -> None:
        """Its end is then that of any supervisor that is lost."""
        if watched.asked_at is None:
            return
        late = self._clock.monotonic() - watched.asked_at - watched.grace
        if late < min(HALTED_SECONDS, WORKING_SECONDS):
            return
        supervisor = self._runtime.find_supervisor(watched.folder)
        if supervisor is None or not must_be_forced(late, supervisor.halted):
            return
        watched.forced = watched.forced or _how_forced(supervisor, watched.grace)
        log.warning("%s: %s", watched.folder, watched.forced)
        self._runtime.kill_supervisor(watched.folder)

    def _start(self, watched: Watched, pod: PodRecord, build: Build) -> None:
        try:
            self._runtime.start(build(pod))
        except InvalidJob as error:
            watched.told = _never_started("CannotStart", str(error))
        except OSError as error:
            if says_full(error):
                del self._watched[pod.uid]
                raise
            log.warning("cannot start %s: %s", pod.name, error)
            watched.told = _never_started("CannotStart", f"its supervisor cannot start: {error}")

    def _watch(self, watched: Watched) -> None:
        self._unwatch(watched)
        watched.pidfd = self._runtime.pidfd(watched.folder)
        # Without a descriptor only looking tells; with one, its end does.
        watched.look = watched.pidfd is None
        if watched.pidfd is not None:
            self._selector.register(watched.pidfd, selectors.EVENT_READ, watched)

    def _unwatch(self, watched: Watched) -> None:
        if watched.pidfd is not None:
            self._selector.unregister(watched.pidfd)
            os.close(watched.pidfd)
            watched.pidfd = None

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass


def must_be_forced(late: float, halted: bool) -> bool:
    """Whether a supervisor that is so many seconds late will not do what it was asked to."""
    return late >= (HALTED_SECONDS if halted else WORKING_SECONDS)


def _how_forced(supervisor: Supervisor, grace: float) -> str:
    how = "was halted (SIGSTOP, or frozen)" if supervisor.halted else "did not answer"
    return (
        f"its supervisor (process {supervisor.pid}) {how} and had not ended it when its grace "
        f"period of {grace:g} s was over; supervisor and processes were killed"
    )


def _ask_to_end(watched: Watched) -> None:
    """By its supervisor alone, within the run's own grace period: no file says it."""
    if watched.pidfd is not None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(watched.pidfd, signal.SIGTERM)
            signal.pidfd_send_signal(watched.pidfd, signal.SIGCONT)


def grace_of(pod: PodRecord) -> float:
    asked = (pod.manifest.get("spec") or {}).get("terminationGracePeriodSeconds")
    return float(asked) if isinstance(asked, int | float) else DEFAULT_GRACE


def _never_started(reason: str, message: str) -> RunState:
    return RunState(phase=RunPhase.EXITED, exit=Exit(code=None, reason=reason, message=message))
