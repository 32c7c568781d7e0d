"""Pods that were seen while their job was followed, or recorded: some are gone from the cluster by
now, and how they ended is still worth showing. Only so much is kept, however long a server lives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from regatta.api.job import Job
from regatta.engines.kubernetes.api import models

#: Jobs, where nobody asks for more.
MOST_FOLLOWED = 32
#: Of one job, its earlier tries among them.
MOST_PODS = 1000
#: Of all jobs together.
MOST_IN_ALL = 20_000


class FollowedPods:
    def __init__(self, most_jobs: int = MOST_FOLLOWED) -> None:
        self._most_jobs = most_jobs
        self._jobs: OrderedDict[str, OrderedDict[str, models.Pod]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def note(self, job: str, pod: models.Pod) -> None:
        """`job` is its uid."""
        pods = self._jobs.setdefault(job, OrderedDict())
        self._jobs.move_to_end(job)
        self._count += pod.metadata.uid not in pods
        pods[pod.metadata.uid] = pod
        pods.move_to_end(pod.metadata.uid)
        if len(pods) > MOST_PODS:
            pods.popitem(last=False)
            self._count -= 1
        while len(self._jobs) > self._most_jobs or self._count > MOST_IN_ALL:
            _, oldest = self._jobs.popitem(last=False)
            self._count -= len(oldest)

    def forget(self, job: Job) -> None:
        self._count -= len(self._jobs.pop(job.uid, ()))

    def of(self, job: Job) -> Iterable[models.Pod]:
        return tuple(self._jobs.get(job.uid, {}).values())
