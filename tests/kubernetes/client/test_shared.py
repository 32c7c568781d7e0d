"""Readers that share an informer, on a real API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.kubernetes.api.kube_errors import KubeError, Unreachable
from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import CONFIG_MAPS, Resource
from regatta.engines.kubernetes.cache import shared
from regatta.engines.kubernetes.cache.index import by_label
from regatta.engines.kubernetes.cache.shared import (
    EVERYTHING,
    Part,
    Reader,
    Scope,
    SharedInformers,
)
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.client.clients import a_config_map, connect
from tests.kubernetes.client.watching import OURS, SOON, WATCH, change, make, remove
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import Refuse, Rule, SlowParts

Calls = Counter[tuple[str, str]]
BY_TEAM = (("team", by_label("team")),)


def scope_of(namespace: str) -> Scope[Bare]:
    return Scope(
        CONFIG_MAPS,
        Bare,
        namespace=namespace,
        label_selector="made-by=test",
        indexers=BY_TEAM,
    )


class Heard:
    def __init__(self) -> None:
        self.told: list[str] = []

    def changed(self, old: Bare | None, new: Bare | None) -> None:
        sign = "+" if old is None else "-" if new is None else "~"
        thing = new or old
        assert thing is not None
        self.told.append(sign + thing.metadata.name)


@asynccontextmanager
async def sharing(
    kubeconfig: Path, linger_seconds: float = 0.0
) -> AsyncIterator[tuple[SharedInformers, Calls]]:
    calls: Calls = Counter()

    def observe(verb: str, resource: str, code: int, seconds: float) -> None:
        calls[verb, resource] += 1

    async with connect(kubeconfig, observe, retries=0, request_seconds=5.0) as client:
        informers = SharedInformers(client, SOON, linger_seconds=linger_seconds)
        try:
            yield informers, calls
        finally:
            await informers.close()


@in_a_loop
async def test_readers_of_one_scope_share_one_watch(plane: ControlPlane, namespace: str) -> None:
    make(plane, namespace, "a", "b")
    first, second = Heard(), Heard()
    async with sharing(plane.admin_kubeconfig) as (informers, calls):
        scope = scope_of(namespace)
        async with informers.reader(scope, EVERYTHING, first.changed):
            async with informers.reader(scope, Part.one(f"{namespace}/b"), second.changed):
                assert (sorted(first.told), second.told) == (["+a", "+b"], ["+b"])
                change(plane, namespace, "a", "1")
                change(plane, namespace, "b", "1")
                await eventually(lambda: "~b" in first.told)
                assert second.told == ["+b", "~b"]
            remove(plane, namespace, "b")
            await eventually(lambda: "-b" in first.told)
        assert informers.running == 0

    assert second.told == ["+b", "~b"]  # it had left
    assert calls == {("list", "configmaps"): 1, ("watch", "configmaps"): 1}


@in_a_loop
async def test_what_moves_out_of_a_part_is_gone_for_its_reader(
    plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    plane.api.create(path, a_config_map("a", labels={**OURS, "team": "red"}))
    red, blue = Heard(), Heard()
    async with sharing(plane.admin_kubeconfig) as (informers, _), AsyncExitStack() as stack:
        for team, heard in (("red", red), ("blue", blue)):
            part = Part("team", f"{namespace}/{team}")
            reading = informers.reader(scope_of(namespace), part, heard.changed)
            await stack.enter_async_context(reading)

        plane.api.patch(f"{path}/a", {"metadata": {"labels": {"team": "blue"}}})

        await eventually(lambda: blue.told)
        assert (red.told, blue.told) == (["+a", "-a"], ["+a"])


@in_a_loop
async def test_a_reader_who_comes_back_soon_finds_everything_still_there(
    plane: ControlPlane, namespace: str
) -> None:
    make(plane, namespace, "a")
    async with sharing(plane.admin_kubeconfig, linger_seconds=0.3) as (informers, calls):
        for _ in range(3):
            heard = Heard()
            async with informers.reader(scope_of(namespace), EVERYTHING, heard.changed):
                assert heard.told == ["+a"]
        assert calls["list", "configmaps"] == 1
        assert informers.running == 1
        await eventually(lambda: informers.running == 0)


@in_a_loop
async def test_a_first_list_that_is_refused_is_told_to_all_who_wait_and_tried_again_later(
    plane: ControlPlane, namespace: str, proxy: FaultProxy
) -> None:
    refused = proxy.add(Rule(Refuse(403, "Forbidden"), path="/configmaps", times=1))

    async def read(informers: SharedInformers) -> Reader[Bare] | KubeError:
        try:
            async with informers.reader(scope_of(namespace), EVERYTHING, Heard().changed) as reader:
                return reader
        except KubeError as failure:
            return failure

    async with sharing(proxy.kubeconfig, linger_seconds=60) as (informers, _):
        answers = await asyncio.gather(*(read(informers) for _ in range(5)))
        assert all(isinstance(answer, KubeError) for answer in answers)
        assert refused.struck == 1
        assert informers.running == 0  # what never worked does not linger
        assert isinstance(await read(informers), Reader)


@in_a_loop
async def test_a_reader_sees_that_its_informer_has_lost_the_cluster(
    plane: ControlPlane, namespace: str, proxy: FaultProxy
) -> None:
    heard = Heard()
    async with (
        sharing(proxy.kubeconfig) as (informers, _),
        informers.reader(scope_of(namespace), EVERYTHING, heard.changed) as reader,
    ):
        proxy.cut()
        await eventually(lambda: reader.trouble)
        make(plane, namespace, "a")
        proxy.restore()
        await eventually(lambda: not reader.trouble)
        await eventually(lambda: heard.told == ["+a"])


@in_a_loop
async def test_nothing_older_is_told_than_what_a_reader_knows_already(
    plane: ControlPlane, namespace: str, proxy: FaultProxy
) -> None:
    proxy.add(Rule(SlowParts(0.5), path=WATCH, times=None))
    async with sharing(proxy.kubeconfig) as (informers, _):
        scope = scope_of(namespace)
        async with informers.reader(scope, EVERYTHING, Heard().changed):
            body = a_config_map("late", labels=OURS)
            made = plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)
            heard, seen = Heard(), made["metadata"]["resourceVersion"]
            async with informers.reader(scope, EVERYTHING, heard.changed, seen=seen):
                assert heard.told == ["+late"]


@in_a_loop
async def test_a_reader_does_not_wait_for_ever_for_what_it_knows(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "CATCH_UP_SECONDS", 0.1)
    async with sharing(plane.admin_kubeconfig) as (informers, _):
        reading = informers.reader(scope_of(namespace), EVERYTHING, Heard().changed, seen="9" * 15)
        with pytest.raises(Unreachable, match="far behind"):
            await reading.__aenter__()
        assert informers.running == 0


@in_a_loop
async def test_a_resource_that_is_not_served_is_no_trouble_to_wait_out(plane: ControlPlane) -> None:
    nothing: Scope[Any] = Scope(Resource("", "v1", "nothings", "Nothing"), Bare)
    async with sharing(plane.admin_kubeconfig) as (informers, _):
        with pytest.raises(KubeError, match="404"):
            await informers.reader(nothing, EVERYTHING, Heard().changed).__aenter__()
