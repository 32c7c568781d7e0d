"""A team's server whose PostgreSQL says nothing: everybody is told, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from regatta.server.records.waiting import patience
from regatta.server.team.submitting import handing_in
from tests.doors import eventually, shell_job
from tests.server.accounts.people import PASSWORD
from tests.server.records.postgresql import PostgreSQL
from tests.server.team.serving import Answer, TeamServer, a_team_server

JOBS = "/regatta/v1/jobs"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(patience, "SILENT_AFTER_REST", 1.0)


def _submit(server: TeamServer, token: str, name: str) -> Answer:
    return server.ask("POST", JOBS, token, body={"text": shell_job(name), "key": name})


def _names(server: TeamServer, token: str) -> list[str]:
    return [job["metadata"]["name"] for job in server.ask("GET", JOBS, token).json["items"]]


def test_lists_submits_and_sign_ins_are_answered_503_until_it_goes_on(tmp_path: Path) -> None:
    own = PostgreSQL().start()
    try:
        url = own.new_database() + "?connect_timeout=2"
        with a_team_server(tmp_path, url=url) as server, ThreadPoolExecutor(24) as people:
            ann = server.token("ann")
            sign_in = {"username": "ann", "password": PASSWORD}
            questions: list[Callable[[], Answer]] = [
                lambda: server.ask("GET", JOBS, ann),
                lambda: _submit(server, ann, "first"),
                lambda: server.ask("POST", "/api/v2/authn/basic/login", body=sign_in),
            ]
            assert server.ask("GET", JOBS, ann).status == 200
            with own.frozen():
                asked = [people.submit(question) for question in questions * 8]
                assert {answer.result().status for answer in asked} == {503}
            # It was told that the job is not there, and sends it again.
            told = {question().status for question in questions}
            assert told == {200, 201}
            assert _names(server, ann) == ["first"]
    finally:
        own.remove()


def test_a_submit_whose_record_fell_silent_is_there_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its COMMIT was on the way: whoever is told 503 may send it again, and need not."""
    own = PostgreSQL().start()
    silence = ExitStack()
    begin = handing_in.begin_submit

    def fall_silent(*args: object) -> None:
        begin(*args)  # type: ignore[arg-type]
        silence.enter_context(own.frozen())

    try:
        url = own.new_database() + "?connect_timeout=2"
        with a_team_server(tmp_path, url=url) as server:
            ann = server.token("ann")
            with monkeypatch.context() as once:
                once.setattr(handing_in, "begin_submit", fall_silent)
                assert _submit(server, ann, "first").code == (503, "RecordsAway")
            silence.close()
            assert _submit(server, ann, "first").status == 201
            eventually(lambda: _names(server, ann) == ["first"], "one job")
    finally:
        silence.close()
        own.remove()
