"""What a cluster no longer has, as it was last seen: jobs that were deleted, pods that are gone.

A cluster keeps no record. Whoever writes one, as a team's server does, would have to ask in the
very moment between a pod's end and its removal. The watch tells of both, so it is kept from there:
each pod and each job with the state in which it went. Only so many of them: a recorder asks within
seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from regatta.api.job import Job
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.engine.jobs import read_job
from regatta.engines.kubernetes.engine.memory.followed import FollowedPods
from regatta.engines.kubernetes.engine.pod_views import main_first
from regatta.engines.kubernetes.engine.subscriptions import Subscriptions
from regatta.engines.kubernetes.objects.job_document import JobDocument

MOST_DEPARTED = 2000


class Departures:
    def __init__(self, subscriptions: Subscriptions, pods: FollowedPods) -> None:
        """`pods` is where those that went are noted."""
        self._subscriptions = subscriptions
        self._pods = pods
        self._jobs: OrderedDict[str, JobDocument] = OrderedDict()
        #: Pods that have not gone as far as the watch has told, by job and by their own uid.
        self._present: dict[str, dict[str, models.Pod]] = {}
        self._watchers = 0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Whatever goes while this lasts is kept, however many do so at once."""
        self._watchers += 1
        try:
            async with (
                self._subscriptions.jobs(None, None, self._job_changed),
                self._subscriptions.every_pod(self._pod_changed),
            ):
                yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._present.clear()

    def not_gone_yet(self, job: Job) -> list[models.Pod]:
        """Of its pods those whose end the watch has still to tell. A list may be ahead of it."""
        return [main_first(job, pod) for pod in self._present.get(job.uid, {}).values()]

    def job(self, uid: str) -> Job | None:
        """As it was when it went."""
        found = self._jobs.get(uid)
        return None if found is None else read_job(found)

    def _job_changed(self, old: JobDocument | None, new: JobDocument | None) -> None:
        if old is None or new is not None:
            return
        self._jobs[old.metadata.uid] = old
        if len(self._jobs) > MOST_DEPARTED:
            self._jobs.popitem(last=False)

    def _pod_changed(self, old: models.Pod | None, new: models.Pod | None) -> None:
        pod = new or old
        assert pod is not None
        job, uid = pod.metadata.controller_uid, pod.metadata.uid
        if new is not None:
            self._present.setdefault(job, {})[uid] = new
            return
        pods = self._present.get(job, {})
        pods.pop(uid, None)
        if not pods:
            self._present.pop(job, None)
        self._pods.note(job, pod)
