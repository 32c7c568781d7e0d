"""A proxy that stands between a client and a real API server, and misbehaves when told to.

It speaks HTTP/1.1 over TLS with a certificate of its own and passes everything on, credentials
included. It lives in a thread of its own, so tests of any kind, and operators in other processes,
can use it:

    with FaultProxy(plane_kubeconfig, tmp_path) as proxy:
        proxy.add(Rule(DropAfterCommit(), method="POST", path="/pods"))
        ... run something with KUBECONFIG=proxy.kubeconfig ...
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http
import json
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from regatta.engines.kubernetes.access.config import ClusterAccess, load_access
from regatta.http.dial import Dialler
from regatta.http.failures import HttpError
from regatta.http.tls import TlsContexts
from regatta.http.wire import Connection, Head
from tests.kubernetes.faults.rules import (
    Drop,
    DropAfterCommit,
    DropAfterParts,
    ErrorEvent,
    Fault,
    Hold,
    LoseParts,
    Refuse,
    RefuseAfterCommit,
    Rule,
    Rules,
    SilenceAfterParts,
    SlowParts,
    Stall,
)

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host"}


class _CutOff(Exception):
    """This connection ends here and now."""


class FaultProxy:
    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._source = kubeconfig
        self._folder = folder
        self._access: ClusterAccess = load_access(kubeconfig, environment={})
        self._dialler = Dialler(self._access.server, server_name=self._access.trust.server_name)
        self._tls = TlsContexts()
        self._rules = Rules()
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._down = False
        #: (method, path without its query) → how many requests came.
        self.requests: Counter[tuple[str, str]] = Counter()
        self.connections = 0
        self.url = ""
        self.kubeconfig = folder / "faulty.kubeconfig"

    # For tests

    def add(self, rule: Rule) -> Rule:
        return self._rules.add(rule)

    def clear(self) -> None:
        self._rules.clear()

    def cut(self) -> None:
        """Ends every connection, and every new one at once, until `restore`."""
        self._down = True
        self._in_loop(self._abort_all)

    def restore(self) -> None:
        self._down = False
        self._in_loop(self._thawed.set)

    def freeze(self) -> None:
        """Connections stand, new ones are taken, and nothing moves, until `restore`."""
        self._in_loop(self._thawed.clear)

    def drop_connections(self) -> None:
        """Ends what is open now; clients may come back at once."""
        self._in_loop(self._abort_all)

    # Life

    def __enter__(self) -> FaultProxy:
        self._folder.mkdir(parents=True, exist_ok=True)
        certificate, key = _self_signed(self._folder)
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(certificate, key)
        started = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(started,), daemon=True)
        self._thread.start()
        if not started.wait(60):
            raise RuntimeError("the fault proxy did not start within 10 s")
        self._write_kubeconfig(certificate)
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._stopping.set)
        self._thread.join(60)

    def _main(self, started: threading.Event) -> None:
        asyncio.run(self._serve(started))

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._thawed = asyncio.Event()
        self._thawed.set()
        server = await asyncio.start_server(
            self._client_came, "127.0.0.1", 0, ssl=self._serving, limit=1 << 20
        )
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await self._stopping.wait()
        # Not `close` yet: asyncio drops what it has just accepted without closing the socket.
        self._loop.remove_reader(server.sockets[0].fileno())
        await self._see_everybody_out()
        server.close()

    async def _see_everybody_out(self) -> None:
        """Also those who are still shaking hands, whom asyncio alone knows of."""
        me = asyncio.current_task()
        while others := asyncio.all_tasks() - {me}:
            self._abort_all()
            for task in self._open:
                task.cancel()
            await asyncio.wait(others, timeout=0.1)
        await asyncio.sleep(0)  # Aborted sockets are closed by the loop's next turn.

    def _in_loop(self, action: Callable[[], object]) -> None:
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(act)
        done.wait(60)

    def _abort_all(self) -> None:
        for writer in self._open.values():
            writer.transport.abort()

    def _write_kubeconfig(self, certificate: Path) -> None:
        config: dict[str, Any] = yaml.safe_load(self._source.read_text())
        for entry in config["clusters"]:
            entry["cluster"] = {
                "server": self.url,
                "certificate-authority-data": base64.b64encode(certificate.read_bytes()).decode(),
            }
        self.kubeconfig.write_text(yaml.safe_dump(config))

    # One client

    def _client_came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known at once: a task that is cancelled before its first step closes nothing."""
        self.connections += 1
        task = asyncio.ensure_future(self._attend(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._client_went)

    def _client_went(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).transport.abort()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: list[Connection] = []
        try:
            while not self._down:
                request = await _read_request(reader)
                if request is None:
                    break
                await self._serve_one(request, writer, upstream)
        except (_CutOff, OSError, EOFError, HttpError, asyncio.CancelledError):
            pass  # Either side left, or was made to.
        finally:
            for connection in upstream:
                connection.close()

    async def _serve_one(
        self, request: _Request, writer: asyncio.StreamWriter, upstream: list[Connection]
    ) -> None:
        self.requests[request.method, request.target.partition("?")[0]] += 1
        fault = self._rules.strike(request.method, request.target)
        await self._thawed.wait()
        match fault:
            case Drop():
                raise _CutOff
            case Stall(seconds):
                await asyncio.sleep(seconds)
            case Hold(until):
                while not until.is_set():
                    await asyncio.sleep(0.02)
            case Refuse(status, reason, retry_after):
                await _answer(writer, status, reason, retry_after)
                return
        if not upstream or not upstream[-1].usable:
            certificate = (await self._access.credentials.current()).certificate
            context = self._tls.current(self._access.trust.current(), certificate)
            upstream.append(await self._dialler.dial(context))
        connection = upstream[-1]
        headers = [("Host", self._dialler.authority), *request.headers]
        head = await connection.send(request.method, request.target, headers, request.body)
        if isinstance(fault, DropAfterCommit | RefuseAfterCommit):
            await connection.body(head)
            if isinstance(fault, DropAfterCommit):
                raise _CutOff
            await _answer(writer, fault.status, fault.reason, None)
            return
        await self._relay(connection, head, writer, fault)

    async def _relay(
        self, connection: Connection, head: Head, writer: asyncio.StreamWriter, fault: Fault | None
    ) -> None:
        lines = [f"HTTP/1.1 {head.status} {_phrase(head.status)}", "Transfer-Encoding: chunked"]
        lines += [f"{k}: {v}" for k, v in head.headers.items() if k not in _HOP_BY_HOP]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        await writer.drain()
        passed = 0

        async def strike() -> None:
            match fault:
                case DropAfterParts(parts) if passed >= parts:
                    raise _CutOff
                case SilenceAfterParts(parts, seconds) if passed >= parts:
                    await asyncio.sleep(seconds)
                    raise _CutOff
                case ErrorEvent(parts, status, reason) if passed >= parts:
                    event = {"type": "ERROR", "object": _status(status, reason)}
                    await _chunk(writer, json.dumps(event).encode() + b"\n")
                    await _chunk(writer, b"")
                    raise _CutOff
                case SlowParts(seconds) if passed:
                    await asyncio.sleep(seconds)

        await strike()
        async with contextlib.aclosing(connection.parts(head)) as parts:
            async for part in _until_gone(parts, writer):
                await self._thawed.wait()
                passed += 1
                if not _lost(fault, passed):
                    await _chunk(writer, part)
                await strike()
        await _chunk(writer, b"")


def _lost(fault: Fault | None, number: int) -> bool:
    return isinstance(fault, LoseParts) and fault.after < number <= fault.after + fault.count


class _Request:
    def __init__(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    try:
        block = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = block[:-4].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    given = [(name, value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    known = {name.lower(): value for name, value in given}
    body = b""
    if known.get("transfer-encoding", "").lower() == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    elif length := int(known.get("content-length", "0")):
        body = await reader.readexactly(length)
    headers = [(name, value) for name, value in given if name.lower() not in _HOP_BY_HOP]
    return _Request(method, target, headers, body)


async def _until_gone(parts: Any, writer: asyncio.StreamWriter) -> Any:
    """The parts of an answer, for as long as somebody is there to take them."""
    while not writer.is_closing():
        coming = asyncio.ensure_future(_next(parts))
        try:
            while not coming.done():
                await asyncio.wait((coming,), timeout=0.5)
                if writer.is_closing():
                    return
        finally:
            if not coming.done():
                coming.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await coming
        part = coming.result()
        if part is None:
            return
        yield part


async def _next(parts: Any) -> bytes | None:
    return await anext(parts, None)  # type: ignore[no-any-return]


async def _chunk(writer: asyncio.StreamWriter, part: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
    await writer.drain()


async def _answer(
    writer: asyncio.StreamWriter, status: int, reason: str, retry_after: int | None
) -> None:
    body = json.dumps(_status(status, reason)).encode()
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", "Content-Type: application/json"]
    lines.append(f"Content-Length: {len(body)}")
    if retry_after is not None:
        lines.append(f"Retry-After: {retry_after}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    await writer.drain()


def _status(status: int, reason: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "as the fault proxy was told",
        "reason": reason,
        "code": status,
    }


def _phrase(status: int) -> str:
    return http.HTTPStatus(status).phrase


def _self_signed(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "proxy.crt", folder / "proxy.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
