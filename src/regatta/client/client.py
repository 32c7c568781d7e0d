"""Everything a door can ask of the server, one method each, typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from regatta.api.job import Job
from regatta.client.event_stream import ServerEvent
from regatta.client.http import Http, not_regatta
from regatta.engines.base import (
    Accepted,
    EventView,
    LogQuery,
    MachineView,
    PodView,
    Preview,
    Submission,
)

API = "/regatta/v1"

T = TypeVar("T")


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    version: str
    pid: int
    url: str = ""
    home: str = ""
    engine: str = "local"
    started_at: float = 0.0
    #: False where it runs in the foreground (`regatta serve`).
    guarded: bool = True


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]


class Client:
    def __init__(self, http: Http) -> None:
        self.http = http

    # jobs

    def submit(self, submission: Submission) -> Accepted:
        return self._ask(Accepted, "POST", "/jobs", body=submission)

    def preview(self, submission: Submission) -> Preview:
        return self._ask(Preview, "POST", "/jobs", query={"dryRun": True}, body=submission)

    def get(self, namespace: str, name: str) -> Job:
        return self._ask(Job, "GET", job_path(namespace, name))

    def jobs(self, namespace: str | None) -> list[Job]:
        return self._items(Job, "/jobs", {"namespace": namespace})

    def stop(self, namespace: str, name: str) -> Job:
        return self._ask(Job, "POST", job_path(namespace, name) + "/stop")

    def delete(self, namespace: str, name: str) -> None:
        self.http.request("DELETE", API + job_path(namespace, name))

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        body = {"role": role, "replicas": replicas}
        return self._ask(Job, "POST", job_path(namespace, name) + "/scale", body=body)

    def suspend(self, namespace: str, name: str) -> Job:
        return self._ask(Job, "POST", job_path(namespace, name) + "/suspend")

    def resume(self, namespace: str, name: str) -> Job:
        return self._ask(Job, "POST", job_path(namespace, name) + "/resume")

    # what happened to them

    def pods(self, namespace: str, name: str) -> list[PodView]:
        return self._items(PodView, job_path(namespace, name) + "/pods", {})

    def events(self, namespace: str | None, name: str | None, after: int = 0) -> list[EventView]:
        query = {"namespace": namespace, "job": name, "after": after or None}
        return self._items(EventView, "/events", query)

    # streams: one connection each, see `follow` for those that survive the server's death

    def stream_logs(
        self, namespace: str, name: str, query: LogQuery, last_id: str, *, status: bool
    ) -> Iterator[ServerEvent]:
        wanted = {
            "role": query.role,
            "index": query.index,
            "previous": query.previous,
            "since": query.since.isoformat() if query.since else None,
            "tail": query.tail,
            "grep": query.grep,
            "follow": query.follow,
            "status": status,
        }
        path = API + job_path(namespace, name) + "/logs"
        return self.http.events(path, query=wanted, last_id=last_id)

    def stream_jobs(self, namespace: str | None, name: str | None) -> Iterator[ServerEvent]:
        return self.http.events(API + "/watch", query={"namespace": namespace, "name": name})

    def stream_events(
        self, namespace: str | None, name: str | None, last_id: str
    ) -> Iterator[ServerEvent]:
        query = {"namespace": namespace, "job": name, "follow": True}
        return self.http.events(API + "/events", query=query, last_id=last_id)

    # the machine and the server

    def machine(self) -> MachineView:
        return self._ask(MachineView, "GET", "/machine")

    def server(self) -> ServerInfo:
        return self._ask(ServerInfo, "GET", "/server")

    def stop_server(self) -> None:
        self.http.request("POST", API + "/server/stop")

    def _ask(
        self,
        kind: type[T],
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: object = None,
    ) -> T:
        answer = self.http.request(method, API + path, query=query, body=body)
        return self._read(answer, kind)

    def _items(self, kind: type[T], path: str, query: dict[str, Any]) -> list[T]:
        answer = self.http.request("GET", API + path, query=query)
        return [self._read(item, kind) for item in self._read(answer, _Items).items]

    def _read(self, answer: bytes | msgspec.Raw, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as odd:
            raise not_regatta(self.http.url, f"its answer cannot be read ({odd})") from odd


def job_path(namespace: str, name: str) -> str:
    return f"/namespaces/{quote(namespace, safe='')}/jobs/{quote(name, safe='')}"
