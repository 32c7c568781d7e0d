"""Informers on a real API server, through a network that fails in every way we know of."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from regatta.engines.kubernetes.client import KubeClient
from regatta.engines.kubernetes.informer import Informer, InformerSettings
from regatta.engines.kubernetes.resources import CONFIG_MAPS, PODS
from regatta.engines.kubernetes.slim import Bare, Metadata, Pod
from regatta.engines.kubernetes.store import by_controller, by_label
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.client.clients import a_config_map, a_pod, connect
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import (
    ErrorEvent,
    LoseParts,
    Refuse,
    Rule,
    SilenceAfterParts,
    SlowParts,
)

#: Only what tests make: the cluster puts a kube-root-ca.crt into every namespace.
OURS = {"made-by": "test"}
WATCH = "watch=true"
SOON = InformerSettings(first_pause_seconds=0.05, longest_pause_seconds=0.5)


class Watched:
    """An informer at work, and everything that its handler was told."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.told: list[str] = []
        informer.on_change(self._hear)

    def _hear(self, old: Any, new: Any) -> None:
        sign = "+" if old is None else "-" if new is None else "~"
        self.told.append(sign + (new or old).metadata.name)

    @property
    def names(self) -> set[str]:
        return {thing.metadata.name for thing in self.informer.store}


@asynccontextmanager
async def watched(
    kubeconfig: Path,
    namespace: str,
    settings: InformerSettings = SOON,
    *,
    kind: type[Any] = Bare,
    synced: bool = True,
) -> AsyncIterator[Watched]:
    async with connect(kubeconfig, retries=0, request_seconds=5.0) as client:
        informer = Informer(
            client,
            CONFIG_MAPS,
            kind,
            namespace=namespace,
            label_selector="made-by=test",
            settings=settings,
        )
        seen = Watched(informer)
        task = asyncio.ensure_future(informer.run())
        try:
            if synced:
                await informer.synced.wait()
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def make(plane: ControlPlane, namespace: str, *names: str) -> None:
    for name in names:
        body = a_config_map(name, labels=OURS)
        plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)


def change(plane: ControlPlane, namespace: str, name: str, value: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    plane.api.patch(path, {"data": {"key": value}})


def remove(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.api.delete(f"/api/v1/namespaces/{namespace}/configmaps/{name}")


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
async def test_what_was_seen_stays_seen_while_the_watch_is_begun_anew(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    """Else a job whose write was seen long ago would wait for it once more."""
    make(plane, namespace, "a")
    async with (
        watched(proxy.kubeconfig, namespace) as seen,
        connect(plane.admin_kubeconfig) as client,
    ):
        made = await client.create(CONFIG_MAPS, a_config_map("b", labels=OURS), namespace=namespace)
        await eventually(lambda: seen.informer.has_seen(made.identity.resource_version))
        rule = proxy.add(Rule(Refuse(410, "Expired"), path=WATCH, times=None))
        again = proxy.add(Rule(Refuse(500, "InternalError"), path="/configmaps", times=None))
        proxy.drop_connections()
        await eventually(lambda: rule.struck and again.struck)
        assert seen.informer.has_seen(made.identity.resource_version)


@in_a_loop
async def test_a_lost_connection_resumes_without_a_list_and_without_repeats(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a")
    async with watched(proxy.kubeconfig, namespace) as seen:
        await eventually(lambda: seen.informer.counts.watches == 1)
        for round_ in range(3):
            proxy.drop_connections()
            make(plane, namespace, f"b-{round_}")
            await eventually(lambda round_=round_: f"b-{round_}" in seen.names)  # type: ignore[misc]
        assert seen.told == ["+a", "+b-0", "+b-1", "+b-2"]
        assert seen.informer.counts.lists == 1
        assert seen.informer.counts.watches >= 4


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


@pytest.mark.parametrize(
    "fault", [Refuse(410, "Expired"), ErrorEvent()], ids=["as a status", "as an event"]
)
@in_a_loop
async def test_after_a_410_what_vanished_meanwhile_is_told_as_deleted(
    proxy: FaultProxy, plane: ControlPlane, namespace: str, fault: Any
) -> None:
    make(plane, namespace, "p1", "p2", "p3")
    async with watched(proxy.kubeconfig, namespace) as seen:
        proxy.cut()
        await eventually(lambda: seen.informer.trouble)
        remove(plane, namespace, "p2")
        make(plane, namespace, "p4")
        remove(plane, namespace, "p3")
        make(plane, namespace, "p3")
        rule = proxy.add(Rule(fault, path=WATCH))
        proxy.restore()
        await eventually(lambda: seen.names == {"p1", "p3", "p4"} and rule.struck)
        assert sorted(seen.told[:3]) == ["+p1", "+p2", "+p3"]
        assert sorted(seen.told[3:]) == ["+p3", "+p4", "-p2", "-p3"]
        assert seen.told.index("-p3") < len(seen.told) - 1 - seen.told[::-1].index("+p3")
        assert seen.informer.counts.lists == 2


@in_a_loop
async def test_a_server_that_forgets_again_and_again_is_not_hammered(
    proxy: FaultProxy, namespace: str
) -> None:
    rule = proxy.add(Rule(Refuse(410, "Expired"), path=WATCH, times=None))
    patient = InformerSettings(first_pause_seconds=0.4, longest_pause_seconds=3)
    async with watched(proxy.kubeconfig, namespace, patient) as seen:
        began = time.monotonic()
        await eventually(lambda: rule.struck >= 3)
        # One at once, and then at least 0.4 s and 0.8 s apart less their spread.
        assert time.monotonic() - began >= 0.4
        assert seen.informer.counts.lists <= rule.struck + 1


@in_a_loop
async def test_an_api_server_that_restarts_loses_us_nothing(
    start_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    plane = start_plane(controller_manager=False, scheduler=False, kwok=False)
    make(plane, "default", "p1", "p2", "p3")
    with FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as proxy:
        async with watched(proxy.kubeconfig, "default") as seen:
            assert seen.names == {"p1", "p2", "p3"}
            proxy.cut()
            remove(plane, "default", "p2")
            make(plane, "default", "p4")
            plane.restart_apiserver(crash=True)
            before = proxy.connections
            await eventually(lambda: proxy.connections >= before + 2)
            proxy.restore()
            await eventually(lambda: seen.names == {"p1", "p3", "p4"})
            make(plane, "default", "p5")
            await eventually(lambda: "p5" in seen.names)
            assert seen.told.count("-p2") == 1
            assert len(seen.told) == len(set(seen.told))


@in_a_loop
async def test_a_cluster_that_counts_anew_is_listed_anew(
    start_plane: Callable[..., ControlPlane],
) -> None:
    """As after a restore from a backup: the API server meets our position with silence."""
    plane = start_plane(controller_manager=False, scheduler=False, kwok=False)
    make(plane, "default", "before")
    for number in range(1500):
        change(plane, "default", "before", str(number))
    impatient = msgspec.structs.replace(SOON, silence_seconds=3.0)
    async with watched(plane.admin_kubeconfig, "default", impatient) as seen:
        assert seen.names == {"before"}
        plane.etcd.kill()
        shutil.rmtree(plane.folder / "etcd")
        plane.etcd.start()
        plane.restart_apiserver(crash=True)
        make(plane, "default", "after")
        await eventually(lambda: seen.names == {"after"}, 60)
        assert seen.told == ["+before", "-before", "+after"]


@in_a_loop
async def test_a_half_open_stream_is_given_up_after_its_silence(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a")
    impatient = msgspec.structs.replace(SOON, silence_seconds=2.0)
    proxy.add(Rule(SilenceAfterParts(1), path=WATCH))
    async with watched(proxy.kubeconfig, namespace, impatient) as seen:
        make(plane, namespace, "b")
        await eventually(lambda: "b" in seen.names)
        make(plane, namespace, "c")  # On a stream that stands, and carries nothing.
        await eventually(lambda: "c" in seen.names)
        assert seen.told == ["+a", "+b", "+c"]
        assert seen.informer.counts.lists == 1


@in_a_loop
async def test_a_network_that_swallows_everything_is_survived(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    impatient = msgspec.structs.replace(SOON, silence_seconds=1.0)
    async with watched(proxy.kubeconfig, namespace, impatient) as seen:
        await eventually(lambda: seen.informer.counts.watches == 1)
        proxy.freeze()
        make(plane, namespace, "a")
        await eventually(lambda: "nothing came for 1 s" in seen.informer.trouble)
        proxy.restore()
        await eventually(lambda: seen.names == {"a"})


@in_a_loop
async def test_a_slow_watch_arrives_in_order(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    proxy.add(Rule(SlowParts(0.1), path=WATCH, times=None))
    async with watched(proxy.kubeconfig, namespace) as seen:
        names = [f"m-{number}" for number in range(12)]
        make(plane, namespace, *names)
        await eventually(lambda: len(seen.names) == 12)
        assert seen.told == [f"+{name}" for name in names]
        assert seen.informer.counts.failures == 0


@in_a_loop
async def test_an_event_that_never_came_is_found_by_the_next_list(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a", "b")
    settings = msgspec.structs.replace(SOON, relist_seconds=3.0)
    # The first watch only: later ones resume behind what was lost, and would never show it.
    proxy.add(Rule(LoseParts(after=0, count=1), path=WATCH))
    async with watched(proxy.kubeconfig, namespace, settings) as seen:
        await eventually(lambda: seen.informer.counts.watches == 1)
        remove(plane, namespace, "a")
        make(plane, namespace, "c")
        await eventually(lambda: "c" in seen.names)
        assert "a" in seen.names
        await eventually(lambda: seen.names == {"b", "c"})
        assert seen.informer.counts.found_by_list == 1
        assert seen.told.count("-a") == 1


@in_a_loop
async def test_a_check_that_fails_does_not_stop_the_watch(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    settings = msgspec.structs.replace(SOON, relist_seconds=1.0)
    async with watched(proxy.kubeconfig, namespace, settings) as seen:
        rule = proxy.add(Rule(Refuse(500), path="limit=", times=None))
        await eventually(lambda: rule.struck >= 2)
        make(plane, namespace, "a")
        await eventually(lambda: seen.names == {"a"})
        assert seen.informer.counts.lists == 1


@in_a_loop
async def test_an_outage_is_waited_out_with_few_connections(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    settings = InformerSettings(first_pause_seconds=0.5, longest_pause_seconds=30)
    async with watched(proxy.kubeconfig, namespace, settings) as seen:
        before = proxy.connections
        proxy.cut()
        await asyncio.sleep(5)
        assert 1 <= proxy.connections - before <= 5
        make(plane, namespace, "a")
        proxy.restore()
        await eventually(lambda: seen.names == {"a"})


@in_a_loop
async def test_a_list_that_is_refused_is_tried_again_and_the_reason_is_there(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    rule = proxy.add(Rule(Refuse(403, "Forbidden"), times=None))
    async with watched(proxy.kubeconfig, namespace, synced=False) as seen:
        await eventually(lambda: rule.struck >= 2)
        assert "configmaps: GET" in seen.informer.trouble
        assert "403 Forbidden" in seen.informer.trouble
        assert not seen.informer.synced.is_set()
        proxy.clear()
        await asyncio.wait_for(seen.informer.synced.wait(), 30)
        await eventually(lambda: seen.informer.trouble == "")


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
