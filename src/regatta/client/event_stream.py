"""Reading server-sent events from a stream of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    event: str
    data: str
    id: str


def parse(lines: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Events in the order they came; comments (heartbeats) are skipped.

    An event that the stream's end cut off is dropped, as the format demands: what it carried is
    sent again after its predecessor's id.
    """
    event, last_id = "message", ""
    data: list[str] = []
    for raw in lines:
        line = raw.rstrip(b"\r\n")
        if not line:
            if data:
                yield ServerEvent(event, "\n".join(data), last_id)
            event, data = "message", []
            continue
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match field:
            case b"event":
                event = text
            case b"data":
                data.append(text)
            case b"id":
                last_id = text
