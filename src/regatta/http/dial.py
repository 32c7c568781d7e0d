"""Opening a connection to a server: directly, or through an HTTP or SOCKS5 proxy."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from regatta.http.failures import CannotConnect, HttpError, Misconfigured, Untrusted
from regatta.http.stream import Stream
from regatta.http.tunnels import ask_connect, ask_socks
from regatta.http.wire import Connection


class Dialler:
    def __init__(self, server: str, *, proxy: str = "", server_name: str = "") -> None:
        """`server_name` is what its certificate must carry, where that is not the host's name."""
        try:
            parts = urlsplit(server)
            port = parts.port
        except ValueError as wrong:
            raise Misconfigured(
                f"the server's address {server!r} cannot be read ({wrong}); it should be a URL "
                "such as https://10.0.0.1:6443"
            ) from wrong
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = port or (443 if self.secure else 80)
        #: What the server's address carries besides the host, as clusters behind a gateway do.
        self.prefix = parts.path.rstrip("/")
        #: The Host header.
        self.authority = parts.netloc.rpartition("@")[2]
        self._server_name = server_name or self.host
        self._proxy = urlsplit(proxy) if proxy else None

    async def dial(self, context: ssl.SSLContext | None = None) -> Connection:
        """With a context, over TLS."""
        try:
            stream = await self._open(context)
        except ssl.SSLCertVerificationError as untrusted:
            raise Untrusted(self.authority, untrusted.verify_message) from untrusted
        except (OSError, HttpError, UnicodeError) as failed:  # The last: a name that none can be.
            through = f" through the proxy {self._proxy_authority}" if self._proxy else ""
            raise CannotConnect(
                f"cannot connect to {self.authority}{through}: {failed}"
            ) from failed
        return Connection(stream, context)

    async def _open(self, context: ssl.SSLContext | None) -> Stream:
        """TLS comes second, not with the connecting: a connection that is given up during or right
        after its handshake is then closed at once. asyncio would else say farewell first."""
        proxy = self._proxy
        stream = await self._connect()
        try:
            if proxy is not None:
                if proxy.scheme == "https":
                    await stream.start_tls(ssl.create_default_context(), proxy.hostname)
                if proxy.scheme.startswith("socks5"):
                    await ask_socks(stream, self.host, self.port)
                else:
                    await ask_connect(stream, self.host, self.port, proxy)
            if context is not None:
                await stream.start_tls(context, self._server_name)
        except BaseException:
            stream.close()
            raise
        return stream

    async def _connect(self) -> Stream:
        host, port = self.host, self.port
        if self._proxy is not None:
            host = self._proxy.hostname or ""
            port = self._proxy.port or {"http": 80, "https": 443}.get(self._proxy.scheme, 1080)
        _, stream = await asyncio.get_running_loop().create_connection(Stream, host, port)
        return stream

    @property
    def _proxy_authority(self) -> str:
        """Without the user's name and password: this is for messages."""
        return self._proxy.netloc.rpartition("@")[2] if self._proxy else ""
