"""The client's verbs, on a real API server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.models import Bare, Pod
from regatta.engines.kubernetes.api.resources import (
    CONFIG_MAPS,
    NATIVE_POD_GROUPS,
    PODS,
    Resource,
)
from tests.engines.kubernetes.loops import in_a_loop
from tests.kubernetes.client.clients import a_config_map, a_pod, connect
from tests.kubernetes.controlplane.plane import ControlPlane


async def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


@in_a_loop
async def test_a_list_comes_in_pages_and_as_of_one_moment(
    plane: ControlPlane, namespace: str
) -> None:
    calls: Counter[tuple[str, str, int]] = Counter()

    def count(verb: str, resource: str, code: int, seconds: float) -> None:
        calls[verb, resource, code] += 1

    async with connect(plane.admin_kubeconfig, count, page_size=3) as client:
        names = [f"map-{number}" for number in range(10)]
        for name in names:
            await client.create(CONFIG_MAPS, a_config_map(name), namespace=namespace)
        calls.clear()
        listing = await client.list(CONFIG_MAPS, Bare, namespace=namespace)
    found = [thing.metadata.name for thing in listing.items]
    assert [name for name in found if name.startswith("map-")] == names
    assert int(listing.resource_version) > 0
    # The namespace's own kube-root-ca.crt may or may not be there yet.
    assert calls == {("list", "configmaps", 200): 4}


@in_a_loop
async def test_labels_and_fields_select(plane: ControlPlane, namespace: str) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
            body = a_config_map(name, labels={"color": color})
            await client.create(CONFIG_MAPS, body, namespace=namespace)
        red = await client.list(CONFIG_MAPS, Bare, namespace=namespace, label_selector="color=red")
        b = await client.list(
            CONFIG_MAPS, Bare, namespace=namespace, field_selector="metadata.name=b"
        )
    assert [thing.metadata.name for thing in red.items] == ["a", "c"]
    assert [thing.metadata.name for thing in b.items] == ["b"]


@in_a_loop
async def test_a_strict_create_names_the_field_that_nobody_knows(
    plane: ControlPlane, namespace: str
) -> None:
    body = a_pod("typo")
    body["spec"]["containers"][0]["comand"] = ["true"]
    async with connect(plane.admin_kubeconfig) as client:
        error = await refused(client.create(PODS, body, namespace=namespace, strict=True))
        assert error.invalid
        assert 'unknown field "spec.containers[0].comand"' in error.message
        answer = await client.create(PODS, body, namespace=namespace)
        assert "comand" in answer.warning


@in_a_loop
async def test_an_invalid_object_is_refused_with_its_causes(
    plane: ControlPlane, namespace: str
) -> None:
    body = a_pod("bad")
    body["spec"]["restartPolicy"] = "Sometimes"
    async with connect(plane.admin_kubeconfig) as client:
        error = await refused(client.create(PODS, body, namespace=namespace))
    assert (error.status, error.reason, error.invalid) == (422, "Invalid", True)
    assert [cause.field for cause in error.details.causes] == ["spec.restartPolicy"]
    assert f"POST /api/v1/namespaces/{namespace}/pods" in str(error)


@in_a_loop
async def test_a_name_is_taken_until_the_last_of_its_holder_is_gone(
    plane: ControlPlane, namespace: str
) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        body = a_config_map("taken", finalizers=["example.com/hold"])
        await client.create(CONFIG_MAPS, body, namespace=namespace)
        error = await refused(client.create(CONFIG_MAPS, body, namespace=namespace))
        assert (error.already_exists, error.conflict) == (True, False)

        await client.delete(CONFIG_MAPS, "taken", namespace=namespace)
        error = await refused(client.create(CONFIG_MAPS, body, namespace=namespace))
        assert (error.already_exists, error.conflict) == (True, False)

        await client.patch(
            CONFIG_MAPS, "taken", {"metadata": {"finalizers": None}}, namespace=namespace
        )
        error = await refused(client.get(CONFIG_MAPS, "taken", namespace=namespace))
        assert error.not_found


PATCHES: dict[str, tuple[PatchKind, Callable[[str], Any]]] = {
    "a merge patch": (PatchKind.MERGE, lambda name: {"data": {"key": "new"}}),
    "a JSON patch": (
        PatchKind.JSON,
        lambda name: [{"op": "replace", "path": "/data/key", "value": "new"}],
    ),
    "a server-side apply": (
        PatchKind.APPLY,
        lambda name: {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"key": "new"},
        },
    ),
}


@pytest.mark.parametrize("which", PATCHES)
@in_a_loop
async def test_a_guarded_patch_changes_only_the_object_it_means(
    plane: ControlPlane, namespace: str, which: str
) -> None:
    kind, body = PATCHES[which]
    force = kind is PatchKind.APPLY

    async with connect(plane.admin_kubeconfig) as client:

        async def patch(**guard: str) -> str:
            answer = await client.patch(
                CONFIG_MAPS, "a", body("a"), namespace=namespace, kind=kind, force=force, **guard
            )
            return str(answer.json()["data"]["key"])

        made = await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
        mine = made.identity
        for guard in ({"uid": "another"}, {"resource_version": "1"}):
            error = await refused(patch(**guard))
            assert error.conflict, error
        still = (await client.get(CONFIG_MAPS, "a", namespace=namespace)).json()
        assert still["data"] == {"key": "value"}
        assert await patch(uid=mine.uid, resource_version=mine.resource_version) == "new"


@in_a_loop
async def test_a_status_is_written_only_over_the_version_that_was_read(
    plane: ControlPlane, namespace: str
) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        pod = (await client.create(PODS, a_pod("p"), namespace=namespace)).json()
        stale = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1"}}
        error = await refused(
            client.replace(PODS, "p", stale, namespace=namespace, subresource="status")
        )
        assert error.conflict
        error = await refused(
            client.patch(
                PODS,
                "p",
                {"status": {"message": "hello"}},
                namespace=namespace,
                subresource="status",
                resource_version="1",
            )
        )
        assert error.conflict


@in_a_loop
async def test_a_guarded_delete_spares_a_successor(plane: ControlPlane, namespace: str) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        made = await client.create(PODS, a_pod("p"), namespace=namespace)
        error = await refused(client.delete(PODS, "p", namespace=namespace, uid="predecessor"))
        assert error.conflict
        await client.delete(PODS, "p", namespace=namespace, uid=made.identity.uid, grace_seconds=0)
        error = await refused(client.get(PODS, "p", namespace=namespace))
        assert error.not_found


@in_a_loop
async def test_a_dry_run_answers_and_leaves_nothing(plane: ControlPlane, namespace: str) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        answer = await client.create(PODS, a_pod("p"), namespace=namespace, dry_run=True)
        assert answer.into(Pod).spec.restart_policy == "Always"
        assert (await refused(client.get(PODS, "p", namespace=namespace))).not_found


@in_a_loop
async def test_the_log_of_no_pod_is_an_error_like_any_other(
    plane: ControlPlane, namespace: str
) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        with pytest.raises(ApiError) as raised:
            async with client.logs("nobody", namespace=namespace, follow=True) as parts:
                await anext(parts)
    assert raised.value.not_found


@pytest.mark.parametrize(
    ("resource", "served"),
    [
        (PODS, True),
        (Resource("", "v1", "pots", "Pot"), False),
        (NATIVE_POD_GROUPS, False),
        (Resource("example.org", "v1", "jobs", "Job"), False),
    ],
)
@in_a_loop
async def test_what_the_cluster_serves_can_be_asked(
    plane: ControlPlane, resource: Resource, served: bool
) -> None:
    async with connect(plane.admin_kubeconfig) as client:
        assert await client.has_resource(resource) is served


@in_a_loop
async def test_many_creates_at_once(
    plane: ControlPlane, namespace: str, record_property: Callable[[str, object], None]
) -> None:
    """The figure is for reading, not for judging: machines differ."""
    count, at_once = 300, 32
    turns = asyncio.Semaphore(at_once)

    async with connect(plane.admin_kubeconfig) as client:

        async def make(client: KubeClient, number: int) -> None:
            async with turns:
                await client.create(PODS, a_pod(f"p-{number}"), namespace=namespace, strict=True)

        began, worked = time.monotonic(), time.process_time()
        await asyncio.gather(*(make(client, number) for number in range(count)))
        seconds, worked = time.monotonic() - began, time.process_time() - worked
        listing = await client.list(PODS, Pod, namespace=namespace)
    assert len(listing.items) == count
    record_property("pods created a second by one client", int(count / seconds))
    record_property("microseconds of its own for each", int(worked / count * 1e6))
