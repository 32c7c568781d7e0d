"""What the unfinished bodies of known callers hold together."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from regatta.api.errors import RegattaError, ServerBusy, TooMuchAtOnce
from regatta.server.bounds import body_limit, connections, held_bodies
from regatta.server.bounds.body_limit import LARGEST_BODY
from regatta.server.bounds.held_bodies import HeldBodies
from tests.doors import Regatta, eventually
from tests.server.team.serving import Answer, TeamServer, a_team_server

#: One for each family of errors: OpenPAI's, read by us, and ours, read by FastAPI.
DOORS = ("/api/v2/jobs", "/regatta/v1/jobs")
#: A body, small enough to be refused for what it says alone.
SMALL = {"text": ""}
UNDERSTOOD = (400, 422)
KIB = 1024


class Held(NamedTuple):
    server: TeamServer
    bodies: HeldBodies

    def is_full(self, size: int) -> None:
        eventually(lambda: len(self.bodies) == size, f"{size} bytes that are held")

    def is_empty(self) -> None:
        eventually(lambda: len(self.bodies) == 0, "nothing that is held")

    def ask(self, path: str, token: str) -> Answer:
        return self.server.ask("POST", path, token, body=SMALL)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Who is known may hold 100 KiB, and all together 1 MiB."""
    bodies = HeldBodies()
    monkeypatch.setattr(body_limit, "HeldBodies", lambda: bodies)
    monkeypatch.setattr(held_bodies, "MOST_OF_ONE", 100 * KIB)
    monkeypatch.setattr(held_bodies, "MOST", 1024 * KIB)
    with a_team_server(tmp_path) as server:
        yield Held(server, bodies)


def half_a_body(url: str, path: str, token: str, framing: str, sent: bytes = b"") -> socket.socket:
    place = urlsplit(url)
    assert place.hostname is not None
    end = socket.create_connection((place.hostname, place.port or 0), timeout=60)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place.hostname}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    end.sendall(head.encode() + sent)
    return end


def announced(url: str, path: str, token: str, size: int) -> socket.socket:
    return half_a_body(url, path, token, f"Content-Length: {size}", b"{")


def in_chunks(url: str, path: str, token: str, size: int) -> socket.socket:
    sent = b"%x\r\n%b\r\n" % (size, b" " * size)
    return half_a_body(url, path, token, "Transfer-Encoding: chunked", sent)


FRAMINGS = {"with its size": announced, "in chunks": in_chunks}


def answer_on(end: socket.socket) -> Answer:
    said = http.client.HTTPResponse(end)
    said.begin()
    return Answer(said.status, said.headers, said.read())


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_an_account_holds_so_much_and_others_are_let_in(
    held: Held, path: str, framing: str
) -> None:
    server, ann = held.server, held.server.token("ann")
    with closing(FRAMINGS[framing](server.url, path, ann, 100 * KIB)):
        held.is_full(100 * KIB)
        refused = held.ask(path, ann)
        assert refused.code == (429, "TooManyRequestsError")
        assert refused.headers["Retry-After"] == "5"
        assert "which is the most" in refused.json["message"]
        assert server.audited(1)[0].result == "TooManyRequestsError"

        assert held.ask(path, server.token("bob")).status in UNDERSTOOD
        assert server.ask("GET", "/regatta/v1/jobs", ann).status == 200
    held.is_empty()  # once its sender has hung up
    assert held.ask(path, ann).status in UNDERSTOOD


@pytest.mark.parametrize("path", DOORS)
def test_a_body_of_unknown_size_is_refused_where_it_gets_too_large(held: Held, path: str) -> None:
    with closing(in_chunks(held.server.url, path, held.server.token("ann"), 101 * KIB)) as end:
        refused = answer_on(end)
        assert refused.code == (429, "TooManyRequestsError")
        assert refused.headers["Retry-After"] == "5"
        held.is_empty()


def test_a_body_that_is_answered_holds_nothing_more(held: Held) -> None:
    ann, as_json = held.server.token("ann"), {"Content-Type": "application/json"}
    for path in DOORS * 2:
        large = json.dumps({"text": " " * 90 * KIB})
        said = held.server.ask("POST", path, ann, text=large, headers=as_json)
        assert said.status in UNDERSTOOD, said.body
        held.is_empty()


def test_a_body_that_is_turned_out_holds_nothing_more(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WHOLE_BODY_SECONDS", 0.2)
    ann = held.server.token("ann")
    with closing(announced(held.server.url, DOORS[0], ann, 100 * KIB)) as end:
        with suppress(ConnectionResetError):
            assert end.recv(1) == b""
        held.is_empty()


@pytest.mark.parametrize("path", DOORS)
def test_a_few_who_take_all_they_can_starve_nobody(
    held: Held, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(held_bodies, "MOST_OF_ONE", 1024 * KIB)
    code = "UnknownError" if path.startswith("/api") else "ServerBusy"
    server, full = held.server, 0
    with ExitStack() as ends:
        for name, left in (("ann", 512), ("bob", 256), ("cyd", 128)):
            token = server.token(name)
            ends.enter_context(closing(announced(server.url, path, token, left * KIB)))
            held.is_full(full := full + left * KIB)
            refused = held.ask(path, token)
            assert refused.code == (503, code)
            assert refused.headers["Retry-After"] == "5"

        assert held.ask(path, server.token("dot")).status in UNDERSTOOD
    held.is_empty()


def test_the_owner_of_a_server_has_one_share(regatta: Regatta) -> None:
    token = regatta.files.token()
    place = urlsplit(regatta.address.url).netloc

    def ask() -> Answer:
        sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
            connection.request("POST", "/regatta/v1/jobs", json.dumps(SMALL), sent)
            said = connection.getresponse()
            return Answer(said.status, said.headers, said.read())

    framing = f"Content-Length: {LARGEST_BODY}\r\nExpect: 100-continue"
    with ExitStack() as ends:
        for _ in range(held_bodies.MOST_OF_ONE // LARGEST_BODY):
            end = half_a_body(regatta.address.url, "/regatta/v1/jobs", token, framing)
            ends.enter_context(closing(end))
            assert end.recv(65536).startswith(b"HTTP/1.1 100 ")
        refused = ask()
        assert refused.code == (429, "TooManyRequestsError")
        assert refused.headers["Retry-After"] == "5"
        assert "more than 32 MiB together" in refused.json["message"]
        assert regatta("get").code == 0
    eventually(lambda: ask().status in UNDERSTOOD, "room for bodies")


@pytest.mark.parametrize("callers", [1, 2, 8, 9, 100, 1000])
def test_however_many_take_all_they_can_there_is_some_left(callers: int) -> None:
    held = HeldBodies()
    refusals: set[type[RegattaError]] = set()
    piece = 8 * KIB
    with ExitStack() as requests:

        def takes(who: int) -> bool:
            try:
                requests.enter_context(held.of(who))(piece)
            except RegattaError as why:
                refusals.add(type(why))
                return False
            return True

        taking = list(range(callers))
        while taking:
            taking = [who for who in taking if takes(who)]

        assert len(held) <= min(held_bodies.MOST, callers * held_bodies.MOST_OF_ONE)
        assert takes(callers)
        assert (ServerBusy in refusals) == (callers > 6)
        assert (TooMuchAtOnce in refusals) == (callers < 8)
    assert len(held) == 0
