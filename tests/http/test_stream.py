"""A slow reader holds the server back instead of filling the memory."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.http.dial import Dialler
from regatta.http.stream import BUFFER
from regatta.http.tls import TlsContexts, Trust
from tests.engines.kubernetes.loops import in_a_loop
from tests.http.certificates import Authority, served
from tests.http.peer import Talk, a_peer

PART = b"x" * (64 << 10)
PARTS = 1024
#: What kernels and TLS may hold beside our own buffer: half of what is sent.
ON_THE_WAY = 32 << 20


async def settled(value: Callable[[], int]) -> int:
    """The value, once it has stood still for a while."""
    same, last = 0, -1
    while same < 20:
        await asyncio.sleep(0.01)
        same = same + 1 if value() == last else 0
        last = value()
    return last


@pytest.fixture
def contexts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ssl.SSLContext, ...] | None:
    if request.param == "plain":
        return None
    authority = Authority(tmp_path)
    trust = Trust(authority.certificate.read_bytes())
    return served(authority.issue("peer", "IP:127.0.0.1")), TlsContexts().current(trust)


@pytest.mark.parametrize("framing", ["chunks", "a known length", "until closed"])
@pytest.mark.parametrize("contexts", ["plain", "tls"], indirect=True)
@in_a_loop
async def test_a_slow_reader_holds_the_server_back(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None, framing: str
) -> None:
    async def pour(talk: Talk) -> None:
        await talk.request()
        header = {
            "chunks": b"Transfer-Encoding: chunked\r\n",
            "a known length": b"Content-Length: %d\r\n" % (PARTS * len(PART)),
            "until closed": b"",
        }[framing]
        await talk.say(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n")
        for _ in range(PARTS):
            chunk = b"%x\r\n%s\r\n" % (len(PART), PART) if framing == "chunks" else PART
            await talk.say(chunk)
        await talk.say(b"0\r\n\r\n" if framing == "chunks" else b"")

    tls, context = contexts or (None, None)
    async with a_peer(pour, tls=tls) as peer:
        connection = await Dialler(peer.url).dial(context)
        head = await connection.send("GET", "/x", [("Host", "a")])
        held = await settled(lambda: peer.talks[0].said)
        assert held < BUFFER + ON_THE_WAY
        total = 0
        async for part in connection.parts(head):
            total += len(part)
        assert total == PARTS * len(PART)
        connection.close()
