"""Ctrl-C at moments that a real terminal seldom hits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import msgspec
import pytest

from regatta.api.errors import NotPossible, RegattaError, error_of
from regatta.api.job import Job, JobSpec, JobStatus, Metadata, Mode, Phase, RoleSpec
from regatta.cli.follow import attached
from regatta.cli.follow.attached import Attached
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings

RUNNING = Job(
    metadata=Metadata(name="swift", uid="1"),
    spec=JobSpec(mode=Mode.SINGLE, worker=RoleSpec(replicas=1, template={})),
    status=JobStatus(phase=Phase.RUNNING),
)
COMPLETED = msgspec.structs.replace(RUNNING, status=JobStatus(phase=Phase.COMPLETED))

REFUSALS = [error_of("NotPossible", 409, "has ended"), NotPossible("has ended")]


@pytest.mark.parametrize("refusal", REFUSALS, ids=["a server's", "a cluster's"])
def test_a_second_ctrl_c_after_the_jobs_end_finishes_normally(
    refusal: RegattaError,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Engine:
        def follow(self, *_: object) -> Iterator[Job]:
            yield RUNNING
            for _ in range(2):
                time.sleep(0.3)
                os.kill(os.getpid(), signal.SIGINT)
            yield COMPLETED

        def stop(self, *_: str) -> None:
            raise refusal

        def pods(self, *_: str) -> list[object]:
            return []

    monkeypatch.setattr(attached, "SECOND_CHANCE_SECONDS", 30.0)
    monkeypatch.setattr(Settings, "engine", lambda _: Engine())

    assert Attached(Settings(), RUNNING).follow() is Exit.OK

    said = capsys.readouterr().out
    assert "Stopping job swift." in said
    assert "job swift Completed" in said
