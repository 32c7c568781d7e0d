"""Streams that outlive the server: they reconnect and go on where they were.

Each yields what changed, in order, and ends only when the server says that nothing more can
come. A server that was killed is found again (or started again) by the same rules as for any
command. None of this knows how things are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from regatta.api.errors import RegattaError, ServerHangs, ServerUnreachable
from regatta.api.job import Job, decode_job
from regatta.client.client import Client
from regatta.client.event_stream import ServerEvent
from regatta.client.http import refused
from regatta.engines.base import EventView, Gone, LogLine, LogQuery, Lost, Synced

#: How long a stream tries to find its server again before it gives up.
PATIENCE_SECONDS = 60.0
#: Pauses between tries double, until a connection has lasted this long.
FIRST_PAUSE, STEADY_SECONDS = 0.05, 5.0

Connect = Callable[[], Client]

_decode_lines = msgspec.json.Decoder(tuple[LogLine, ...]).decode
_decode_event = msgspec.json.Decoder(EventView).decode


def follow_job(
    connect: Connect, namespace: str, name: str, query: LogQuery, *, status: bool = True
) -> Iterator[Lines | Job | Gone | Lost]:
    """A job's log lines, and its status whenever it changed, until it is over and drained."""

    def open_stream(client: Client, last_id: str) -> Iterator[ServerEvent]:
        return client.stream_logs(namespace, name, query, last_id, status=status)

    for event in _resuming(connect, open_stream):
        match event:
            case Lost():
                yield event
            case ServerEvent("lines", data, _):
                yield Lines(_decode_lines(data))
            case ServerEvent("job", data, _):
                yield decode_job(data)
            case ServerEvent("gone", _, _):
                yield Gone(namespace, name)
                return


def watch_jobs(
    connect: Connect, namespace: str | None, name: str | None = None
) -> Iterator[Job | Gone | Synced | Lost]:
    """Every matching job as it is now, then each one again when it changed. Has no end."""

    def open_stream(client: Client, last_id: str) -> Iterator[ServerEvent]:
        return client.stream_jobs(namespace, name)

    for event in _resuming(connect, open_stream):
        match event:
            case Lost():
                yield event
            case ServerEvent("job", data, _):
                yield decode_job(data)
            case ServerEvent("gone", data, _):
                yield msgspec.json.decode(data, type=Gone)
            case ServerEvent("synced", _, _):
                yield Synced()


def follow_events(
    connect: Connect, namespace: str | None, name: str | None
) -> Iterator[EventView | Lost]:
    """Events from the first one kept, then as they happen. Has no end."""

    def open_stream(client: Client, last_id: str) -> Iterator[ServerEvent]:
        return client.stream_events(namespace, name, last_id)

    for event in _resuming(connect, open_stream):
        if isinstance(event, Lost):
            yield event
        elif event.event == "event":
            yield _decode_event(event.data)


def _resuming(
    connect: Connect, open_stream: Callable[[Client, str], Iterator[ServerEvent]]
) -> Iterator[ServerEvent | Lost]:
    """1. Ends after an `end` event. A stream that closes without one is taken up again.
    2. Each connection starts after the last id of the one before.
    3. A refusal (404, 400) is raised: asking again would not change it. So is a server that hangs
       before anything came; later on it may be in a moment's trouble.
    """
    begun = False
    last_id, lost_since, pause = "", 0.0, FIRST_PAUSE
    while True:
        opened = time.monotonic()
        why = "the server closed the connection"
        try:
            for event in open_stream(connect(), last_id):
                last_id, lost_since, begun = event.id or last_id, 0.0, True
                if event.event == "end":
                    return
                if event.event == "error":
                    raise refused(500, event.data.encode())
                yield event
        except ServerHangs as hangs:
            if not begun:
                raise
            why = str(hangs)
        except ServerUnreachable as broken:
            why = str(broken)
        except RegattaError as refusal:
            if refusal.status != 503:
                raise
            why = str(refusal)
        now = time.monotonic()
        if now - opened > STEADY_SECONDS:
            pause = FIRST_PAUSE
        if not lost_since:
            lost_since = now
            yield Lost(why)
        elif now - lost_since > PATIENCE_SECONDS:
            raise ServerUnreachable(why)
        time.sleep(pause)
        pause = min(pause * 2, 1.0)
