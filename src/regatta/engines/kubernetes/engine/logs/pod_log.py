"""One pod's log while it is followed: from when its container starts until it has ended and is
drained, through broken connections and restarts in place, each line once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import aclosing

from regatta.api.errors import RegattaError
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError, Unreachable
from regatta.engines.kubernetes.api.refusal_words import plain_words
from regatta.engines.kubernetes.engine.logs.job_logs import (
    end_of_last_run,
    has_started,
    may_be_a_later_run,
    one_run,
    restarts_of,
)
from regatta.engines.kubernetes.engine.logs.log_lines import Unreadable, read_lines
from regatta.engines.kubernetes.engine.logs.log_place import ONLY_THE_TAIL, Place, Position, Read
from regatta.engines.kubernetes.engine.logs.sieve import Sieve
from regatta.engines.kubernetes.objects import podstate

#: A pod that runs on after the job's end is left when it has been silent for this long.
QUIET_SECONDS = 0.5
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 5.0

Arrived = asyncio.Queue[list[Read]]


class PodLog:
    def __init__(
        self,
        client: KubeClient,
        replica: str,
        pod: models.Pod,
        sieve: Sieve,
        arrived: Arrived,
        *,
        begin: str,
        tail: int | None,
    ) -> None:
        """`begin` is the text of a position, `ONLY_THE_TAIL`, or nothing: from the first line."""
        self.replica = replica
        self._client = client
        self._pod = pod
        self._there = True
        self._sieve = sieve
        self._arrived = arrived
        #: Lines from the end, to begin with; None once they are told.
        self._tail: int | None = None
        if begin == ONLY_THE_TAIL:
            self._place = Place(pod.metadata.uid, Position(restarts_of(pod)))
            self._tail = tail
        else:
            position = Position.read(begin) if begin else Position()
            self._place = Place(pod.metadata.uid, position)
        self._had = False
        #: Why it cannot be read for now, in the cluster's words.
        self.trouble = ""
        #: Why it will never be readable: a right is missing, or the pattern takes too long.
        self.refusal: KubeError | RegattaError | None = None
        self._changed = asyncio.Event()
        self._last_line = time.monotonic()
        self.task = asyncio.create_task(self._read())

    def pod_is(self, pod: models.Pod, *, there: bool) -> None:
        self._pod, self._there = pod, there
        self._changed.set()

    def close(self) -> None:
        self.task.cancel()

    @property
    def there(self) -> bool:
        return self._there

    @property
    def done(self) -> bool:
        return self.task.done()

    @property
    def missed(self) -> bool:
        """It ran and is over, and its log could not be had."""
        return self.done and not self._had and not self.runs_on and has_started(self._pod)

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
        restarts = restarts_of(self._pod)
        try:
            if self._tail is not None:
                await self._read_tail(self._tail)
                self._tail = None
            if restarts > self._place.run:
                await self._read_end_of_last_run()  # which came while we looked away
                self._place.next_run(restarts)
            await self._read_along()
            self._had = True
        except ApiError as refused:
            if refused.forbidden:
                self.refusal = refused
            # A node that keeps no logs says 404 too, about the log instead of the pod.
            gone = refused.not_found and refused.details.kind == "pods"
            if not self._had and refused.status != 400 and not gone:
                self.trouble = plain_words(refused)
            self._there = self._there and not refused.not_found
            # 400: the container is not there, yet or any more.
            return refused.not_found or refused.status == 400
        except RegattaError as refused:
            self.refusal = refused
        except Unreadable as words:
            self.trouble = "" if self._had else str(words)
            return self._ended
        except Unreachable:
            return False
        return True

    async def _read_tail(self, tail: int) -> None:
        last: list[Read] = []
        async with aclosing(
            one_run(self._client, self.replica, self._pod, self._place, self._sieve, tail=tail)
        ) as run:
            async for reads in run:
                last += reads
        await self._tell(last)

    async def _read_end_of_last_run(self) -> None:
        async with aclosing(
            end_of_last_run(self._client, self.replica, self._pod, self._place, self._sieve)
        ) as run:
            async for reads in run:
                await self._tell(reads)

    async def _read_along(self) -> None:
        look_back = may_be_a_later_run(self._pod, self._place)
        self._place.reopened()
        async with self._client.logs(
            self._pod.metadata.name,
            namespace=self._pod.metadata.namespace,
            container=self._pod.spec.containers[0].name,
            follow=True,
            timestamps=True,
            since_time=self._place.since or self._sieve.since,
        ) as parts:
            async for lines in read_lines(self.replica, parts):
                if look_back:
                    # Not before the log is open: what is the last run by then is so for good.
                    look_back = False
                    await self._read_end_of_last_run()
                    self._place.reopened()
                await self._tell(self._place.news(lines))

    async def _tell(self, reads: list[Read]) -> None:
        if reads:
            self._last_line = time.monotonic()
            await self._arrived.put(reads)
