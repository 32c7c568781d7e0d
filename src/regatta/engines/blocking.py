"""An engine for callers that block: the same methods, and streams as plain iterators.

Whether an event loop is needed depends on the engine. One that never waits for a loop (a server
spoken to over blocking sockets) is driven `inline`, without even importing asyncio: a command that
only lists jobs starts faster than the import takes. Any other runs in the loop of a thread.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from datetime import datetime
from typing import Any, Protocol, TypeVar

from regatta.api.job import Job
from regatta.engines.base import (
    Accepted,
    Engine,
    JobUpdate,
    LogQuery,
    LogUpdate,
    Lost,
    Preview,
    Shell,
    Submission,
    WatchUpdate,
)
from regatta.engines.inventory import (
    Capacity,
    EventView,
    PodView,
    Removal,
    RunView,
    Storage,
    Traits,
)

T = TypeVar("T")


class Runner(Protocol):
    """Drives coroutines for a caller that waits."""

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    def stream(self, source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """A reader who is slow holds the source back; one who leaves closes it."""
        ...

    def close(self, farewell: Coroutine[Any, Any, None]) -> None:
        """Ends open streams (their readers, in other threads, hear no word of it), then this."""
        ...


class Inline:
    """For engines whose coroutines block instead of waiting for a loop."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            work.send(None)
        except StopIteration as finished:
            result: T = finished.value
            return result
        work.close()
        raise RuntimeError("this engine waits for an event loop; it needs a LoopThread")

    def stream(self, source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_closed(source))

    def close(self, farewell: Coroutine[Any, Any, None]) -> None:
        self.run(farewell)


async def _next(source: AsyncGenerator[T, None]) -> T:
    return await anext(source)


async def _closed(source: AsyncGenerator[Any, None]) -> None:
    await source.aclose()


class Blocking:
    """An `Engine` without `async`. Calls may come from any thread."""

    def __init__(self, engine: Engine, runner: Runner) -> None:
        self._engine = engine
        self._runner = runner

    def close(self) -> None:
        self._runner.close(self._engine.close())

    def traits(self) -> Traits:
        return self._runner.run(self._engine.traits())

    def version(self) -> str:
        return self._runner.run(self._engine.version())

    # Jobs

    def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        return self._runner.run(self._engine.submit(submission, shell))

    def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        return self._runner.run(self._engine.preview(submission, shell, stored=stored))

    def get(self, namespace: str, name: str, uid: str = "") -> Job:
        return self._runner.run(self._engine.get(namespace, name, uid))

    def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        return self._runner.run(self._engine.list(namespace, finished=finished))

    def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        return self._runner.run(self._engine.history(namespace, name, uid=uid, limit=limit))

    def stop(self, namespace: str, name: str) -> Job:
        return self._runner.run(self._engine.stop(namespace, name))

    def delete(self, namespace: str, name: str) -> None:
        self._runner.run(self._engine.delete(namespace, name))

    def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        asked = self._engine.delete_many(namespace, live=live, ended_before=ended_before)
        return self._runner.run(asked)

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        return self._runner.run(self._engine.scale(namespace, name, role, replicas))

    def suspend(self, namespace: str, name: str) -> Job:
        return self._runner.run(self._engine.suspend(namespace, name))

    def resume(self, namespace: str, name: str) -> Job:
        return self._runner.run(self._engine.resume(namespace, name))

    # What happened to them

    def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        return self._runner.run(self._engine.pods(namespace, name, uid))

    def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        return self._runner.run(self._engine.events(namespace, name, after, uid))

    def capacity(self, namespace: str | None = None) -> Capacity:
        return self._runner.run(self._engine.capacity(namespace))

    def storage(self) -> Storage:
        return self._runner.run(self._engine.storage())

    # Streams

    def logs(self, namespace: str, name: str, query: LogQuery) -> Generator[LogUpdate, None, None]:
        return self._runner.stream(self._engine.logs(namespace, name, query))

    def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> Generator[JobUpdate, None, None]:
        return self._runner.stream(self._engine.follow(namespace, name, query, status=status))

    def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> Generator[WatchUpdate, None, None]:
        return self._runner.stream(self._engine.watch(namespace, name))

    def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> Generator[EventView | Lost, None, None]:
        return self._runner.stream(self._engine.follow_events(namespace, name, after))


def in_loop_thread(open_engine: Callable[[], Engine]) -> Blocking:
    """An engine that is made, and lives, in the event loop of a thread of its own."""
    from regatta.engines.loop_thread import LoopThread

    runner = LoopThread()
    try:
        return Blocking(runner.run(_opened(open_engine)), runner)
    except BaseException:
        runner.close()
        raise


async def _opened(open_engine: Callable[[], Engine]) -> Engine:
    return open_engine()
