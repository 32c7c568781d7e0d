"""Streams that outlive the server."""

from __future__ import annotations

import os
import signal

import pytest

from regatta.api.errors import ServerUnreachable
from regatta.api.job import Job
from regatta.client import follow
from regatta.client.client import Client
from regatta.client.follow import Lines, Lost, follow_job
from regatta.client.http import Http
from regatta.daemon.connection import answering
from regatta.engines.base import LogQuery, Submission
from tests.doors import Regatta, eventually, shell_job


def test_a_follower_misses_and_repeats_nothing_when_the_server_is_killed(fresh: Regatta) -> None:
    fresh("server", "start")
    # After every 16 lines it waits until the server was killed.
    wait = f"until [ -e {fresh.folder}/go-$i ]; do sleep 0.02; done"
    script = f"for i in $(seq 1 60); do echo $i; [ $((i % 16)) != 0 ] || {wait}; done"
    fresh.client.submit(Submission(text=shell_job("followed", script)))
    seen: list[str] = []
    kills, lost = 0, 0
    final: Job | None = None

    for update in follow_job(lambda: fresh.client, "default", "followed", LogQuery(follow=True)):
        match update:
            case Lines(lines):
                seen += [line.text for line in lines]
                if len(seen) == 16 * (kills + 1):
                    address = eventually(lambda: answering(fresh.files), "the server")
                    os.kill(address.pid, signal.SIGKILL)
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


def test_a_stream_gives_up_on_a_server_that_never_comes_back() -> None:
    clock = iter(float(second) for second in range(0, 10_000, 30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow.time, "monotonic", lambda: next(clock))
        patch.setattr(follow.time, "sleep", lambda _: None)
        nowhere = Client(Http("http://127.0.0.1:1", "token"))
        stream = follow_job(lambda: nowhere, "default", "x", LogQuery(follow=True))
        assert isinstance(next(stream), Lost)
        with pytest.raises(ServerUnreachable, match="no server answers"):
            next(stream)
