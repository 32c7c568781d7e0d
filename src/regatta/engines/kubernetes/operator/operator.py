"""The operator: caches, queue, leader election and the small listeners, put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.api.client import ClientSettings, KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError
from regatta.engines.kubernetes.api.resources import SERVICES
from regatta.engines.kubernetes.cache.informer import InformerSettings
from regatta.engines.kubernetes.operator.apply import Applier
from regatta.engines.kubernetes.operator.caches import Caches
from regatta.engines.kubernetes.operator.event_recorder import EventRecorder
from regatta.engines.kubernetes.operator.health import (
    PROMETHEUS,
    Address,
    Listener,
    Page,
    Pages,
    said,
)
from regatta.engines.kubernetes.operator.job_reader import JobReader
from regatta.engines.kubernetes.operator.leader import LeaderElector, LeaderSettings
from regatta.engines.kubernetes.operator.metrics import Metrics
from regatta.engines.kubernetes.operator.reconciler import Reconciler, SteadyClock
from regatta.engines.kubernetes.operator.workqueue import QueueClosed, QueueSettings, WorkQueue

#: The former operator's: so that the two never work side by side.
LEASE = "b2a304f2.paddlepaddle.org"

#: A look that has not ended by then never will: the process is not healthy.
STUCK = 300.0
#: A new leader has looked at every job by then, and has time for what the next one will need.
SETTLED = 1.0

_log = logging.getLogger(__name__)


class OperatorSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: The one namespace to look after; all when empty.
    namespace: str = ""
    leader_elect: bool = False
    #: Where the Lease is; the operator's own namespace when empty.
    lease_namespace: str = ""
    metrics_address: Address | None = None
    health_address: Address | None = None
    #: The gang scheduler of jobs that name none: volcano, native or none.
    scheduling: str = ""
    init_image: str = ""
    concurrency: int = 16
    client: ClientSettings = ClientSettings()
    informer: InformerSettings = InformerSettings()
    leader: LeaderSettings = LeaderSettings()
    queue: QueueSettings = QueueSettings()


class _ServiceSpec(msgspec.Struct):
    families: tuple[str, ...] = msgspec.field(default=(), name="ipFamilies")


class _Service(msgspec.Struct):
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


class Operator:
    def __init__(self, access: ClusterAccess, settings: OperatorSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"
        self._access = access
        self._clock = SteadyClock()
        self._caches: Caches | None = None
        #: When each look that is under way began.
        self._begun: dict[str, float] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set. Raises LeadershipLost when another operator may lead."""
        settings = self.settings
        async with (
            KubeClient(self._access, settings.client, observer=self.metrics.called) as client,
            self._listening(),
        ):
            caches = self._caches = Caches(
                client,
                namespace=settings.namespace,
                scheduling=settings.scheduling,
                settings=settings.informer,
            )
            work = {
                asyncio.create_task(caches.run()),
                asyncio.create_task(self._serve(client, caches)),
                asyncio.create_task(stop.wait()),
            }
            try:
                done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
                for ended in done:
                    ended.result()
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)

    async def _serve(self, client: KubeClient, caches: Caches) -> None:
        await caches.jobs.synced.wait()
        reader, names_only = JobReader(), await _is_ipv6(client)
        await reader.read_ahead(list(caches.jobs.store))  # the list of pods takes longer
        await caches.until_synced()
        _log.info("watching %d jobs", len(caches.jobs.store))
        await self._elected(client, lambda: self._lead(client, caches, reader, names_only))

    async def _elected(self, client: KubeClient, lead: Callable[[], Awaitable[None]]) -> None:
        settings = self.settings
        if not settings.leader_elect:
            await lead()
            return
        elector = LeaderElector(
            client,
            namespace=settings.lease_namespace or self._access.namespace,
            name=LEASE,
            identity=self.identity,
            settings=settings.leader,
        )
        await elector.run(lead)

    async def _lead(
        self, client: KubeClient, caches: Caches, reader: JobReader, names_only: bool
    ) -> None:
        settings, clock = self.settings, time.monotonic
        events = EventRecorder(client, instance=self.identity)
        applier = Applier(
            client, caches, events, self.metrics, clock=clock, init_image=settings.init_image
        )
        reconciler = Reconciler(
            *(client, caches, reader, applier),
            names_only=names_only,
            clock=clock,
            now=self._clock.now,
        )
        queue: WorkQueue[str] = WorkQueue(settings.queue, observer=self.metrics)

        def changed(key: str) -> None:
            queue.add_after(key, reconciler.rest(key))

        caches.on_change(changed)
        for document in caches.jobs.store:
            queue.add(document.metadata.key)
        self.metrics.leads(True)
        writing = asyncio.create_task(events.run())
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(settings.concurrency):
                    workers.create_task(self._work(queue, reconciler))
                workers.create_task(_make_ready())
        finally:
            caches.on_change(lambda key: None)
            self.metrics.leads(False)
            queue.close()
            with contextlib.suppress(asyncio.CancelledError):
                await events.drain(1.0)
            writing.cancel()

    async def _work(self, queue: WorkQueue[str], reconciler: Reconciler) -> None:
        while True:
            try:
                key = await queue.get()
            except QueueClosed:
                return
            self._begun[key] = time.monotonic()
            try:
                again = await reconciler.look_at(key)
            except ApiError as refused:
                pause = queue.retry(key)
                level = logging.DEBUG if refused.conflict else logging.WARNING
                _log.log(level, "%s; again in %.2f s", refused, pause, extra={"job": key})
            except KubeError as trouble:
                pause = queue.retry(key)
                _log.warning("%s; again in %.2f s", trouble, pause, extra={"job": key})
            except Exception:  # noqa: BLE001 - everybody else's jobs must go on
                pause = queue.retry(key)
                _log.exception("a look failed; again in %.2f s", pause, extra={"job": key})
            else:
                queue.forget(key)
                if again is not None:
                    queue.add_after(key, max(again, 0.001))
            finally:
                del self._begun[key]
                queue.done(key)

    # Probes

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        pages: dict[Address, Pages] = {}
        settings = self.settings
        if settings.metrics_address is not None:
            text = self.metrics.text
            pages[settings.metrics_address] = {"/metrics": lambda: (200, PROMETHEUS, text())}
        if settings.health_address is not None:
            probes = {"/healthz": self._healthy, "/readyz": self._ready}
            before = pages.get(settings.health_address, {})
            pages[settings.health_address] = {**before, **probes}
        async with contextlib.AsyncExitStack() as stack:
            for address, served in pages.items():
                await stack.enter_async_context(Listener(address, served))
            yield

    def _healthy(self) -> Page:
        oldest = min(self._begun.values(), default=None)
        stuck = oldest is not None and time.monotonic() - oldest > STUCK
        return said(not stuck, f"a look at a job has lasted for more than {STUCK:.0f} s")

    def _ready(self) -> Page:
        synced = self._caches is not None and self._caches.synced
        return said(synced, "the caches are not filled yet")


async def _make_ready() -> None:
    await asyncio.sleep(SETTLED)
    await asyncio.to_thread(JobReader.make_ready)


async def _is_ipv6(client: KubeClient) -> bool:
    """Whether pods' first addresses are IPv6, as the cluster's own Service shows it."""
    try:
        answer = await client.get(SERVICES, "kubernetes", namespace="default")
    except KubeError:
        # Not allowed to look, as an operator of one namespace is. Its own pod was told.
        return ":" in os.environ.get("KUBERNETES_SERVICE_HOST", "")
    return answer.into(_Service).spec.families[:1] == ("IPv6",)
