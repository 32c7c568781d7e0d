"""Opening a connection to the API server: directly, or through an HTTP or SOCKS5 proxy."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from urllib.parse import unquote, urlsplit

from regatta.engines.kubernetes.api.errors import ConfigError, Unreachable
from regatta.http.wire import BUFFER, Connection


class Dialler:
    def __init__(self, server: str, *, proxy: str = "", server_name: str = "") -> None:
        parts = urlsplit(server)
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        #: What the server's address carries besides the host, as clusters behind a gateway do.
        self.prefix = parts.path.rstrip("/")
        #: The Host header.
        self.authority = parts.netloc.rpartition("@")[2]
        self._server_name = server_name or self.host
        self._proxy = urlsplit(proxy) if proxy else None

    async def dial(self, context: ssl.SSLContext | None) -> Connection:
        try:
            reader, writer = await self._open(context)
        except ssl.SSLCertVerificationError as untrusted:
            raise Unreachable(
                f"the certificate of {self.authority} is not one that the cluster's configuration "
                f"trusts ({untrusted.verify_message}); check certificate-authority and "
                "tls-server-name"
            ) from untrusted
        except (OSError, asyncio.IncompleteReadError) as failed:
            through = f" through the proxy {self._proxy.netloc}" if self._proxy else ""
            raise Unreachable(f"cannot connect to {self.authority}{through}: {failed}") from failed
        return Connection(reader, writer, context)

    async def _open(
        self, context: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name = self._server_name if context else None
        if self._proxy is None:
            return await asyncio.open_connection(
                self.host, self.port, ssl=context, server_hostname=name, limit=BUFFER
            )
        proxy = self._proxy
        over_tls = proxy.scheme == "https"
        port = proxy.port or {"http": 80, "https": 443}.get(proxy.scheme, 1080)
        reader, writer = await asyncio.open_connection(
            proxy.hostname, port, ssl=True if over_tls else None, limit=BUFFER
        )
        try:
            if proxy.scheme.startswith("socks5"):
                await self._ask_socks(reader, writer)
            else:
                await self._ask_tunnel(reader, writer)
            if context is not None:
                await writer.start_tls(context, server_hostname=name)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer

    async def _ask_tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self._proxy is not None and self._proxy.username:
            pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        answer = await reader.readuntil(b"\r\n\r\n")
        status = answer.split(b"\r\n", 1)[0].decode("latin-1")
        if status.split(" ")[1:2] != ["200"]:
            raise OSError(f"it answered {status!r}")

    async def _ask_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._proxy is not None and self._proxy.username:
            raise ConfigError(
                "a SOCKS5 proxy with a user name is not supported; use one without, or an HTTP one"
            )
        writer.write(b"\x05\x01\x00")
        if await reader.readexactly(2) != b"\x05\x00":
            raise OSError("it wants a password, or is no SOCKS5 proxy")
        try:
            address = ipaddress.ip_address(self.host)
            where = (b"\x01" if address.version == 4 else b"\x04") + address.packed
        except ValueError:
            name = self.host.encode("idna")
            where = b"\x03" + bytes([len(name)]) + name
        writer.write(b"\x05\x01\x00" + where + self.port.to_bytes(2, "big"))
        _, code, _, kind = await reader.readexactly(4)
        if code:
            raise OSError(f"it refused with SOCKS code {code}")
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        await reader.readexactly(size + 2)
