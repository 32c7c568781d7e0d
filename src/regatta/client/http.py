"""Requests to one server over the standard library, for start-up time.

Knows URLs, tokens, and how a refusal looks; knows nothing about jobs.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import closing
from urllib.parse import urlencode, urlsplit

import msgspec

from regatta.api.problems import Problem
from regatta.client.errors import ClientError, Refused, ServerUnreachable, Unanswered
from regatta.client.sse import ServerEvent, parse

#: A submit may import the training environment first (within a budget of its own, well below
#: this); nothing else takes long.
REQUEST_SECONDS = 120.0
#: The server sends a heartbeat every 3 seconds; silence much longer means it is gone.
SILENCE_SECONDS = 15.0

Query = Mapping[str, str | int | bool | None]


class _Refusal(msgspec.Struct):
    code: str = "Error"
    message: str = ""
    problems: tuple[Problem, ...] = ()


class Http:
    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ClientError(
                f"the server address {url!r} is not a URL; write it as http://HOST:PORT"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._secure = parts.scheme == "https"
        self._netloc = parts.netloc
        self._prefix = parts.path.rstrip("/")
        self._token = token

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float = REQUEST_SECONDS,
    ) -> bytes:
        """Raises `Unanswered` where the request went out and the answer did not come whole."""
        with closing(self._connect(timeout)) as connection:
            response = self._send(connection, method, path, query, body)
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as broken:
                raise Unanswered(f"the answer of {self.url} was cut off: {broken}") from broken

    def events(
        self, path: str, *, query: Query | None = None, last_id: str = ""
    ) -> Iterator[ServerEvent]:
        """The events of one connection. Raises `ServerUnreachable` when it breaks or falls silent;
        returns when the server closed it in order."""
        extra = {"Accept": "text/event-stream"}
        if last_id:
            extra["Last-Event-ID"] = last_id
        with closing(self._connect(SILENCE_SECONDS)) as connection:
            response = self._send(connection, "GET", path, query, None, extra)
            try:
                yield from parse(iter(response.readline, b""))
            except (OSError, http.client.HTTPException) as broken:
                raise ServerUnreachable(f"the connection to {self.url} broke: {broken}") from broken

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._netloc, timeout=timeout)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        query: Query | None,
        body: object,
        extra: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._token}", **(extra or {})}
        payload = None
        if body is not None:
            payload = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as broken:
            raise ServerUnreachable(f"no server answers at {self.url}: {broken}") from broken
        try:
            connection.request(method, self._prefix + path + _written(query), payload, headers)
            response = connection.getresponse()
        except TimeoutError as slow:
            raise Unanswered(
                f"the server at {self.url} did not answer in time; its log may say why "
                "(`regatta server status` names it)"
            ) from slow
        except (OSError, http.client.HTTPException) as broken:
            raise Unanswered(f"no server answers at {self.url}: {broken}") from broken
        if response.status >= 400:
            raise refused(response.status, response.read())
        return response


def _written(query: Query | None) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (query or {}).items()
        if value is not None and value is not False
    }
    return f"?{urlencode(given)}" if given else ""


def refused(status: int, body: bytes) -> Refused:
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:
        text = body[:200].decode("utf-8", "replace").strip()
        refusal = _Refusal("NotRegatta", f"an answer that is not Regatta's: HTTP {status} {text}")
    return Refused(status, refusal.code, refusal.message, refusal.problems)
