"""Reading server-sent events from bytes as they come."""

from __future__ import annotations

from typing import NamedTuple


class ServerEvent(NamedTuple):
    event: str
    data: str
    id: str


class EventReader:
    """Fed with parts of a stream, cut anywhere; gives the events that are whole.

    Comments (heartbeats) are passed over. An event that the stream's end cut off is dropped, as the
    format demands: what it carried is sent again after its predecessor's id.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event, self._id = "message", ""
        self._data: list[str] = []

    def feed(self, part: bytes) -> list[ServerEvent]:
        *lines, self._rest = (self._rest + part).split(b"\n")
        found = []
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line:
                self._field(line)
            elif self._data:
                found.append(ServerEvent(self._event, "\n".join(self._data), self._id))
                self._event, self._data = "message", []
            else:
                self._event = "message"
        return found

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match field:
            case b"event":
                self._event = text
            case b"data":
                self._data.append(text)
            case b"id":
                self._id = text
