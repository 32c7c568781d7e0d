"""Pods that have their place and are not set up there: when that is told, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, Phase
from regatta.controller.policies.setting_up import (
    LOOK_AGAIN_SECONDS,
    PATIENCE_SECONDS,
    Need,
    config_maps_in_doubt,
    needs_of,
    until_too_long,
    why_not_set_up,
)
from regatta.controller.world import Children, Pod, PodPhase
from tests.controller.builders import EPOCH, Scene, a_job, a_scene, at

LATE = at(PATIENCE_SECONDS)
IN_TIME = at(PATIENCE_SECONDS - 0.1)


def template(*volumes: dict[str, Any], **spec: Any) -> dict[str, Any]:
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    containers = [{"name": "main", "command": ["true"], "volumeMounts": mounts}]
    return {"spec": {"containers": containers, "volumes": list(volumes), **spec}}


def config_map(name: str, volume: str = "conf", **more: Any) -> dict[str, Any]:
    return {"name": volume, "configMap": {"name": name, **more}}


def secret(name: str, volume: str = "keys", **more: Any) -> dict[str, Any]:
    return {"name": volume, "secret": {"secretName": name, **more}}


def a_job_with(*volumes: dict[str, Any], **spec: Any) -> Job:
    return a_job().with_ps(1).with_workers(2, template(*volumes, **spec)).obj()


def held(name: str = "j-worker-0", role: str = "worker", **more: Any) -> Pod:
    """Held back by its node since the epoch."""
    phase = PodPhase.STARTING
    pod = Pod(name=name, uid=name, role=role, phase=phase, scheduled=True, node="n1")
    return replace(pod, held_since=EPOCH, **more)


def told(job: Job, *pods: Pod, missing: tuple[str, ...] = (), now: Any = LATE) -> str:
    return why_not_set_up(job, pods, Children(pods=pods, missing=frozenset(missing)), now)


NEEDS: dict[str, tuple[dict[str, Any], list[Need]]] = {
    "a ConfigMap": (config_map("a"), [Need("ConfigMap", "a", "conf")]),
    "a ConfigMap that may be absent": (config_map("a", optional=True), []),
    "a Secret": (secret("s"), [Need("Secret", "s", "keys")]),
    "a Secret that may be absent": (secret("s", optional=True), []),
    "a claim": (
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        [Need("PersistentVolumeClaim", "c", "data")],
    ),
    "several in one": (
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"configMap": {"name": "a"}},
                    {"secret": {"name": "s"}},
                    {"configMap": {"name": "b", "optional": True}},
                    {"serviceAccountToken": {"path": "token"}},
                ]
            },
        },
        [Need("ConfigMap", "a", "all"), Need("Secret", "s", "all")],
    ),
    "a projection of nothing": ({"name": "all", "projected": {"sources": None}}, []),
    "nothing at all": ({"name": "scratch", "emptyDir": {}}, []),
    "fields that nobody filled in": (
        {"name": "odd", "configMap": None, "secret": {}, "projected": None},
        [],
    ),
}


@pytest.mark.parametrize("what", NEEDS)
def test_what_a_volume_cannot_do_without(what: str) -> None:
    volume, needs = NEEDS[what]
    assert needs_of(a_job_with(volume), "worker") == tuple(needs)


MOUNTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "by its container": ({"containers": [{"volumeMounts": [{"name": "conf"}]}]}, ["a"]),
    "by one that runs before": ({"initContainers": [{"volumeMounts": [{"name": "conf"}]}]}, ["a"]),
    "as a device": ({"containers": [{}, {"volumeDevices": [{"name": "keys"}]}]}, ["s"]),
    "by nobody": ({"containers": [{"volumeMounts": None}], "initContainers": None}, []),
    "by no containers": ({"containers": None}, []),
}


@pytest.mark.parametrize("what", MOUNTS)
def test_a_volume_that_no_container_mounts_keeps_nobody(what: str) -> None:
    spec, names = MOUNTS[what]
    job = a_job_with(config_map("a"), secret("s"), **{"containers": []} | spec)
    assert [need.name for need in needs_of(job, "worker")] == names


def test_a_role_needs_what_its_own_template_names() -> None:
    job = a_job_with(config_map("a"), secret("s"))
    assert [need.name for need in needs_of(job, "worker")] == ["a", "s"]
    assert needs_of(job, "ps") == needs_of(job, "nobody") == ()
    assert needs_of(a_job().with_workers(1, {}).obj(), "worker") == ()
    assert needs_of(a_job().with_workers(1, {"spec": {"volumes": None}}).obj(), "worker") == ()


WORDS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], Pod, str]] = {
    "a ConfigMap is missing": (
        [config_map("nope"), secret("s")],
        {},
        held(),
        "j-worker-0 cannot start: ConfigMap nope (volume conf) does not exist in namespace "
        "default; create it",
    ),
    "two are": (
        [config_map("nope"), config_map("a"), config_map("none", "more")],
        {},
        held(),
        "j-worker-0 cannot start: ConfigMap nope (volume conf) and ConfigMap none (volume more) "
        "do not exist in namespace default; create them",
    ),
    "what it needs is not ours to look at": (
        [config_map("a"), secret("s"), {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}],
        {},
        held(),
        "node n1 has been setting up j-worker-0 for more than 20 s; its volumes need Secret s "
        "(volume keys) and PersistentVolumeClaim c (volume d): is that there? `kubectl -n default "
        "describe pod j-worker-0` says what it waits for",
    ),
    "a Secret that has the name of a missing ConfigMap": (
        [secret("nope")],
        {},
        held(),
        "node n1 has been setting up j-worker-0 for more than 20 s; its volumes need Secret nope "
        "(volume keys): is that there? `kubectl -n default describe pod j-worker-0` says what it "
        "waits for",
    ),
    "it needs nothing that we know of": (
        [config_map("a")],
        {},
        held(),
        "node n1 has been setting up j-worker-0 for more than 20 s. `kubectl -n default describe "
        "pod j-worker-0` says what it waits for",
    ),
    "its template names a node that does not take it": (
        [config_map("nope")],
        {"nodeName": "n1"},
        held(taken_up=False),
        "node n1, which nodeName of role worker names, has not taken j-worker-0 for more than "
        "20 s: `kubectl get node n1` says whether there is one of that name",
    ),
    "a scheduler chose a node that does not take it": (
        [],
        {"nodeName": "n2"},
        held(taken_up=False),
        "node n1 has not taken j-worker-0 for more than 20 s: `kubectl get node n1` says how it is",
    ),
}


@pytest.mark.parametrize("what", WORDS)
def test_what_keeps_a_pod_is_told_after_a_while(what: str) -> None:
    volumes, spec, pod, words = WORDS[what]
    job = a_job_with(*volumes, **spec)
    assert told(job, pod, missing=("nope", "none")) == words
    assert told(job, pod, missing=("nope", "none"), now=IN_TIME) == ""


def test_a_pod_without_a_spec_in_its_template_is_told_of_too() -> None:
    job = a_job().with_workers(1, {"spec": None}).obj()
    assert told(job, held(taken_up=False)).startswith("node n1 has not taken j-worker-0")
    assert told(job, held()).startswith("node n1 has been setting up j-worker-0")


def test_of_several_the_first_is_told_and_a_known_reason_before_a_guess() -> None:
    job = a_job_with(config_map("nope"))
    server, first, second = held("j-ps-0", "ps"), held(), held("j-worker-1")
    assert told(job, server, first, second).startswith("node n1 has been setting up j-ps-0")
    assert told(job, server, first, second, missing=("nope",)).startswith("j-worker-0 cannot")
    ghost = replace(first, taken_up=False)
    assert told(job, ghost, second, missing=("nope",)).startswith("j-worker-1 cannot")
    assert told(job, replace(first, held_since=None)) == ""


def test_only_what_could_explain_a_delay_is_looked_for() -> None:
    job = a_job_with(config_map("a"), config_map("b", "more"), secret("s"))

    def looked_for(*pods: Pod, now: Any = LATE) -> set[str]:
        return set(config_maps_in_doubt(job, Children(pods=pods), now))

    assert looked_for(held(), held("j-ps-0", "ps")) == {"a", "b"}
    assert looked_for(held(), now=IN_TIME) == set()
    assert looked_for(replace(held(), held_since=None)) == set()
    assert looked_for(held("j-ps-0", "ps")) == set()
    assert looked_for(held(taken_up=False)) == set(), "no node, nothing to mount"


def test_a_held_pod_is_looked_at_again() -> None:
    free = replace(held(), held_since=None)
    assert until_too_long((), LATE) is None
    assert until_too_long((free,), LATE) is None
    assert until_too_long((free, held()), at(5)) == PATIENCE_SECONDS - 5
    assert until_too_long((held(),), at(PATIENCE_SECONDS - 0.5)) == 0.5
    assert until_too_long((held(),), LATE) == LOOK_AGAIN_SECONDS == 30
    younger = replace(held(), held_since=at(15).wall)
    assert until_too_long((held(), younger), LATE) == PATIENCE_SECONDS - 5


def a_held_scene(job: Any) -> Scene:
    scene = a_scene(job, services=True)
    scene.tick()
    for pod in scene.children.pods:
        facts = {"phase": PodPhase.STARTING, "scheduled": True, "node": "n1"}
        scene.change(pod.name, held_since=at(scene.now).wall, **facts)
    return scene


def test_a_job_says_why_it_does_not_get_beyond_its_places() -> None:
    scene = a_held_scene(a_job().with_workers(2, template(config_map("nope"))))
    assert scene.tick(1).look_again == PATIENCE_SECONDS - 1
    assert scene.job.status.message == "0 of 2 replicas have an address"
    scene.children = replace(scene.children, missing=frozenset({"nope"}))
    assert scene.tick(PATIENCE_SECONDS - 1).look_again == LOOK_AGAIN_SECONDS
    status = scene.job.status
    assert (status.phase, status.reason) == (Phase.STARTING, "")
    assert status.message.startswith("j-worker-0 cannot start: ConfigMap nope")
    assert scene.tick(LOOK_AGAIN_SECONDS).status is None, "told once"
    for number in range(2):
        scene.change(f"j-worker-{number}", held_since=None, host=f"10.0.0.{number}")
    assert scene.tick().look_again is None
    assert scene.job.status.message == "2 of 2 replicas have an address"


def test_so_does_one_whose_addresses_are_known_and_one_that_grows() -> None:
    """On the nodes' own network a pod has its address before it is set up."""
    scene = a_held_scene(a_job().with_workers(2, template(secret("s"))))
    for number in range(2):
        scene.change(f"j-worker-{number}", host=f"10.0.0.{number}")
    scene.tick(PATIENCE_SECONDS)
    scene.tick()
    assert scene.job.status.phase is Phase.STARTING
    assert scene.job.status.message.startswith("node n1 has been setting up j-worker-0")

    scene = a_scene(a_job().with_workers(2, template(secret("s"))), services=True).run()
    scene.scale(worker=3).tick()
    facts = {"phase": PodPhase.STARTING, "scheduled": True, "node": "n1"}
    scene.change("j-worker-2", held_since=at(scene.now).wall, **facts)
    assert scene.tick().look_again == PATIENCE_SECONDS
    scene.tick(PATIENCE_SECONDS)
    assert scene.job.status.phase is Phase.SCALING
    assert scene.job.status.message.startswith("node n1 has been setting up j-worker-2")
