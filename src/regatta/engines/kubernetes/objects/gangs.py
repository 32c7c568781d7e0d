"""PodGroups of the cluster, Volcano's and Kubernetes' own, as the brain knows them."""

from __future__ import annotations

from collections.abc import Iterable

from regatta.api import quantity
from regatta.api.job import Job
from regatta.controller.policies.gang import NATIVE, VOLCANO
from regatta.controller.world import PodGroup
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.resources import (
    NATIVE_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    Resource,
)

RESOURCES: dict[str, Resource] = {VOLCANO: VOLCANO_POD_GROUPS, NATIVE: NATIVE_POD_GROUPS}


def observe_groups(
    job: Job, scheduler: str, owned: Iterable[models.PodGroup], same_name: models.PodGroup | None
) -> list[PodGroup]:
    """The job's own groups, and one of its name that a user made beforehand.

    A group on its way out stands for nothing any more; its name is free when it is gone.
    """
    found = {group.metadata.uid: group for group in owned}
    if same_name is not None:
        found.setdefault(same_name.metadata.uid, same_name)
    return [
        _observe(job, scheduler, group)
        for group in found.values()
        if group.metadata.deletion_timestamp is None
    ]


def _observe(job: Job, scheduler: str, group: models.PodGroup) -> PodGroup:
    policy = group.spec.scheduling_policy
    gang = policy.gang if policy else None
    return PodGroup(
        name=group.metadata.name,
        uid=group.metadata.uid,
        ours=group.metadata.controller_uid == job.uid,
        phase=group.status.phase,
        min_member=gang.min_count if gang else group.spec.min_member,
        queue=group.spec.queue,
        priority_class=group.spec.priority_class_name,
        min_resources={
            name: quantity.written(amount) for name, amount in group.spec.min_resources.items()
        },
        scheduler=scheduler,
    )
