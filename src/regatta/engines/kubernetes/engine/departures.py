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
from regatta.engines.kubernetes.engine.followed import FollowedPods
from regatta.engines.kubernetes.engine.jobs import read_job
from regatta.engines.kubernetes.engine.subscriptions import Subscriptions
from regatta.engines.kubernetes.objects.job_document import JobDocument

MOST_JOBS = 2000


class Departures:
    def __init__(self, subscriptions: Subscriptions, pods: FollowedPods) -> None:
        """`pods` is where those that went are noted."""
        self._subscriptions = subscriptions
        self._pods = pods
        self._jobs: OrderedDict[str, JobDocument] = OrderedDict()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Whatever goes while this lasts is kept."""
        async with (
            self._subscriptions.jobs(None, None, self._job_changed),
            self._subscriptions.every_pod(self._pod_changed),
        ):
            yield

    def job(self, uid: str) -> Job | None:
        """As it was when it went."""
        found = self._jobs.get(uid)
        return None if found is None else read_job(found)

    def _job_changed(self, old: JobDocument | None, new: JobDocument | None) -> None:
        if old is None or new is not None:
            return
        self._jobs[old.metadata.uid] = old
        if len(self._jobs) > MOST_JOBS:
            self._jobs.popitem(last=False)

    def _pod_changed(self, old: models.Pod | None, new: models.Pod | None) -> None:
        if old is not None and new is None and old.metadata.controller_uid:
            self._pods.note(old.metadata.controller_uid, old)
