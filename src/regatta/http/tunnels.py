"""Asking a proxy to pass us on to a server: HTTP's CONNECT, and SOCKS5.

A refusal is an OSError, as a refused connection is: whoever dials says where it wanted to go.
"""

from __future__ import annotations

import base64
import ipaddress
from urllib.parse import SplitResult, unquote

from regatta.http.stream import Stream

#: A proxy's answer to CONNECT says less than a server's to a request.
MOST_ANSWER = 1 << 16


async def ask_connect(stream: Stream, host: str, port: int, proxy: SplitResult) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    stream.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    answer = await stream.until(b"\r\n\r\n", MOST_ANSWER, "an answer to CONNECT")
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise OSError(f"it answered {status!r}")


async def ask_socks(stream: Stream, host: str, port: int) -> None:
    stream.write(b"\x05\x01\x00")
    if await _exactly(stream, 2) != b"\x05\x00":
        raise OSError("it wants a password, or is no SOCKS5 proxy")
    try:
        address = ipaddress.ip_address(host)
        where = (b"\x01" if address.version == 4 else b"\x04") + address.packed
    except ValueError:
        name = host.encode("idna")
        where = b"\x03" + bytes([len(name)]) + name
    stream.write(b"\x05\x01\x00" + where + port.to_bytes(2, "big"))
    _, code, _, kind = await _exactly(stream, 4)
    if code:
        raise OSError(f"it refused with SOCKS code {code}")
    size = {1: 4, 4: 16}.get(kind) or (await _exactly(stream, 1))[0]
    await _exactly(stream, size + 2)


async def _exactly(stream: Stream, size: int) -> bytes:
    await stream.at_least(size)
    return stream.take(size)
