"""Informers on a real API server, through a network that fails in every way we know of."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from regatta.engines.kubernetes.api.resources import CONFIG_MAPS
from regatta.engines.kubernetes.cache.informer import InformerSettings
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.client.clients import a_config_map, connect
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
    ErrorEvent,
    LoseParts,
    Refuse,
    Rule,
    SilenceAfterParts,
    SlowParts,
)


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
    impatient = msgspec.structs.replace(SOON, silence_seconds=6.0)
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
    settings = msgspec.structs.replace(SOON, relist_seconds=10.0)
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
