"""A cluster on paper: every object that the operator would create for a job, and nothing created.

Addresses are the cluster's to give, so names in angle brackets stand for them.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from regatta.api.errors import InvalidJob
from regatta.api.job import Intranet, Job
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.controller.environment.references import TOO_LONG, TooLong, expand
from regatta.controller.plan import Instant, NewEnvironment, NewPod, NewPodGroup, NewService, Plan
from regatta.controller.policies.gang import NATIVE, VOLCANO
from regatta.controller.world import Children, Gangs, PodGroup, port_block
from regatta.engines.base import Preview
from regatta.engines.kubernetes.engine.job_secrets import shown
from regatta.engines.kubernetes.engine.pod_views import ports_of_replica
from regatta.engines.kubernetes.objects.hostports import ports_of
from regatta.engines.preview import as_placed, rehearse

UID = "<uid>"


class _Stage:
    """What the operator would do with a plan (`engines/preview.Stage`)."""

    def __init__(self, loaded: Loaded) -> None:
        self.pods: list[NewPod] = []
        self.services: list[NewService] = []
        self.environments: list[NewEnvironment] = []
        self.made_groups: list[NewPodGroup] = []
        self.groups = [
            PodGroup(name=group.name, phase="Inqueue", min_member=group.min_member or 0)
            for group in loaded.companions.pod_groups
            if group.namespace == loaded.job.namespace
        ]

    def children(self, job: Job) -> Children:
        return Children(
            pods=tuple(as_placed(pod, self.host(pod)) for pod in self.pods),
            environments=frozenset(made.revision for made in self.environments),
            services=frozenset(service.name for service in self.services),
            ports=ports_of(job),
            gangs=Gangs(available=frozenset({VOLCANO, NATIVE}), groups=tuple(self.groups)),
        )

    def take(self, job: Job, plan: Plan) -> None:
        self.pods += plan.pods
        self.services += plan.services
        self.environments += plan.environments
        self.made_groups += plan.pod_groups
        for made in plan.pod_groups:
            members = made.manifest["spec"].get("minMember", 0)
            group = PodGroup(
                name=made.name,
                ours=True,
                phase="Inqueue",
                min_member=members,
                scheduler=made.scheduler,
            )
            self.groups.append(group)

    def host(self, pod: NewPod) -> str:
        return pod.name if pod.by_name else f"<{pod.name}>"

    def objects(self) -> tuple[dict[str, Any], ...]:
        return (
            *(group.manifest for group in self.made_groups),
            *(service.manifest for service in self.services),
            *(pod.manifest for pod in self.pods),
            *(environment.manifest for environment in self.environments),
        )


def preview(loaded: Loaded, now: Instant) -> Preview:
    metadata = replace(loaded.job.metadata, uid=UID, creation_timestamp=now.wall)
    stage = _Stage(loaded)
    job = rehearse(replace(loaded.job, metadata=metadata), stage, now)
    shared = {made.name: made.data for made in stage.environments}
    return Preview(
        job=loaded.job,
        warnings=loaded.warnings,
        objects=(*loaded.beside, *shown(loaded), *stage.objects()),
        environment={pod.name: _environment(job, pod, shared) for pod in stage.pods},
        ports={
            pod.name: ports_of_replica(job, pod.role, pod.index) or port_block(0)
            for pod in stage.pods
        },
        notes=tuple(_notes(job, stage)),
    )


def _notes(job: Job, stage: _Stage) -> list[str]:
    notes = ["what is in angle brackets is known only to the cluster, once the pods are placed"]
    if job.spec.intranet is not Intranet.SERVICE and stage.pods:
        name = stage.pods[0].name
        notes.append(f"<{name}> stands for the address of the pod {name}, and so on")
    if job.spec.intranet is Intranet.HOST:
        notes.append("under intranet: Host the ports follow from the job's uid; these are examples")
    theirs = {
        source.get(kind, {}).get("name", "")
        for pod in stage.pods
        for source in pod.manifest["spec"]["containers"][0].get("envFrom", ())[1:]
        for kind in ("configMapRef", "secretRef")
    } - {""}
    if theirs:
        notes.append(f"variables that come from {', '.join(sorted(theirs))} are not shown")
    if not stage.pods:
        notes.append(job.status.message or "no pod would be created yet")
    return notes


def _environment(job: Job, pod: NewPod, shared: dict[str, dict[str, str]]) -> dict[str, str]:
    """What the first container would see, as the kubelet puts it together."""
    container = pod.manifest["spec"]["containers"][0]
    seen: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        seen |= shared.get((source.get("configMapRef") or {}).get("name", ""), {})
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            seen[variable["name"]] = _looked_up(job, pod, variable["valueFrom"] or {})
        else:
            try:
                seen[variable["name"]] = expand(str(variable.get("value") or ""), seen)
            except TooLong as too_long:
                path = f"{pod.role}: env[{variable['name']}].value"
                raise InvalidJob([Problem(path, TOO_LONG)]) from too_long
    return seen


def _looked_up(job: Job, pod: NewPod, source: dict[str, Any]) -> str:
    path = (source.get("fieldRef") or {}).get("fieldPath", "")
    known = {
        "status.podIP": f"<{pod.name}>",
        "metadata.name": pod.name,
        "metadata.namespace": job.namespace,
    }
    if path:
        return known.get(path, f"<{path}>")
    for kind in ("secretKeyRef", "configMapKeyRef"):
        if chosen := source.get(kind):
            return f"<{chosen.get('key', '')} of {chosen.get('name', '')}>"
    return "<known to the kubelet>"
