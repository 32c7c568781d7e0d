"""Pods that were seen while their job was followed: some are gone from the cluster by now, and
how they ended is still worth showing. Only so much is kept, however long a server lives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from regatta.api.job import Job
from regatta.engines.kubernetes.api import models

MOST_JOBS = 32
#: Of one job, its earlier tries among them.
MOST_PODS = 1000


class FollowedPods:
    def __init__(self) -> None:
        self._jobs: OrderedDict[str, OrderedDict[str, models.Pod]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._jobs)

    def note(self, job: Job, pod: models.Pod) -> None:
        pods = self._jobs.setdefault(job.uid, OrderedDict())
        self._jobs.move_to_end(job.uid)
        pods[pod.metadata.uid] = pod
        pods.move_to_end(pod.metadata.uid)
        if len(pods) > MOST_PODS:
            pods.popitem(last=False)
        if len(self._jobs) > MOST_JOBS:
            self._jobs.popitem(last=False)

    def forget(self, job: Job) -> None:
        self._jobs.pop(job.uid, None)

    def of(self, job: Job) -> Iterable[models.Pod]:
        return tuple(self._jobs.get(job.uid, {}).values())
