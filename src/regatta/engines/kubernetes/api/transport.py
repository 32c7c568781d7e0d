"""Requests to one API server: pooled connections, credentials, and failures by our own names.

Streams (watches, logs) live on connections of their own, so that no number of them keeps a write
waiting.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec

from regatta import __version__
from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.access.credentials import Credential
from regatta.engines.kubernetes.api.kube_errors import ConfigError, KubeError, Stalled, Unreachable
from regatta.http.dial import Dialler
from regatta.http.failures import Broken, EncryptedKey, HttpError, Misconfigured, Untrusted
from regatta.http.pool import Pool
from regatta.http.tls import TlsContexts
from regatta.http.wire import Connection, Head


class TransportSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Requests in flight at once; more wait their turn.
    connections: int = 64
    #: API servers close what has idled for 90 s: we must be first, or a write meets a dead line.
    idle_seconds: float = 60.0
    connect_seconds: float = 10.0


class Request(msgspec.Struct, frozen=True):
    #: The API's word for it (list, watch, patch ...) and the resource, for metrics.
    verb: str
    method: str
    #: Path and query.
    target: str
    resource: str = ""
    body: bytes = b""
    content_type: str = ""

    @property
    def asked(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


class Streamed:
    """An answer that is still coming."""

    def __init__(self, head: Head, connection: Connection, silence: float | None) -> None:
        self.status = head.status
        self.headers = head.headers
        self._head = head
        self._connection = connection
        self._silence = silence

    async def parts(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._connection.parts(self._head)) as parts:
            while True:
                try:
                    async with asyncio.timeout(self._silence):
                        part = await anext(parts)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise Stalled(f"nothing came for {self._silence:g} s") from None
                except HttpError as failed:
                    raise _translated(failed, "the connection") from failed
                yield part

    async def whole(self) -> bytes:
        return b"".join([part async for part in self.parts()])


class Transport:
    def __init__(self, access: ClusterAccess, settings: TransportSettings) -> None:
        self._access = access
        self._settings = settings
        self._dialler = Dialler(
            access.server, proxy=access.proxy, server_name=access.trust.server_name
        )
        self._tls = TlsContexts() if self._dialler.secure else None
        self._pool = Pool(self._dialler, idle_seconds=settings.idle_seconds)
        self._streams: set[Connection] = set()
        self._slots = asyncio.Semaphore(settings.connections)
        self._fixed = [
            ("Host", self._dialler.authority),
            ("User-Agent", f"regatta/{__version__}"),
            ("Accept", "application/json"),
        ]

    @property
    def server(self) -> str:
        return self._access.server

    def credential_refused(self) -> bool:
        """After a 401: whether asking again could show another credential."""
        return self._access.credentials.refused()

    async def request(self, request: Request, seconds: float) -> tuple[Head, bytes]:
        """One answer, complete, within `seconds`, or `Unreachable`."""
        try:
            async with asyncio.timeout(seconds), self._slots:
                return await self._request(request)
        except TimeoutError:
            raise Unreachable(f"no answer from {self.server} within {seconds:g} s") from None

    async def _request(self, request: Request) -> tuple[Head, bytes]:
        connection, headers = await self._connection(request, pooled=True)
        try:
            head = await connection.send(
                request.method, self._target(request), headers, request.body
            )
            body = await connection.body(head)
        except HttpError as failed:
            raise _translated(failed, f"the connection to {self.server}") from failed
        finally:
            self._pool.give_back(connection)
        return head, body

    @asynccontextmanager
    async def stream(
        self, request: Request, seconds: float, silence: float | None
    ) -> AsyncIterator[Streamed]:
        """An answer part by part. Its head must come within `seconds`; afterwards, no pause may
        be longer than `silence`."""
        connection: Connection | None = None
        try:
            try:
                async with asyncio.timeout(seconds):
                    connection, headers = await self._connection(request, pooled=False)
                    self._streams.add(connection)
                    head = await connection.send(
                        request.method, self._target(request), headers, request.body
                    )
            except TimeoutError:
                raise Unreachable(f"no answer from {self.server} within {seconds:g} s") from None
            except HttpError as failed:
                raise _translated(failed, f"the connection to {self.server}") from failed
            yield Streamed(head, connection, silence)
        finally:
            if connection is not None:
                self._streams.discard(connection)
                connection.close()

    async def close(self) -> None:
        self._pool.close()
        while self._streams:
            self._streams.pop().close()
        await asyncio.sleep(0)  # Aborted sockets are closed by the loop's next turn.

    async def _connection(
        self, request: Request, *, pooled: bool
    ) -> tuple[Connection, list[tuple[str, str]]]:
        credential = await self._access.credentials.current()
        context = self._context(credential)
        connection = self._pool.waiting(context) if pooled else None
        if connection is None:
            try:
                async with asyncio.timeout(self._settings.connect_seconds):
                    connection = await self._dialler.dial(context)
            except HttpError as failed:
                raise _translated(failed, f"the connection to {self.server}") from failed
            except TimeoutError:
                raise Unreachable(
                    f"{self.server} did not take a connection within "
                    f"{self._settings.connect_seconds:g} s"
                ) from None
        headers = [*self._fixed, *credential.headers]
        if request.content_type:
            headers.append(("Content-Type", request.content_type))
        return connection, headers

    def _context(self, credential: Credential) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        try:
            return self._tls.current(self._access.trust.current(), credential.certificate)
        except HttpError as failed:
            raise _translated(failed, "TLS") from failed

    def _target(self, request: Request) -> str:
        return self._dialler.prefix + request.target


def _translated(failed: HttpError, what: str) -> KubeError:
    """What HTTP says, in this package's words. `what` is that which broke, if it did."""
    match failed:
        case EncryptedKey():
            return ConfigError(
                "the client key is encrypted; Kubernetes' configuration has no place for its "
                "password: store it decrypted or use an exec plugin"
            )
        case Misconfigured():
            return ConfigError(str(failed))
        case Untrusted():
            return Unreachable(
                f"the certificate of {failed.authority} is not one that the cluster's "
                f"configuration trusts ({failed.why}); check certificate-authority and "
                "tls-server-name"
            )
        case Broken():
            return Unreachable(f"{what} broke: {failed}")
        case _:
            return Unreachable(str(failed))
