"""Streams that outlive their connection, and their server."""

from __future__ import annotations

import os
import signal

import pytest

from regatta.api.errors import JobNotFound, ServerUnreachable
from regatta.api.job import Job
from regatta.client import resume
from regatta.client.connect import connect, connect_async
from regatta.engines.base import LogBatch, LogQuery, Lost, Submission
from regatta.engines.blocking import Blocking, in_loop_thread
from tests.client.scripted import END, Scripted, hang_up, lines, reply, streams
from tests.doors import Regatta, shell_job

AWAY = reply(503, {"code": "ServerUnreachable", "message": "moving house"})


def test_an_outage_is_told_once_however_many_tries_it_takes(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(streams(lines("a", id="u=1")), hang_up, hang_up, AWAY, streams(END))

    updates = list(engine.follow("default", "one", LogQuery()))

    assert [type(update) for update in updates] == [LogBatch, Lost]
    assert len(server.asked) == 5


def test_a_refusal_is_not_asked_again(engine: Blocking, server: Scripted) -> None:
    missing = reply(404, {"code": "JobNotFound", "message": "no job one"})
    server.answers(streams(lines("a", id="u=1")), missing)
    stream = engine.follow("default", "one", LogQuery())
    assert [type(next(stream)) for _ in range(2)] == [LogBatch, Lost]

    with pytest.raises(JobNotFound):
        next(stream)


def test_silence_is_a_broken_connection(
    engine: Blocking, server: Scripted, impatient: None
) -> None:
    server.answers(streams(lines("a", id="u=1"), silent=True), streams(END))

    updates = list(engine.follow("default", "one", LogQuery()))

    assert [type(update) for update in updates] == [LogBatch, Lost]
    assert server.asked[1].headers["Last-Event-ID"] == "u=1"


def test_a_stream_gives_up_on_a_server_that_never_comes_back(
    engine: Blocking, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "PATIENCE_SECONDS", 0.2)
    stream = engine.follow("default", "one", LogQuery())  # whose script says nothing
    assert isinstance(next(stream), Lost)

    with pytest.raises(ServerUnreachable):
        next(stream)

    assert len(server.asked) > 1


@pytest.mark.parametrize("kind", ["blocking", "asynchronous"])
def test_a_follower_misses_and_repeats_nothing_when_the_server_is_killed(
    fresh: Regatta, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh("server", "start")
    monkeypatch.setenv("REGATTA_HOME", fresh.environment["REGATTA_HOME"])
    engine = connect() if kind == "blocking" else in_loop_thread(connect_async)
    # After every 16 lines it waits until the server was killed.
    wait = f"until [ -e {fresh.folder}/go-$i ]; do sleep 0.02; done"
    script = f"for i in $(seq 1 60); do echo $i; [ $((i % 16)) != 0 ] || {wait}; done"
    engine.submit(Submission(text=shell_job("followed", script)))
    seen: list[str] = []
    kills, lost = 0, 0
    final: Job | None = None

    for update in engine.follow("default", "followed", LogQuery()):
        match update:
            case LogBatch(lines):
                seen += [line.text for line in lines]
                if len(seen) == 16 * (kills + 1):
                    os.kill(fresh.address.pid, signal.SIGKILL)
                    kills += 1
                    (fresh.folder / f"go-{16 * kills}").touch()
            case Lost():
                lost += 1
            case Job():
                final = update

    assert seen == [str(i) for i in range(1, 61)]
    assert kills == 3
    assert lost >= 1
    assert final is not None
    assert final.status.phase == "Completed"
    # And a request after all that finds the server where it is by now.
    assert engine.get("default", "followed").finished
    engine.close()


def test_run_goes_on_when_the_server_is_killed_under_it(fresh: Regatta) -> None:
    fresh("server", "start")
    script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done"
    running = fresh.start("run", fresh.write(shell_job("unbothered", script)))
    assert running.stdout is not None
    try:
        while "| begun" not in running.stdout.readline():
            pass
        address = fresh.files.read()
        assert address is not None
        os.kill(address.pid, signal.SIGKILL)
        while "looking for it" not in running.stdout.readline():
            pass
        (fresh.folder / "go").touch()
        rest = running.stdout.read()
        assert running.wait(60) == 0
        assert "worker-0 | done" in rest
        assert "| begun" not in rest
    finally:
        running.kill()
        running.communicate()
