"""Two small listeners: probes for the kubelet, and metrics for Prometheus.

A handful of lines of HTTP instead of a web framework: the operator's memory is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

#: Status code, content type, body.
Page = tuple[int, str, bytes]
Pages = Mapping[str, Callable[[], Page]]

PLAIN = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0
_WORDS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class Address(msgspec.Struct, frozen=True):
    host: str | None
    port: int


def parse_address(text: str) -> Address | None:
    """`:8080`, `127.0.0.1:8080` or `[::1]:8080`; `0` (or nothing) listens nowhere."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"found {text!r}; write an address such as :8080, or 0 for none")
    return Address(host.strip("[]") or None, int(port))


def said(fine: bool, words: str = "") -> Page:
    return (200, PLAIN, b"ok\n") if fine else (503, PLAIN, f"{words or 'not ok'}\n".encode())


class Listener:
    """`async with Listener(address, pages) as listener:` answers GET requests until left."""

    def __init__(self, address: Address, pages: Pages) -> None:
        self._address = address
        self._pages = pages
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Listener:
        self._server = await asyncio.start_server(
            self._answer, self._address.host, self._address.port
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                code, kind, body = self._page(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(
                    f"HTTP/1.1 {code} {_WORDS[code]}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                )
                writer.write(body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Whoever asked is gone, or never asked.
        finally:
            writer.close()

    def _page(self, request: str) -> Page:
        method, _, rest = request.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return 405, PLAIN, b"only GET\n"
        page = self._pages.get(path)
        return (404, PLAIN, b"not found\n") if page is None else page()
