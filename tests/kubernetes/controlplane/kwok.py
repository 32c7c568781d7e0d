"""Nodes without machines, and pods on them that do what a test says.

What a pod does is said by its annotations, in its template or patched on at any time:

    kwok.regatta.test/exit-code: "3"        ends with this code: Succeeded for 0, else Failed
    kwok.regatta.test/exit-after: 2s        not before it has run this long
    kwok.regatta.test/exit-reason: OOMKilled      instead of Completed or Error
    kwok.regatta.test/exit-message: text    what the container's terminated state says
    kwok.regatta.test/waiting: ImagePullBackOff   stays Pending, with this reason, while present

Without any it runs until it is deleted. `spec.activeDeadlineSeconds: 1` ends it as a kubelet
would, Failed with DeadlineExceeded; other values are not watched. Finalizers are left alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.api import Api

PREFIX = "kwok.regatta.test"
EXIT_CODE = f"{PREFIX}/exit-code"
EXIT_AFTER = f"{PREFIX}/exit-after"
EXIT_REASON = f"{PREFIX}/exit-reason"
EXIT_MESSAGE = f"{PREFIX}/exit-message"
WAITING = f"{PREFIX}/waiting"

_STAGES = Path(__file__).with_name("kwok-stages.yaml")
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PLAYED_BY_KWOK = {"kwok.x-k8s.io/node": "fake"}


def exits(code: int, *, after: str = "", reason: str = "", message: str = "") -> dict[str, str]:
    """Annotations with which a pod on a kwok node ends; `after` is a duration such as `2s`."""
    annotations = {EXIT_CODE: str(code)}
    optional = {EXIT_AFTER: after, EXIT_REASON: reason, EXIT_MESSAGE: message}
    return annotations | {key: value for key, value in optional.items() if value}


@dataclass(frozen=True, slots=True)
class _Network:
    pod_range: str
    node_address: str

    def pods(self, seat: int) -> str:
        return self.pod_range.format(seat)

    def node(self, seat: int) -> str:
        return self.node_address.format(seat)


_V4 = _Network("198.18.{}.0/24", "198.19.128.{}")
_V6 = _Network("fd98:0:0:{:x}::/64", "fd98:0:0:200::{:x}")


class KwokNodes:
    """Makes Node objects. Those with kwok's annotation come alive, others nobody looks after."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(
        self,
        count: int,
        *,
        cpu: str = "32",
        memory: str = "256Gi",
        gpus: int = 0,
        pods: int = 250,
        prefix: str = "kwok",
        labels: Mapping[str, str] | None = None,
        ipv6: bool = False,
    ) -> list[str]:
        """Make nodes that kwok plays and wait until all are Ready; returns their names."""
        names = [f"{prefix}-{number}" for number in range(count)]
        network = _V6 if ipv6 else _V4
        seats = self._free_seats(count, network)
        for name, seat in zip(names, seats, strict=True):
            self._post(name, network, seat, cpu, memory, gpus, pods, labels, PLAYED_BY_KWOK)
        for name in names:
            self._api.wait_for(f"/api/v1/nodes/{name}", _is_ready, what="Ready")
        return names

    def create_unmanaged(
        self, name: str, *, cpu: str = "32", memory: str = "256Gi", gpus: int = 0, pods: int = 250
    ) -> str:
        """A node that says Ready once and that nothing looks after: no pod on it ever moves.

        A deleted pod stays terminating on it. The node controller calls it NotReady after
        --node-monitor-grace-period (40 to 50 s), as it would a node whose machine died.
        """
        self._post(name, _V4, self._free_seats(1, _V4)[0], cpu, memory, gpus, pods, None, {})
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "says the test"}
        self._api.patch(
            f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, kind="strategic"
        )
        return name

    @contextlib.contextmanager
    def kept_alive(self, name: str) -> Iterator[None]:
        """Renew a node's Lease for as long as this lasts, as its kubelet would; then it is dead."""
        over = threading.Event()
        lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name}}
        self._api.create(_LEASES, lease)

        def renew() -> None:
            while not over.wait(1):
                now = datetime.now(UTC).isoformat(timespec="microseconds")
                self._api.patch(f"{_LEASES}/{name}", {"spec": {"renewTime": now}})
            self._api.close()

        kubelet = threading.Thread(target=renew)
        kubelet.start()
        try:
            yield
        finally:
            over.set()
            kubelet.join()

    def _free_seats(self, count: int, network: _Network) -> list[int]:
        # A node without a pod range takes addresses from the whole range, which are others' too;
        # so ranges are given out here and not left to the controller manager's next round.
        # Seat 0 is the real node's.
        taken = {node["spec"].get("podCIDR") for node in self._api.items("/api/v1/nodes")}
        seats = [seat for seat in range(1, 250) if network.pods(seat) not in taken]
        if len(seats) < count:
            raise ValueError(f"{count} nodes asked for, and there is room for {len(seats)} more")
        return seats[:count]

    def _post(
        self,
        name: str,
        network: _Network,
        seat: int,
        cpu: str,
        memory: str,
        gpus: int,
        pods: int,
        labels: Mapping[str, str] | None,
        annotations: Mapping[str, str],
    ) -> None:
        resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
        if gpus:
            resources["nvidia.com/gpu"] = str(gpus)
        self._api.create(
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "annotations": dict(annotations),
                    "labels": {"kubernetes.io/hostname": name, "type": "kwok", **(labels or {})},
                },
                "spec": {"podCIDR": network.pods(seat), "podCIDRs": [network.pods(seat)]},
                "status": {
                    "allocatable": resources,
                    "capacity": resources,
                    # One of its own, as machines have: host-network pods are told apart by it.
                    "addresses": [{"type": "InternalIP", "address": network.node(seat)}],
                },
            },
        )


def _is_ready(node: Any) -> bool:
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def write_stages(path: Path, barrier_annotation: str | None = None) -> Path:
    """kwok's configuration. Node stages are kwok's own; pod stages are those described above."""
    held = "select(false)"
    if barrier_annotation is not None:
        names_a_map = "any(.spec.containers[].envFrom[]?; .configMapRef.name != null)"
        untouched = f'.metadata.annotations["{barrier_annotation}"] == null'
        held = f"select({names_a_map} and {untouched}) | .metadata.name"
    path.write_text(_STAGES.read_text().replace("@HELD@", held))
    return path
