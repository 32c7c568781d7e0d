"""What becomes of a submit whose answer does not come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.cli.main import run
from regatta.client import engine as client_engine
from regatta.client.blocking_channel import BlockingChannel
from tests.client.scripted import (
    Answer,
    Scripted,
    a_job,
    a_scripted_server,
    hang_up,
    reply,
    say_nothing,
)
from tests.doors import shell_job

INFO = reply(200, {"version": "0.1.0", "pid": 1})
ACCEPTED = reply(201, {"job": a_job("mine"), "warnings": [], "replaced": ""})
LOST: dict[str, tuple[Answer, str]] = {
    "it takes too long": (say_nothing, "did not answer in time"),
    "the connection breaks": (hang_up, "no server answers"),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setenv("REGATTA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(BlockingChannel, "request_seconds", 0.5)
    monkeypatch.setattr(client_engine, "SECOND_TRY_SECONDS", 0.5)
    (tmp_path / "job.yaml").write_text(shell_job("mine"))
    monkeypatch.chdir(tmp_path)
    with a_scripted_server() as scripted:
        yield scripted


@pytest.mark.parametrize("case", LOST.values(), ids=list(LOST))
def test_a_submit_without_an_answer_says_that_the_job_may_have_arrived(
    server: Scripted, case: tuple[Answer, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lost, why = case
    server.answers(INFO, lost, lost)

    code = run(["submit", "job.yaml", "--name", "mine", "--server", server.url])

    said = capsys.readouterr().err
    assert code == 5
    assert why in said
    assert "the job may have arrived" in said
    assert "`regatta get mine` shows whether it did" in said


def test_an_answer_that_is_lost_once_is_asked_for_again(
    server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers(INFO, hang_up, ACCEPTED)

    code = run(["submit", "job.yaml", "--server", server.url])

    assert (code, capsys.readouterr().err) == (0, "")
    first, second = (asked.body["key"] for asked in server.asked if asked.method == "POST")
    assert first == second
