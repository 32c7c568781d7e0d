"""A server's streams as an engine's: events over the wire become what `engines/base` names."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from regatta.api.job import Job
from regatta.client.channel import API, Channel, Query, read
from regatta.client.event_stream import ServerEvent
from regatta.client.resume import resuming
from regatta.client.watch_memory import WatchMemory
from regatta.engines.base import (
    Gone,
    JobUpdate,
    LogBatch,
    LogLine,
    LogQuery,
    LogUpdate,
    Lost,
    Remark,
    Synced,
    WatchUpdate,
)
from regatta.engines.inventory import EventView
from regatta.engines.logs.positions import decode_position, encode_position


class _Why(msgspec.Struct, frozen=True):
    why: str = ""


class _Text(msgspec.Struct, frozen=True):
    text: str = ""


async def logs(channel: Channel, job_path: str, query: LogQuery) -> AsyncGenerator[LogUpdate, None]:
    async with aclosing(_job_updates(channel, job_path, query, {})) as updates:
        async for update in updates:
            if isinstance(update, LogBatch | Remark):
                yield update


async def follow(
    channel: Channel, job_path: str, query: LogQuery, *, status: bool
) -> AsyncGenerator[JobUpdate, None]:
    more: Query = {"follow": True, "status": status}
    async with aclosing(_job_updates(channel, job_path, query, more)) as updates:
        async for update in updates:
            yield update
            if isinstance(update, Gone):
                return


async def _job_updates(
    channel: Channel, job_path: str, query: LogQuery, more: Query
) -> AsyncGenerator[JobUpdate, None]:
    wanted: Query = {
        "uid": query.uid or None,
        "role": query.role,
        "index": query.index,
        "previous": query.previous,
        "attempt": query.attempt,
        "since": query.since.isoformat() if query.since else None,
        "tail": query.tail,
        "grep": query.grep,
        **more,
    }
    last_id = encode_position(query.after)
    async with aclosing(resuming(channel, f"{job_path}/logs", wanted, last_id)) as events:
        async for event in events:
            match event:
                case Lost():
                    yield event
                case ServerEvent("lines", data, position):
                    lines = read(channel, data, tuple[LogLine, ...])
                    yield LogBatch(lines, decode_position(position))
                case ServerEvent("remark", data, _):
                    yield Remark(read(channel, data, _Text).text)
                case ServerEvent("job", data, _):
                    yield read(channel, data, Job)
                case ServerEvent("gone", data, _):
                    yield read(channel, data, Gone)
                case ServerEvent("lost", data, _):
                    yield Lost(read(channel, data, _Why).why)


async def watch(
    channel: Channel, namespace: str | None, name: str | None
) -> AsyncGenerator[WatchUpdate, None]:
    memory = WatchMemory()
    query = {"namespace": namespace, "name": name}
    async with aclosing(resuming(channel, f"{API}/watch", query)) as events:
        async for event in events:
            match event:
                case Lost():
                    memory.reconnected()
                    yield event
                case ServerEvent("job", data, _):
                    job = read(channel, data, Job)
                    if memory.is_news((job.namespace, job.name), data):
                        yield job
                case ServerEvent("gone", data, _):
                    gone = read(channel, data, Gone)
                    if memory.forget(gone):
                        yield gone
                case ServerEvent("synced", _, _):
                    for key in memory.vanished():
                        yield Gone(*key)
                    if memory.first_sync():
                        yield Synced()
                case ServerEvent("lost", data, _):
                    yield Lost(read(channel, data, _Why).why)


async def follow_events(
    channel: Channel, namespace: str | None, name: str | None, after: int
) -> AsyncGenerator[EventView | Lost, None]:
    query: Query = {"namespace": namespace, "job": name, "follow": True}
    last_id = str(after) if after else ""
    async with aclosing(resuming(channel, f"{API}/events", query, last_id)) as events:
        async for event in events:
            match event:
                case Lost():
                    yield event
                case ServerEvent("event", data, _):
                    yield read(channel, data, EventView)
                case ServerEvent("lost", data, _):
                    yield Lost(read(channel, data, _Why).why)
