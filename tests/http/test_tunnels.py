"""Through a proxy: HTTP's CONNECT and SOCKS5, and what is said when one refuses."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path

import pytest

from regatta.http.dial import Dialler
from regatta.http.failures import CannotConnect, Untrusted
from regatta.http.tls import TlsContexts, Trust
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.certificates import Authority, served
from tests.http.peer import OK, Script, Talk, a_peer, answering
from tests.http.tunnel import a_tunnel

HOSTS = {"127.0.0.1": "127.0.0.1", "::1": "[::1]", "localhost": "localhost"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def serving(authority: Authority) -> ssl.SSLContext:
    return served(authority.issue("peer", "IP:127.0.0.1,IP:::1,DNS:localhost"))


async def through(proxy: str, url: str, context: ssl.SSLContext | None = None) -> bytes:
    connection = await Dialler(url, proxy=proxy).dial(context)
    try:
        head = await connection.send("GET", "/x", [("Host", "a")])
        return await connection.body(head)
    finally:
        connection.close()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
@in_a_loop
async def test_a_proxy_passes_us_on(
    authority: Authority, serving: ssl.SSLContext, scheme: str, host: str, tls: bool
) -> None:
    context = TlsContexts().current(Trust(authority.certificate.read_bytes())) if tls else None
    at = "127.0.0.1" if host == "localhost" else host
    async with a_peer(answering(OK), host=at, tls=serving if tls else None) as peer:
        url = f"{'https' if tls else 'http'}://{HOSTS[host]}:{peer.port}"
        async with a_tunnel() as tunnel:
            assert await through(f"{scheme}://127.0.0.1:{tunnel.port}", url, context) == b"ok"
        assert tunnel.asked == [f"{host}:{peer.port}"]


@in_a_loop
async def test_a_proxy_that_speaks_tls_itself(
    authority: Authority, serving: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS to the server inside TLS to the proxy, whom the machine's own store vouches for."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    context = TlsContexts().current(Trust(authority.certificate.read_bytes()))
    async with a_peer(answering(OK), tls=serving) as peer, a_tunnel(tls=serving) as tunnel:
        assert await through(f"https://127.0.0.1:{tunnel.port}", peer.url, context) == b"ok"


@in_a_loop
async def test_a_proxy_is_told_who_we_are_and_nobody_else_is() -> None:
    known = base64.b64encode(b"ada:l@ce").decode()
    async with a_peer(answering(OK)) as peer, a_tunnel(known) as tunnel:
        at = f"127.0.0.1:{tunnel.port}"
        assert await through(f"http://ada:l%40ce@{at}", peer.url) == b"ok"
        with pytest.raises(CannotConnect, match=rf"the proxy {at}: it .* '.*407") as raised:
            await through(f"http://ada:wrong@{at}", peer.url)
    assert "wrong" not in str(raised.value)


@in_a_loop
async def test_the_server_behind_a_proxy_must_still_be_the_right_one(
    authority: Authority, serving: ssl.SSLContext, tmp_path: Path
) -> None:
    other = TlsContexts().current(Trust(Authority(tmp_path).certificate.read_bytes()))
    async with a_peer(answering(OK), tls=serving) as peer, a_tunnel() as tunnel:
        with pytest.raises(Untrusted):
            await through(f"http://127.0.0.1:{tunnel.port}", peer.url, other)


def saying(*answers: bytes) -> Script:
    async def script(talk: Talk) -> None:
        for answer in answers:
            await talk.reader.read(1 << 16)
            await talk.say(answer)

    return script


TAKEN = b"\x05\x00"
REFUSALS: dict[str, tuple[str, Script, str]] = {
    "HTTP: forbidden": ("http", saying(b"HTTP/1.1 403 No\r\n\r\n"), "it answered 'HTTP/1.1 403"),
    "HTTP: hangs up": ("http", saying(b""), "the other side closed it"),
    "HTTP: hangs up halfway": ("http", saying(b"HTTP/1.1 200"), "the other side closed it"),
    "HTTP: no HTTP": ("http", saying(b"what?\r\n\r\n"), "it answered 'what"),
    "HTTP: never ends": ("http", saying(b"x" * (1 << 20)), "answer to CONNECT of more than"),
    "SOCKS: wants a password": ("socks5", saying(b"\x05\x02"), "it wants a password"),
    "SOCKS: takes nobody": ("socks5", saying(b"\x05\xff"), "it wants a password"),
    "SOCKS: an older one": ("socks5", saying(b"\x00\x5b"), "is no SOCKS5 proxy"),
    "SOCKS: hangs up": ("socks5", saying(b""), "the other side closed it"),
    "SOCKS: hangs up later": ("socks5", saying(TAKEN, b"\x05"), "the other side closed it"),
    "SOCKS: refuses": ("socks5", saying(TAKEN, b"\x05\x05\x00\x01" + bytes(6)), "SOCKS code 5"),
}


@pytest.mark.parametrize("which", REFUSALS)
@in_a_loop
async def test_a_proxy_that_refuses_is_named_with_its_reason(which: str) -> None:
    scheme, script, said = REFUSALS[which]
    async with a_peer(script) as proxy:
        at = f"127.0.0.1:{proxy.port}"
        with pytest.raises(CannotConnect) as raised:
            await through(f"{scheme}://{at}", "http://lab.example:80")
    message = str(raised.value)
    assert message.startswith(f"cannot connect to lab.example:80 through the proxy {at}: ")
    assert said in message


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@in_a_loop
async def test_no_proxy_at_all(scheme: str) -> None:
    with pytest.raises(CannotConnect, match=r"proxy 127.0.0.1:1: .*Connect call failed"):
        await through(f"{scheme}://127.0.0.1:1", "http://lab.example:80")


@in_a_loop
async def test_a_proxy_that_says_more_than_it_was_asked_for_is_left() -> None:
    """What it sent would pass for the server's side of the handshake."""
    context = TlsContexts().current()
    async with a_peer(saying(b"HTTP/1.1 200 OK\r\n\r\nand more")) as proxy:
        with pytest.raises(CannotConnect, match="said more than it was asked for: b'and more'"):
            await through(f"http://127.0.0.1:{proxy.port}", "https://lab.example", context)


async def pass_on_to_nobody(talk: Talk) -> None:
    await talk.request()
    await talk.say(b"HTTP/1.1 200 OK\r\n\r\n")
    await talk.reader.readexactly(1)  # The client's side of the handshake has begun.
    talk.said = -1
    await talk.until_left()


@pytest.mark.parametrize(
    ("script", "said"), [(Talk.until_left, 0), (pass_on_to_nobody, -1)], ids=["asked", "tls"]
)
@in_a_loop
async def test_who_gives_up_on_a_silent_proxy_leaves_it(script: Script, said: int) -> None:
    context = TlsContexts().current()
    async with a_peer(script) as proxy:
        at = f"http://127.0.0.1:{proxy.port}"
        asking = asyncio.create_task(through(at, "https://lab.example", context))
        await eventually(lambda: proxy.busy and proxy.talks[0].said == said)
        asking.cancel()
        await asyncio.wait([asking])
        await eventually(lambda: not proxy.busy)
