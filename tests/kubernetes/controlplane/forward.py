"""Carries TCP connections from one address to another.

    python -m tests.kubernetes.controlplane.forward 198.19.0.1:443 127.0.0.1:6443

There is no kube-proxy on the test node; this is the one service pods need, the API server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def forward(source: str, target: str) -> None:
    host, _, port = target.rpartition(":")

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, onward_writer), _pump(onward_reader, writer))

    listen_host, _, listen_port = source.rpartition(":")
    server = await asyncio.start_server(carry, listen_host, int(listen_port))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forward(sys.argv[1], sys.argv[2]))
