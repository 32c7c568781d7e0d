"""A job's logs as doors ask for them: whose lines, and until when to wait for more."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from contextlib import closing
from itertools import dropwhile

from msgspec.structs import replace

from regatta.api.errors import NotPossible
from regatta.engines.base import LogBatch, LogQuery
from regatta.engines.local.home import Home
from regatta.engines.local.logs.reader import LogReader, PodLog
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord, PodRecord
from regatta.engines.local.views import latest_per_replica

#: A follower looks again this soon after lines came, and ever later while none do.
SOONEST, LATEST = 0.05, 0.3
#: An empty batch at least this often lets a door notice that nobody listens any more.
SIGN_OF_LIFE = 1.0


def read_logs(home: Home, store: Store, record: JobRecord, query: LogQuery) -> Iterator[LogBatch]:
    """Implements `Engine.logs` for one job, whatever becomes of its name meanwhile."""
    pods = _chosen(store.read, record, query)
    wanted = pods
    if query.previous:
        wanted, query = _previous(pods, query)
    first = _resumed(pods, query) if query.after else _first(wanted, query)
    reader = LogReader(query)
    for pod in first:
        reader.add(_log_of(home, pod))
    if not query.follow:
        return _then_close(reader, reader.read_more(ended=True))
    shown = {pod.uid for pod in first}
    for pod in _from(pods, shown):
        if pod.uid not in shown:
            reader.pass_over(_log_of(home, pod))
    # Told from the start: whoever resumes before a line came must leave out the same ones.
    position = query.after | reader.positions()
    known = {pod.uid for pod in pods}

    def add_new() -> None:
        present = store.read.job(record.uid)
        for pod in _chosen(store.read, present, query) if present is not None else ():
            if pod.uid not in known:
                known.add(pod.uid)
                reader.add(_log_of(home, pod), late=True)

    return _then_close(reader, _follow(store, record.uid, reader, position, add_new))


def _log_of(home: Home, pod: PodRecord) -> PodLog:
    folder = home.pod(pod.job_uid, pod.uid)
    return PodLog(uid=pod.uid, label=f"{pod.role}-{pod.index}", folder=folder)


def _then_close(reader: LogReader, batches: Iterator[LogBatch]) -> Iterator[LogBatch]:
    with closing(reader):
        yield from batches


def _follow(
    store: Store,
    uid: str,
    reader: LogReader,
    position: dict[str, str],
    add_new: Callable[[], None],
) -> Iterator[LogBatch]:
    pause, quiet_since = SOONEST, time.monotonic()
    version = -1
    ended = False
    while True:
        now = store.version
        if now != version:
            # What ends is looked at before what is read: nothing is written after the end.
            version = now
            record = store.read.job(uid)
            ended = record is None or _is_over(store.read, record)
            add_new()
        came = False
        for batch in reader.read_more(ended=ended):
            came = True
            quiet_since = time.monotonic()
            position.update(batch.after)
            yield LogBatch(batch.lines, dict(position))
        if ended:
            return
        pause = SOONEST if came else min(pause * 1.5, LATEST)
        if time.monotonic() - quiet_since >= SIGN_OF_LIFE:
            quiet_since = time.monotonic()
            yield LogBatch((), dict(position))
        store.wait_for_change(version, pause)


def _chosen(read: Queries, record: JobRecord, query: LogQuery) -> list[PodRecord]:
    roles = record.job.spec.roles()
    if query.role is not None and query.role not in roles:
        raise NotPossible(
            f"{record.job.name} has no role {query.role!r}; its roles are {', '.join(roles)}"
        )
    return [
        pod
        for pod in read.all_pods(record.uid)
        if query.role in (None, pod.role) and query.index in (None, pod.index)
    ]


def _first(pods: list[PodRecord], query: LogQuery) -> list[PodRecord]:
    """Whole stories for followers; otherwise the latest pod of each replica."""
    if query.follow and query.tail is None:
        return pods
    return [newest[0] for newest in reversed(latest_per_replica(pods).values())]


def _resumed(pods: list[PodRecord], query: LogQuery) -> list[PodRecord]:
    """Those that were being read, and all that came after the first of them."""
    return _from(pods, query.after) or pods


def _from(pods: list[PodRecord], uids: Container[str]) -> list[PodRecord]:
    """From the first of these on."""
    return list(dropwhile(lambda pod: pod.uid not in uids, pods))


def _previous(pods: list[PodRecord], query: LogQuery) -> tuple[list[PodRecord], LogQuery]:
    """The pod before the present one; where a replica never had another, its run before."""
    replicas = latest_per_replica(pods)
    if any(len(history) > 1 for history in replicas.values()):
        before = [history[1] for history in replicas.values() if len(history) > 1]
        return before, replace(query, previous=False)
    return pods, query


def _is_over(read: Queries, record: JobRecord) -> bool:
    """Final, and nothing of it is still ending. Servers left running on purpose do not count."""
    if not record.job.finished:
        return False
    return all(pod.over or not (pod.stopping or pod.deleting) for pod in read.all_pods(record.uid))
