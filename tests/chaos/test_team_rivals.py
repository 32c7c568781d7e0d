"""Many who want the same few names: they hand jobs in, replace, stop and delete them, while the
server is killed again and again. The engine and the records agree on what is left."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any

import pytest
from sqlalchemy import Connection, select

from regatta.server.openpai_states import FINAL_STATES
from regatta.server.records.job_tables import jobs
from tests.chaos.team_servers import (
    PATIENCE,
    Answer,
    Member,
    TeamProcess,
    eventually,
    job_text,
    records,
)

RIVALS, NAMES, KILLS = 24, 3, 3
#: How many rounds of kills; `REGATTA_TURNS=20` is the long version.
TURNS = int(os.environ.get("REGATTA_TURNS") or 1)
#: What may be answered: done, gone, somebody was faster, the server leaves.
EXPECTED = {200, 201, 202, 404, 409, 503}


class Rival(threading.Thread):
    def __init__(self, number: int, owner: str, member: Member, enough: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number, self._owner, self._member, self._enough = number, owner, member, enough
        self._dice = Random(number)
        self.acknowledged: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.unexpected: list[str] = []

    def run(self) -> None:
        turn = 0
        while not self._enough.is_set():
            turn += 1
            name = f"wanted-{self._dice.randrange(NAMES)}"
            deed = self._dice.choices((self._hand_in, self._end, self._remove), (6, 2, 1))[0]
            deed(name, f"{self._number}-{turn}")

    def _hand_in(self, name: str, key: str) -> None:
        script = "true" if self._dice.random() < 0.1 else "sleep 300"
        suspend = self._dice.random() < 0.8
        text, replace = job_text(name, script, suspend=suspend), self._dice.random() < 0.7
        answer = self._until_answered(lambda: self._member.submit(text, key, replace=replace))
        if answer.status == 201:
            self.acknowledged[key] = answer.body["job"]["metadata"]["uid"]

    def _end(self, name: str, _: str) -> None:
        path = f"/api/v2/jobs/{self._owner}~{name}/executionType"
        self._until_answered(lambda: self._member.ask("PUT", path, {"value": "STOP"}))

    def _remove(self, name: str, _: str) -> None:
        paths = (
            f"/api/v1/jobs/{self._owner}~{name}",
            f"/regatta/v1/namespaces/user-{self._owner}/jobs/{name}",
        )
        path = self._dice.choice(paths)
        self._until_answered(lambda: self._member.ask("DELETE", path))

    def _until_answered(self, ask: Callable[[], Answer]) -> Answer:
        while True:
            try:
                answer = ask()
            except (OSError, http.client.HTTPException):
                self.done["unanswered"] += 1
                time.sleep(self._dice.uniform(0.02, 0.1))
                continue
            self.done[str(answer.status)] += 1
            if answer.status not in EXPECTED:
                self.unexpected.append(str(answer)[:500])
            if answer.status != 503:
                return answer
            time.sleep(0.05)


@pytest.mark.timeout(240 * TURNS)
def test_engine_and_records_agree_on_who_has_a_name_that_many_wanted(
    server: TeamProcess, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get("REGATTA_SEED") or SystemRandom().randrange(2**32))
    record_property("seed of the kills among rivals", str(seed))
    dice = Random(seed)
    boss = server.account("boss", admin=True)
    owners = {name: server.account(name) for name in ("ann", "bob")}
    enough = threading.Event()
    names = list(owners)
    server.start()
    rivals = []
    for number in range(RIVALS):
        owner = names[number % len(names)]
        rivals.append(Rival(number, owner, owners[owner], enough))
        rivals[-1].start()

    def deeds() -> int:
        return sum(rival.done.total() - rival.done["unanswered"] for rival in rivals)

    for _ in range(KILLS * TURNS):
        before = deeds()
        eventually(lambda before=before: deeds() > before + RIVALS, "rivals getting on")
        time.sleep(dice.uniform(0, 0.3))  # a moment like any other
        (server.kill if dice.random() < 0.75 else server.stop)()
        server.start()
    enough.set()
    for rival in rivals:
        rival.join(PATIENCE)
        assert not rival.is_alive(), f"a rival got no answer in {PATIENCE:g} s"
    said = [text for rival in rivals for text in rival.unexpected]
    assert not said, (said[:3], server.log[-3000:])
    _assert_they_agree(server, boss, rivals)
    record_property("deeds among rivals", deeds())


def _assert_they_agree(server: TeamProcess, boss: Member, rivals: list[Rival]) -> None:
    with records(server.url) as database:

        def wrong() -> list[str]:
            return _wrong(boss, database.read_here(_rows), rivals)

        deadline = time.monotonic() + PATIENCE
        while (found := wrong()) and time.monotonic() < deadline:
            time.sleep(0.2)  # what was deleted or replaced may still be ending
        assert not found, (found, server.log[-3000:])


def _wrong(boss: Member, rows: list[Any], rivals: list[Rival]) -> list[str]:
    current = {job["metadata"]["uid"] for job in _items(boss.ask("GET", "/regatta/v1/jobs"))}
    runs = {run["uid"] for run in _items(boss.ask("GET", "/regatta/v1/runs"))}
    by_uid = Counter(row.engine_uid for row in rows)
    named = {row.engine_uid: row for row in rows if row.superseded_by is None and row.shown}
    acknowledged = {uid for rival in rivals for uid in rival.acknowledged.values()}
    found = [f"on record {count} times: {uid}" for uid, count in by_uid.items() if count > 1]
    found += [f"on its way for ever: {row}" for row in rows if row.submit_state != "accepted"]
    found += [f"nobody's: {row}" for row in rows if not row.username]
    found += [f"acknowledged, and not on record: {uid}" for uid in acknowledged - set(by_uid)]
    found += [f"in the engine, and its record has no name: {uid}" for uid in current - set(named)]
    found += [f"a run without a record: {uid}" for uid in runs - set(by_uid)]
    for row in rows:
        # Of one that had lost its name before, it is found out when a server starts.
        said = (row.gone_at or row.superseded_by) and row.state in FINAL_STATES
        if row.shown and row.engine_uid not in runs and not said:
            found.append(f"a record of a job that is gone, which it does not say: {row}")
    for uid, row in named.items():
        if uid not in current and not row.gone_at:
            found.append(f"has the name on record, and not in the engine: {row}")
        if uid in current and row.execution_type == "STOP" and row.state not in FINAL_STATES:
            found.append(f"was to be stopped, and is not: {row}")
    return found


def _items(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.body["items"]
    return found


def _rows(connection: Connection) -> list[Any]:
    c = jobs.c
    wanted = (c.id, c.engine_uid, c.username, c.name, c.submit_state, c.state, c.execution_type)
    more = (c.superseded_by, c.gone_at, c.deleted_at.is_(None).label("shown"))
    return list(connection.execute(select(*wanted, *more)))
