"""One HTTP client that asks a real API server again and again, in a process of its own.

    python -m benchmarks.kubernetes.http_client CLIENT KUBECONFIG REQUESTS

CLIENT is regatta, aiohttp or httpx; the last two live in `.venv-bench`. Ours is the operator's
whole client, with its time limits, retries and counting; theirs send and read, and do no more.
Prints one line of JSON: milliseconds of processor time for a read and for a write, and the bytes
that are resident in the end.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

PARALLEL = 8
#: What is read; what is written has another name, or the server would refuse it.
NAME = "asked-for"
COLLECTION = "/api/v1/namespaces/default/configmaps"
DRY_RUN = "?dryRun=All&fieldManager=regatta"


def config_map(name: str) -> bytes:
    """About 3 KB, as an object of ours has."""
    data = {f"key-{number}": "v" * 80 for number in range(30)}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return json.dumps(document).encode()


BODY = config_map("written")
Ask = Callable[[], Awaitable[int]]


def written(kubeconfig: Path) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    """The server, whom to trust and what to show, as the test cluster's own file has them."""
    config: dict[str, Any] = json.loads(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    token = config["users"][0]["user"]["token"]
    return cluster["server"], context, {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def regatta(kubeconfig: Path) -> AsyncIterator[tuple[Ask, Ask]]:
    from regatta.engines.kubernetes.access.config import load_access
    from regatta.engines.kubernetes.api.client import KubeClient
    from regatta.engines.kubernetes.api.resources import CONFIG_MAPS

    async with KubeClient(load_access(kubeconfig, environment={})) as client:

        async def read() -> int:
            return (await client.get(CONFIG_MAPS, NAME, namespace="default")).status

        async def write() -> int:
            answer = await client.create(CONFIG_MAPS, BODY, namespace="default", dry_run=True)
            return answer.status

        yield read, write


@asynccontextmanager
async def aiohttp(kubeconfig: Path) -> AsyncIterator[tuple[Ask, Ask]]:
    import aiohttp

    server, context, headers = written(kubeconfig)
    connector = aiohttp.TCPConnector(ssl=context, limit=PARALLEL)
    headers = {**headers, "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(server, connector=connector, headers=headers) as session:

        async def read() -> int:
            async with session.get(f"{COLLECTION}/{NAME}") as answer:
                await answer.read()
                return answer.status

        async def write() -> int:
            kind = {"Content-Type": "application/json"}
            async with session.post(COLLECTION + DRY_RUN, data=BODY, headers=kind) as answer:
                await answer.read()
                return answer.status

        yield read, write


@asynccontextmanager
async def httpx(kubeconfig: Path) -> AsyncIterator[tuple[Ask, Ask]]:
    import httpx

    server, context, headers = written(kubeconfig)
    headers = {**headers, "Accept-Encoding": "identity"}
    limits = httpx.Limits(max_connections=PARALLEL, max_keepalive_connections=PARALLEL)
    async with httpx.AsyncClient(
        base_url=server, verify=context, headers=headers, limits=limits, trust_env=False
    ) as client:

        async def read() -> int:
            return (await client.get(f"{COLLECTION}/{NAME}")).status_code

        async def write() -> int:
            kind = {"Content-Type": "application/json"}
            answer = await client.post(COLLECTION + DRY_RUN, content=BODY, headers=kind)
            return answer.status_code

        yield read, write


CLIENTS = {"regatta": regatta, "aiohttp": aiohttp, "httpx": httpx}


async def cost(ask: Ask, requests: int, expected: int) -> float:
    """Milliseconds of this process's processor time for each request."""
    waiting = iter(range(requests))

    async def work() -> None:
        for _ in waiting:
            status = await ask()
            if status != expected:
                raise RuntimeError(f"the API server answered {status} instead of {expected}")

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(PARALLEL)))
    return (time.process_time() - began) * 1000 / requests


async def main(client: str, kubeconfig: Path, requests: int) -> dict[str, float]:
    async with CLIENTS[client](kubeconfig) as (read, write):
        # Connections, their handshakes and what is imported late are not a request's cost.
        await cost(read, 10 * PARALLEL, 200)
        return {
            "read": await cost(read, requests, 200),
            "write": await cost(write, requests, 201),
            "resident": resident(),
        }


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say how much memory a process has")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))))
