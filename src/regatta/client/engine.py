"""A Regatta server as an `Engine`: every question is one request; `streams.py` has the rest."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from regatta.api.errors import ServerUnreachable, Unanswered
from regatta.api.job import Job
from regatta.client.channel import API, Channel, Query, read
from regatta.engines.base import (
    OF_SERVERS,
    SAID_BY_SERVERS,
    Accepted,
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

#: A submission that arrived before is answered at once.
SECOND_TRY_SECONDS = 30.0

T = TypeVar("T")


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]


class ServerEngine:
    def __init__(self, channel: Channel, traits: Traits | None = None) -> None:
        """`traits`, where they are known without asking."""
        self._channel = channel
        self._traits = traits

    async def traits(self) -> Traits:
        if self._traits is None:
            from regatta.client.server_info import read_info

            self._traits = (await read_info(self._channel)).traits
        return self._traits

    async def version(self) -> str:
        from regatta.client.server_info import read_info

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
        return read(self._channel, answer, Accepted)

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
        return await self._ask(Preview, "POST", f"{API}/jobs", query, _body(submission, shell))

    async def get(self, namespace: str, name: str, uid: str = "") -> Job:
        return await self._ask(Job, "GET", job_path(namespace, name), _of(uid))

    async def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        query: Query = {"namespace": namespace, "finished": finished}
        return await self._items(Job, f"{API}/jobs", query)

    async def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        query: Query = {"namespace": namespace, "name": name, "limit": limit, **_of(uid)}
        return await self._items(RunView, f"{API}/runs", query)

    async def stop(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", job_path(namespace, name) + "/stop")

    async def delete(self, namespace: str, name: str) -> None:
        await self._channel.request("DELETE", job_path(namespace, name))

    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        before = ended_before.isoformat() if ended_before else None
        query: Query = {"live": live, "endedBefore": before}
        return await self._ask(Removal, "DELETE", jobs_path(namespace), query)

    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        body = {"role": role, "replicas": replicas}
        return await self._ask(Job, "POST", job_path(namespace, name) + "/scale", body=body)

    async def suspend(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", job_path(namespace, name) + "/suspend")

    async def resume(self, namespace: str, name: str) -> Job:
        return await self._ask(Job, "POST", job_path(namespace, name) + "/resume")

    # What happened to them

    async def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        return await self._items(PodView, job_path(namespace, name) + "/pods", _of(uid))

    async def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        query: Query = {"namespace": namespace, "job": name, "after": after or None, **_of(uid)}
        return await self._items(EventView, f"{API}/events", query)

    async def capacity(self, namespace: str | None = None) -> Capacity:
        return await self._ask(Capacity, "GET", f"{API}/capacity", {"namespace": namespace})

    async def storage(self) -> Storage:
        return await self._ask(Storage, "GET", f"{API}/storage")

    # Streams: imported when one is opened, as most commands open none

    def logs(self, namespace: str, name: str, query: LogQuery) -> AsyncGenerator[LogUpdate, None]:
        from regatta.client.streams import logs

        return logs(self._channel, job_path(namespace, name), query)

    def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        from regatta.client.streams import follow

        return follow(self._channel, job_path(namespace, name), query, status=status)

    def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        from regatta.client.streams import watch

        return watch(self._channel, namespace, name)

    def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView | Lost, None]:
        from regatta.client.streams import follow_events

        return follow_events(self._channel, namespace, name, after)

    # Reading what came

    async def _ask(
        self,
        kind: type[T],
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
    ) -> T:
        answer = await self._channel.request(method, path, query=query, body=body)
        return read(self._channel, answer, kind)

    async def _items(self, kind: type[T], path: str, query: Query) -> builtins.list[T]:
        answer = await self._channel.request("GET", path, query=query)
        return [
            read(self._channel, item, kind) for item in read(self._channel, answer, _Items).items
        ]


def _body(submission: Submission, shell: Shell | None) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(submission)
    body = {field: value for field, value in said.items() if field not in SAID_BY_SERVERS}
    return {**body, "shell": None if shell is None else _said(shell)}


def _said(shell: Shell) -> dict[str, Any]:
    sent: dict[str, Any] = msgspec.to_builtins(shell)
    return {field: value for field, value in sent.items() if field not in OF_SERVERS}


def jobs_path(namespace: str) -> str:
    return f"{API}/namespaces/{quote(namespace, safe='')}/jobs"


def job_path(namespace: str, name: str) -> str:
    return f"{jobs_path(namespace)}/{quote(name, safe='')}"


def _of(uid: str) -> dict[str, str | None]:
    return {"uid": uid or None}
