"""A small proxy that tunnels: HTTP CONNECT and SOCKS5, told apart by their first byte."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Tunnel:
    def __init__(self, password: str = "") -> None:
        self.password = password
        self.port = 0
        #: What clients asked to be connected to.
        self.asked: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peers = [writer]
        try:
            first = await reader.readexactly(1)
            target = await (self._socks if first == b"\x05" else self._connect)(reader, writer)
            if target is None:
                return
            self.asked.append("{}:{}".format(*target))
            there, back = await asyncio.open_connection(*target)
            peers.append(back)
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            self._tasks.discard(task)
            for peer in peers:
                peer.transport.abort()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, int] | None:
        head = (b"C" + await reader.readuntil(b"\r\n\r\n")).decode()
        if self.password and f"Proxy-Authorization: Basic {self.password}" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            await writer.drain()
            return None
        host, _, port = head.split(" ")[1].rpartition(":")
        if ":" in host and not host.startswith("["):  # Whose port would be part of its address.
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            return None
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return host.strip("[]"), int(port)

    async def _socks(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, int]:
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if size := {1: 4, 4: 16}.get(kind):
            host = str(ipaddress.ip_address(await reader.readexactly(size)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return host, port


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def a_tunnel(
    password: str = "", *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Tunnel]:
    tunnel = Tunnel(password)
    server = await asyncio.start_server(tunnel._serve, "127.0.0.1", 0, ssl=tls)
    tunnel.port = server.sockets[0].getsockname()[1]
    try:
        yield tunnel
    finally:
        server.close()
        for task in list(tunnel._tasks):
            task.cancel()
        await asyncio.gather(*tunnel._tasks, return_exceptions=True)
