"""The ceiling: a process that does nothing but create pods, 32 at a time, with our own client.

python -m benchmarks.kubernetes.plain_client KUBECONFIG NAMESPACE PODS.json

Prints the seconds of processor time that the creating took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.resources import PODS

PARALLEL = 32


async def create(kubeconfig: Path, namespace: str, manifests: list[dict[str, Any]]) -> None:
    waiting = iter(manifests)
    async with KubeClient(load_access(kubeconfig)) as client:

        async def work() -> None:
            for manifest in waiting:
                await client.create(PODS, manifest, namespace=namespace, strict=True)

        await asyncio.gather(*(work() for _ in range(PARALLEL)))


if __name__ == "__main__":
    manifests = json.loads(Path(sys.argv[3]).read_text())
    before = time.process_time()
    asyncio.run(create(Path(sys.argv[1]), sys.argv[2], manifests))
    print(time.process_time() - before)
