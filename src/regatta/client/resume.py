"""A stream that outlives its connection: it reconnects, and goes on where it was.

It ends only when the server says that nothing more can come. A server that was killed is found
again (or started again) by the same rules as for any request; one that a person has stopped stays
stopped.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from regatta.api.errors import (
    RegattaError,
    ServerHangs,
    ServerStopped,
    ServerUnreachable,
    UnusableFile,
    WrongDoor,
)
from regatta.client.channel import Channel, Query, told
from regatta.client.event_stream import ServerEvent
from regatta.engines.base import Lost

#: How long a stream tries to find its server again before it gives up.
PATIENCE_SECONDS = 60.0
#: Pauses between tries double, until a connection has lasted this long.
FIRST_PAUSE, STEADY_SECONDS = 0.05, 5.0


async def resuming(
    channel: Channel, path: str, query: Query, last_id: str = ""
) -> AsyncGenerator[ServerEvent | Lost, None]:
    """1. Ends after an `end` event. A stream that closes without one is taken up again.
    2. Each connection starts after the last id of the one before, the first after `last_id`.
    3. `Lost` says that a connection is gone; what comes next is of another one.
    4. A refusal (404, 400) is raised: asking again would not change it. So is an `error` event, and
       so is a server that hangs, or cannot start, before anything came; later on it may be in a
       moment's trouble.
       So is `ServerStopped`.
    """
    tried = begun = False
    lost_since, pause = 0.0, FIRST_PAUSE
    while True:
        opened = time.monotonic()
        why = "the server closed the connection"
        failure: RegattaError | None = None
        try:
            stream = channel.events(path, query=query, last_id=last_id, again=tried)
            async with aclosing(stream) as events:
                async for event in events:
                    last_id, lost_since, begun = event.id or last_id, 0.0, True
                    if event.event == "end":
                        return
                    if event.event == "error":
                        failure = told(channel.url, event.data)
                        break
                    yield event
        except ServerStopped:
            raise
        except (ServerHangs, UnusableFile, WrongDoor) as hopeless:
            if not begun:
                raise
            why = str(hopeless)
        except ServerUnreachable as broken:
            why = str(broken)
        except RegattaError as refusal:
            if refusal.status != 503:
                raise
            why = str(refusal)
        tried = True
        if failure is not None:
            raise failure
        now = time.monotonic()
        if now - opened > STEADY_SECONDS:
            pause = FIRST_PAUSE
        if not lost_since:
            lost_since = now
            yield Lost(why)
        elif now - lost_since > PATIENCE_SECONDS:
            raise ServerUnreachable(why)
        await channel.sleep(pause)
        pause = min(pause * 2, 1.0)
