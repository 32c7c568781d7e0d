"""Where a log stream goes on from, as one line that fits an HTTP header.

The engine keeps one position per pod (`run:segment:offset`, because a plain offset dies with
rotation); a stream of many pods carries them all: `uid=run:segment:offset;uid=...`.
"""

from __future__ import annotations

from regatta.api.errors import BadRequest


def encode_position(after: dict[str, str]) -> str:
    return ";".join(f"{uid}={position}" for uid, position in sorted(after.items()))


def decode_position(text: str) -> dict[str, str]:
    after = {}
    for part in filter(None, text.split(";")):
        uid, found, position = part.partition("=")
        if not found or not uid or not position:
            raise BadRequest(
                f"Last-Event-ID: {part[:80]!r} is no log position; send the id of the last "
                "event as it came, or none to begin at the start"
            )
        after[uid] = position
    return after
