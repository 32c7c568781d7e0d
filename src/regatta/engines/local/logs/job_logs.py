"""A job's logs as doors ask for them: whose lines, and until when to wait for more.

Blocks. The engine reads a little at a time from its pool of threads.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import dropwhile

from msgspec.structs import replace

from regatta.api.job import Job
from regatta.controller.observe import size_in_effect
from regatta.engines.base import LogBatch, LogQuery, Remark
from regatta.engines.local.home import Home
from regatta.engines.local.logs.reader import LogReader, PodLog, ran_before
from regatta.engines.local.store.database import Store
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord, PodRecord
from regatta.engines.local.views import latest_per_replica
from regatta.engines.logs.selection import check_query, is_chosen, listed


class JobLog:
    """The log of one job, whatever becomes of its name meanwhile. Close it."""

    def __init__(
        self, home: Home, store: Store, record: JobRecord, query: LogQuery, *, follow: bool
    ) -> None:
        """Raises RegattaError for what cannot be asked for."""
        self._home, self._store, self.uid = home, store, record.uid
        check_query(record.job, query, follow=follow)
        pods = _chosen(store.read, record.uid, query)
        if query.attempt is not None:
            pods = _in_attempt(pods, query.attempt)
        wanted, self.remark = _without_the_scaled_away(record.job, pods, query)
        run = store.read.run(record.uid)
        if run is not None and run.removed:
            self.remark = Remark(run.removed)
        if query.previous:
            wanted, query = _previous(wanted, query)
            if query.previous and not any(ran_before(_log_of(home, pod)) for pod in wanted):
                self.remark = self.remark or _no_run_before(record.job.name)
        first = _resumed(pods, query) if query.after else _first(wanted, query, follow=follow)
        self._query = query
        self._known = {pod.uid for pod in pods}
        #: Resumed by name, and by now the name is another job's.
        self.is_of_another = bool(query.after) and self._known.isdisjoint(query.after)
        self._reader = LogReader(query)
        for pod in first:
            self._reader.add(_log_of(home, pod))
        if follow:
            shown = {pod.uid for pod in first}
            for pod in _from(pods, shown):
                if pod.uid not in shown:
                    self._reader.pass_over(_log_of(home, pod))
        # Told from the start: whoever resumes before a line came must leave out the same ones.
        self._position = query.after | self._reader.positions()

    @property
    def position(self) -> dict[str, str]:
        """Where whoever leaves now goes on."""
        return dict(self._position)

    def look(self) -> bool:
        """Takes in the pods that came since. Whether nothing more will be written: asked before
        the lines are read, so that none is missed."""
        record = self._store.read.job(self.uid)
        if record is None:
            return True
        for pod in _chosen(self._store.read, record.uid, self._query):
            if pod.uid not in self._known:
                self._known.add(pod.uid)
                self._reader.add(_log_of(self._home, pod), late=True)
        return _is_over(self._store.read, record)

    def read(self, *, ended: bool) -> Iterator[LogBatch]:
        """What is there now. `ended`: also a last line without its end."""
        for batch in self._reader.read_more(ended=ended):
            self._position.update(batch.after)
            yield LogBatch(batch.lines, self.position)

    def close(self) -> None:
        self._reader.close()


def _log_of(home: Home, pod: PodRecord) -> PodLog:
    folder = home.pod(pod.job_uid, pod.uid)
    return PodLog(uid=pod.uid, label=f"{pod.role}-{pod.index}", folder=folder)


def _chosen(read: Queries, job_uid: str, query: LogQuery) -> list[PodRecord]:
    return [pod for pod in read.all_pods(job_uid) if is_chosen(query, pod.role, pod.index)]


def _without_the_scaled_away(
    job: Job, pods: list[PodRecord], query: LogQuery
) -> tuple[list[PodRecord], Remark | None]:
    """Replicas that a smaller size did away with are no part of the job any more: told, and shown
    to those who name one."""
    if query.after or query.index is not None or query.attempt is not None:
        return pods, None
    size = size_in_effect(job)
    gone = {p.uid: f"{p.role}-{p.index}" for p in pods if p.over and p.index >= size[p.role]}
    if not gone:
        return pods, None
    names = sorted(set(gone.values()))
    kept = [pod for pod in pods if pod.uid not in gone]
    return kept, Remark(
        f"left out, since a smaller size did away with them: {listed(names)}; "
        "`regatta logs` shows one of them with `--role` and `--index`"
    )


def _first(pods: list[PodRecord], query: LogQuery, *, follow: bool) -> list[PodRecord]:
    """Whole stories for followers; otherwise the latest pod of each replica."""
    if follow and query.tail is None:
        return pods
    return [newest[0] for newest in reversed(latest_per_replica(pods).values())]


def _resumed(pods: list[PodRecord], query: LogQuery) -> list[PodRecord]:
    """Those that were being read, and all that came after the first of them."""
    return _from(pods, query.after) or pods


def _from(pods: list[PodRecord], uids: Container[str]) -> list[PodRecord]:
    """From the first of these on."""
    return list(dropwhile(lambda pod: pod.uid not in uids, pods))


def _in_attempt(pods: list[PodRecord], attempt: int) -> list[PodRecord]:
    """Each replica's pod of that try; where it did not start again for it, the one that ran on."""
    present = latest_per_replica([pod for pod in pods if pod.attempt <= attempt])
    uids = {newest[0].uid for newest in present.values()}
    return [pod for pod in pods if pod.uid in uids]


def _previous(pods: list[PodRecord], query: LogQuery) -> tuple[list[PodRecord], LogQuery]:
    """The pod before the present one; where a replica never had another, its run before."""
    replicas = latest_per_replica(pods)
    if any(len(history) > 1 for history in replicas.values()):
        before = [history[1] for history in replicas.values() if len(history) > 1]
        return before, replace(query, previous=False)
    return pods, query


def _no_run_before(name: str) -> Remark:
    return Remark(
        "no replica has run before, in this run of the job; "
        f"`regatta history {name}` lists its earlier runs"
    )


def _is_over(read: Queries, record: JobRecord) -> bool:
    """Final, and nothing of it is still ending. Servers left running on purpose do not count."""
    if not record.job.finished:
        return False
    return all(pod.over or not (pod.stopping or pod.deleting) for pod in read.all_pods(record.uid))
