"""Events on a job, as `kubectl describe` shows them.

They go out behind the work, one after another: a job must never wait for its own announcements.
An event that is repeated within an hour is counted up instead of written anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from regatta.api.job import API_VERSION, KIND
from regatta.controller.plan import Event
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError
from regatta.engines.kubernetes.api.resources import EVENTS

COMPONENT = "paddlejob-controller"
LONGEST_MESSAGE = 1000
#: Beyond so many waiting ones, news is dropped and not memory filled.
BACKLOG = 10_000
REMEMBERED = 4096
REPEATS_FOR = timedelta(hours=1)

_log = logging.getLogger(__name__)


class Involved(msgspec.Struct, frozen=True):
    """The job that an event is about."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""


class _Written(msgspec.Struct):
    name: str
    count: int
    at: datetime


def _now() -> datetime:
    return datetime.now(UTC)


class EventRecorder:
    def __init__(
        self, client: KubeClient, *, instance: str = "", clock: Callable[[], datetime] = _now
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._backlog: asyncio.Queue[tuple[Involved, Event]] = asyncio.Queue(BACKLOG)
        self._written: OrderedDict[tuple[str, str, str], _Written] = OrderedDict()

    def record(self, job: Involved, event: Event) -> None:
        try:
            self._backlog.put_nowait((job, event))
        except asyncio.QueueFull:
            _log.warning("too many events wait to be written; one of %s is dropped", job.name)

    async def run(self) -> None:
        while True:
            job, event = await self._backlog.get()
            try:
                await self._write(job, event)
            except KubeError as trouble:
                _log.info("an event of %s/%s was not written: %s", job.namespace, job.name, trouble)
            finally:
                self._backlog.task_done()

    async def drain(self, seconds: float) -> None:
        """Let what waits go out, before the process ends."""
        try:
            async with asyncio.timeout(seconds):
                await self._backlog.join()
        except TimeoutError:
            _log.info("%d events were not written", self._backlog.qsize())

    async def _write(self, job: Involved, event: Event) -> None:
        now = self._clock()
        said = (job.uid, event.reason, event.message)
        known = self._written.get(said)
        if known is not None and now - known.at < REPEATS_FOR:
            known.count += 1
            known.at = now
            change = {"count": known.count, "lastTimestamp": _stamp(now)}
            try:
                await self._client.patch(EVENTS, known.name, change, namespace=job.namespace)
            except ApiError as refused:
                if not refused.not_found:
                    raise
                del self._written[said]
            else:
                return
        name = f"{job.name}.{_digest(*said, now.isoformat())}"
        await self._client.create(
            EVENTS, self._manifest(name, job, event, now), namespace=job.namespace
        )
        self._written[said] = _Written(name, 1, now)
        while len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _manifest(self, name: str, job: Involved, event: Event, now: datetime) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": job.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "namespace": job.namespace,
                "name": job.name,
                "uid": job.uid,
                "resourceVersion": job.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:LONGEST_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": _stamp(now),
            "lastTimestamp": _stamp(now),
            "count": 1,
        }


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
