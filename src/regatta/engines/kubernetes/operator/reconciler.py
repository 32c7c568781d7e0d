"""One look at one job: read it, see what there is, ask the brain, carry its plan out.

Decides nothing about jobs. A pass that fails concerns that job alone: everybody else's go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from regatta.api.job import Job
from regatta.controller.plan import Instant, Plan
from regatta.controller.policies.setting_up import config_maps_in_doubt
from regatta.controller.reconcile import reconcile
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from regatta.engines.kubernetes.objects import takeover
from regatta.engines.kubernetes.objects.children import Found, children
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.kubernetes.objects.podstate import is_held
from regatta.engines.kubernetes.operator.apply import Applier
from regatta.engines.kubernetes.operator.caches import Caches
from regatta.engines.kubernetes.operator.job_memory import (
    CONFIG_MAP_SECONDS,
    STRANGER_SECONDS,
    JobMemory,
    Stranger,
)
from regatta.engines.kubernetes.operator.job_reader import JobReader, as_the_brain_left_it

_log = logging.getLogger(__name__)

#: A look that took a millisecond is not repeated for four: a job of a thousand pods has thousands
#: of changes a second, and one look answers many of them.
REST = 4.0
#: Nor ever sooner than this: pods that start together are then one look and not ten.
SHORTEST_REST = 0.02


def wall_clock() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    """What a person who sets a node's clock does not change.

    Deadlines are counted by `awake`, which begins at the wall's time, so that another operator can
    go on with what this one wrote, and then goes as steadily as the machine does. A clock that is
    set while no operator runs is taken for time that has passed: nobody was there to know better.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._began = wall().timestamp() - monotonic()

    def now(self) -> Instant:
        return Instant(self._wall(), self._began + self._monotonic())


class Reconciler:
    def __init__(
        self,
        client: KubeClient,
        caches: Caches,
        reader: JobReader,
        applier: Applier,
        *,
        names_only: bool = False,
        clock: Callable[[], float],
        now: Callable[[], Instant],
    ) -> None:
        self._client = client
        self._caches = caches
        self._reader = reader
        self._applier = applier
        self._clock = clock
        self._now = now
        self._names_only = names_only
        self._memories: dict[str, JobMemory] = {}

    def rest(self, key: str) -> float:
        """Seconds for which this job has been looked at enough."""
        memory = self._memories.get(key)
        if memory is None:
            return 0.0
        rest = max(REST * memory.took, SHORTEST_REST)
        return memory.looked_at + rest - self._clock()

    async def look_at(self, key: str) -> float | None:
        """Seconds after which to look again, if not only when something changes."""
        document = self._caches.jobs.store.get(key)
        if document is None:
            self._forget(key)
            return None
        memory = self._memory(key, document)
        began = self._clock()
        unseen = memory.expectations.unmet(began)
        if unseen is not None:
            return unseen
        if await self._let_go(document, memory):
            return None
        reading = self._reader.read(document)
        stored = reading.job.status
        job = replace(reading.job, status=as_the_brain_left_it(stored))
        found = await self._find(job, memory)
        now = self._now()
        found.leaving = memory.leaving.of(_leaving(found), now)
        found.held = memory.held.of((p.metadata.uid for p in found.pods if is_held(p)), now)
        seen = children(job, found)
        if await self._look_up(job, memory, config_maps_in_doubt(job, seen, now)):
            return 0.0  # the caches have moved on meanwhile
        plan = reconcile(job, seen, now, reading.problem)
        memory.took, memory.looked_at = self._clock() - began, self._clock()
        if plan == _NOTHING and stored is job.status:
            return None
        told = job.status.revision in seen.environments
        return await self._applier.apply(document, job, stored, plan, memory, now, told=told)

    def _memory(self, key: str, document: JobDocument) -> JobMemory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != document.metadata.uid:
            if memory is not None:
                self._reader.forget(memory.uid)
            memory = self._memories[key] = JobMemory(document.metadata.uid)
            memory.status_written_at = self._clock()
        return memory

    def _forget(self, key: str) -> None:
        memory = self._memories.pop(key, None)
        if memory is not None:
            self._reader.forget(memory.uid)

    # What the caches do not show

    async def _find(self, job: Job, memory: JobMemory) -> Found:
        found = self._caches.find(job)
        if memory.strangers:
            await self._look_at_strangers(job, memory)
            found = self._caches.find(job)  # the caches have moved on meanwhile
            others = [stranger.metadata for stranger in memory.strangers.values()]
            found.others = [*found.others, *others]
        if any(takeover.is_former(pod) for pod in found.pods):
            if memory.former_environment is None:
                memory.former_environment = await self._has_former_environment(job)
                return await self._find(job, memory)
            found.former_environment = memory.former_environment
        found.names_only = self._names_only
        known = memory.config_maps.items()
        found.missing = frozenset(name for name, (exists, _) in known if not exists)
        return found

    async def _look_at_strangers(self, job: Job, memory: JobMemory) -> None:
        """A pod without our labels tells us nothing when it goes."""
        now = self._clock()
        for name, stranger in list(memory.strangers.items()):
            if now - stranger.seen_at < STRANGER_SECONDS:
                continue
            try:
                answer = await self._client.get(PODS, name, namespace=job.namespace)
            except ApiError as refused:
                if not refused.not_found:
                    raise
                del memory.strangers[name]
                continue
            holder = answer.into(Bare).metadata
            if holder.controller_uid == job.uid:
                del memory.strangers[name]
            else:
                memory.strangers[name] = Stranger(holder, now)

    async def _look_up(self, job: Job, memory: JobMemory, names: frozenset[str]) -> bool:
        """Whether anything had to be asked. A job whose pods start asks for nothing."""
        now, known = self._clock(), memory.config_maps
        for name in known.keys() - names:
            del known[name]
        stale = [n for n in names if n not in known or now - known[n][1] >= CONFIG_MAP_SECONDS]
        for name in sorted(stale):
            try:
                await self._client.get(CONFIG_MAPS, name, namespace=job.namespace)
                known[name] = (True, now)
            except ApiError as refused:
                known[name] = (not refused.not_found, now)  # what we may not see may be there
        return bool(stale)

    async def _has_former_environment(self, job: Job) -> bool:
        try:
            answer = await self._client.get(CONFIG_MAPS, job.name, namespace=job.namespace)
        except ApiError as refused:
            if refused.not_found:
                return False
            raise
        return answer.into(Bare).metadata.controller_uid == job.uid

    # The former operator's

    async def _let_go(self, document: JobDocument, memory: JobMemory) -> bool:
        """The former operator's finalizer would keep a deleted job for ever."""
        known = document.metadata
        left = takeover.without_finalizer(known.finalizers)
        if left is None:
            return False
        try:
            answer = await self._client.patch(
                PADDLE_JOBS,
                known.name,
                {"metadata": {"finalizers": left or None}},
                namespace=known.namespace,
                uid=known.uid,
                resource_version=known.resource_version,
            )
        except ApiError as refused:
            if not (refused.not_found or refused.conflict):
                raise
            return True
        version = answer.identity.resource_version
        memory.expectations.wrote(self._caches.jobs, version, self._clock())  # type: ignore[arg-type]
        _log.info("took over from the former operator", extra={"job": known.key})
        # A job that was being deleted is gone with its last finalizer; no copy will show it.
        return known.deletion_timestamp is not None


_NOTHING = Plan()


def _leaving(found: Found) -> list[str]:
    going = (*(pod.metadata for pod in found.pods), *found.others)
    return [metadata.uid for metadata in going if metadata.deletion_timestamp is not None]
