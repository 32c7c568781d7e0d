"""The sources behind the streams: what an engine keeps, turned into events as it changes.

Level-triggered throughout: a watcher that was slow or away is shown how things are, not what it
missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
from starlette.concurrency import run_in_threadpool

from regatta.api.errors import JobNotFound
from regatta.api.job import Job, document
from regatta.engines.base import Engine, LogBatch
from regatta.server.streams import sse
from regatta.server.streams.changes import Changes
from regatta.server.streams.positions import encode_position

#: Changes that come closer together than this are told as one.
SETTLE_SECONDS = 0.05


async def watch_jobs(
    engine: Engine, changes: Changes, namespace: str | None, name: str | None
) -> AsyncIterator[bytes]:
    told: dict[tuple[str, str], bytes] = {}
    synced, version = False, -1
    while not changes.closing:
        version = await changes.after(version, sse.HEARTBEAT_SECONDS)
        present = {
            (job.namespace, job.name): msgspec.json.encode(document(job))
            for job in await run_in_threadpool(_matching, engine, namespace, name)
        }
        for key, encoded in present.items():
            if told.get(key) != encoded:
                yield sse.event("job", msgspec.Raw(encoded))
        for key in told.keys() - present.keys():
            yield sse.event("gone", key)
        told = present
        if not synced:
            synced = True
            yield sse.event("synced", {})
        await asyncio.sleep(SETTLE_SECONDS)


async def follow_status(
    engine: Engine, changes: Changes, namespace: str, name: str, *, once: bool = False
) -> AsyncIterator[bytes]:
    """`job` now and whenever it changed, `gone` when it is no more."""
    told, version = b"", -1
    while not changes.closing:
        version = await changes.after(version, sse.HEARTBEAT_SECONDS)
        try:
            job = await run_in_threadpool(engine.get, namespace, name)
        except JobNotFound:
            yield sse.event("gone", (namespace, name))
            return
        encoded = msgspec.json.encode(document(job))
        if encoded != told:
            told = encoded
            yield sse.event("job", msgspec.Raw(encoded))
        if once:
            return
        await asyncio.sleep(SETTLE_SECONDS)


async def log_lines(batches: Iterator[LogBatch], changes: Changes) -> AsyncIterator[bytes]:
    arriving = sse.from_thread(batches)
    try:
        async for batch in arriving:
            if changes.closing:
                return
            if batch.lines:
                yield sse.event("lines", batch.lines, encode_position(batch.after))
    finally:
        await arriving.aclose()


def _matching(engine: Engine, namespace: str | None, name: str | None) -> list[Job]:
    if namespace is not None and name is not None:
        try:
            return [engine.get(namespace, name)]
        except JobNotFound:
            return []
    jobs = engine.list(namespace)
    return [job for job in jobs if name is None or job.name == name]
