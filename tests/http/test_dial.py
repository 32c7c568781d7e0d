"""Reaching a server directly."""

from __future__ import annotations

import asyncio

import pytest

from regatta.http.dial import Dialler
from regatta.http.failures import CannotConnect, Misconfigured
from regatta.http.tls import TlsContexts
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.peer import OK, Talk, a_peer, answering


@pytest.mark.parametrize(
    ("server", "secure", "host", "port", "prefix", "authority"),
    [
        ("https://lab.example", True, "lab.example", 443, "", "lab.example"),
        ("http://lab.example", False, "lab.example", 80, "", "lab.example"),
        ("https://10.0.0.1:6443/", True, "10.0.0.1", 6443, "", "10.0.0.1:6443"),
        ("https://[fd00::1]:6443", True, "fd00::1", 6443, "", "[fd00::1]:6443"),
        ("https://lab.example/k8s/c-1/", True, "lab.example", 443, "/k8s/c-1", "lab.example"),
        ("https://ada:secret@lab.example:1", True, "lab.example", 1, "", "lab.example:1"),
    ],
)
def test_an_address_is_taken_apart(
    server: str, secure: bool, host: str, port: int, prefix: str, authority: str
) -> None:
    dialler = Dialler(server)
    assert (dialler.secure, dialler.host, dialler.port) == (secure, host, port)
    assert (dialler.prefix, dialler.authority) == (prefix, authority)


@pytest.mark.parametrize("server", ["https://lab.example:many", "https://[fd00::1"])
def test_an_address_that_is_none_is_explained(server: str) -> None:
    with pytest.raises(Misconfigured, match=r"cannot be read .* such as https://"):
        Dialler(server)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@in_a_loop
async def test_a_server_is_asked_and_answers(host: str) -> None:
    async with a_peer(answering(OK), host=host) as peer:
        connection = await Dialler(peer.url).dial()
        head = await connection.send("GET", "/x", [("Host", "a")])
        assert (head.status, await connection.body(head)) == (200, b"ok")
        connection.close()
        assert not connection.usable
        connection.close()  # A second time does no harm.


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://127.0.0.1:1", "cannot connect to 127.0.0.1:1: .*Connect call failed"),
        ("http://no-such-host.invalid", "cannot connect to no-such-host.invalid: "),
        (f"http://{'a' * 64}.example", "cannot connect to a+.example: .*label"),
    ],
)
@in_a_loop
async def test_a_server_that_cannot_be_reached_is_named(server: str, said: str) -> None:
    with pytest.raises(CannotConnect, match=said):
        await Dialler(server).dial()


@in_a_loop
async def test_a_connection_whose_handshake_is_given_up_is_left() -> None:
    """The server takes the connection and says nothing: no TLS comes to be."""
    async with a_peer(Talk.until_left) as peer:
        server = peer.url.replace("http://", "https://")
        dialling = asyncio.create_task(Dialler(server).dial(TlsContexts().current()))
        await eventually(lambda: peer.busy)
        dialling.cancel()
        await asyncio.wait([dialling])
        assert dialling.cancelled()
        await eventually(lambda: not peer.busy)
