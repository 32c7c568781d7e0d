"""The variables that OpenPAI's task roles read. Custom jobs get these instead of Paddle's.

OpenPAI had two families of names, and scripts of both are about: the documented one, and an older
one that was never taken away. What is said of a role is said under its alias where it has one; in
a variable's name whatever a shell could not read becomes an underscore.
"""

from __future__ import annotations

import math
import re
from typing import Any

from regatta.api import quantity
from regatta.api.job import (
    SHARED_MEMORY_VARIABLE,
    Completion,
    Job,
    RoleSpec,
    TaskPort,
    in_variables,
)
from regatta.api.source.limits import MAX_STRING
from regatta.controller.environment.places import (
    Place,
    Variable,
    from_field,
    literal,
    pod_ip,
)

#: Every task owns one of each, declared or not.
_ALWAYS = ("http", "ssh")
#: How "never" is said where a number is expected.
_NEVER = -1
_SHARED_MEMORY = "/dev/shm"
_NUMBER = re.compile(r"[0-9]{1,9}")


def shared(job: Job, places: dict[str, list[Place]]) -> dict[str, str]:
    roles = [tasks[0].spec.known_as for tasks in places.values()]
    data = {
        "PAI_JOB_NAME": job.name,
        **_same(job.name, "PAI_FRAMEWORK_NAME", "FRAMEWORK_NAME"),
        **_same(len(roles), "PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"),
        **_same(",".join(roles), "PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"),
        **_same(sum(map(len, places.values())), "PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"),
        **_instances(places),
    }
    for tasks in places.values():
        data |= _of_role(tasks)
        for place in tasks:
            data |= _of_task(place)
    return data


def own(job: Job, place: Place) -> list[Variable]:
    ports, spec, asked = fixed_and_dealt(place), place.spec, _Asked(place.spec)
    completion = spec.completion or Completion()
    named = ";".join(f"{label}:{_joined(numbers)}" for label, numbers in ports.items())
    values = {
        "APP_ID": job.uid,
        **_same(spec.known_as, "PAI_CURRENT_TASK_ROLE_NAME", "PAI_TASK_ROLE_NAME"),
        **_same(
            place.index,
            "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
            "PAI_TASK_INDEX",
            "PAI_TASK_ROLE_INDEX",
        ),
        **_same(spec.replicas, "PAI_CURRENT_TASK_ROLE_TASK_COUNT", "PAI_TASK_ROLE_NUM"),
        **_same(asked.cpus, "PAI_CURRENT_TASK_ROLE_CPU_COUNT", "PAI_TASK_CPU_NUM"),
        **_same(asked.megabytes, "PAI_CURRENT_TASK_ROLE_MEM_MB", "PAI_TASK_MEM_MB"),
        **_same(asked.gpus, "PAI_CURRENT_TASK_ROLE_GPU_COUNT", "PAI_TASK_GPU_NUM"),
        SHARED_MEMORY_VARIABLE: asked.shared_megabytes,
        "PAI_RESOURCE": asked.in_one,
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": _count(completion.min_failed),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": _needed(spec),
        "PAI_CONTAINER_HOST_PORT_LIST": f"{named};",
        **_same(ports["http"][0], "PAI_CURRENT_CONTAINER_PORT", "PAI_CONTAINER_HOST_PORT"),
        "PAI_CONTAINER_SSH_PORT": ports["ssh"][0],
    }
    for label, numbers in ports.items():
        values[f"PAI_CONTAINER_HOST_{in_variables(label)}_PORT_LIST"] = _joined(numbers)
    return [
        pod_ip(place),
        *(from_field(name, "status.podIP") for name in _ADDRESSES),
        from_field("PAI_CONTAINER_ID", "metadata.uid"),
        *(literal(name, value) for name, value in values.items()),
    ]


_ADDRESSES = ("PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP")


def fixed_and_dealt(place: Place) -> dict[str, list[int]]:
    """A task's ports by label. Those with a place of their own have it; the block is dealt out to
    the others, in the order the task declares them, and passes over what is taken."""
    declared = {port.label for port in place.spec.ports}
    implied = [TaskPort(label=label) for label in _ALWAYS if label not in declared]
    ports = (*place.spec.ports, *implied)
    taken = {number for port in ports for number in port.fixed}
    found: dict[str, list[int]] = {}
    following = place.port
    for port in ports:
        numbers = list(port.fixed)
        while len(numbers) < port.count:
            if following not in taken:
                numbers.append(following)
            following += 1
        found[port.label] = numbers
    return found


def _of_role(tasks: list[Place]) -> dict[str, str]:
    spec = tasks[0].spec
    key, completion = in_variables(spec.known_as), spec.completion or Completion()
    hosts = (f"{place.host}:{fixed_and_dealt(place)['http'][0]}" for place in tasks)
    return {
        f"PAI_TASK_ROLE_TASK_COUNT_{key}": str(len(tasks)),
        f"PAI_TASK_ROLE_{key}_HOST_LIST": ",".join(hosts),
        f"PAI_RESOURCE_{key}": _Asked(spec).in_one,
        f"PAI_MIN_FAILED_TASK_COUNT_{key}": str(_count(completion.min_failed)),
        f"PAI_MIN_SUCCEEDED_TASK_COUNT_{key}": str(_needed(spec)),
    }


def _of_task(place: Place) -> dict[str, str]:
    key = in_variables(place.spec.known_as)
    data = {f"PAI_HOST_IP_{key}_{place.index}": place.host}
    for label, numbers in fixed_and_dealt(place).items():
        at = in_variables(label)
        data[f"PAI_PORT_LIST_{key}_{place.index}_{at}"] = _joined(numbers)
        data[f"PAI_{key}_{place.index}_{at}_PORT"] = _joined(numbers)
    return data


def _instances(places: dict[str, list[Place]]) -> dict[str, str]:
    """Left out where it is longer than a variable may be: each task's own tell the same."""
    each = (f"{p.spec.known_as}:{p.index}" for tasks in places.values() for p in tasks)
    name, value = "PAI_TASK_ROLE_INSTANCES", ",".join(each)
    return {name: value} if len(f"{name}={value}") < MAX_STRING else {}


class _Asked:
    """What one task of a role asks for, in OpenPAI's units."""

    def __init__(self, spec: RoleSpec) -> None:
        try:
            asked = quantity.resources(spec.template)
        except ValueError:  # stored before there were rules; the cluster will refuse the pod
            asked = quantity.Resources()
        self.gpus = asked.gpus
        self.cpus = math.ceil(asked.cpu)
        self.megabytes = asked.memory // 2**20
        self.shared_megabytes = _shared_megabytes(spec.template.get("spec") or {})
        self.in_one = f"{self.gpus},{self.cpus},{self.megabytes},{self.shared_megabytes}"


def _shared_megabytes(pod: dict[str, Any]) -> int:
    """Of the volume that the first container has in place of its /dev/shm; 0: none. Where it has
    the variable from elsewhere, the others say the same as that."""
    first = pod.get("containers", [])[:1]
    said = {each.get("name"): each.get("value") for c in first for each in c.get("env") or ()}
    if _NUMBER.fullmatch(own := said.get(SHARED_MEMORY_VARIABLE) or ""):
        return int(own)
    mounts = [mount for c in first for mount in c.get("volumeMounts") or ()]
    names = {mount.get("name") for mount in mounts if mount.get("mountPath") == _SHARED_MEMORY}
    sizes = [
        volume["emptyDir"]["sizeLimit"]
        for volume in pod.get("volumes") or ()
        if volume.get("name") in names and "sizeLimit" in (volume.get("emptyDir") or ())
    ]
    try:
        return quantity.parse_memory(sizes[0]) // 2**20 if sizes else 0
    except ValueError:
        return 0


def _needed(spec: RoleSpec) -> int:
    """How many must succeed: all of them, unless fewer end the job."""
    least = (spec.completion or Completion()).min_succeeded
    return spec.replicas if least is None else least


def _count(limit: int | None) -> int:
    return _NEVER if limit is None else limit


def _joined(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _same(value: object, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, str(value))
