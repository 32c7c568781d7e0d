"""The client when the network, the server or its own credentials fail it."""

from __future__ import annotations

import asyncio
import base64
import stat
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, Unreachable
from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import CONFIG_MAPS, Resource
from regatta.engines.kubernetes.api.transport import TransportSettings
from tests.engines.kubernetes.loops import in_a_loop
from tests.http.certificates import Authority
from tests.kubernetes.client.clients import a_config_map, connect
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import (
    Drop,
    DropAfterCommit,
    DropAfterParts,
    Refuse,
    RefuseAfterCommit,
    Rule,
    Stall,
)


@in_a_loop
async def test_a_429_is_obeyed_and_the_write_happens_once(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    codes: Counter[int] = Counter()

    def count(verb: str, resource: str, code: int, seconds: float) -> None:
        codes[code] += 1

    proxy.add(Rule(Refuse(429, "TooManyRequests", retry_after=1), method="POST", times=2))
    async with connect(proxy.kubeconfig, count) as client:
        began = time.monotonic()
        await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
        assert time.monotonic() - began >= 2  # As long as the server said, twice.
    assert codes == {429: 2, 201: 1}


@in_a_loop
async def test_a_server_that_never_stops_refusing_is_given_up(
    proxy: FaultProxy, namespace: str
) -> None:
    rule = proxy.add(Rule(Refuse(429, "TooManyRequests"), times=None))
    async with connect(proxy.kubeconfig, retries=2, retry_seconds=0.01) as client:
        with pytest.raises(ApiError) as raised:
            await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    assert raised.value.throttled
    assert rule.struck == 3


@pytest.mark.parametrize(
    "fault",
    [Drop(), DropAfterCommit(), DropAfterParts(0), Refuse(503), RefuseAfterCommit(500)],
    ids=lambda fault: type(fault).__name__,
)
@in_a_loop
async def test_a_read_is_simply_tried_again(proxy: FaultProxy, namespace: str, fault: Any) -> None:
    rule = proxy.add(Rule(fault, method="GET", times=2))
    async with connect(proxy.kubeconfig, retry_seconds=0.01) as client:
        await client.list(CONFIG_MAPS, Bare, namespace=namespace)
    assert rule.struck == 2


@pytest.mark.parametrize(
    ("fault", "raised", "made"),
    [
        pytest.param(Drop(), Unreachable, False, id="the request is lost"),
        pytest.param(DropAfterCommit(), Unreachable, True, id="the answer is lost"),
        pytest.param(RefuseAfterCommit(500), ApiError, True, id="the answer is a lie"),
    ],
)
@in_a_loop
async def test_a_write_that_may_have_happened_is_never_repeated(
    proxy: FaultProxy,
    plane: ControlPlane,
    namespace: str,
    fault: Any,
    raised: type[Exception],
    made: bool,
) -> None:
    proxy.add(Rule(fault, method="POST", times=1))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with connect(proxy.kubeconfig) as client:
        with pytest.raises(raised):
            await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
    assert proxy.requests["POST", path] == 1
    assert (plane.api.find(f"{path}/a") is not None) is made


@in_a_loop
async def test_a_server_that_does_not_answer_is_given_up_in_time(
    proxy: FaultProxy, namespace: str
) -> None:
    proxy.add(Rule(Stall(60), method="POST"))
    async with connect(proxy.kubeconfig, request_seconds=3) as client:
        with pytest.raises(Unreachable, match=r"no answer from https://.* within 3 s"):
            await client.create(CONFIG_MAPS, a_config_map("a"), namespace=namespace)
        # The connection is not used again: its answer may still come.
        await client.create(CONFIG_MAPS, a_config_map("b"), namespace=namespace)


@in_a_loop
async def test_a_list_whose_pages_expire_is_begun_again(proxy: FaultProxy, namespace: str) -> None:
    async with connect(proxy.kubeconfig, page_size=2) as client:
        for number in range(5):
            await client.create(CONFIG_MAPS, a_config_map(f"m-{number}"), namespace=namespace)
        rule = proxy.add(Rule(Refuse(410, "Expired"), path="continue=", times=2))
        listing = await client.list(CONFIG_MAPS, Bare, namespace=namespace)
    names = [thing.metadata.name for thing in listing.items]
    assert [name for name in names if name.startswith("m-")] == [f"m-{n}" for n in range(5)]
    assert rule.struck == 2


@in_a_loop
async def test_connections_are_shared_and_bounded(proxy: FaultProxy, namespace: str) -> None:
    async with connect(proxy.kubeconfig, transport=TransportSettings(connections=4)) as client:
        for _ in range(3):
            await asyncio.gather(
                *(client.list(CONFIG_MAPS, Bare, namespace=namespace) for _ in range(20))
            )
    assert 1 <= proxy.connections <= 4


# Credentials


def changed(source: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    config = yaml.safe_load(source.read_text())
    change(config)
    to.write_text(yaml.safe_dump(config))
    return to


@in_a_loop
async def test_a_wrong_token_is_said_to_be_one(plane: ControlPlane, tmp_path: Path) -> None:
    def forge(config: dict[str, Any]) -> None:
        config["users"][0]["user"] = {"token": "forged"}

    async with connect(changed(plane.admin_kubeconfig, tmp_path / "config", forge)) as client:
        with pytest.raises(ApiError) as raised:
            await client.list(CONFIG_MAPS, Bare)
    assert raised.value.status == 401


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("another authority", "is not one that the cluster's configuration trusts"),
        ("another name", "check certificate-authority and tls-server-name"),
    ],
)
@in_a_loop
async def test_a_server_that_is_not_the_one_we_mean_is_not_talked_to(
    plane: ControlPlane, tmp_path: Path, what: str, said: str
) -> None:
    def mistrust(config: dict[str, Any]) -> None:
        cluster = config["clusters"][0]["cluster"]
        if what == "another name":
            cluster["tls-server-name"] = "elsewhere.example"
        else:
            cluster.pop("certificate-authority", None)
            pem = Authority(tmp_path).certificate.read_bytes()
            cluster["certificate-authority-data"] = base64.b64encode(pem).decode()

    path = changed(plane.admin_kubeconfig, tmp_path / "config", mistrust)
    async with connect(path, retries=0) as client:
        with pytest.raises(Unreachable, match=said):
            await client.read_path("/version")


@in_a_loop
async def test_a_refused_exec_credential_is_asked_for_again(
    plane: ControlPlane, tmp_path: Path
) -> None:
    plugin = tmp_path / "sign-in"
    token = tmp_path / "token"
    token.write_text("outdated")
    plugin.write_text(
        "#!/bin/sh\n"
        'printf \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        f'"status": {{"token": "%s"}}}}\' "$(cat {token})"\n'
        f"printf %s {plane.users['admin'].token} > {token}\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)

    def sign_in(config: dict[str, Any]) -> None:
        config["users"][0]["user"] = {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "./sign-in",
                "interactiveMode": "Never",
            }
        }

    async with connect(changed(plane.admin_kubeconfig, tmp_path / "config", sign_in)) as client:
        await client.list(CONFIG_MAPS, Bare)


@in_a_loop
async def test_a_client_certificate_signs_us_in_and_may_be_rotated(
    start_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    plane = start_plane(
        controller_manager=False,
        scheduler=False,
        kwok=False,
        apiserver_args=(f"--client-ca-file={authority.certificate}",),
    )
    first = authority.issue("grace", group="system:masters")
    second = authority.issue("ada", group="system:masters")
    certificate, key = tmp_path / "me.crt", tmp_path / "me.key"
    certificate.write_bytes(first.certificate.read_bytes())
    key.write_bytes(first.key.read_bytes())

    def sign(config: dict[str, Any]) -> None:
        config["users"][0]["user"] = {"client-certificate": "me.crt", "client-key": "me.key"}

    path = changed(plane.admin_kubeconfig, tmp_path / "config", sign)
    access = load_access(path, environment={}, fresh_seconds=0)

    async def who(client: KubeClient) -> str:
        reviews = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "x", False)
        body = {"apiVersion": reviews.api_version, "kind": "SelfSubjectReview"}
        return str((await client.create(reviews, body)).json()["status"]["userInfo"]["username"])

    async with KubeClient(access) as client:
        assert await who(client) == "grace"
        key.write_bytes(second.key.read_bytes())
        certificate.write_bytes(second.certificate.read_bytes())
        assert await who(client) == "ada"
