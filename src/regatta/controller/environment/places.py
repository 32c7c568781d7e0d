"""Where a replica is, and how one variable is written in a pod."""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import RoleSpec

#: One entry of a container's `env`.
Variable = dict[str, Any]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    index: int
    spec: RoleSpec
    #: First of the replica's block of ports.
    port: int
    #: Where peers reach it: an address or a name. Empty while unknown.
    host: str = ""

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"


def literal(name: str, value: object) -> Variable:
    return {"name": name, "value": str(value)}


def from_field(name: str, path: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def pod_ip(place: Place) -> Variable:
    """Its own address: the name that its peers were given where they use names."""
    return literal("POD_IP", place.host) if place.host else from_field("POD_IP", "status.podIP")


def gpus(spec: RoleSpec) -> int:
    """GPUs that one replica asks for, over all its containers."""
    total = 0
    for container in spec.template.get("spec", {}).get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        count = str(asked.get("nvidia.com/gpu", 0))
        total += int(count) if count.isdecimal() else 0
    return total
