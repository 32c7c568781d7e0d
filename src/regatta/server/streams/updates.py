"""What engines' streams carry, as server-sent events. `client/` reads the same words."""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import Job, document
from regatta.engines.base import Gone, JobUpdate, LogBatch, Lost, Remark, WatchUpdate
from regatta.engines.inventory import EventView
from regatta.engines.logs.positions import encode_position

Update = JobUpdate | WatchUpdate | EventView


def event(kind: str, data: Any, id: str | None = None) -> bytes:
    head = f"event: {kind}\n" if id is None else f"event: {kind}\nid: {id}\n"
    # JSON has no raw newline, so one data line holds everything.
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


def event_of(update: Update) -> bytes:
    match update:
        case LogBatch(lines, after):
            return event("lines", lines, encode_position(after))
        case Job():
            return event("job", document(update))
        case EventView():
            return event("event", update, str(update.id))
        case Gone():
            return event("gone", update)
        case Remark(text):
            return event("remark", {"text": text})
        case Lost(why):
            return event("lost", {"why": why})
        case _:
            return event("synced", {})
