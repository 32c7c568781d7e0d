"""Whom we believe and what we show, with real certificates on real sockets."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest

from regatta.http.dial import Dialler
from regatta.http.failures import Broken, EncryptedKey, HttpError, Misconfigured, Untrusted
from regatta.http.tls import ClientCertificate, TlsContexts, Trust
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.certificates import Authority, Pair, served
from tests.http.peer import OK, Peer, Talk, a_peer, answering


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


def trusting(authority: Authority) -> Trust:
    return Trust(authority.certificate.read_bytes())


def shown(pair: Pair) -> ClientCertificate:
    return ClientCertificate(pair.certificate.read_bytes(), pair.key.read_bytes())


async def ask(
    peer: Peer, trust: Trust, certificate: ClientCertificate | None = None, *, name: str = ""
) -> bytes:
    context = TlsContexts().current(trust, certificate)
    connection = await Dialler(peer.url, server_name=name).dial(context)
    try:
        head = await connection.send("GET", "/x", [("Host", "a")])
        return await connection.body(head)
    finally:
        connection.close()


@in_a_loop
async def test_a_server_is_believed_whose_authority_we_were_given(authority: Authority) -> None:
    tls = served(authority.issue("right", "IP:127.0.0.1"))
    async with a_peer(answering(OK), tls=tls) as peer:
        assert await ask(peer, trusting(authority)) == b"ok"


@in_a_loop
async def test_a_server_that_a_stranger_vouches_for_is_not(
    authority: Authority, stranger: Authority
) -> None:
    tls = served(stranger.issue("imposter", "IP:127.0.0.1"))
    async with a_peer(answering(OK), tls=tls) as peer:
        for trust in (trusting(authority), Trust()):
            with pytest.raises(Untrusted, match=f"certificate of 127.0.0.1:{peer.port} is not"):
                await ask(peer, trust)
        assert await ask(peer, Trust(insecure=True)) == b"ok"


@in_a_loop
async def test_a_certificate_must_carry_the_name_that_we_ask_for(authority: Authority) -> None:
    tls = served(authority.issue("named", "DNS:lab.example"))
    async with a_peer(answering(OK), tls=tls) as peer:
        with pytest.raises(Untrusted, match=r"127\.0\.0\.1"):
            await ask(peer, trusting(authority))
        with pytest.raises(Untrusted, match=r"other\.example") as raised:
            await ask(peer, trusting(authority), name="other.example")
        assert raised.value.authority == f"127.0.0.1:{peer.port}"
        assert await ask(peer, trusting(authority), name="lab.example") == b"ok"


@in_a_loop
async def test_a_client_shows_its_certificate_and_may_show_another_later(
    authority: Authority, stranger: Authority
) -> None:
    seen: list[str] = []

    async def look(talk: Talk) -> None:
        await talk.request()
        subject = talk.writer.get_extra_info("peercert")["subject"]
        seen.extend(value for ((key, value),) in subject if key == "commonName")
        await talk.say(OK)

    tls = served(authority.issue("asking", "IP:127.0.0.1"), clients_of=authority)
    first, second = shown(authority.issue("ada")), shown(authority.issue("grace"))
    trust = trusting(authority)
    contexts = TlsContexts()
    async with a_peer(look, tls=tls) as peer:
        for certificate in (first, first, second):
            connection = await Dialler(peer.url).dial(contexts.current(trust, certificate))
            await connection.body(await connection.send("GET", "/x", [("Host", "a")]))
            connection.close()
        assert seen == ["ada", "ada", "grace"]
        for unwanted in (None, shown(stranger.issue("mallory"))):
            with pytest.raises(HttpError) as raised:
                await ask(peer, trust, unwanted)
            # TLS 1.3 says so after the handshake, to who has begun to ask.
            assert isinstance(raised.value, Broken)
        assert seen == ["ada", "ada", "grace"]


def test_a_context_serves_until_something_in_it_is_rotated(
    authority: Authority, stranger: Authority
) -> None:
    contexts = TlsContexts()
    ada, grace = shown(authority.issue("ada")), shown(authority.issue("grace"))
    first = contexts.current(trusting(authority), ada)
    assert contexts.current(trusting(authority), ada) is first
    assert contexts.current(trusting(authority), grace) is not first
    assert contexts.current(trusting(stranger), grace) is not contexts.current(
        trusting(authority), grace
    )


def test_what_is_no_certificate_is_said_to_be_none(authority: Authority) -> None:
    ada, grace = shown(authority.issue("ada")), shown(authority.issue("grace"))
    contexts = TlsContexts()
    with pytest.raises(Misconfigured, match="authority is not a PEM certificate"):
        contexts.current(Trust(b"not PEM"))
    with pytest.raises(Misconfigured, match="do not belong together or are not PEM"):
        contexts.current(Trust(), ClientCertificate(b"not PEM", ada.key))
    with pytest.raises(Misconfigured, match="do not belong together or are not PEM"):
        contexts.current(Trust(), ClientCertificate(ada.certificate, grace.key))


def test_an_encrypted_key_is_refused_instead_of_asked_for(
    authority: Authority, tmp_path: Path
) -> None:
    pair = authority.issue("ada")
    locked = tmp_path / "locked.key"
    command = ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", str(pair.key)]
    subprocess.run([*command, "-out", str(locked)], check=True, capture_output=True)
    certificate = ClientCertificate(pair.certificate.read_bytes(), locked.read_bytes())
    with pytest.raises(EncryptedKey, match="store it decrypted"):
        TlsContexts().current(Trust(), certificate)


def test_a_key_lies_nowhere_once_it_is_loaded(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    contexts = TlsContexts()
    contexts.current(Trust(), shown(authority.issue("ada")))
    with pytest.raises(Misconfigured):
        contexts.current(Trust(), ClientCertificate(b"not", b"PEM"))
    assert list(tmp_path.iterdir()) == []


class SilentServer:
    """Shakes hands with one client and never says or reads a word again."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._accepted: ssl.SSLSocket | None = None

    def shake_hands(self) -> None:
        plain, _ = self._listening.accept()
        self._accepted = self._tls.wrap_socket(plain, server_side=True)

    @property
    def was_left(self) -> bool:
        """The client's end is closed, whatever it said before."""
        assert self._accepted is not None
        poll = select.poll()
        poll.register(self._accepted, select.POLLRDHUP)
        return bool(poll.poll(0))

    def close(self) -> None:
        self._listening.close()
        if self._accepted is not None:
            self._accepted.close()


@in_a_loop
async def test_a_connection_that_is_given_up_as_the_handshake_ends_is_closed_at_once(
    authority: Authority,
) -> None:
    """asyncio itself would say farewell first, and wait for a farewell that may never come."""
    server = SilentServer(served(authority.issue("silent", "IP:127.0.0.1")))
    context = TlsContexts().current(trusting(authority))

    class GivesUp(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            dialling.cancel()

    context.sslobject_class = GivesUp
    shaking = asyncio.create_task(asyncio.to_thread(server.shake_hands))
    dialling = asyncio.create_task(Dialler(f"https://127.0.0.1:{server.port}").dial(context))
    await asyncio.wait([dialling])
    await shaking
    assert dialling.cancelled()
    await eventually(lambda: server.was_left, seconds=10)
    server.close()
