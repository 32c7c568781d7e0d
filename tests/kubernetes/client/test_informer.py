"""Informers on a real API server: what they show, and when."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.models import Bare, Metadata, Pod
from regatta.engines.kubernetes.api.resources import CONFIG_MAPS, PODS
from regatta.engines.kubernetes.cache.index import by_controller, by_label
from regatta.engines.kubernetes.cache.informer import Informer, InformerSettings
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.client.clients import a_config_map, a_pod, connect
from tests.kubernetes.client.watching import (
    OURS,
    SOON,
    WATCH,
    change,
    make,
    remove,
    watched,
)
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import (
    Rule,
    SilenceAfterParts,
)


@in_a_loop
async def test_an_informer_shows_what_is_there_and_what_changes(
    plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a", "b")
    async with watched(plane.admin_kubeconfig, namespace) as seen:
        assert seen.names == {"a", "b"}
        change(plane, namespace, "a", "new")
        remove(plane, namespace, "b")
        make(plane, namespace, "c")
        await eventually(lambda: seen.names == {"a", "c"})
        assert sorted(seen.told[:2]) == ["+a", "+b"]
        assert seen.told[2:] == ["~a", "-b", "+c"]
        assert seen.informer.counts.lists == 1
        assert seen.informer.trouble == ""


@in_a_loop
async def test_pods_are_found_by_their_job_and_by_their_owner(
    plane: ControlPlane, namespace: str
) -> None:
    owner = plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", a_config_map("owner"))
    uid = owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    async with connect(plane.admin_kubeconfig) as client:
        informer = Informer(
            client,
            PODS,
            Pod,
            namespace=namespace,
            label_selector="job",
            indexers={"job": by_label("job"), "owner": by_controller},
        )
        task = asyncio.ensure_future(informer.run())
        await informer.synced.wait()
        body = a_pod(
            "w-0", labels={"job": "mnist"}, ownerReferences=[{**reference, "controller": True}]
        )
        made = await client.create(PODS, body, namespace=namespace)
        await client.create(PODS, a_pod("stranger"), namespace=namespace)
        await eventually(lambda: informer.has_seen(made.identity.resource_version))
        (pod,) = informer.store.by("job", f"{namespace}/mnist")
        assert [pod] == list(informer.store.by("owner", uid)) == list(informer.store)
        assert pod.spec.containers[0].name == "main"
        # kwok plays a kubelet: the pod comes to run, and has an address.
        key = f"{namespace}/w-0"
        await eventually(lambda: informer.store.get(key).status.pod_ip)  # type: ignore[union-attr]
        (pod,) = informer.store.by("job", f"{namespace}/mnist")
        assert (pod.status.phase, bool(pod.spec.node_name)) == ("Running", True)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@in_a_loop
async def test_a_write_is_seen_when_the_watch_has_passed_it(
    plane: ControlPlane, namespace: str
) -> None:
    async with (
        watched(plane.admin_kubeconfig, namespace) as seen,
        connect(plane.admin_kubeconfig) as client,
    ):
        for number in range(20):
            body = a_config_map(f"m-{number}", labels=OURS)
            made = await client.create(CONFIG_MAPS, body, namespace=namespace)
            version = made.identity.resource_version
            await eventually(lambda version=version: seen.informer.has_seen(version))  # type: ignore[misc]
            assert f"m-{number}" in seen.names
            assert not seen.informer.has_seen(str(int(version) + 10**6))


@in_a_loop
async def test_a_watch_that_the_server_ends_is_resumed(plane: ControlPlane, namespace: str) -> None:
    brief = msgspec.structs.replace(SOON, shortest_watch_seconds=1, longest_watch_seconds=1)
    async with watched(plane.admin_kubeconfig, namespace, brief) as seen:
        await eventually(lambda: seen.informer.counts.watches >= 3)
        make(plane, namespace, "a")
        await eventually(lambda: seen.names == {"a"})
        assert seen.told == ["+a"]
        assert seen.informer.counts.lists == 1
        assert seen.informer.counts.failures == 0


class _Numbers(msgspec.Struct):
    """ConfigMaps whose values are short; others cannot be read."""

    metadata: Metadata
    data: dict[str, msgspec.Raw] = {}

    @classmethod
    def from_json(cls, text: msgspec.Raw | bytes) -> _Numbers:
        read = msgspec.json.decode(text, type=cls)
        if b"unreadable" in bytes(text):
            raise msgspec.ValidationError("as the test wants it")
        return read


@in_a_loop
async def test_one_unreadable_object_does_not_hide_the_others(
    plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a", "b")
    change(plane, namespace, "a", "unreadable")
    async with watched(plane.admin_kubeconfig, namespace, kind=_Numbers) as seen:
        assert seen.names == {"b"}
        change(plane, namespace, "b", "unreadable")
        make(plane, namespace, "c")
        await eventually(lambda: "c" in seen.names)
        assert seen.informer.counts.unreadable == 2
        change(plane, namespace, "a", "good again")
        await eventually(lambda: "a" in seen.names)


@pytest.mark.timeout(400)
@in_a_loop
async def test_by_default_a_quiet_watch_stands_and_a_dead_one_falls(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    """At full length: bookmarks keep the one alive, and nothing reaches the other."""
    defaults = InformerSettings()

    async def run(kubeconfig: Path) -> tuple[Informer[Bare], asyncio.Task[None], KubeClient]:
        client = connect(kubeconfig)
        informer = Informer(client, CONFIG_MAPS, Bare, namespace=namespace, settings=defaults)
        task = asyncio.ensure_future(informer.run())
        await informer.synced.wait()
        return informer, task, client

    proxy.add(Rule(SilenceAfterParts(0), path=WATCH))
    quiet, quiet_task, quiet_client = await run(plane.admin_kubeconfig)
    dead, dead_task, dead_client = await run(proxy.kubeconfig)
    make(plane, namespace, "a")
    await eventually(lambda: f"{namespace}/a" in quiet.store)
    before = quiet.counts.events
    await eventually(lambda: f"{namespace}/a" in dead.store, 110)
    assert dead.counts.failures == 1
    assert quiet.counts.failures == 0
    assert quiet.counts.events > before, "no bookmark came"
    # A watch that never spoke may have been at a position that the server does not know.
    assert (quiet.counts.watches, quiet.counts.lists, dead.counts.lists) == (1, 1, 2)
    for task, client in ((quiet_task, quiet_client), (dead_task, dead_client)):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
