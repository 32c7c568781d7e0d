"""A local copy of one kind of object, kept true by a watch.

What it promises, whatever the network does:
1. After `synced`, the store is the cluster's state as of some moment, and moves forward in time.
2. Every difference is told to every handler exactly once, as `(old, new)`; `None` is absence.
   An object that vanished while we were not looking is told as deleted, and one that was replaced
   under the same name as deleted and then created.
3. A watch that ends resumes where it was; one that the server has forgotten (410, as a status or
   as an event) is listed anew; one that falls silent is given up after `silence_seconds`, and
   listed anew if it never spoke.
4. Failures are repeated with growing, spread pauses, never in a tight loop.
5. An event costs the same however many objects there are.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from regatta.engines.kubernetes.api.answers import decoder_of
from regatta.engines.kubernetes.api.backoff import Backoff
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError, Stalled, refusal
from regatta.engines.kubernetes.api.models import Bare, KubeObject
from regatta.engines.kubernetes.api.resources import Resource
from regatta.engines.kubernetes.cache.index import Indexer, Store
from regatta.engines.kubernetes.cache.mirror import Handler, Mirror

T = TypeVar("T", bound=KubeObject)

_log = logging.getLogger(__name__)


class InformerSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: A watch without even a bookmark for this long is dead. They come about once a minute.
    silence_seconds: float = 75.0
    #: How long the server lets one watch run: chosen at random, so that they do not end together.
    shortest_watch_seconds: float = 240.0
    longest_watch_seconds: float = 480.0
    #: How old the last full list may be before the store is checked against another.
    relist_seconds: float = 1800.0
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0


DEFAULTS = InformerSettings()


class Counts(msgspec.Struct):
    """What an informer has been through, for metrics."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    #: Differences that only a full list brought to light, after the first one.
    found_by_list: int = 0
    unreadable: int = 0


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_bare = msgspec.json.Decoder(Bare).decode


class Informer(Generic[T]):
    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, Indexer[T]] | None = None,
        settings: InformerSettings = DEFAULTS,
    ) -> None:
        self.resource = resource
        self._mirror: Mirror[T] = Mirror(Store(indexers or {}))
        self.synced = asyncio.Event()
        self.counts = Counts()
        #: Why the copy may be growing old; empty while a watch stands.
        self.trouble = ""
        #: A right to watch that is missing: no time mends it.
        self.refusal: ApiError | None = None
        self._client = client
        self._decode = decoder_of(kind)
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._settings = settings
        #: From where the watch goes on; empty when only a list can tell.
        self._position = ""
        #: Up to where the store knows everything. A watch that breaks takes nothing of that away.
        self._known = -1
        self._listed_at = 0.0
        self._backoff = Backoff(settings.first_pause_seconds, settings.longest_pause_seconds)

    def on_change(self, handler: Handler[T]) -> None:
        """Called in the order of events, while the store already shows the new state. It must be
        quick and must not fail; what it misses by coming late it can read from the store."""
        self._mirror.handlers.append(handler)

    @property
    def store(self) -> Store[T]:
        return self._mirror.store

    def has_seen(self, resource_version: str) -> bool:
        """Whether the store shows everything up to this write."""
        return self._known >= int(resource_version)

    async def begin(self) -> None:
        """The first list, for whoever must know that it can be had: its failure is raised, where
        `run` would wait for better times."""
        await self._list()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self._position:
                    await self._list()
                elif time.monotonic() - self._listed_at >= self._settings.relist_seconds:
                    await self._check()
                await self._watch()
            except KubeError as trouble:
                await self._recover(trouble)

    async def _recover(self, trouble: KubeError) -> None:
        gone = isinstance(trouble, ApiError) and trouble.gone
        if isinstance(trouble, ApiError) and trouble.forbidden:
            self.refusal = trouble
        if gone:
            self._position = ""
        self.counts.failures += 1
        pause = self._backoff.failed()
        if isinstance(trouble, ApiError) and trouble.retry_after is not None:
            pause = max(pause, min(trouble.retry_after, self._settings.longest_pause_seconds))
        if gone and self._backoff.failures == 1:
            pause = 0.0  # Nothing is wrong with the server; it has only forgotten.
        text = f"{self.resource.plural}: {trouble}"
        level = logging.INFO if gone or text == self.trouble else logging.WARNING
        self.trouble = text
        _log.log(level, "watching %s; trying again in %.1f s", text, pause)
        await asyncio.sleep(pause)

    # Listing

    async def _check(self) -> None:
        """A list for safety. If it fails, the watch goes on and the next list is soon enough."""
        try:
            await self._list()
        except KubeError as trouble:
            self.counts.failures += 1
            self._listed_at = time.monotonic()
            _log.warning("checking %s against a full list: %s", self.resource.plural, trouble)

    async def _list(self) -> None:
        listing = await self._client.collect(
            self.resource,
            self._read,
            namespace=self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
        )
        self.counts.lists += 1
        differences = self._mirror.replace(thing for thing in listing.items if thing is not None)
        if self.synced.is_set():
            self.counts.found_by_list += differences
        self._listed_at = time.monotonic()
        self._reached(listing.resource_version)
        self.synced.set()

    def _read(self, text: msgspec.Raw) -> T | None:
        """One object that we cannot read must not blind us to the others."""
        try:
            return self._decode(text)
        except msgspec.DecodeError as unreadable:
            self.counts.unreadable += 1
            name = _decode_bare(text).metadata.key
            _log.error("%s %s cannot be read: %s", self.resource.kind, name, unreadable)
            return None

    # Watching

    async def _watch(self) -> None:
        settings = self._settings
        seconds = random.uniform(settings.shortest_watch_seconds, settings.longest_watch_seconds)
        until_list = self._listed_at + settings.relist_seconds - time.monotonic()
        began = time.monotonic()
        heard = self.counts.events
        try:
            async with self._client.watch(
                self.resource,
                resource_version=self._position,
                namespace=self._namespace,
                label_selector=self._labels,
                field_selector=self._fields,
                timeout_seconds=max(1, round(min(seconds, until_list))),
                silence=settings.silence_seconds,
            ) as lines:
                self.counts.watches += 1
                self.trouble, self.refusal = "", None
                async for line in lines:
                    self._event(line)
                    self._backoff.worked()
        except Stalled:
            if self.counts.events == heard:
                # Perhaps the network. Perhaps a cluster restored from a backup, which counts from
                # lower than we have seen: it answers such a watch with silence, for ever.
                self._position = ""
            raise
        if self.counts.events == heard and time.monotonic() - began < settings.first_pause_seconds:
            raise KubeError("the watch ended as soon as it began")
        self._backoff.worked()

    def _event(self, line: bytes) -> None:
        try:
            event = _decode_event(line)
        except msgspec.DecodeError as broken:
            # Half a line, from a connection that died in the middle of it: ask for it again.
            raise KubeError(f"a watch event that is not one: {broken}") from broken
        if event.type == "ERROR":
            raise refusal(0, bytes(event.object), "the watch was ended by the server")
        self.counts.events += 1
        if event.type == "BOOKMARK":
            self._reached(_decode_bare(event.object).metadata.resource_version)
            return
        thing = self._read(event.object)
        if thing is None:
            self._reached(_decode_bare(event.object).metadata.resource_version)
            return
        if event.type == "DELETED":
            self._mirror.deleted(thing)
        else:
            self._mirror.put(thing)
        self._reached(thing.metadata.resource_version)

    def _reached(self, resource_version: str) -> None:
        self._position, self._known = resource_version, int(resource_version)
