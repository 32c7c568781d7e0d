"""A cluster behind a proxy, as `proxy-url` in its kubeconfig says."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from regatta.engines.kubernetes.api.errors import Unreachable
from regatta.engines.kubernetes.api.models import Bare
from regatta.engines.kubernetes.api.resources import NAMESPACES
from tests.engines.kubernetes.loops import in_a_loop
from tests.http.tunnel import a_tunnel
from tests.kubernetes.client.clients import connect
from tests.kubernetes.client.test_client_faults import changed
from tests.kubernetes.controlplane.plane import ControlPlane


def behind(plane: ControlPlane, folder: Path, proxy: str) -> Path:
    return changed(
        plane.admin_kubeconfig,
        folder / "config",
        lambda config: config["clusters"][0]["cluster"].update({"proxy-url": proxy}),
    )


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@in_a_loop
async def test_a_cluster_is_reached_through_its_proxy(
    plane: ControlPlane, tmp_path: Path, scheme: str
) -> None:
    async with a_tunnel() as tunnel:
        path = behind(plane, tmp_path, f"{scheme}://127.0.0.1:{tunnel.port}")
        async with connect(path) as client:
            names = {thing.metadata.name for thing in (await client.list(NAMESPACES, Bare)).items}
            async with client.watch(NAMESPACES, resource_version="", timeout_seconds=30) as lines:
                assert b'"ADDED"' in await anext(lines)
    assert "default" in names
    assert set(tunnel.asked) == {plane.url.removeprefix("https://")}


@in_a_loop
async def test_a_proxy_may_ask_who_we_are(plane: ControlPlane, tmp_path: Path) -> None:
    async with a_tunnel(base64.b64encode(b"ada:l@ce").decode()) as tunnel:
        path = behind(plane, tmp_path, f"http://ada:l%40ce@127.0.0.1:{tunnel.port}")
        async with connect(path) as client:
            await client.list(NAMESPACES, Bare)
        path = behind(plane, tmp_path, f"http://127.0.0.1:{tunnel.port}")
        async with connect(path, retries=0) as client:
            with pytest.raises(Unreachable, match=r"through the proxy .* it answered .*407"):
                await client.list(NAMESPACES, Bare)
