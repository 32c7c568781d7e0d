"""One informer for all readers of this process that look at the same things.

What it promises:
1. The first reader of a scope starts its informer, others share it, and the last one that leaves
   stops it, after a while in which another may still come.
2. A reader is told what is there of its part, then every change of that part, in order and once.
   What moves out of the part is gone for it.
3. A change calls only the readers of the parts that it is in, however many others there are.
4. A first list that fails is told to whoever waits for it. After that, an informer looks for its
   cluster by itself, and a reader sees in `trouble` that it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import KubeError, Unreachable
from regatta.engines.kubernetes.api.models import KubeObject
from regatta.engines.kubernetes.api.resources import Resource
from regatta.engines.kubernetes.cache.index import Indexer
from regatta.engines.kubernetes.cache.informer import DEFAULTS, Informer, InformerSettings
from regatta.engines.kubernetes.cache.mirror import Handler

T = TypeVar("T", bound=KubeObject)

#: How long an informer may take to hear of what another request has shown already.
CATCH_UP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Scope(Generic[T]):
    """What one informer looks at, and how it files what it finds."""

    resource: Resource
    kind: type[T]
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    indexers: tuple[tuple[str, Indexer[T]], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Which objects of a scope: those filed under a value, one by its key, or all."""

    index: str = ""
    value: str = ""

    @classmethod
    def one(cls, key: str) -> Part:
        return cls("", key)


EVERYTHING = Part()


class SharedInformers:
    def __init__(
        self,
        client: KubeClient,
        settings: InformerSettings = DEFAULTS,
        *,
        linger_seconds: float = 0.0,
    ) -> None:
        self._client = client
        self._settings = settings
        self._linger = linger_seconds
        self._sources: dict[Scope[Any], _Source[Any]] = {}
        self._leaving: dict[Scope[Any], asyncio.TimerHandle] = {}

    @property
    def running(self) -> int:
        return len(self._sources)

    @asynccontextmanager
    async def reader(
        self, scope: Scope[T], part: Part, changed: Handler[T], *, seen: str = ""
    ) -> AsyncIterator[Reader[T]]:
        """`changed` hears what is there before this gives way, then what changes, until it ends.
        It must be quick and must not fail.

        An informer that others started may be a moment behind: `seen` is the resource version of
        something the caller knows of already, and nothing older is told.
        """
        source = self._join(scope)
        try:
            await source.begin()
            await source.catch_up(seen)
            source.subscribe(part, changed)
            try:
                yield Reader(source)
            finally:
                source.unsubscribe(part, changed)
        finally:
            await self._leave(scope, source)

    async def close(self) -> None:
        for waiting in self._leaving.values():
            waiting.cancel()
        self._leaving.clear()
        sources, self._sources = list(self._sources.values()), {}
        for source in sources:
            source.task.cancel()
        await asyncio.gather(*(source.task for source in sources), return_exceptions=True)

    def _join(self, scope: Scope[T]) -> _Source[T]:
        if (waiting := self._leaving.pop(scope, None)) is not None:
            waiting.cancel()
        source = self._sources.get(scope)
        if source is None or source.failed:
            source = self._sources[scope] = _Source(self._client, scope, self._settings)
        source.readers += 1
        return source

    async def _leave(self, scope: Scope[T], source: _Source[T]) -> None:
        source.readers -= 1
        if source.readers:
            return
        if self._sources.get(scope) is not source:  # a failed one that was begun again, or closed
            source.task.cancel()
        elif self._linger and not source.failed and source.begun.done():
            loop = asyncio.get_running_loop()
            self._leaving[scope] = loop.call_later(self._linger, self._stop, scope)
            return
        else:
            self._stop(scope)
        await asyncio.gather(source.task, return_exceptions=True)

    def _stop(self, scope: Scope[Any]) -> None:
        self._leaving.pop(scope, None)
        self._sources.pop(scope).task.cancel()


class Reader(Generic[T]):
    def __init__(self, source: _Source[T]) -> None:
        self._source = source

    @property
    def trouble(self) -> str:
        """Why what is told may be late; empty while a watch stands. Raises what no time mends."""
        task = self._source.task
        if task.done() and not task.cancelled():
            task.result()  # raises what it ended with
        if self._source.informer.refusal is not None:
            raise self._source.informer.refusal
        return self._source.informer.trouble


class _Source(Generic[T]):
    """An informer at work, and who hears of what."""

    def __init__(self, client: KubeClient, scope: Scope[T], settings: InformerSettings) -> None:
        self._indexers = scope.indexers
        self._handlers: dict[Part, list[Handler[T]]] = {}
        self.readers = 0
        self.informer: Informer[T] = Informer(
            client,
            scope.resource,
            scope.kind,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            indexers=dict(scope.indexers),
            settings=settings,
        )
        self.informer.on_change(self._route)
        #: How the first list went.
        self.begun: asyncio.Future[KubeError | None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run())

    @property
    def failed(self) -> bool:
        return self.begun.done() and (self.begun.cancelled() or self.begun.result() is not None)

    async def begin(self) -> None:
        failure = await asyncio.shield(self.begun)
        if failure is not None:
            raise failure

    async def catch_up(self, seen: str) -> None:
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while seen.isdecimal() and not self.informer.has_seen(seen):
            if time.monotonic() > deadline:
                raise Unreachable(self.informer.trouble or "the cluster's watches are far behind")
            await asyncio.sleep(0.01)

    async def _run(self) -> None:
        try:
            await self.informer.begin()
        except KubeError as failure:
            self.begun.set_result(failure)
            return
        except BaseException:
            self.begun.cancel()
            raise
        self.begun.set_result(None)
        await self.informer.run()

    def subscribe(self, part: Part, changed: Handler[T]) -> None:
        for thing in self._present(part):
            changed(None, thing)
        self._handlers.setdefault(part, []).append(changed)

    def unsubscribe(self, part: Part, changed: Handler[T]) -> None:
        handlers = self._handlers[part]
        handlers.remove(changed)
        if not handlers:
            del self._handlers[part]

    def _present(self, part: Part) -> list[T]:
        store = self.informer.store
        if part.index:
            return list(store.by(part.index, part.value))
        if part.value:
            found = store.get(part.value)
            return [] if found is None else [found]
        return list(store)

    def _route(self, old: T | None, new: T | None) -> None:
        thing = new or old
        assert thing is not None
        for part in (EVERYTHING, Part.one(thing.metadata.key)):
            self._tell(part, old, new)
        for index, indexer in self._indexers:
            was = _values(indexer, old)
            now = was if new is old else _values(indexer, new)
            for value in {*was, *now}:
                part = Part(index, value)
                self._tell(part, old if value in was else None, new if value in now else None)

    def _tell(self, part: Part, old: T | None, new: T | None) -> None:
        for handler in self._handlers.get(part, ()):
            handler(old, new)


def _values(indexer: Indexer[T], thing: T | None) -> Iterable[str]:
    return () if thing is None else tuple(indexer(thing))
