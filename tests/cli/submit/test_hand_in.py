"""What is said when the answer to a submit does not come."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from regatta.client import engine as client_engine
from regatta.client.blocking_channel import BlockingChannel
from tests.doors import Regatta, shell_job


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes requests and never answers."""
    kept: list[socket.socket] = []

    def take() -> None:
        while True:
            try:
                kept.append(listener.accept()[0])
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        taking = threading.Thread(target=take)
        taking.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    taking.join()
    for one in kept:
        one.close()


def test_a_submit_without_an_answer_says_that_the_job_may_have_arrived(
    regatta: Regatta,
    name: str,
    silent: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from regatta.cli.main import run

    monkeypatch.setattr(BlockingChannel, "request_seconds", 0.5)
    monkeypatch.setattr(client_engine, "SECOND_TRY_SECONDS", 0.5)
    monkeypatch.setenv("REGATTA_HOME", regatta.environment["REGATTA_HOME"])
    file = regatta.write(shell_job(name))

    code = run(["submit", file, "--name", name, "--server", silent])

    said = capsys.readouterr().err
    assert code == 5
    assert "did not answer in time" in said
    assert "the job may have arrived" in said
    assert f"`regatta get {name}` shows whether it did" in said
