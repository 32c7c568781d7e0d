"""A job's logs as doors ask for them: whose lines, and until when to wait for more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

from msgspec.structs import replace

from regatta.engines.base import LogBatch, LogQuery, NotPossible
from regatta.engines.local.home import Home
from regatta.engines.local.logs import LogReader, PodLog
from regatta.engines.local.queries import Queries
from regatta.engines.local.records import JobRecord, PodRecord
from regatta.engines.local.store import Store
from regatta.engines.local.views import latest_per_replica

#: A follower looks again this soon after lines came, and ever later while none do.
SOONEST, LATEST = 0.05, 0.3
#: An empty batch at least this often lets a door notice that nobody listens any more.
SIGN_OF_LIFE = 1.0


def read_logs(home: Home, store: Store, record: JobRecord, query: LogQuery) -> Iterator[LogBatch]:
    """Implements `Engine.logs` for one job, whatever becomes of its name meanwhile."""
    pods = _chosen(store.read, record, query)
    if query.previous:
        pods, query = _previous(pods, query)
    reader = LogReader(query)
    known: set[str] = set()

    def add(more: list[PodRecord]) -> None:
        for pod in more:
            if pod.uid not in known:
                known.add(pod.uid)
                folder = home.pod(pod.job_uid, pod.uid)
                reader.add(PodLog(uid=pod.uid, label=f"{pod.role}-{pod.index}", folder=folder))

    add(_first(pods, query))
    if query.follow:
        return _then_close(reader, _follow(store, record.uid, query, reader, add))
    return _then_close(reader, reader.read_more(ended=True))


def _then_close(reader: LogReader, batches: Iterator[LogBatch]) -> Iterator[LogBatch]:
    with closing(reader):
        yield from batches


def _follow(
    store: Store,
    uid: str,
    query: LogQuery,
    reader: LogReader,
    add: Callable[[list[PodRecord]], None],
) -> Iterator[LogBatch]:
    position = dict(query.after)
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
            if record is not None:
                add(_later(_chosen(store.read, record, query), query))
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
    if query.after:
        return _later(pods, query)
    if query.follow and query.tail is None:
        return pods
    return [newest[0] for newest in reversed(latest_per_replica(pods).values())]


def _later(pods: list[PodRecord], query: LogQuery) -> list[PodRecord]:
    """On resuming: those that were being read, and all that came after the first of them."""
    if not query.after:
        return pods
    places = [number for number, pod in enumerate(pods) if pod.uid in query.after]
    return pods[places[0] :] if places else pods


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
