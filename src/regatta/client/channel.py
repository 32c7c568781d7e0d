"""What a way to a server is, and what all of them do alike: how a request is written, and how a
refusal is read. Knows URLs, tokens and JSON, and nothing about jobs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from regatta.api.errors import NotRegatta, RegattaError, ServerUnreachable, error_of
from regatta.api.problems import Problem
from regatta.client.whereabouts import Place, Whereabouts

if TYPE_CHECKING:
    from regatta.client.event_stream import ServerEvent

API = "/regatta/v1"
#: A submit may import the training environment first (within a budget of its own, well below
#: this); nothing else takes long.
REQUEST_SECONDS = 120.0
#: The server sends a heartbeat every 3 seconds; silence much longer means it is gone.
SILENCE_SECONDS = 15.0
#: What one in front of a server says of it.
_OF_PROXIES = (502, 503, 504)

Query = Mapping[str, str | int | bool | None]


T = TypeVar("T")


class Channel(Protocol):
    """Exchanges with one server, wherever it is at the moment: each looks for it anew when the one
    before was lost. All raise the same errors."""

    @property
    def url(self) -> str:
        """Where the server was last, for messages."""
        ...

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float | None = None,
    ) -> bytes:
        """Raises `ServerUnreachable` where nothing went out, and `Unanswered` where the request did
        and the answer did not come whole."""
        ...

    def events(
        self, path: str, *, query: Query | None = None, last_id: str = "", again: bool = False
    ) -> AsyncGenerator[ServerEvent, None]:
        """The events of one connection; `again`: in place of one that was lost. Raises
        `ServerUnreachable` when it breaks or falls silent; returns when the server closed it in
        order."""
        ...

    async def sleep(self, seconds: float) -> None: ...


async def reached(
    where: Whereabouts,
    find: Callable[[], Awaitable[Place]],
    dial: Callable[[Place], Awaitable[T]],
) -> tuple[Place, T]:
    """A connection to the server, looked for once more where it may be elsewhere by now."""
    place = await find()
    try:
        return place, await dial(place)
    except ServerUnreachable:
        if not where.lost():
            raise
    place = await find()
    return place, await dial(place)


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    payload: bytes | None


class _Refusal(msgspec.Struct):
    code: str = "Error"
    message: str = ""
    problems: tuple[Problem, ...] = ()


def written(
    place: Place, method: str, path: str, query: Query | None = None, body: object = None
) -> Request:
    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    payload = None
    if body is not None:
        payload = msgspec.json.encode(body)
        headers["Content-Type"] = "application/json"
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (query or {}).items()
        if value is not None and value is not False
    }
    target = place.prefix + path + (f"?{urlencode(given)}" if given else "")
    return Request(method, target, headers, payload)


def for_events(request: Request, last_id: str) -> Request:
    """The same request, for a stream that goes on after this event."""
    headers = {**request.headers, "Accept": "text/event-stream"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    return request._replace(headers=headers)


def check_redirect(place: Place, status: int, location: str | None) -> None:
    if 300 <= status < 400:
        raise not_regatta(place.url, f"it redirects to {location or 'nowhere'}")


def check_streams(place: Place, content_type: str) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise not_regatta(place.url, f"it sent {kind or 'something'} where a stream was asked for")


def read(channel: Channel, answer: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as odd:
        raise not_regatta(channel.url, f"its answer cannot be read ({odd})") from odd


def refused(url: str, status: int, body: bytes | str) -> RegattaError:
    """What a refusal of whatever answers at `url` means."""
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        refusal = _Refusal()
    if not refusal.message and not refusal.problems:
        # A page of somebody else's is many lines of markup: the status says as much.
        refusal = _Refusal(NotRegatta.code, str(not_regatta(url, _http(status))))
    return error_of(refusal.code, status, refusal.message, refusal.problems)


def _http(status: int) -> str:
    if status in _OF_PROXIES:
        return f"it answers HTTP {status}, as a proxy does whose server is away"
    return f"it answers HTTP {status}"


def told(url: str, data: str) -> RegattaError:
    """The error that ends a stream, whose answer had begun well."""
    error = refused(url, 500, data)
    error.status = type(error).status
    return error


def not_regatta(url: str, why: str) -> RegattaError:
    return NotRegatta(
        f"what answers at {url} is not a Regatta server of this version: {why}; check the address "
        "(--server, REGATTA_SERVER), and that `regatta serve` runs there"
    )


def not_in_time(url: str) -> str:
    return (
        f"the server at {url} did not answer in time; its log may say why "
        "(`regatta server status` names it)"
    )
