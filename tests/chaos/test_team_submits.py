"""A team's server is killed again and again while fifty clients hand jobs in: what was
acknowledged exists once, in the engine and on record, and nothing else does."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest
from sqlalchemy import Connection, select

from regatta.server.records.job_tables import gaps, jobs
from tests.chaos.team_servers import (
    PATIENCE,
    Answer,
    Member,
    TeamProcess,
    eventually,
    job_text,
    records,
)
from tests.server.records.postgresql import PostgreSQL

CLIENTS = 50
#: How many rounds of kills; `REGATTA_TURNS=20` is the long version.
TURNS = int(os.environ.get("REGATTA_TURNS") or 1)
KILLS = 4
UNANSWERED = (OSError, http.client.HTTPException)


class Client(threading.Thread):
    """Hands jobs in, one after another, and sends each again with its key until it is answered."""

    def __init__(self, number: int, member: Member, enough: threading.Event, seed: int) -> None:
        super().__init__(daemon=True)
        self._number, self.member, self._enough = number, member, enough
        self._dice = Random(seed + number)
        #: By key: the job that was acknowledged, and what was sent.
        self.acknowledged: dict[str, str] = {}
        self.sent: dict[str, str] = {}
        self.refusals: Counter[str] = Counter()
        self.unexpected: list[str] = []

    def run(self) -> None:
        turn = 0
        while not self._enough.is_set() and not self.unexpected:
            self._hand_in(turn)
            turn += 1

    def _hand_in(self, turn: int) -> None:
        name, key = f"c{self._number}-{turn}", f"key-{self._number}-{turn}"
        # Most do not run, so that what is tried is the handing in.
        suspend = self._dice.random() < 0.9
        self.sent[key] = job_text(name, suspend=suspend)
        while True:
            try:
                answer = self.member.submit(self.sent[key], key)
            except UNANSWERED:
                self.refusals["unanswered"] += 1
                time.sleep(self._dice.uniform(0.02, 0.1))
                continue
            if answer.status == 201:
                self.acknowledged[key] = answer.body["job"]["metadata"]["uid"]
                return
            if answer.status != 503 or not isinstance(answer.body, dict):
                self.unexpected.append(f"{key}: {answer}")
                return
            self.refusals[answer.body["code"]] += 1
            time.sleep(self._dice.uniform(0.05, 0.2))


class Crowd:
    def __init__(self, members: list[Member], seed: int) -> None:
        self._enough = threading.Event()
        self.clients = [
            Client(number, members[number % len(members)], self._enough, seed)
            for number in range(CLIENTS)
        ]
        for client in self.clients:
            client.start()

    @property
    def acknowledged(self) -> dict[str, str]:
        return {key: uid for one in self.clients for key, uid in dict(one.acknowledged).items()}

    @property
    def refusals(self) -> Counter[str]:
        return sum((client.refusals for client in self.clients), Counter())

    def wait_for(self, more: int) -> None:
        """Acknowledged since now."""
        before = len(self.acknowledged)
        eventually(
            lambda: len(self.acknowledged) >= before + more or bool(self.unexpected),
            f"{more} more submits",
        )

    @property
    def unexpected(self) -> list[str]:
        return [said for client in self.clients for said in client.unexpected]

    def finish(self) -> None:
        """What each has begun is answered."""
        self._enough.set()
        for client in self.clients:
            client.join(PATIENCE)
            assert not client.is_alive(), f"a client got no answer in {PATIENCE:g} s"


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    seed = int(os.environ.get("REGATTA_SEED") or SystemRandom().randrange(2**32))
    record_property("seed of the kills of a team's server", str(seed))
    return seed


@pytest.mark.timeout(240 * TURNS)
def test_what_was_acknowledged_exists_once_however_often_the_server_is_killed(
    server: TeamProcess, seed: int, record_property: Callable[[str, object], None]
) -> None:
    dice = Random(seed)
    admin, members = _accounts(server)
    server.start()
    crowd = Crowd(members, seed)
    for _ in range(KILLS * TURNS):
        crowd.wait_for(CLIENTS // 2)
        time.sleep(dice.uniform(0, 0.3))  # a moment like any other
        if dice.random() < 0.75:
            server.kill()
        else:
            server.stop()
        server.start()
    crowd.finish()
    assert not crowd.unexpected, (crowd.unexpected[:3], server.log[-3000:])
    assert crowd.refusals["unanswered"]
    _assert_each_exists_once(server, admin, crowd)
    record_property("submits to a team's server that was killed", len(crowd.acknowledged))


@pytest.mark.timeout(240)
def test_nothing_is_lost_when_postgresql_is_restarted_under_the_server(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    postgresql = PostgreSQL()
    server = None
    try:
        server = TeamProcess(tmp_path, postgresql.start().new_database())
        admin, members = _accounts(server)
        server.start()
        crowd = Crowd(members, seed)
        for at_once in (False, True):
            crowd.wait_for(CLIENTS)
            away_before = crowd.refusals["RecordsAway"]
            postgresql.stop(at_once=at_once)
            eventually(
                lambda before=away_before: crowd.refusals["RecordsAway"] >= before + CLIENTS,
                "being told that the records are away",
            )
            postgresql.start()
        crowd.wait_for(CLIENTS)
        crowd.finish()
        assert not crowd.unexpected, (crowd.unexpected[:3], server.log[-3000:])
        assert not crowd.refusals["unanswered"], "the server went with its database"
        _assert_each_exists_once(server, admin, crowd)
        with records(server.url) as database:
            eventually(
                lambda: any("does not answer" in why for why in database.read_here(_blind)),
                "the records saying where they were blind",
            )
        record_property("submits while PostgreSQL was restarted", len(crowd.acknowledged))
    finally:
        if server is not None:
            server.kill()
        postgresql.remove()


def _accounts(server: TeamProcess) -> tuple[Member, list[Member]]:
    return server.account("boss", admin=True), [server.account(f"member{n}") for n in range(5)]


def _assert_each_exists_once(server: TeamProcess, admin: Member, crowd: Crowd) -> None:
    acknowledged = crowd.acknowledged
    in_engine = [job["metadata"]["uid"] for job in _items(admin.ask("GET", "/regatta/v1/jobs"))]
    runs = [run["uid"] for run in _items(admin.ask("GET", "/regatta/v1/runs"))]
    assert Counter(in_engine) == Counter(acknowledged.values())
    assert set(runs) == set(in_engine), "a job was made twice, and one replaced the other"
    with records(server.url) as database:
        eventually(
            lambda: all(row.phase for row in database.read_here(_rows)), "all being written down"
        )
        rows = database.read_here(_rows)
    assert Counter(row.engine_uid for row in rows) == Counter(in_engine)
    assert {row.submit_state for row in rows} == {"accepted"}
    assert "" not in {row.username for row in rows}, "a job is nobody's"
    _assert_keys_are_remembered(crowd)


def _assert_keys_are_remembered(crowd: Crowd) -> None:
    """Sent once more, each is the job that it was."""
    for client in crowd.clients[:10]:
        for key, uid in list(client.acknowledged.items())[-2:]:
            again = client.member.submit(client.sent[key], key)
            assert (again.status, again.body["job"]["metadata"]["uid"]) == (201, uid)


def _items(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.body["items"]
    return found


def _blind(connection: Connection) -> list[str]:
    return list(connection.scalars(select(gaps.c.why)))


def _rows(connection: Connection) -> list[Any]:
    wanted = (jobs.c.engine_uid, jobs.c.username, jobs.c.submit_state, jobs.c.phase)
    return list(connection.execute(select(*wanted)))
