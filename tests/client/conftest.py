"""Both channels to a scripted server: what one does, the other does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from regatta.client.async_channel import AsyncChannel
from regatta.client.blocking_channel import BlockingChannel
from regatta.client.engine import ServerEngine
from regatta.client.whereabouts import Named
from regatta.engines.blocking import Blocking, Inline, in_loop_thread
from tests.client.scripted import Scripted, a_scripted_server
from tests.daemon.conftest import fresh

__all__ = ["fresh"]

TOKEN = "secret"


@pytest.fixture
def server() -> Iterator[Scripted]:
    with a_scripted_server() as scripted:
        yield scripted


def blocking(url: str) -> Blocking:
    return Blocking(ServerEngine(BlockingChannel(Named(url, TOKEN))), Inline())


def asynchronous(url: str) -> Blocking:
    return in_loop_thread(lambda: ServerEngine(AsyncChannel(Named(url, TOKEN))))


@pytest.fixture(params=[blocking, asynchronous], ids=["blocking", "asynchronous"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Blocking]]:
    opened: list[Blocking] = []

    def open_engine(url: str) -> Blocking:
        opened.append(request.param(url))
        return opened[-1]

    yield open_engine
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(connect: Callable[[str], Blocking], server: Scripted) -> Blocking:
    return connect(server.url)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for silence does not wait for long; an answer comes sooner, even here."""
    for channel in (BlockingChannel, AsyncChannel):
        monkeypatch.setattr(channel, "request_seconds", 2.0)
        monkeypatch.setattr(channel, "silence_seconds", 2.0)
