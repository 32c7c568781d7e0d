"""What the brain is shown of a job on a cluster: slim objects as children.

Only what carries the job's uid is the job's. A pod of a former job of the same name, on its way
out, keeps a name taken and is nothing else; anybody else's is foreign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from regatta.api.job import GROUP, KIND, Job
from regatta.controller import labels
from regatta.controller.observe import pod_name, size_in_effect, spec_size
from regatta.controller.world import Children, Gangs, Pod, PodPhase, meets_by_name
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.objects import podstate, takeover
from regatta.engines.kubernetes.objects.hostports import ports_of


class Found(msgspec.Struct, kw_only=True):
    """Everything in the caches that concerns one job."""

    #: With the job's uid as their owner's.
    pods: Iterable[models.Pod] = ()
    #: Under names that the job needs, and not the job's.
    others: Iterable[models.Metadata] = ()
    environments: Iterable[models.Metadata] = ()
    services: Iterable[models.Metadata] = ()
    #: Uids of pods whose names the cluster can resolve.
    listed: frozenset[str] = frozenset()
    gangs: Gangs = Gangs()
    #: The former operator gave this job's pods their environment.
    former_environment: bool = False
    #: Pods' first addresses are IPv6.
    names_only: bool = False
    #: By uid, when we first saw that a pod is to go.
    leaving: Mapping[str, datetime] = {}
    #: By uid, when we first saw that a node holds a pod back.
    held: Mapping[str, datetime] = {}
    #: ConfigMaps that were looked for in vain.
    missing: frozenset[str] = frozenset()


def children(job: Job, found: Found) -> Children:
    mains = mains_of(job)
    pods = [observe_pod(job, pod, found, mains) for pod in found.pods]
    pods += [_other(job, metadata, found) for metadata in found.others]
    pods.sort(key=lambda pod: (pod.role, pod.index, pod.name))
    return Children(
        pods=tuple(pods),
        environments=frozenset(_revisions(found)),
        services=frozenset(service.name for service in found.services),
        names_only=found.names_only,
        ports=ports_of(job),
        missing=found.missing,
        gangs=found.gangs,
    )


def names_needed(job: Job) -> Iterator[str]:
    """The names of all pods that the job has or will ask for."""
    present, wanted = size_in_effect(job), spec_size(job)
    for role, count in wanted.items():
        for index in range(max(count, present.get(role, 0))):
            yield pod_name(job, role, index)


def observe_pod(
    job: Job, pod: models.Pod, found: Found, mains: Mapping[str, str] | None = None
) -> Pod:
    role, index, attempt, revision = _place(pod, found)
    pod = podstate.main_first(pod, (mains or mains_of(job)).get(role, ""))
    metadata, phase = pod.metadata, podstate.phase_of(pod)
    stopping = podstate.is_stopped(pod)
    return Pod(
        name=metadata.name,
        uid=metadata.uid,
        role=role,
        index=index,
        attempt=attempt,
        revision=revision,
        phase=phase,
        scheduled=podstate.is_scheduled(pod),
        host=_host(job, pod, found),
        waiting="" if phase.over else podstate.waiting_of(pod),
        exit=podstate.exit_of(pod, phase),
        disruption="" if stopping else podstate.disruption_of(pod, phase),
        stopping=stopping,
        deleting=metadata.deletion_timestamp is not None,
        gone_by=_gone_by(metadata, found),
        node=pod.spec.node_name,
        held_since=found.held.get(metadata.uid),
        taken_up=podstate.is_taken_up(pod),
        waits_for_environment=podstate.waits_for_environment(pod, revision),
    )


def mains_of(job: Job) -> dict[str, str]:
    """By role, the name of the container whose exit is the result of its replicas."""
    mains = {}
    for role, spec in job.spec.roles().items():
        containers = (spec.template.get("spec") or {}).get("containers") or ()
        mains[role] = next((container.get("name", "") for container in containers), "")
    return mains


def is_predecessors(job: Job, metadata: models.Metadata) -> bool:
    """Belongs to an earlier job of this name, and goes when the garbage collector comes by."""
    return any(owner.name == job.name and owner.uid != job.uid for owner in owning_jobs(metadata))


def owning_jobs(metadata: models.Metadata) -> Iterator[models.OwnerReference]:
    """Its owners that are jobs of ours: Kubeflow has PaddleJobs too, in a group of its own."""
    return (o for o in metadata.owner_references if o.kind == KIND and o.group == GROUP)


def _place(pod: models.Pod, found: Found) -> tuple[str, int, int, int]:
    if takeover.is_former(pod):
        role, index = takeover.role_and_index(pod.metadata)
        adopted = found.former_environment or takeover.started(pod)
        attempt = 0 if adopted else takeover.BEFORE_ALL_ATTEMPTS
        return role, index, attempt, takeover.FIRST_REVISION
    known = pod.metadata.labels
    role = known.get(labels.ROLE, "")
    return (
        role,
        _number(known.get(labels.INDEX, "")),
        _number(known.get(labels.ATTEMPT, "")),
        _number(known.get(labels.REVISION, "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _host(job: Job, pod: models.Pod, found: Found) -> str | None:
    if meets_by_name(job, found.names_only):
        return pod.metadata.name if pod.metadata.uid in found.listed else None
    return pod.status.pod_ip or None


def _gone_by(metadata: models.Metadata, found: Found) -> datetime | None:
    """By the API server's clock, or by ours where that is later: nobody knows which is right, and
    a pod that is removed too early may still run beside its successor."""
    said = metadata.deletion_timestamp
    seen = found.leaving.get(metadata.uid)
    if said is None or seen is None:
        return said
    return max(said, seen + timedelta(seconds=metadata.deletion_grace_period_seconds))


def _other(job: Job, metadata: models.Metadata, found: Found) -> Pod:
    if not is_predecessors(job, metadata):
        return Pod(name=metadata.name, uid=metadata.uid, foreign=True)
    # Ended and going, in the brain's terms: waited for, and freed if its node is lost.
    return Pod(
        name=metadata.name,
        uid=metadata.uid,
        index=-1,
        attempt=takeover.BEFORE_ALL_ATTEMPTS,
        phase=PodPhase.FAILED,
        stopping=True,
        deleting=True,
        gone_by=_gone_by(metadata, found),
    )


def _revisions(found: Found) -> Iterator[int]:
    for environment in found.environments:
        revision = environment.labels.get(labels.REVISION, "")
        if revision.isdecimal():
            yield int(revision)
    if found.former_environment:
        yield takeover.FIRST_REVISION
