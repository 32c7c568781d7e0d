"""What HTTP says of a failure, in the words of who talks to a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from regatta.engines.kubernetes.access.config import ClusterAccess, ClusterTrust
from regatta.engines.kubernetes.access.credentials import ConfiguredCredentials
from regatta.engines.kubernetes.api.kube_errors import ConfigError, Stalled, Unreachable
from regatta.engines.kubernetes.api.transport import Request, Transport, TransportSettings
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.certificates import Authority, Pair, served
from tests.http.peer import OK, Peer, Script, Talk, a_peer, answering, hang_up

GET = Request("get", "GET", "/version")
SECONDS = 30.0
CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def to(
    server: str,
    *,
    trust: ClusterTrust | None = None,
    pair: Pair | None = None,
    connect_seconds: float = 30.0,
) -> AsyncIterator[Transport]:
    credentials = ConfiguredCredentials(
        token="t",
        certificate=pair.certificate.read_bytes() if pair else None,
        key=pair.key.read_bytes() if pair else None,
    )
    access = ClusterAccess(server, credentials, trust or ClusterTrust())
    transport = Transport(access, TransportSettings(connect_seconds=connect_seconds))
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def talking(script: Script) -> AsyncIterator[tuple[Transport, Peer]]:
    async with a_peer(script) as peer, to(peer.url) as transport:
        yield transport, peer


@in_a_loop
async def test_a_request_carries_the_credential_and_its_answer_comes_back() -> None:
    heard: list[bytes] = []

    async def listen(talk: Talk) -> None:
        heard.append(await talk.request())
        await talk.say(OK)

    async with talking(listen) as (transport, peer):
        head, body = await transport.request(GET, SECONDS)
    assert (head.status, body) == (200, b"ok")
    assert heard[0].startswith(b"GET /version HTTP/1.1\r\n")
    assert f"\r\nHost: 127.0.0.1:{peer.port}\r\n".encode() in heard[0]
    assert b"\r\nAuthorization: Bearer t\r\n" in heard[0]


BROKEN: dict[str, tuple[Script, str]] = {
    "no answer": (answering(b"", then=hang_up), "to {} broke: the other side closed it"),
    "half an answer": (answering(OK[:-1], then=hang_up), "to {} broke: the other side closed it"),
    "no HTTP": (answering(b"what?\r\n\r\n"), "what answers there does not speak HTTP: 'what?'"),
}


@pytest.mark.parametrize("which", BROKEN)
@in_a_loop
async def test_a_broken_answer_is_no_answer(which: str) -> None:
    script, said = BROKEN[which]
    async with talking(script) as (transport, peer):
        with pytest.raises(Unreachable) as raised:
            await transport.request(GET, SECONDS)
        assert said.format(peer.url) in str(raised.value)
        with pytest.raises(Unreachable, match=r"broke|does not speak"):
            async with transport.stream(GET, SECONDS, None) as streamed:
                await streamed.whole()


@in_a_loop
async def test_a_server_that_is_not_there_is_named() -> None:
    async with to("http://127.0.0.1:1") as transport:
        with pytest.raises(Unreachable, match=r"cannot connect to 127\.0\.0\.1:1: "):
            await transport.request(GET, SECONDS)


@in_a_loop
async def test_a_server_that_says_nothing_is_given_up_and_its_connection_too() -> None:
    async with talking(Talk.until_left) as (transport, peer):
        with pytest.raises(Unreachable, match=f"no answer from {peer.url} within 0.1 s"):
            await transport.request(GET, 0.1)
        with pytest.raises(Unreachable, match=f"no answer from {peer.url} within 0.1 s"):
            async with transport.stream(GET, 0.1, None):
                pass
        await eventually(lambda: not peer.busy)


@in_a_loop
async def test_a_server_that_shakes_no_hands_is_given_up() -> None:
    async with a_peer(Talk.until_left) as peer:
        url = peer.url.replace("http://", "https://")
        async with to(url, connect_seconds=0.1) as transport:
            with pytest.raises(Unreachable, match=r"did not take a connection within 0\.1 s"):
                await transport.request(GET, SECONDS)


@in_a_loop
async def test_a_stream_that_falls_silent_has_stalled() -> None:
    async with (
        talking(answering(CHUNK)) as (transport, _),
        transport.stream(GET, SECONDS, 2) as streamed,
        aclosing(streamed.parts()) as parts,
    ):
        assert await anext(parts) == b"one"
        with pytest.raises(Stalled, match="nothing came for 2 s"):
            await anext(parts)


@in_a_loop
async def test_a_stream_that_is_cut_off_is_unreachable_but_has_not_stalled() -> None:
    async with (
        talking(answering(CHUNK, then=hang_up)) as (transport, _),
        transport.stream(GET, SECONDS, 30) as streamed,
        aclosing(streamed.parts()) as parts,
    ):
        assert await anext(parts) == b"one"
        with pytest.raises(Unreachable, match="the connection broke: the other") as raised:
            await anext(parts)
    assert not isinstance(raised.value, Stalled)


@in_a_loop
async def test_an_imposter_is_called_one(authority: Authority, tmp_path: Path) -> None:
    tls = served(Authority(tmp_path).issue("imposter", "IP:127.0.0.1"))
    trust = ClusterTrust(authority.certificate.read_bytes())
    async with a_peer(answering(OK), tls=tls) as peer, to(peer.url, trust=trust) as transport:
        with pytest.raises(
            Unreachable, match=r"cluster's configuration trusts \(.*\); check certificate-authority"
        ):
            await transport.request(GET, SECONDS)


@in_a_loop
async def test_what_a_person_has_to_mend_is_said_to_be_theirs(
    authority: Authority, tmp_path: Path
) -> None:
    nobody = "https://127.0.0.1:1"
    async with to(nobody, trust=ClusterTrust(b"not PEM")) as transport:
        with pytest.raises(ConfigError, match="certificate authority is not a PEM certificate"):
            await transport.request(GET, SECONDS)
    ada = authority.issue("ada")
    async with to(nobody, pair=Pair(ada.certificate, authority.issue("eve").key)) as transport:
        with pytest.raises(ConfigError, match="do not belong together"):
            await transport.request(GET, SECONDS)
    locked = tmp_path / "locked.key"
    command = ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", str(ada.key)]
    subprocess.run([*command, "-out", str(locked)], check=True, capture_output=True)
    async with to(nobody, pair=Pair(ada.certificate, locked)) as transport:
        with pytest.raises(ConfigError, match=r"is encrypted; .* or use an exec plugin"):
            await transport.request(GET, SECONDS)
