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
import contextlib
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from regatta.api.errors import NotPossible
from regatta.api.job import Job
from regatta.controller import labels
from regatta.engines.base import Gone, LogLine, LogQuery, Remark
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.errors import ApiError, Unreachable
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS, PODS
from regatta.engines.kubernetes.cache.informer import Informer
from regatta.engines.kubernetes.engine.log_lines import Place, Unreadable, Wanted, read_lines
from regatta.engines.kubernetes.engine.logs import (
    Update,
    check_role,
    has_started,
    is_chosen,
    listed,
    lost_logs,
    replica_of,
)
from regatta.engines.kubernetes.engine.pod_views import list_pods, main_first, selector_of
from regatta.engines.kubernetes.engine.reading import read_job
from regatta.engines.kubernetes.engine.watch import SETTINGS, Troubles, running
from regatta.engines.kubernetes.objects import podstate
from regatta.engines.kubernetes.objects.documents import JobDocument

#: Each needs a connection, and a process may have about a thousand.
MOST_LOGS = 500
#: Lines that come within this are told together, in the order of time.
SETTLE_SECONDS = 0.05
BATCH = 1000
#: A pod that runs on after the job's end is left when it has been silent for this long.
QUIET_SECONDS = 0.5
#: One that should end and does not (its node is lost) is left after this.
DRAIN_SECONDS = 45.0
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 5.0

Seen = Callable[[Job, models.Pod], None]


class Follower:
    def __init__(
        self, client: KubeClient, job: Job, query: LogQuery, *, status: bool, seen: Seen
    ) -> None:
        check_role(job, query)
        self._client = client
        self._job = job
        self._query = query
        self._wanted = Wanted(query)
        self._status = status
        self._seen = seen
        self._gone = False
        self._final_at: float | None = None
        self._lines: asyncio.Queue[LogLine] = asyncio.Queue(maxsize=10_000)
        self._news: list[Update] = []
        self._readers: dict[str, _Reader] = {}
        self._begun = False
        self._refusal: NotPossible | None = None

    async def run(self) -> AsyncGenerator[Update, None]:
        job = self._job
        first = await list_pods(self._client, job)
        jobs = Informer(
            self._client,
            PADDLE_JOBS,
            JobDocument,
            namespace=job.namespace,
            field_selector=f"metadata.name={job.name}",
            settings=SETTINGS,
        )
        pods = Informer(
            self._client,
            PODS,
            models.Pod,
            namespace=job.namespace,
            label_selector=_selector(job, first),
            settings=SETTINGS,
        )
        jobs.on_change(self._job_changed)
        pods.on_change(self._pod_changed)
        if (remark := lost_logs(job, [replica_of(job, pod) for pod in first], self._query)) and (
            job.finished
        ):
            yield remark
        for pod in first:
            self._pod_changed(None, pod)
        self._begun = True
        troubles = Troubles(jobs, pods)
        async with running(jobs, pods):
            try:
                async with aclosing(self._updates(jobs, pods, troubles)) as updates:
                    async for update in updates:
                        yield update
            finally:
                await self._leave()

    async def _updates(
        self, jobs: Informer[JobDocument], pods: Informer[models.Pod], troubles: Troubles
    ) -> AsyncGenerator[Update, None]:
        while True:
            # What ends is looked at before what is read: nothing is written after the end.
            synced = jobs.synced.is_set() and pods.synced.is_set()
            over = synced and self._is_over()
            if (refusal := self._refused()) is not None:
                raise refusal
            if lines := await self._arrived():
                yield Lines(lines)
            while self._news:
                yield self._news.pop(0)
            if over and not lines and self._lines.empty():
                break
            if (lost := troubles.news()) is not None:
                yield lost
        if missed := [r.replica for r in self._readers.values() if r.missed]:
            yield Remark(f"ended and removed before its log could be read: {listed(missed)}")
        if self._gone:
            yield Gone(self._job.namespace, self._job.name)
        elif self._status:
            yield self._job

    def _refused(self) -> Exception | None:
        of_readers = (reader.refusal for reader in self._readers.values())
        return self._refusal or next(filter(None, of_readers), None)

    async def _arrived(self) -> tuple[LogLine, ...]:
        try:
            async with asyncio.timeout(SETTLE_SECONDS * 4):
                lines = [await self._lines.get()]
        except TimeoutError:
            return ()
        if self._lines.qsize() < BATCH:
            await asyncio.sleep(SETTLE_SECONDS)
        while len(lines) < BATCH and not self._lines.empty():
            lines.append(self._lines.get_nowait())
        lines.sort(key=lambda line: line.at)
        return tuple(lines)

    # What the cluster tells

    def _job_changed(self, old: JobDocument | None, new: JobDocument | None) -> None:
        if new is None or new.metadata.uid != self._job.uid:
            self._gone = True
            return
        self._job = read_job(new)
        if self._status:
            self._news.append(self._job)

    def _pod_changed(self, old: models.Pod | None, new: models.Pod | None) -> None:
        pod = new or old
        assert pod is not None
        if pod.metadata.controller_uid != self._job.uid:
            return
        pod = main_first(self._job, pod)
        self._seen(self._job, pod)
        role, index = replica_of(self._job, pod)
        if not is_chosen(self._query, role, index):
            return
        reader = self._readers.get(pod.metadata.uid)
        if reader is None:
            if len(self._readers) >= MOST_LOGS and not self._make_room():
                return
            reader = _Reader(
                self._client,
                f"{role}-{index}",
                pod,
                self._wanted,
                self._lines,
                # A pod that comes later is new from its first line on.
                tail=None if self._begun else self._query.tail,
            )
            self._readers[pod.metadata.uid] = reader
        reader.pod_is(pod, there=new is not None)

    def _make_room(self) -> bool:
        for uid, reader in list(self._readers.items()):
            if reader.done:
                del self._readers[uid]
                return True
        self._refusal = NotPossible(
            f"{self._job.name} has more than {MOST_LOGS} replicas, too many to follow at once; "
            "choose some with --role or --index"
        )
        return False

    def _is_over(self) -> bool:
        if not (self._job.finished or self._gone):
            return False
        now = time.monotonic()
        if self._final_at is None:
            self._final_at = now
        since = now - self._final_at
        if since > DRAIN_SECONDS:
            return True
        if since < QUIET_SECONDS:
            return all(reader.done for reader in self._readers.values())
        return all(r.done or (r.runs_on and r.is_quiet(now)) for r in self._readers.values())

    async def _leave(self) -> None:
        for reader in self._readers.values():
            reader.close()
        tasks = [reader.task for reader in self._readers.values()]
        await asyncio.gather(*tasks, return_exceptions=True)


def _selector(job: Job, present: list[models.Pod]) -> str:
    """The former operator's pods have only its own labels."""
    ours = all(labels.JOB in pod.metadata.labels for pod in present)
    return selector_of(job) if ours else labels.UPSTREAM_ROLE


class _Reader:
    """One pod's log, from its first line to its last."""

    def __init__(
        self,
        client: KubeClient,
        replica: str,
        pod: models.Pod,
        wanted: Wanted,
        lines: asyncio.Queue[LogLine],
        *,
        tail: int | None,
    ) -> None:
        self.replica = replica
        self._client = client
        self._pod = pod
        self._there = True
        self._wanted = wanted
        self._lines = lines
        self._tail = tail
        self._place = Place()
        #: A line of it was read, so that its tail is not asked for again.
        self._opened = False
        self._had = False
        self._runs = 0
        #: Why it will never be readable: a right is missing.
        self.refusal: ApiError | None = None
        self._changed = asyncio.Event()
        self._last_line = time.monotonic()
        self.task = asyncio.create_task(self._read())

    def pod_is(self, pod: models.Pod, *, there: bool) -> None:
        self._pod, self._there = pod, there
        self._changed.set()

    def close(self) -> None:
        self.task.cancel()

    @property
    def done(self) -> bool:
        return self.task.done()

    @property
    def missed(self) -> bool:
        """It ran, and its log could not be had."""
        return self.done and not self._had and has_started(self._pod)

    @property
    def runs_on(self) -> bool:
        """Not over, and not asked to end either."""
        going = self._pod.metadata.deletion_timestamp is not None or podstate.is_stopped(self._pod)
        return not (going or self._ended)

    def is_quiet(self, now: float) -> bool:
        return now - self._last_line > QUIET_SECONDS

    @property
    def _ended(self) -> bool:
        return not self._there or podstate.phase_of(self._pod).over

    async def _read(self) -> None:
        pause = RETRY_SECONDS / 2
        while True:
            self._changed.clear()
            ended = self._ended
            if has_started(self._pod):
                complete = await self._read_runs()
                if self.refusal is not None:
                    return
                if complete and ended:
                    return
            if not self._there or (ended and not has_started(self._pod)):
                return
            pause = min(pause * 2, LONGEST_RETRY_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if has_started(self._pod) else None):
                    await self._changed.wait()
                    pause = RETRY_SECONDS / 2

    async def _read_runs(self) -> bool:
        """Up to where the log ends for now; False where that cannot be known."""
        main = podstate.main_container(self._pod)
        restarts = main.restart_count if main else 0
        try:
            if restarts > self._runs and self._opened:
                await self._read_one(previous=True)  # its end, which came while we looked away
            self._runs = restarts
            await self._read_one(previous=False)
            self._had = True
        except ApiError as refused:
            if refused.forbidden:
                self.refusal = refused
            self._there = self._there and not refused.not_found
            # 400: the container is not there, yet or any more.
            return refused.not_found or refused.status == 400
        except Unreadable:
            return self._ended
        except Unreachable:
            return False
        return True

    async def _read_one(self, *, previous: bool) -> None:
        self._place.resume()
        async with self._client.logs(
            self._pod.metadata.name,
            namespace=self._pod.metadata.namespace,
            container=self._pod.spec.containers[0].name,
            follow=not previous,
            previous=previous,
            timestamps=True,
            tail_lines=None if self._opened else self._tail,
            since_time=self._place.since or self._wanted.since,
        ) as parts:
            async for line in read_lines(self.replica, parts):
                self._opened = True
                if self._place.is_news(line) and line in self._wanted:
                    self._last_line = time.monotonic()
                    await self._lines.put(line)
