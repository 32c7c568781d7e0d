"""The local copies of everything that concerns our jobs, and which job a change concerns.

Pods are watched by upstream's role label and the rest by ours, so memory follows our jobs and not
the size of the cluster. PodGroups are watched whole: a user's own carries no label.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any

from regatta.api.job import Job
from regatta.controller import labels
from regatta.controller.policies.gang import VOLCANO
from regatta.controller.world import Gangs, PodGroup
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.backoff import Backoff
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import KubeError
from regatta.engines.kubernetes.api.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    PADDLE_JOBS,
    PODS,
    SERVICES,
    Resource,
)
from regatta.engines.kubernetes.cache.index import by_controller, by_label
from regatta.engines.kubernetes.cache.informer import Informer, InformerSettings
from regatta.engines.kubernetes.objects.annotations import RELEASED, STOPPED
from regatta.engines.kubernetes.objects.children import Found, names_needed, owning_jobs
from regatta.engines.kubernetes.objects.gangs import RESOURCES, observe_groups
from regatta.engines.kubernetes.objects.job_document import JobDocument

OWNER = "owner"
JOB = "job"

_log = logging.getLogger(__name__)

#: Told of every job key (`namespace/name`) whose world may have changed.
Changed = Callable[[str], None]

#: How long a start waits for the first list of pod groups.
GROUPS_SECONDS = 10.0


class Caches:
    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str = "",
        scheduling: str = "",
        settings: InformerSettings,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._scheduling = scheduling
        self._settings = settings
        self._changed: Changed = lambda key: None
        self.jobs = Informer(
            client, PADDLE_JOBS, JobDocument, namespace=namespace, settings=settings
        )
        self.pods = Informer(
            client,
            PODS,
            models.Pod,
            namespace=namespace,
            label_selector=labels.UPSTREAM_ROLE,
            indexers={OWNER: by_controller},
            settings=settings,
        )
        self.services = self._labelled(SERVICES)
        self.environments = self._labelled(CONFIG_MAPS)
        self.endpoints = Informer(
            client,
            ENDPOINT_SLICES,
            models.EndpointSlice,
            namespace=namespace,
            label_selector=labels.JOB,
            indexers={JOB: by_label(labels.JOB)},
            settings=settings,
        )
        self.groups: dict[str, Informer[models.PodGroup]] = {}
        self._discovered = asyncio.Event()
        self.jobs.on_change(lambda old, new: self._changed((new or old).metadata.key))  # type: ignore[union-attr]
        self.pods.on_change(_slim_down)
        self.pods.on_change(self._child_changed)
        self.endpoints.on_change(self._child_changed)
        for informer in (self.services, self.environments):
            informer.on_change(self._child_changed)

    def _labelled(self, resource: Resource) -> Informer[models.Bare]:
        return Informer(
            self._client,
            resource,
            models.Bare,
            namespace=self._namespace,
            label_selector=labels.JOB,
            indexers={OWNER: by_controller},
            settings=self._settings,
        )

    def on_change(self, changed: Changed) -> None:
        self._changed = changed

    # Running

    @property
    def informers(self) -> list[Informer[Any]]:
        return [*self._always, *self.groups.values()]

    @property
    def _always(self) -> tuple[Informer[Any], ...]:
        return (self.jobs, self.pods, self.services, self.environments, self.endpoints)

    @property
    def synced(self) -> bool:
        return self._discovered.is_set() and all(i.synced.is_set() for i in self._always)

    @property
    def trouble(self) -> str:
        return "; ".join(filter(None, (informer.trouble for informer in self.informers)))

    async def run(self) -> None:
        """Keeps every copy true, until cancelled."""
        await self._discover_patiently()
        self._discovered.set()
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run())
            tasks.create_task(self._find_gang_schedulers(tasks))

    async def until_synced(self) -> None:
        """Pod groups are waited for only so long: one that we may not list concerns few jobs."""
        await self._discovered.wait()
        for informer in self._always:
            await informer.synced.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GROUPS_SECONDS):
                for group in self.groups.values():
                    await group.synced.wait()

    async def _discover_patiently(self) -> None:
        """Before the first job is looked at, however long the API server takes to come up."""
        backoff = Backoff(self._settings.first_pause_seconds, self._settings.longest_pause_seconds)
        while True:
            try:
                return await self._discover()
            except KubeError as trouble:
                pause = backoff.failed()
                _log.warning("%s; trying again in %.1f s", trouble, pause)
                await asyncio.sleep(pause)

    async def _discover(self) -> None:
        """Which gang schedulers the cluster has."""
        for scheduler, resource in RESOURCES.items():
            if scheduler not in self.groups and await self._serves(scheduler, resource):
                self.groups[scheduler] = self._group_informer(resource)

    async def _serves(self, scheduler: str, resource: Resource) -> bool:
        wanted = scheduler == VOLCANO or self._scheduling == scheduler
        return wanted and await self._client.has_resource(resource)

    async def _find_gang_schedulers(self, tasks: asyncio.TaskGroup) -> None:
        """Volcano may be installed while we run; jobs that wait for it look again by themselves."""
        while True:
            await asyncio.sleep(30.0)
            known = set(self.groups)
            try:
                await self._discover()
            except KubeError as trouble:
                _log.warning("looking for gang schedulers: %s", trouble)
            for scheduler in self.groups.keys() - known:
                _log.info("the cluster has gained %s's PodGroups", scheduler)
                tasks.create_task(self.groups[scheduler].run())

    def _group_informer(self, resource: Resource) -> Informer[models.PodGroup]:
        informer = Informer(
            self._client,
            resource,
            models.PodGroup,
            namespace=self._namespace,
            indexers={OWNER: by_controller},
            settings=self._settings,
        )
        informer.on_change(self._group_changed)
        return informer

    # Which job a change concerns

    def _child_changed(self, old: models.KubeObject | None, new: models.KubeObject | None) -> None:
        thing = new or old
        assert thing is not None
        for key in _jobs_of(thing.metadata):
            self._changed(key)

    def _group_changed(self, old: models.PodGroup | None, new: models.PodGroup | None) -> None:
        self._child_changed(old, new)
        thing = new or old
        assert thing is not None
        if thing.metadata.key in self.jobs.store:
            self._changed(thing.metadata.key)

    # What there is of one job

    def find(self, job: Job) -> Found:
        pods = list(self.pods.store.by(OWNER, job.uid))
        ours = {pod.metadata.name for pod in pods}
        others = []
        for name in names_needed(job):
            if name not in ours:
                pod = self.pods.store.get(f"{job.namespace}/{name}")
                if pod is not None:
                    others.append(pod.metadata)
        return Found(
            pods=pods,
            others=others,
            services=[thing.metadata for thing in self.services.store.by(OWNER, job.uid)],
            environments=[thing.metadata for thing in self.environments.store.by(OWNER, job.uid)],
            listed=self._listed(job),
            gangs=self._gangs(job),
        )

    def _listed(self, job: Job) -> frozenset[str]:
        slices = self.endpoints.store.by(JOB, f"{job.namespace}/{job.name}")
        return frozenset(
            endpoint.target_ref.uid
            for part in slices
            for endpoint in part.endpoints or ()
            if endpoint.target_ref is not None and endpoint.addresses
        )

    def _gangs(self, job: Job) -> Gangs:
        groups: list[PodGroup] = []
        for scheduler, informer in self.groups.items():
            owned = informer.store.by(OWNER, job.uid)
            same_name = informer.store.get(f"{job.namespace}/{job.name}")
            groups += observe_groups(job, scheduler, owned, same_name)
        return Gangs(
            available=frozenset(name for name, i in self.groups.items() if i.synced.is_set()),
            default=self._scheduling,
            groups=tuple(groups),
        )


#: All that is asked of a pod's labels and annotations, here and in `observe` and `podstate`.
_READ = frozenset(
    {
        *(labels.JOB, labels.ROLE, labels.INDEX, labels.ATTEMPT, labels.REVISION),
        *(labels.UPSTREAM_ROLE, RELEASED, STOPPED),
    }
)


def _slim_down(old: models.Pod | None, new: models.Pod | None) -> None:
    """Of its labels and annotations a pod keeps those that we read, and each word is kept once.

    Worth a kilobyte for every pod, and more where others write long ones on it.
    """
    if new is None:
        return
    for words in (new.metadata.labels, new.metadata.annotations):
        kept = {sys.intern(k): sys.intern(v) for k, v in words.items() if k in _READ}
        words.clear()
        words.update(kept)


def _jobs_of(metadata: models.Metadata) -> Iterable[str]:
    """By owner's name and by label: a job also wants to know when its predecessor's pod is gone."""
    owners = {owner.name for owner in owning_jobs(metadata)}
    if labelled := metadata.labels.get(labels.JOB):
        owners.add(labelled)
    if not owners and labels.UPSTREAM_ROLE in metadata.labels:
        owners.add(metadata.name.rsplit("-", 2)[0])  # somebody's own pod under a name of ours
    return [f"{metadata.namespace}/{name}" for name in owners]
