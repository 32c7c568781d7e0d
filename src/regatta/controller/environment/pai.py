"""The variables that OpenPAI's task roles read. Custom jobs get these instead of Paddle's.

Role names are DNS labels; in a variable's name a dash becomes an underscore, or no shell could
read it.
"""

from __future__ import annotations

from regatta.api.job import Job, RoleSpec, TaskPort
from regatta.controller.environment.places import (
    Place,
    Variable,
    from_field,
    gpus,
    literal,
    pod_ip,
)

#: Every task owns one of each, declared or not.
_ALWAYS = ("http", "ssh")


def shared(job: Job, places: dict[str, list[Place]]) -> dict[str, str]:
    roles = list(places)
    data = {
        "PAI_JOB_NAME": job.name,
        "PAI_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_TASK_ROLE_LIST": ",".join(roles),
        "PAI_JOB_TASK_COUNT": str(sum(map(len, places.values()))),
    }
    for role, tasks in places.items():
        key = _key(role)
        data[f"PAI_TASK_ROLE_TASK_COUNT_{key}"] = str(len(tasks))
        data[f"PAI_TASK_ROLE_{key}_HOST_LIST"] = ",".join(
            f"{place.host}:{_ports(place)['http'][0]}" for place in tasks
        )
        data |= _completion(key, tasks[0].spec)
        for place in tasks:
            data[f"PAI_HOST_IP_{key}_{place.index}"] = place.host
            for label, ports in _ports(place).items():
                joined = ",".join(map(str, ports))
                data[f"PAI_PORT_LIST_{key}_{place.index}_{_key(label)}"] = joined
                data[f"PAI_{key}_{place.index}_{_key(label)}_PORT"] = joined
    return data


def own(job: Job, place: Place) -> list[Variable]:
    ports = _ports(place)
    named = ";".join(f"{label}:{','.join(map(str, p))}" for label, p in ports.items())
    return [
        pod_ip(place),
        literal("PAI_CURRENT_TASK_ROLE_NAME", place.role),
        literal("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", place.index),
        literal("PAI_CURRENT_TASK_ROLE_TASK_COUNT", place.spec.replicas),
        literal("PAI_CURRENT_TASK_ROLE_GPU_COUNT", gpus(place.spec)),
        literal("PAI_TASK_INDEX", place.index),
        literal("PAI_TASK_ROLE_NAME", place.role),
        from_field("PAI_CURRENT_CONTAINER_IP", "status.podIP"),
        from_field("PAI_CONTAINER_HOST_IP", "status.podIP"),
        literal("PAI_CONTAINER_HOST_PORT_LIST", f"{named};"),
        literal("PAI_CURRENT_CONTAINER_PORT", ports["http"][0]),
        literal("PAI_CONTAINER_HOST_PORT", ports["http"][0]),
        literal("PAI_CONTAINER_SSH_PORT", ports["ssh"][0]),
    ]


def _ports(place: Place) -> dict[str, list[int]]:
    """The block, dealt out by label: declared ones first, in the order the task declares them."""
    declared = {port.label for port in place.spec.ports}
    implied = [TaskPort(label=label) for label in _ALWAYS if label not in declared]
    dealt: dict[str, list[int]] = {}
    following = place.port
    for port in (*place.spec.ports, *implied):
        dealt[port.label] = list(range(following, following + port.count))
        following += port.count
    return dealt


def _completion(key: str, spec: RoleSpec) -> dict[str, str]:
    completion = spec.completion
    data = {}
    if completion and completion.min_failed is not None:
        data[f"PAI_MIN_FAILED_TASK_COUNT_{key}"] = str(completion.min_failed)
    if completion and completion.min_succeeded is not None:
        data[f"PAI_MIN_SUCCEEDED_TASK_COUNT_{key}"] = str(completion.min_succeeded)
    return data


def _key(name: str) -> str:
    return name.replace("-", "_")
