"""Where a replica is, and how one variable is written in a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from regatta.api import quantity
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
    """GPUs that one replica asks for, as a scheduler counts them.

    None where its template asks for something that is no amount: one that was stored before there
    were rules, and whose pod the cluster will refuse.
    """
    try:
        return quantity.resources(spec.template).gpus
    except ValueError:
        return 0


def has_device(spec: RoleSpec) -> bool:
    """Whether it asks for any: GPUs whole, shared or sliced, NPUs, XPUs, by any vendor's name."""
    return any(
        _is_vendors(name) and str(amount) != "0"
        for asked in _resources(spec)
        for name, amount in asked.items()
    )


def _resources(spec: RoleSpec) -> Iterator[dict[str, Any]]:
    """What each container of a replica asks for."""
    for container in spec.template.get("spec", {}).get("containers") or ():
        resources = container.get("resources") or {}
        yield {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def _is_vendors(resource: str) -> bool:
    """Not one of Kubernetes' own, which have no domain or one under kubernetes.io."""
    domain, slash, _ = resource.rpartition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
