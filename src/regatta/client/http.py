"""Requests to one server over the standard library, for start-up time.

Knows URLs, tokens, and how a refusal looks; knows nothing about jobs.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import closing
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from regatta.api.errors import (
    BadAddress,
    NotRegatta,
    RegattaError,
    ServerUnreachable,
    Unanswered,
    error_of,
)
from regatta.api.problems import Problem
from regatta.client.event_stream import ServerEvent, parse

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
        parts = _parsed(url)
        if not (token.isascii() and token.isprintable()):
            raise BadAddress(
                "the token holds characters that no token has; set REGATTA_TOKEN to the content of "
                "the server's server.token"
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
            kind = response.headers.get_content_type()
            if kind != "text/event-stream":
                raise not_regatta(self.url, f"it sent {kind} where a stream was asked for")
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
        except (OSError, UnicodeError, http.client.HTTPException) as broken:
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
            raise refused(response.status, _rest(response))
        if response.status >= 300:
            where = response.headers.get("Location", "nowhere")
            raise not_regatta(self.url, f"it redirects to {where}", response.status)
        return response


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        # It has an opinion of its own about what a host may look like.
        http.client.HTTPConnection(parts.netloc)
    except (ValueError, http.client.InvalidURL):
        usable = False
    if not usable:
        raise BadAddress(f"the server address {url!r} is not a URL; write it as http://HOST:PORT")
    return parts


def _rest(response: http.client.HTTPResponse) -> bytes:
    """What there is of a refusal's body; the status alone says enough."""
    try:
        return response.read()
    except (OSError, http.client.HTTPException):
        return b""


def _written(query: Query | None) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (query or {}).items()
        if value is not None and value is not False
    }
    return f"?{urlencode(given)}" if given else ""


def refused(status: int, body: bytes) -> RegattaError:
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:200].decode("utf-8", "replace").strip()
        refusal = _Refusal("NotRegatta", f"an answer that is not Regatta's: HTTP {status} {text}")
    return error_of(refusal.code, status, refusal.message, refusal.problems)


def not_regatta(url: str, why: str, status: int = 200) -> RegattaError:
    message = (
        f"what answers at {url} is not a Regatta server of this version: {why}; check --server "
        "and REGATTA_SERVER"
    )
    return NotRegatta(message)
