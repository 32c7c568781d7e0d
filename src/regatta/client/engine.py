"""A Regatta server as an `Engine`: every question is a request, every stream one that resumes."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from regatta.api.errors import ServerUnreachable, Unanswered
from regatta.api.job import Job
from regatta.client.channel import Channel, Query, not_regatta
from regatta.client.event_stream import ServerEvent
from regatta.client.resume import resuming
from regatta.client.server_info import API, read_info
from regatta.client.watch_memory import WatchMemory
from regatta.engines.base import (
    Accepted,
    Capacity,
    EventView,
    Gone,
    JobUpdate,
    LogBatch,
    LogLine,
    LogQuery,
    LogUpdate,
    Lost,
    PodView,
    Preview,
    Remark,
    Shell,
    Submission,
    Synced,
    Traits,
    WatchUpdate,
)
from regatta.engines.logs.positions import decode_position, encode_position

#: A submission that arrived before is answered at once.
SECOND_TRY_SECONDS = 30.0

T = TypeVar("T")


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]


class _Why(msgspec.Struct, frozen=True):
    why: str = ""


class _Text(msgspec.Struct, frozen=True):
    text: str = ""


class ServerEngine:
    def __init__(self, channel: Channel, traits: Traits | None = None) -> None:
        """`traits`, where they are known without asking."""
        self._channel = channel
        self._traits = traits

    async def traits(self) -> Traits:
        if self._traits is None:
            self._traits = (await read_info(self._channel)).traits
        return self._traits

    async def version(self) -> str:
        return (await read_info(self._channel)).version

    async def close(self) -> None:
        """Connections are as short as what goes over them."""

    # Jobs

    async def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        body = _body(submission, shell)
        try:
            answer = await self._channel.request("POST", f"{API}/jobs", body=body)
        except Unanswered as lost:
            if not submission.key:
                raise
            answer = await self._submit_again(body, lost)
        return self._read(answer, Accepted)

    async def _submit_again(self, body: object, lost: Unanswered) -> bytes:
        """It may have arrived; with its key, saying it twice is saying it once."""
        try:
            return await self._channel.request(
                "POST", f"{API}/jobs", body=body, timeout=SECOND_TRY_SECONDS
            )
        except ServerUnreachable:
            raise lost from None

    async def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        query = {"dryRun": "stored" if stored else "true"}
        return await self._ask(Preview, "POST", "/jobs", query, _body(submission, shell))

    async def get(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "GET", _job(namespace, name))

    async def list(self, namespace: str | None = None) -> builtins.list[Job]:
        return await self._items(Job, "/jobs", {"namespace": namespace})

    async def stop(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", _job(namespace, name) + "/stop")

    async def delete(self, namespace: str, name: str) -> None:
        await self._channel.request("DELETE", API + _job(namespace, name))

    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        body = {"role": role, "replicas": replicas}
        return await self._ask(Job, "POST", _job(namespace, name) + "/scale", body=body)

    async def suspend(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", _job(namespace, name) + "/suspend")

    async def resume(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", _job(namespace, name) + "/resume")

    # What happened to them

    async def pods(self, namespace: str, name: str) -> builtins.list[PodView]:
        return await self._items(PodView, _job(namespace, name) + "/pods", {})

    async def events(
        self, namespace: str | None, name: str | None, after: int = 0
    ) -> builtins.list[EventView]:
        query = {"namespace": namespace, "job": name, "after": after or None}
        return await self._items(EventView, "/events", query)

    async def capacity(self, namespace: str | None = None) -> Capacity:
        return await self._ask(Capacity, "GET", "/capacity", {"namespace": namespace})

    # Streams

    async def logs(
        self, namespace: str, name: str, query: LogQuery
    ) -> AsyncGenerator[LogUpdate, None]:
        wanted = _log_query(query)
        async with aclosing(self._log_stream(namespace, name, query, wanted)) as updates:
            async for update in updates:
                if isinstance(update, LogBatch | Remark):
                    yield update

    async def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        wanted = {**_log_query(query), "follow": True, "status": status}
        async with aclosing(self._log_stream(namespace, name, query, wanted)) as updates:
            async for update in updates:
                yield update
                if isinstance(update, Gone):
                    return

    async def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        memory = WatchMemory()
        query = {"namespace": namespace, "name": name}
        async with aclosing(resuming(self._channel, f"{API}/watch", query)) as events:
            async for event in events:
                match event:
                    case Lost():
                        memory.reconnected()
                        yield event
                    case ServerEvent("job", data, _):
                        job = self._read(data, Job)
                        if memory.is_news((job.namespace, job.name), data):
                            yield job
                    case ServerEvent("gone", data, _):
                        gone = self._read(data, Gone)
                        if memory.forget(gone):
                            yield gone
                    case ServerEvent("synced", _, _):
                        for key in memory.vanished():
                            yield Gone(*key)
                        if memory.first_sync():
                            yield Synced()
                    case ServerEvent("lost", data, _):
                        yield Lost(self._read(data, _Why).why)

    async def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView | Lost, None]:
        query = {"namespace": namespace, "job": name, "follow": True}
        last_id = str(after) if after else ""
        async with aclosing(resuming(self._channel, f"{API}/events", query, last_id)) as events:
            async for event in events:
                match event:
                    case Lost():
                        yield event
                    case ServerEvent("event", data, _):
                        yield self._read(data, EventView)
                    case ServerEvent("lost", data, _):
                        yield Lost(self._read(data, _Why).why)

    async def _log_stream(
        self, namespace: str, name: str, query: LogQuery, wanted: Query
    ) -> AsyncGenerator[JobUpdate, None]:
        path = API + _job(namespace, name) + "/logs"
        last_id = encode_position(query.after)
        async with aclosing(resuming(self._channel, path, wanted, last_id)) as events:
            async for event in events:
                match event:
                    case Lost():
                        yield event
                    case ServerEvent("lines", data, position):
                        yield self._batch(data, position)
                    case ServerEvent("remark", data, _):
                        yield Remark(self._read(data, _Text).text)
                    case ServerEvent("job", data, _):
                        yield self._read(data, Job)
                    case ServerEvent("gone", _, _):
                        yield Gone(namespace, name)
                    case ServerEvent("lost", data, _):
                        yield Lost(self._read(data, _Why).why)

    # Reading what came

    async def _ask(
        self,
        kind: type[T],
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
    ) -> T:
        answer = await self._channel.request(method, API + path, query=query, body=body)
        return self._read(answer, kind)

    async def _items(self, kind: type[T], path: str, query: Query) -> builtins.list[T]:
        answer = await self._channel.request("GET", API + path, query=query)
        return [self._read(item, kind) for item in self._read(answer, _Items).items]

    def _read(self, answer: bytes | str | msgspec.Raw, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as odd:
            raise not_regatta(self._channel.url, f"its answer cannot be read ({odd})") from odd

    def _batch(self, lines: str, position: str) -> LogBatch:
        return LogBatch(self._read(lines, tuple[LogLine, ...]), decode_position(position))


def _body(submission: Submission, shell: Shell | None) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(submission),
        "shell": None if shell is None else msgspec.to_builtins(shell),
    }


def _job(namespace: str, name: str) -> str:
    return f"/namespaces/{quote(namespace, safe='')}/jobs/{quote(name, safe='')}"


def _log_query(query: LogQuery) -> dict[str, str | int | bool | None]:
    return {
        "role": query.role,
        "index": query.index,
        "previous": query.previous,
        "since": query.since.isoformat() if query.since else None,
        "tail": query.tail,
        "grep": query.grep,
    }
