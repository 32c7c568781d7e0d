"""Handing in over a real server: a submit that is sent again is one, however much time has passed
and whatever was cut off."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Connection, update

from regatta.engines.base import Preview, Submission
from regatta.server.accounts.users import get_user
from regatta.server.records.job_rows import job_of
from regatta.server.records.job_tables import jobs
from regatta.server.records.moments import now_millis
from regatta.server.records.submits import begin_submit, unfinished
from regatta.server.team.submitting.handing_in import AT_ONCE
from tests.doors import eventually, shell_job
from tests.server.accounts.people import a_caller
from tests.server.records.rows import a_new_job
from tests.server.team.serving import Answer, TeamServer

JOBS = "/regatta/v1/jobs"


def _send(team: TeamServer, user: str, text: str, key: str, **more: Any) -> Answer:
    return team.ask("POST", JOBS, team.token(user), body={"text": text, "key": key, **more})


def _uid(answer: Answer) -> str:
    assert answer.status == 201, answer.body
    uid: str = answer.json["job"]["metadata"]["uid"]
    return uid


def _age(connection: Connection, name: str) -> None:
    old = now_millis() - 3 * 86_400_000
    connection.execute(update(jobs).where(jobs.c.name == name).values(submitted_at=old))


def test_a_key_that_the_engine_has_forgotten_is_known_to_the_record(server: TeamServer) -> None:
    first = _uid(_send(server, "ann", shell_job("early"), "k"))
    eventually(
        lambda: server.database.read_here(job_of, "ann", "early").state == "SUCCEEDED", "its end"
    )
    server.database.run_here(_age, "early")
    [store] = server.work.parent.glob("home/*/regatta.db")
    with closing(sqlite3.connect(store)) as connection, connection:
        assert connection.execute("DELETE FROM submissions").rowcount
    assert _uid(_send(server, "ann", shell_job("early"), "k")) == first

    namespace = "/regatta/v1/namespaces/user-ann/jobs/early"
    assert server.ask("DELETE", namespace, server.token("ann")).status == 200
    again = _send(server, "ann", shell_job("early"), "k")
    assert again.code == (409, "NotPossible")
    assert "which was deleted since" in again.json["message"]


def test_a_submit_that_was_sent_before_is_answered_although_another_has_its_name(
    server: TeamServer,
) -> None:
    first = _uid(_send(server, "ann", shell_job("same"), "one"))
    eventually(
        lambda: server.database.read_here(job_of, "ann", "same").state == "SUCCEEDED", "its end"
    )
    second = _uid(_send(server, "ann", shell_job("same", "sleep 60"), "two"))
    assert _uid(_send(server, "ann", shell_job("same"), "one")) == first
    assert server.database.read_here(job_of, "ann", "same").engine_uid == second


def test_a_submit_that_was_cut_off_before_the_engine_had_it_is_made_when_it_is_sent_again(
    server: TeamServer,
) -> None:
    server.token("ann")
    ann = server.database.read_here(get_user, "ann")
    key = hashlib.sha256(f"{ann.id} k".encode()).hexdigest()[:32]
    left = a_new_job("cut", id=key, namespace="user-ann", submitted_at=now_millis())
    server.database.run_here(begin_submit, left)
    uid = _uid(_send(server, "ann", shell_job("cut"), "k"))
    row = server.database.read_here(job_of, "ann", "cut")
    assert (row.id, row.engine_uid, row.submit_state) == (key, uid, "accepted")
    assert server.database.read_here(unfinished) == []


def test_deleting_many_deletes_their_records_and_no_others(server: TeamServer) -> None:
    for user, name in (("ann", "one"), ("ann", "two"), ("bob", "one")):
        _uid(_send(server, user, shell_job(name), name))
        eventually(
            lambda user=user, name=name: (
                server.database.read_here(job_of, user, name).state == "SUCCEEDED"
            ),
            f"the end of {name}",
        )
    gone = server.ask("DELETE", "/regatta/v1/namespaces/user-ann/jobs", server.token("ann"))
    assert (gone.status, gone.json["jobs"]) == (200, 2), gone.body
    listed = server.ask("GET", "/api/v2/jobs", server.admin_token()).json
    assert [(job["username"], job["name"]) for job in listed] == [("bob", "one")]


class Looking:
    """An engine's looks at submissions, which last until `go` is set."""

    def __init__(self, server: TeamServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.users = threading.Event(), list[str]()
        self.loop: asyncio.AbstractEventLoop
        self._preview = server.team.engine.preview
        monkeypatch.setattr(server.team.engine, "preview", self.look)

    async def look(self, submission: Submission, *args: Any, **more: Any) -> Preview:
        self.loop = asyncio.get_running_loop()
        self.users.append(submission.user)
        while submission.user == "ann" and not self.go.is_set():
            await asyncio.sleep(0.01)
        return await self._preview(submission, *args, **more)


def _rehearse(server: TeamServer, user: str) -> int:
    body = {"text": shell_job("job")}
    return server.ask("POST", f"{JOBS}?dryRun=true", server.token(user), body=body).status


def test_one_account_does_not_keep_the_engine_from_everybody_else(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, many = Looking(server, monkeypatch), AT_ONCE + 2
    server.token("ann")
    ann = server.database.read_here(get_user, "ann").id
    turns = server.team.desk._handing_in._of_one_account
    with ThreadPoolExecutor(many) as clients:
        asked = [clients.submit(_rehearse, server, "ann") for _ in range(many)]
        eventually(lambda: turns.wanted(ann) == many, "all of them to be there")
        eventually(lambda: len(looking.users) == AT_ONCE, "those whose turn it is")
        assert _rehearse(server, "bob") == 200
        assert looking.users == ["ann"] * AT_ONCE + ["bob"]
        looking.go.set()
        assert [one.result() for one in asked] == [200] * many
    eventually(lambda: len(turns) == 0, "nobody's turn")


def test_who_hangs_up_has_a_turn_for_as_long_as_the_engine_looks(
    server: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = Looking(server, monkeypatch)
    assert _rehearse(server, "bob") == 200
    server.token("ann")
    ann = server.database.read_here(get_user, "ann").id
    turns = server.team.desk._handing_in._of_one_account
    rehearsal = server.team.desk.preview(
        a_caller("ann", user_id=ann), Submission(text=shell_job("job")), None, stored=False
    )
    asked = asyncio.run_coroutine_threadsafe(rehearsal, looking.loop)
    eventually(lambda: looking.users == ["bob", "ann"], "the look")
    asked.cancel()
    nothing = asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), looking.loop)
    nothing.result(60)
    assert turns.wanted(ann) == 1
    looking.go.set()
    eventually(lambda: turns.wanted(ann) == 0, "its end")
