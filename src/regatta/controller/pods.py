"""The pod that fills a replica's place: the user's template with what the job adds to it.

What the user wrote always wins over what is added.
"""

from __future__ import annotations

import copy
from typing import Any

from regatta.api.job import Intranet, Job
from regatta.controller import environment, labels
from regatta.controller.environment import Place, Variable
from regatta.controller.observe import Replica, World
from regatta.controller.plan import NewPod
from regatta.controller.policies import gang
from regatta.controller.world import Children, meets_by_name


def new_pod(job: Job, replica: Replica, world: World) -> NewPod:
    attempt, revision = job.status.attempt, job.status.revision
    template = copy.deepcopy(replica.spec.template)
    metadata = template.get("metadata") or {}
    spec = template.get("spec") or {}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": replica.name,
            "namespace": job.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **labels.of_job(job),
                labels.ROLE: replica.role,
                labels.INDEX: str(replica.index),
                labels.ATTEMPT: str(attempt),
                labels.REVISION: str(revision),
                labels.UPSTREAM_NAME: replica.name,
                labels.UPSTREAM_ROLE: replica.role,
            },
            "annotations": {
                **_default_container(spec),
                **(metadata.get("annotations") or {}),
                labels.UPSTREAM_ANNOTATION: replica.role,
            },
            "ownerReferences": labels.owned_by(job),
        },
        "spec": _spec(job, replica, world.children, spec),
    }
    return NewPod(
        name=replica.name,
        role=replica.role,
        index=replica.index,
        attempt=attempt,
        revision=revision,
        by_name=_by_name(job, world.children),
        manifest=gang.join(job, world, replica.role, manifest),
    )


def _default_container(spec: dict[str, Any]) -> dict[str, str]:
    """What `kubectl logs` means without -c, also behind a proxy that a mesh puts first."""
    names = [container.get("name") for container in spec.get("containers") or ()]
    return {"kubectl.kubernetes.io/default-container": names[0]} if names and names[0] else {}


def place_of(job: Job, replica: Replica, children: Children, host: str = "") -> Place:
    return Place(
        role=replica.role,
        index=replica.index,
        spec=replica.spec,
        port=children.ports.of(replica.ordinal, replica.role_number),
        host=host,
    )


def _spec(job: Job, replica: Replica, children: Children, spec: dict[str, Any]) -> dict[str, Any]:
    spec.setdefault("restartPolicy", "Never")
    spec.setdefault("hostname", replica.name)
    by_name = _by_name(job, children)
    if by_name:
        spec.setdefault("subdomain", replica.name)
    place = place_of(job, replica, children, host=replica.name if by_name else "")
    if job.spec.intranet is Intranet.HOST:
        spec.setdefault("hostNetwork", True)
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    for number, container in enumerate(spec.get("containers") or ()):
        _add_environment(job, place, container)
        _keep_last_lines(container)
        if number == 0 and (by_name or job.spec.intranet is not Intranet.POD_IP):
            _declare_port(container, place.port)
        if number == 0 and job.spec.intranet is Intranet.HOST:
            for fixed in replica.spec.ports:
                for port in fixed.fixed:
                    _declare_port(container, port)
    for container in spec.get("initContainers") or ():
        _keep_last_lines(container)
    return spec


def _by_name(job: Job, children: Children) -> bool:
    return children.services is not None and meets_by_name(job, children.names_only)


def _add_environment(job: Job, place: Place, container: dict[str, Any]) -> None:
    name = labels.environment_name(job, job.status.revision)
    # First, so that a user's own envFrom comes after it and wins.
    shared = {"configMapRef": {"name": name}}
    container["envFrom"] = [shared, *(container.get("envFrom") or ())]
    container["env"] = _beside(environment.own(job, place), container.get("env") or [])


def _beside(ours: list[Variable], theirs: list[Variable]) -> list[Variable]:
    """Ours come first, so that theirs may refer to them; what they set themselves is left to them.

    `$(NAME)` stands only for what comes earlier in the list. So one of ours that refers to a
    variable that they set comes right after that.
    """
    named = {variable.get("name") for variable in theirs}
    env = list(theirs)
    for variable in reversed(ours):
        if variable["name"] not in named:
            env.insert(_end_of_its_parts(variable, env), variable)
    return env


def _end_of_its_parts(variable: Variable, env: list[Variable]) -> int:
    value = variable.get("value", "")
    parts = [n for n, known in enumerate(env, 1) if f"$({known.get('name')})" in value]
    return max(parts, default=0)


def _keep_last_lines(container: dict[str, Any]) -> None:
    """What a failed job quotes: the end of its log where the program wrote no message itself."""
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")


def _declare_port(container: dict[str, Any], port: int) -> None:
    """Under hostNetwork this becomes a hostPort, which keeps two replicas off one node."""
    ports = container.get("ports") or []
    if not any(_is_tcp(known) and known.get("containerPort") == port for known in ports):
        # Nobody looks it up by its name, and two of one name are refused.
        taken = any(known.get("name") == "paddle" for known in ports)
        name = {} if taken else {"name": "paddle"}
        ports = [*ports, {**name, "containerPort": port}]
    container["ports"] = ports


def _is_tcp(port: dict[str, Any]) -> bool:
    return port.get("protocol") in (None, "", "TCP")
