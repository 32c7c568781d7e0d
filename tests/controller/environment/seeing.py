"""What replicas would read, for tests."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from regatta.controller.plan import NewPod
from regatta.controller.world import Ports
from tests.controller.builders import JobBuilder, Scene, a_scene


def environments(builder: JobBuilder, services: bool = False, stride: int = 20) -> dict[str, Any]:
    """Per pod: what its first container would see, with field references resolved."""
    scene = a_scene(builder, services=services)
    scene.children = replace(scene.children, ports=Ports(base=20000, stride=stride))
    pods = {pod.name: pod for pod in scene.tick().pods}
    scene.place()
    if services:
        for name in scene.names:
            scene.change(name, host=name)
    (shared,) = scene.tick().environments
    return {name: _resolve(pod, scene, shared.data) for name, pod in pods.items()}


def _resolve(pod: NewPod, scene: Scene, shared: dict[str, str]) -> dict[str, str]:
    seen = dict(shared)
    for variable in pod.manifest["spec"]["containers"][0]["env"]:
        value = variable.get("value")
        if value is None:
            place = scene.pod(pod.name)
            fields = {"status.podIP": place.host or "", "metadata.uid": place.uid}
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for known, text in seen.items():
            value = value.replace(f"$({known})", text)
        seen[variable["name"]] = value
    return seen
