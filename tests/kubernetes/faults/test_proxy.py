"""The fault proxy itself: what it leaves behind would be blamed on whichever test comes next."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
import warnings
from pathlib import Path

from regatta.http.dial import Dialler
from regatta.http.failures import HttpError
from tests.kubernetes.faults.proxy import FaultProxy

NOWHERE = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: secret}}]
"""


def test_clients_that_knock_while_it_stops_leave_no_socket_open(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "nowhere.kubeconfig"
    kubeconfig.write_text(NOWHERE)
    with warnings.catch_warnings(record=True, action="always") as left:
        for _ in range(20):
            with FaultProxy(kubeconfig, tmp_path / "proxy") as proxy:
                knocking = _Knocking(proxy.url)
                knocking.until_taken(10)
            knocking.stop()
        gc.collect()
    assert [str(warning.message) for warning in left] == []


class _Knocking:
    """Clients in a thread of their own, each of whom connects, leaves and comes back at once."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self._dialler = Dialler(url)
        self._clients = clients
        self._taken = threading.Semaphore(0)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()))
        self._thread.start()

    def until_taken(self, connections: int) -> None:
        for _ in range(connections):
            assert self._taken.acquire(timeout=60), "the proxy takes no connections"

    def stop(self) -> None:
        self._enough.set()
        self._thread.join(60)

    async def _all(self) -> None:
        await asyncio.gather(*(self._knock() for _ in range(self._clients)))
        await asyncio.sleep(0)

    async def _knock(self) -> None:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        while not self._enough.is_set():
            try:
                (await self._dialler.dial(trusting)).close()
            except HttpError:
                await asyncio.sleep(0.01)
            else:
                self._taken.release()
