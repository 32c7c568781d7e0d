"""Of one account a few long answers are made and sent at a time, by every door."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from regatta.server.accounts.tokens import revoke_all
from regatta.server.accounts.users import get_user
from regatta.server.bounds import connections
from regatta.server.team import long_answers
from tests.doors import eventually
from tests.server.team.serving import TeamServer, a_team_server

AT_ONCE = 2
#: In seconds: nobody is cut off, and whoever takes nothing soon is.
PATIENT, IMPATIENT = 600.0, 0.2
JOBS, WATCH = "/regatta/v1/jobs", "/regatta/v1/watch"
#: Together more than what the system keeps for a client.
COUNT, SIZE = 12, 100_000
DOORS = (
    JOBS,
    "/regatta/v1/runs",
    "/regatta/v1/events",
    "/regatta/v1/capacity",
    "/regatta/v1/namespaces/user-ann/jobs/job-0/pods",
    "/api/v1/jobs",
    "/api/v1/jobs/ann~job-0",
    "/api/v1/user/ann/jobs",
    "/api/v2/jobs",
    "/api/v2/jobs/ann~job-0",
    "/api/v2/jobs/ann~job-0/attempts/0",
    "/api/v2/jobs/ann~job-0/events",
    "/api/v2/jobs/ann~job-0/job-attempts",
    "/rest-server/api/v2/jobs/",
)


def large(name: str) -> dict[str, str]:
    container = {"name": "main", "image": "none", "command": ["true"]}
    env = [{"name": f"V{number}", "value": "x" * SIZE} for number in range(8)]
    template = {"spec": {"containers": [{**container, "env": env}]}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"suspend": True},
            "worker": {"replicas": 1, "template": template},
        },
    }
    return {"text": json.dumps(document)}


class Long(NamedTuple):
    server: TeamServer
    ann: str
    #: How many lists of all jobs were asked of the engine.
    made: list[None]
    ends: ExitStack

    def unread(self, path: str = JOBS, token: str = "") -> socket.socket:
        """Asks, and reads nothing."""
        place = urlsplit(self.server.url)
        end = self.ends.enter_context(socket.socket())
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        end.settimeout(60)
        end.connect((place.hostname, place.port))
        head = f"GET {path} HTTP/1.1\r\nHost: {place.hostname}\r\n"
        end.sendall(f"{head}Authorization: Bearer {token or self.ann}\r\n\r\n".encode())
        return end

    def wanted(self, count: int) -> None:
        turns, ann = self.server.team.desk.long_answers.turns, self.account
        eventually(lambda: turns.wanted(ann) == count, f"{count} who want turns")

    def beginnings(self, count: int) -> None:
        turns, ann = self.server.team.desk.long_answers.beginnings, self.account
        eventually(lambda: turns.wanted(ann) == count, f"{count} watches that begin")

    @property
    def account(self) -> int:
        return self.server.database.read_here(get_user, "ann").id

    def listed(self, token: str = "") -> int:
        said = self.server.ask("GET", JOBS, token or self.ann)
        assert said.status == 200
        return len(said.json["items"])


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Ann has a few large jobs there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_answers, "AT_ONCE", AT_ONCE)
        with a_team_server(tmp_path_factory.mktemp("team")) as server:
            ann = server.token("ann")
            for number in range(COUNT):
                said = server.ask("POST", JOBS, ann, body=large(f"job-{number}"))
                assert said.status == 201, said.body
            yield server


@pytest.fixture
def long(serving: TeamServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Long]:
    monkeypatch.setattr(connections, "TAKING_SECONDS", PATIENT)
    made, engine = list[None](), serving.team.engine
    list_all = engine.list

    async def counted(*asked: Any, **more: Any) -> Any:
        made.append(None)
        return await list_all(*asked, **more)

    monkeypatch.setattr(engine, "list", counted)
    with ExitStack() as ends:
        yield (long := Long(serving, serving.token("ann"), made, ends))
    long.wanted(0)
    long.beginnings(0)


def test_of_one_account_a_few_are_underway_and_nobody_else_waits(long: Long) -> None:
    underway = [long.unread() for _ in range(AT_ONCE)]
    eventually(lambda: len(long.made) == AT_ONCE, "those that have their turn")
    for _ in range(4):
        long.unread()
    long.wanted(6)

    bob = long.server.token("bob")
    assert long.listed(bob) == 0
    assert len(long.made) == AT_ONCE + 1
    # What is no long answer has no turns, and what changes something has none.
    assert long.server.ask("GET", "/regatta/v1/server", long.ann).status == 200
    assert long.server.ask("POST", JOBS, long.ann, body={"text": ""}).status in (400, 422)
    long.wanted(6)

    for end in underway:
        end.close()
    long.wanted(4)
    eventually(lambda: len(long.made) == 2 * AT_ONCE + 1, "the next in turn")


@pytest.mark.parametrize("path", DOORS)
def test_every_door_to_many_jobs_has_turns(long: Long, path: str) -> None:
    first, _ = long.unread(), long.unread()
    long.wanted(AT_ONCE)
    third = long.unread(path)
    long.wanted(AT_ONCE + 1)
    first.close()
    assert third.recv(12) == b"HTTP/1.1 200"


def test_events_that_are_followed_have_no_turn(long: Long) -> None:
    for _ in range(AT_ONCE):
        long.unread()
    long.wanted(AT_ONCE)
    assert long.unread("/regatta/v1/events?follow=true").recv(12) == b"HTTP/1.1 200"
    long.wanted(AT_ONCE)


def test_who_reads_nothing_is_cut_off_and_the_next_have_their_turns(
    long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TAKING_SECONDS", IMPATIENT)
    for _ in range(AT_ONCE + 1):
        long.unread()
    eventually(lambda: len(long.made) == AT_ONCE + 1, "everybody's turn")
    long.wanted(0)

    monkeypatch.setattr(connections, "TAKING_SECONDS", PATIENT)
    assert long.listed() == COUNT


def test_nothing_is_made_for_who_has_left_before_their_turn(long: Long) -> None:
    for _ in range(AT_ONCE):
        long.unread()
    eventually(lambda: len(long.made) == AT_ONCE, "those that have their turn")
    waiting = [long.unread() for _ in range(5)]
    long.wanted(AT_ONCE + 5)
    for end in waiting:
        end.close()
    assert long.server.ask("GET", "/healthz").status == 200  # so it has heard of that
    long.ends.close()
    long.wanted(0)

    assert long.listed() == COUNT
    assert len(long.made) == AT_ONCE + 1


def test_who_is_signed_out_before_their_turn_is_told_nothing(long: Long) -> None:
    first, _ = (long.unread() for _ in range(AT_ONCE))
    long.wanted(AT_ONCE)
    waiting = long.unread()
    long.wanted(AT_ONCE + 1)
    long.server.database.run_here(revoke_all, long.account, long.server.now())

    first.close()
    assert waiting.recv(12) == b"HTTP/1.1 401"


def test_a_few_watches_of_one_account_begin_at_a_time(
    long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[None]()
    watch = long.server.team.engine.watch

    def counted(*asked: Any) -> Any:
        begun.append(None)
        return watch(*asked)

    monkeypatch.setattr(long.server.team.engine, "watch", counted)
    unread = [long.unread(WATCH) for _ in range(AT_ONCE)]
    eventually(lambda: len(begun) == AT_ONCE, "those that have their turn")
    unread.append(long.unread(WATCH))
    long.beginnings(AT_ONCE + 1)
    assert long.listed() == COUNT  # which waits for no watch
    bob = long.unread(WATCH, long.server.token("bob"))
    until(bob, b"event: synced")
    assert len(begun) == AT_ONCE + 1

    until(unread[2], b"still here")
    unread[0].close()
    until(unread[2], b"event: synced")
    until(unread[1], b"event: synced")
    long.beginnings(0)
    # Those that are in sync go on.
    scale = {"role": "worker", "replicas": 2}
    path = "/regatta/v1/namespaces/user-ann/jobs/job-7/scale"
    assert long.server.ask("POST", path, long.ann, body=scale).status == 200
    for end in unread[1:]:
        until(end, b"job-7")


def test_a_watch_that_nobody_reads_is_cut_off_and_the_next_begins(
    long: Long, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, watch = list[None](), long.server.team.engine.watch

    def counted(*asked: Any) -> Any:
        begun.append(None)
        return watch(*asked)

    monkeypatch.setattr(long.server.team.engine, "watch", counted)
    monkeypatch.setattr(connections, "TAKING_SECONDS", IMPATIENT)
    for _ in range(AT_ONCE + 1):
        long.unread(WATCH)
    eventually(lambda: len(begun) == AT_ONCE + 1, "everybody's turn")
    long.beginnings(0)

    monkeypatch.setattr(connections, "TAKING_SECONDS", PATIENT)
    until(long.unread(WATCH), b"event: synced")


def until(end: socket.socket, words: bytes) -> None:
    seen = b""
    while words not in seen:
        got = end.recv(65536)
        assert got, "it ended"
        seen = seen[-len(words) :] + got
