"""A job's logs as they are written, from all of its pods, until it is over.

What it promises:
1. A pod is read from when its container starts until it has ended and its log is drained, through
   broken connections and restarts in place, each line once.
2. Lines of one pod come in order; those that arrive together are put in the order of time.
3. It ends when the job is final or gone and every pod that is ending has been drained. Servers
   that are left running on purpose do not hold it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack

from regatta.api.errors import NotPossible
from regatta.api.job import Job
from regatta.engines.base import Gone, JobUpdate, LogBatch, LogQuery, Remark
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.engine.jobs import read_job
from regatta.engines.kubernetes.engine.logs.job_logs import (
    has_started,
    lost_logs,
    replica_of,
    restarts_of,
    unreadable,
)
from regatta.engines.kubernetes.engine.logs.log_place import (
    ONLY_THE_TAIL,
    Position,
    Read,
    in_order_of_time,
    length_of,
)
from regatta.engines.kubernetes.engine.logs.pod_log import QUIET_SECONDS, Arrived, PodLog
from regatta.engines.kubernetes.engine.logs.sieve import sieve_for
from regatta.engines.kubernetes.engine.pod_views import main_first
from regatta.engines.kubernetes.engine.subscriptions import Subscriptions, Troubles
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.logs.selection import check_query, is_chosen, is_whole, listed

#: Each needs a connection, and a process may have about a thousand.
MOST_LOGS = 500
#: Lines that come within this are told together, in the order of time.
SETTLE_SECONDS = 0.05
#: What the pods have read and nobody has taken yet; more waits in the network.
MOST_ARRIVED = 200
#: States of the job that nobody has taken yet; of more, the oldest are passed over.
MOST_NEWS = 100
#: They travel in a header.
MOST_PLACES = MOST_LOGS + 100
#: A pod that should end and does not (its node is lost) is left after this.
DRAIN_SECONDS = 45.0

#: Is told the uid of a job, and each pod of it.
Seen = Callable[[str, models.Pod], None]


class Follower:
    def __init__(
        self,
        client: KubeClient,
        subscriptions: Subscriptions,
        job: Job,
        query: LogQuery,
        *,
        status: bool,
        seen: Seen,
        version: str = "",
    ) -> None:
        """`version` is the resource version that the job was read at."""
        check_query(job, query, follow=True)
        for text in query.after.values():
            if text != ONLY_THE_TAIL:
                Position.read(text)  # refused here, before anything is read
        self._client = client
        self._subscriptions = subscriptions
        self._job = job
        self._query = query
        self._status = status
        self._seen = seen
        self._version = version
        self._gone = True  # until it is seen
        self._final_at: float | None = None
        self._arrived: Arrived = asyncio.Queue(maxsize=MOST_ARRIVED)
        self._news: list[Job] = []
        self._logs: dict[str, PodLog] = {}
        self._present: dict[str, tuple[str, int]] = {}
        #: How far each pod's log was told.
        self._after = dict([*query.after.items()][-MOST_PLACES:])
        #: Pods that are no more, of which a place may still be kept.
        self._left: set[str] = set()
        #: Replicas whose log cannot be read, each told once.
        self._unreadable: set[str] = set()
        self._begun = False
        self._refusal: NotPossible | None = None

    async def run(self) -> AsyncGenerator[JobUpdate, None]:
        async with AsyncExitStack() as stack:
            self._sieve = stack.enter_context(sieve_for(self._query))
            stack.push_async_callback(self._leave)
            jobs = await stack.enter_async_context(
                self._subscriptions.jobs(
                    self._job.namespace, self._job.name, self._job_changed, seen=self._version
                )
            )
            pods = await stack.enter_async_context(
                self._subscriptions.pods(self._job, self._pod_changed)
            )
            troubles = Troubles(jobs, pods)
            self._begun = True
            if self._job.finished and not self._query.after:
                remark = lost_logs(self._job, self._present.values(), self._query)
                if remark is not None:
                    yield remark
            while True:
                # What ends is looked at before what is read: nothing is written after the end.
                over = self._is_over() and not troubles.why
                if (refusal := self._refused()) is not None:
                    raise refusal
                if reads := await self._take():
                    batch = await self._batch(reads)
                    if batch.lines:
                        yield batch
                for log in self._logs.values():
                    if log.trouble and log.replica not in self._unreadable:
                        self._unreadable.add(log.replica)
                        yield unreadable(log.replica, log.trouble)
                while self._news:
                    yield self._news.pop(0)
                if over and not reads and self._arrived.empty():
                    break
                if (lost := troubles.news()) is not None:
                    yield lost
        missed = [log.replica for log in self._logs.values() if log.missed]
        if missed := [replica for replica in missed if replica not in self._unreadable]:
            yield Remark(f"ended and removed before its log could be read: {listed(missed)}")
        if self._gone:
            yield Gone(self._job.namespace, self._job.name)
        elif self._status:
            yield self._job

    def _refused(self) -> Exception | None:
        of_logs = (log.refusal for log in self._logs.values())
        return self._refusal or next(filter(None, of_logs), None)

    async def _take(self) -> list[Read]:
        try:
            async with asyncio.timeout(SETTLE_SECONDS * 4):
                reads = list(await self._arrived.get())
        except TimeoutError:
            return []
        if not is_whole(len(reads), length_of(reads)):
            await asyncio.sleep(SETTLE_SECONDS)
        while not is_whole(len(reads), length_of(reads)) and not self._arrived.empty():
            reads += self._arrived.get_nowait()
        return reads

    async def _batch(self, reads: list[Read]) -> LogBatch:
        chosen = in_order_of_time(await self._sieve.choose(reads))
        self._after |= {uid: str(place) for uid, place in _places(reads).items()}
        if self._arrived.empty():
            self._forget_pods_that_are_gone()
        return LogBatch(tuple(read.line for read in chosen), dict(self._after))

    def _forget_pods_that_are_gone(self) -> None:
        """Nobody can read them again, so no place in them is worth keeping."""
        for uid in list(self._left):
            log = self._logs.get(uid)
            if log is None or log.done:
                self._left.discard(uid)
                self._after.pop(uid, None)

    # What the cluster tells

    def _job_changed(self, old: JobDocument | None, new: JobDocument | None) -> None:
        if new is None or new.metadata.uid != self._job.uid:
            self._gone = True
            return
        self._gone = False
        self._job = read_job(new)
        if self._status:
            self._news = [*self._news[-MOST_NEWS:], self._job]

    def _pod_changed(self, old: models.Pod | None, new: models.Pod | None) -> None:
        pod = new or old
        assert pod is not None
        pod = main_first(self._job, pod)
        self._seen(self._job.uid, pod)
        role, index = replica_of(self._job, pod)
        uid = pod.metadata.uid
        if new is None:
            self._present.pop(uid, None)
            self._left.add(uid)
        else:
            self._present[uid] = role, index
        if not is_chosen(self._query, role, index):
            return
        log = self._logs.get(uid)
        if log is None:
            if uid in self._after and new is None:
                return  # told, and made room for another
            if len(self._logs) >= MOST_LOGS and not self._make_room():
                return
            log = self._logs[uid] = self._open(pod, f"{role}-{index}")
        log.pod_is(pod, there=new is not None)

    def _open(self, pod: models.Pod, replica: str) -> PodLog:
        uid = pod.metadata.uid
        if not self._begun and not self._query.after and has_started(pod):
            # One that comes later is new from its first line on.
            self._after[uid] = self._begin(pod)
        return PodLog(
            self._client,
            replica,
            pod,
            self._sieve,
            self._arrived,
            begin=self._after.get(uid, ""),
            tail=self._query.tail,
        )

    def _begin(self, pod: models.Pod) -> str:
        if self._query.tail is not None:
            return ONLY_THE_TAIL
        return str(Position(restarts_of(pod)))

    def _make_room(self) -> bool:
        for uid, log in list(self._logs.items()):
            if log.done:
                del self._logs[uid]
                return True
        self._refusal = NotPossible(
            f"{self._job.name} has more than {MOST_LOGS} replicas, too many to follow at once; "
            "choose some with --role or --index"
        )
        return False

    def _is_over(self) -> bool:
        if not (self._job.finished or self._gone):
            self._final_at = None
            return False
        now = time.monotonic()
        if self._final_at is None:
            self._final_at = now
        since = now - self._final_at
        if since > DRAIN_SECONDS:
            return True
        if since < QUIET_SECONDS:
            return all(log.done for log in self._logs.values())
        return all(log.done or (log.runs_on and log.is_quiet(now)) for log in self._logs.values())

    async def _leave(self) -> None:
        for log in self._logs.values():
            log.close()
        await asyncio.gather(*(log.task for log in self._logs.values()), return_exceptions=True)


def _places(reads: list[Read]) -> dict[str, Position]:
    return {read.uid: read.position for read in reads}
